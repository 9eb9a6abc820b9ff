//! The kernels of this build, and which of them run on this CPU.

use serde::Serialize;
use wattlock_engine::crypto::stitched::StitchedKernel;
use wattlock_engine::crypto::{self, AesKernel, GcmKernel, KeccakKernel, ShaKernel};

/// One kernel, and whether this CPU has what it takes.
#[derive(Serialize)]
pub struct Kernel {
    /// Its name.
    pub name: &'static str,
    /// What it computes: "AES-GCM". A kernel of two algorithms is listed for each.
    pub algorithm: &'static str,
    /// True if it runs on this CPU.
    pub runs_here: bool,
    /// True if it is used unless another is asked for.
    pub chosen: bool,
    /// Whether it was measured on CPUs of this class; none where it does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<bool>,
    /// Why it does not run here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

impl Kernel {
    /// [`Kernel::algorithm`] of ECB, CBC and CTR.
    pub const AES: &str = "AES";
    /// [`Kernel::algorithm`] of what AWS-LC does everywhere.
    pub const CHACHA20_POLY1305: &str = "ChaCha20-Poly1305";
}

/// All kernels.
pub fn kernels() -> Vec<Kernel> {
    let kernel = |algorithm, name, best: &str, found: Result<bool, crypto::Error>| Kernel {
        name,
        algorithm,
        runs_here: found.is_ok(),
        chosen: name == best,
        measured: found.as_ref().ok().copied(),
        why_not: found.err().map(|error| error.to_string()),
    };
    let aes = AesKernel::NAMES.map(|name| {
        let found = AesKernel::named(name).map(AesKernel::measured);
        kernel(Kernel::AES, name, AesKernel::best().name(), found)
    });
    let keccak = KeccakKernel::NAMES.map(|name| {
        let found = KeccakKernel::named(name).map(KeccakKernel::measured);
        kernel("Keccak", name, KeccakKernel::best().name(), found)
    });
    let sha = ShaKernel::NAMES.map(|name| {
        let found = ShaKernel::named(name).map(ShaKernel::measured);
        kernel("SHA-1 and SHA-2", name, ShaKernel::best().name(), found)
    });
    let gcm = GcmKernel::NAMES.map(|name| {
        let found = GcmKernel::named(name).map(GcmKernel::measured);
        kernel("AES-GCM", name, GcmKernel::best().name(), found)
    });
    let always = |algorithm, name| kernel(algorithm, name, name, Ok(true));
    let chacha = always(Kernel::CHACHA20_POLY1305, GcmKernel::AwsLc.name());
    let best = StitchedKernel::best().map_or("", StitchedKernel::name);
    let stitched = StitchedKernel::NAMES.map(|name| {
        kernel(
            "CBC with HMAC",
            name,
            best,
            StitchedKernel::named(name).map(StitchedKernel::measured),
        )
    });
    let all = aes.into_iter().chain(keccak).chain(sha).chain(gcm).chain([chacha]).chain(stitched);
    all.chain([always("all others", "portable")]).collect()
}
