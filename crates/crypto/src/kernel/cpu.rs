//! What this CPU can do, as proof tokens: whoever holds one may call the kernels that ask for it.

/// Proof that the CPU has AES-NI and SSE4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AesNi(());

/// Proof that the CPU has VAES on 512-bit registers, and AES-NI as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vaes512(AesNi);

/// Proof that the CPU has SHA-NI, the instructions for SHA-1 and SHA-256, and AES-NI as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaNi(AesNi);

/// Proof that the CPU has the parts of AVX-512 that the Keccak kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx512(());

impl AesNi {
    /// What the CPU has to have, for errors.
    pub(crate) const NEEDS: &str = "AES-NI and SSE4.1";

    /// The token, where the CPU has the instructions.
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let found = is_x86_feature_detected!("aes") && is_x86_feature_detected!("sse4.1");
            found.then_some(Self(()))
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }
}

impl Vaes512 {
    /// What the CPU has to have, for errors.
    pub(crate) const NEEDS: &str = "VAES, AVX512F, AVX512BW and AVX512VL";

    /// The token, where the CPU has the instructions and the system saves the registers.
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let found = is_x86_feature_detected!("vaes")
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl");
            AesNi::detect().filter(|_| found).map(Self)
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// VAES is never without AES-NI.
    pub fn aes_ni(self) -> AesNi {
        self.0
    }
}

impl ShaNi {
    /// What the CPU has to have, for errors.
    pub(crate) const NEEDS: &str = "SHA-NI, SSSE3 and AES-NI";

    /// The token, where the CPU has the instructions.
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let found = is_x86_feature_detected!("sha") && is_x86_feature_detected!("ssse3");
            AesNi::detect().filter(|_| found).map(Self)
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// SHA-NI without AES-NI is not asked for.
    pub fn aes_ni(self) -> AesNi {
        self.0
    }
}

impl Avx512 {
    /// What the CPU has to have, for errors.
    pub(crate) const NEEDS: &str = "AVX512F, AVX512DQ, AVX512BW and AVX512VL";

    /// The token, where the CPU has the instructions and the system saves the registers.
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let found = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl");
            found.then_some(Self(()))
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }
}
