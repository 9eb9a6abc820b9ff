//! Which code works on a message of AES-GCM.

use std::sync::OnceLock;

use crate::choice;
use crate::error::Error;
use crate::kernel::cpu::{self, GcmAesNi, GcmVaes256, GcmVaes512};

/// Code for AES-GCM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GcmKernel {
    /// AWS-LC's, which chooses by itself and runs everywhere.
    AwsLc,
    /// VAES, VPCLMULQDQ and AVX-512: four blocks a register.
    Vaes512(GcmVaes512),
    /// VAES, VPCLMULQDQ and AVX2: two blocks a register.
    Vaes256(GcmVaes256),
    /// AES-NI and PCLMULQDQ: a block a register.
    AesNi(GcmAesNi),
}

/// The longest message in bytes that a kernel does itself where AWS-LC has VAES and AVX-512; AWS-LC does longer ones in
/// less time. `wattlock-lab bench ciphers` prints these lines; of two classes of CPU, the shorter length stands here. Where
/// AWS-LC has no AVX-512 either, all of them are faster than it at every length.
const LONGEST: [(&str, usize); 3] =
    [("gcm-vaes512", usize::MAX), ("gcm-vaes256", 2048), ("gcm-aes-ni", 512)];

impl GcmKernel {
    /// The names of all kernels, those of other CPUs included.
    pub const NAMES: [&str; 4] = ["aws-lc", "gcm-vaes512", "gcm-vaes256", "gcm-aes-ni"];

    /// The fastest kernel of this CPU, among those that were measured on CPUs of its kind.
    pub fn best() -> Self {
        static BEST: OnceLock<GcmKernel> = OnceLock::new();
        *BEST.get_or_init(|| {
            let own = GcmVaes512::detect().map(Self::Vaes512);
            own.filter(|kernel| kernel.measured()).unwrap_or(Self::AwsLc)
        })
    }

    /// True for AWS-LC's code, and if kernels were measured on CPUs of this class. Where they were not, ours are used
    /// by name only.
    pub fn measured(self) -> bool {
        self == Self::AwsLc || cpu::measured().is_some()
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
            "gcm-vaes256" => {
                choice::found(GcmVaes256::detect(), name, GcmVaes256::NEEDS).map(Self::Vaes256)
            }
            "gcm-aes-ni" => {
                choice::found(GcmAesNi::detect(), name, GcmAesNi::NEEDS).map(Self::AesNi)
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
            Self::Vaes256(_) => "gcm-vaes256",
            Self::AesNi(_) => "gcm-aes-ni",
        }
    }

    /// The longest message in bytes that a key of this kernel does itself. AWS-LC does longer ones.
    pub(crate) fn longest(self) -> usize {
        if GcmVaes512::detect().is_none() {
            return usize::MAX;
        }
        let of_this = LONGEST.iter().find(|(name, _)| *name == self.name());
        of_this.map_or(usize::MAX, |(_, longest)| *longest)
    }
}
