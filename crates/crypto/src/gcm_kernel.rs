//! Which code works on a message of AES-GCM.

use std::sync::OnceLock;

use crate::choice;
use crate::error::Error;
use crate::kernel::cpu::{self, GcmVaes512};

/// Code for AES-GCM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GcmKernel {
    /// AWS-LC's, which chooses by itself and runs everywhere.
    AwsLc,
    /// VAES, VPCLMULQDQ and AVX-512: four blocks a register.
    Vaes512(GcmVaes512),
}

impl GcmKernel {
    /// The names of all kernels, those of other CPUs included.
    pub const NAMES: [&str; 2] = ["aws-lc", "gcm-vaes512"];

    /// The fastest kernel of this CPU, among those that were measured on CPUs of its kind.
    pub fn best() -> Self {
        static BEST: OnceLock<GcmKernel> = OnceLock::new();
        *BEST.get_or_init(|| {
            let own = GcmVaes512::detect().map(Self::Vaes512);
            own.filter(|kernel| kernel.measured()).unwrap_or(Self::AwsLc)
        })
    }

    /// True if this kernel was run and measured on a CPU of this vendor that has the same instructions. The others
    /// have to be asked for by name.
    pub fn measured(self) -> bool {
        match self {
            Self::AwsLc => true,
            Self::Vaes512(_) => cpu::is_intel(),
        }
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], or [`Error::KernelAbsent`] with the reason.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "aws-lc" => Ok(Self::AwsLc),
            "gcm-vaes512" => {
                choice::found(GcmVaes512::detect(), name, GcmVaes512::NEEDS).map(Self::Vaes512)
            }
            _ => Err(Error::UnknownKernel(name.to_owned())),
        }
    }

    /// The kernels that run on this CPU.
    pub fn all() -> Vec<Self> {
        choice::all(&Self::NAMES, Self::named)
    }

    /// The kernels that do not, each with the reason.
    pub fn absent() -> Vec<(&'static str, String)> {
        choice::absent(&Self::NAMES, Self::named)
    }

    /// The name that file, bench and JSON share.
    pub fn name(self) -> &'static str {
        match self {
            Self::AwsLc => "aws-lc",
            Self::Vaes512(_) => "gcm-vaes512",
        }
    }
}
