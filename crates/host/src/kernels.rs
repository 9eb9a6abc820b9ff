//! The kernels of this build, and which of them run on this CPU.

use serde::Serialize;
use wattlock_engine::crypto::stitched::StitchedKernel;
use wattlock_engine::crypto::{self, AesKernel, GcmKernel, KeccakKernel, ShaKernel};

/// One kernel, and whether this CPU has what it takes.
#[derive(Serialize)]
pub struct Kernel {
    /// Its name.
    pub name: &'static str,
    /// True if it runs on this CPU.
    pub runs_here: bool,
    /// True if it is used unless another is asked for.
    pub chosen: bool,
    /// Whether it was measured on a CPU of this kind; none where it does not run. No other is used
    /// unless it is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<bool>,
    /// Why it does not run here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// All kernels.
pub fn kernels() -> Vec<Kernel> {
    let kernel = |name, best: &str, found: Result<bool, crypto::Error>| Kernel {
        name,
        runs_here: found.is_ok(),
        chosen: name == best,
        measured: found.as_ref().ok().copied(),
        why_not: found.err().map(|error| error.to_string()),
    };
    let aes = AesKernel::NAMES.map(|name| {
        kernel(name, AesKernel::best().name(), AesKernel::named(name).map(AesKernel::measured))
    });
    let keccak = KeccakKernel::NAMES.map(|name| {
        let found = KeccakKernel::named(name).map(KeccakKernel::measured);
        kernel(name, KeccakKernel::best().name(), found)
    });
    let sha = ShaKernel::NAMES
        .map(|name| kernel(name, ShaKernel::best().name(), ShaKernel::named(name).map(|_| true)));
    let gcm = GcmKernel::NAMES.map(|name| {
        let found = GcmKernel::named(name).map(GcmKernel::measured);
        let gcm = kernel(name, GcmKernel::best().name(), found);
        // AWS-LC does ChaCha20-Poly1305 everywhere.
        Kernel { chosen: gcm.chosen || name == GcmKernel::AwsLc.name(), ..gcm }
    });
    let best = StitchedKernel::best().map_or("", StitchedKernel::name);
    let stitched = StitchedKernel::NAMES
        .map(|name| kernel(name, best, StitchedKernel::named(name).map(|_| true)));
    let always = |name| kernel(name, name, Ok(true));
    let all = aes.into_iter().chain(keccak).chain(sha).chain(gcm).chain(stitched);
    all.chain([always("portable")]).collect()
}
