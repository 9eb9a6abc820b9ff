//! The CPU kernels: code for one instruction set each, and the only unsafe code of this crate.
//!
//! [`BlockKernel`] is what a kernel does with an expanded AES key. The plain reading of AES is
//! `aes_soft.rs`; the other files do the same with other means and refer to it.
#![allow(unsafe_code)]
// What only a feature uses is not dead; a build with all of them finds what is.
#![cfg_attr(
    not(all(feature = "mac-then-encrypt", feature = "roofline")),
    allow(dead_code, unused_imports)
)]

#[cfg(target_arch = "aarch64")]
pub(crate) mod aes_armv8;
#[cfg(target_arch = "x86_64")]
mod aes_expansion;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod aes_loops;
#[cfg(target_arch = "x86_64")]
pub(crate) mod aes_ni;
#[cfg(target_arch = "x86_64")]
mod aes_ni_few;
pub(crate) mod aes_soft;
#[cfg(target_arch = "x86_64")]
pub(crate) mod aes_vaes256;
#[cfg(target_arch = "x86_64")]
pub(crate) mod aes_vaes512;
#[cfg(target_arch = "x86_64")]
mod aes_vaes512_ctr;
#[cfg(target_arch = "x86_64")]
mod aes_vaes512_lanes;
#[cfg(target_arch = "x86_64")]
mod aes_vaes512_rounds;
mod cbc_records;
#[cfg(all(target_arch = "x86_64", feature = "mac-then-encrypt"))]
pub(crate) mod cbc_sha_avx512;
#[cfg(all(target_arch = "x86_64", feature = "mac-then-encrypt"))]
pub(crate) mod cbc_sha_ni;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gcm;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gcm_aes_ni;
#[cfg(target_arch = "x86_64")]
mod gcm_key;
#[cfg(target_arch = "x86_64")]
mod gcm_narrow;
#[cfg(target_arch = "x86_64")]
mod gcm_narrow_key;
#[cfg(target_arch = "x86_64")]
mod gcm_narrow_memory;
#[cfg(target_arch = "x86_64")]
mod gcm_narrow_rounds;
pub(crate) mod gcm_parts;
pub(crate) mod gcm_text;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gcm_vaes256;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gcm_vaes512;
#[cfg(target_arch = "x86_64")]
mod gcm_vaes512_hash;
#[cfg(target_arch = "x86_64")]
mod gcm_vaes512_long;
#[cfg(target_arch = "x86_64")]
mod gcm_vaes512_memory;
#[cfg(target_arch = "x86_64")]
mod gcm_vaes512_parts;
#[cfg(target_arch = "x86_64")]
mod gcm_vaes512_short;
#[cfg(target_arch = "x86_64")]
mod gcm_vaes512_short_parts;
#[cfg(target_arch = "aarch64")]
pub(crate) mod keccak_armv8;
#[cfg(target_arch = "x86_64")]
pub(crate) mod keccak_avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod keccak_avx512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod keccak_avx512_planes;
#[cfg(target_arch = "x86_64")]
pub(crate) mod keccak_avx512_words;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod keccak_rounds;
pub(crate) mod keccak_soft;
#[cfg(all(target_arch = "x86_64", feature = "roofline"))]
pub(crate) mod memory_avx512;
pub(crate) mod proof;
mod round_keys;
#[cfg(target_arch = "x86_64")]
pub(crate) mod sha_avx512;
#[cfg(target_arch = "x86_64")]
mod sha_avx512_words;
#[cfg(target_arch = "x86_64")]
pub(crate) mod sha_ni;
#[cfg(target_arch = "x86_64")]
mod vector128;
#[cfg(target_arch = "x86_64")]
mod vector512;

pub(crate) use cbc_records::cbc_encrypt_records;
pub(crate) use round_keys::RoundKeys;

/// What this CPU can do, as proof tokens: whoever holds one may call the kernels that ask for it. Only
/// this module can make one. `wattlock doctor` lists the features and the kernels that need them.
pub(crate) mod cpu {
    super::proof::proofs! {
        on "x86_64";
        /// Proof that the CPU has AES-NI and SSE4.1.
        struct AesNi(()): ["aes", "sse4.1"], "AES-NI and SSE4.1", for ["aes-ni"];
        /// Proof that the CPU has VAES on 256-bit registers, and AES-NI as well.
        struct Vaes256(AesNi): ["vaes", "avx2"], "VAES and AVX2",
            for ["aes-vaes256"];
        /// Proof that the CPU has VAES on 512-bit registers, and AES-NI as well.
        struct Vaes512(AesNi): ["vaes", "avx512f", "avx512bw", "avx512vl"],
            "VAES, AVX512F, AVX512BW and AVX512VL",
            for ["aes-vaes512", "cbc-sha-avx512"];
        /// Proof that the CPU has SHA-NI, the instructions for SHA-1 and SHA-256, and AES-NI as well.
        struct ShaNi(AesNi): ["sha", "ssse3"], "SHA-NI, SSSE3 and AES-NI",
            for ["sha-ni", "cbc-sha-ni", "cbc-sha-avx512"];
        /// Proof that the CPU has AVX2.
        struct Avx2(()): ["avx2"], "AVX2",
            for ["keccak-avx2"];
        /// Proof that the CPU has the parts of AVX-512 that the kernels of Keccak and SHA use.
        struct Avx512(()): ["avx512f", "avx512dq", "avx512bw", "avx512vl"],
            "AVX512F, AVX512DQ, AVX512BW and AVX512VL",
            for ["keccak-avx512", "sha-avx512"];
        /// Proof that the CPU has VAES and VPCLMULQDQ on 512-bit registers.
        struct GcmVaes512(Vaes512): ["vpclmulqdq", "avx512dq", "avx512vbmi2", "bmi2"],
            "VAES, VPCLMULQDQ, AVX512F, AVX512BW, AVX512DQ, AVX512VL, AVX512VBMI2 and BMI2",
            for ["gcm-vaes512"];
        /// Proof that the CPU has VAES and VPCLMULQDQ on 256-bit registers.
        struct GcmVaes256(Vaes256): ["vpclmulqdq"], "VAES, VPCLMULQDQ and AVX2", for ["gcm-vaes256"];
        /// Proof that the CPU has AES-NI and PCLMULQDQ.
        struct GcmAesNi(AesNi): ["pclmulqdq", "ssse3"], "AES-NI, PCLMULQDQ, SSSE3 and SSE4.1",
            for ["gcm-aes-ni"];
        others {
            "pclmulqdq": "GHASH of AWS-LC's AES-GCM",
            "avx2": "ChaCha20-Poly1305 of AWS-LC",
            "gfni": "nothing of Wattlock yet",
        }
    }

    /// A class of CPU on which kernels were measured: one or two CPUs for all of its class.
    #[derive(Clone, Copy, PartialEq, Eq)]
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "these are x86-64's"))]
    pub enum Measured {
        /// Intel's with AVX-512, VAES and SHA-NI, by Emerald Rapids and Granite Rapids.
        Intel,
        /// Zen 5 with registers of 512 bits all through, by an EPYC.
        Zen5,
        /// Zen 4, by an EPYC.
        Zen4,
    }

    /// The class of this CPU. `None` where nobody has measured.
    pub fn measured() -> Option<Measured> {
        #[cfg(target_arch = "x86_64")]
        {
            // A hypervisor answers `cpuid` itself, which takes microseconds.
            static CLASS: std::sync::OnceLock<Option<Measured>> = std::sync::OnceLock::new();
            *CLASS.get_or_init(|| {
                let [vendor, version] = [0, 1].map(std::arch::x86_64::__cpuid);
                let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat();
                let family = ((version.eax >> 8) & 0xf) + ((version.eax >> 20) & 0xff);
                let model = ((version.eax >> 12) & 0xf0) | ((version.eax >> 4) & 0xf);
                let class = match (name.as_slice(), family, model) {
                    (b"GenuineIntel", ..) => Measured::Intel,
                    // Servers and desktops. Most others of Zen 5 have half as wide paths; some are Zen 6.
                    (b"AuthenticAMD", 26, 0x00..=0x1f | 0x40..=0x4f) => Measured::Zen5,
                    // Zen 3 is of this family as well, and has no AVX-512.
                    (b"AuthenticAMD", 25, _) => Measured::Zen4,
                    _ => return None,
                };
                (Vaes512::detect().is_some() && ShaNi::detect().is_some()).then_some(class)
            })
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    impl Vaes256 {
        /// VAES is never without AES-NI.
        pub fn aes_ni(self) -> AesNi {
            self.0
        }
    }

    impl Vaes512 {
        /// VAES is never without AES-NI.
        pub fn aes_ni(self) -> AesNi {
            self.0
        }
    }

    impl ShaNi {
        /// SHA-NI without AES-NI is not asked for.
        pub fn aes_ni(self) -> AesNi {
            self.0
        }
    }
}

/// The same for ARM. GCM is AWS-LC's there, which has code of its own for each kind of core.
pub(crate) mod cpu_arm {
    super::proof::proofs! {
        on "aarch64";
        /// Proof that the CPU has the instructions for AES.
        struct Armv8Aes(()): ["aes"], "ARMv8's instructions for AES", for ["aes-armv8"];
        /// Proof that the CPU has the instructions for SHA-3.
        struct Armv8Sha3(()): ["sha3"], "ARMv8's instructions for SHA-3", for ["keccak-armv8"];
        others {
            "pmull": "GHASH of AWS-LC's AES-GCM",
            "neon": "ChaCha20-Poly1305 of AWS-LC",
            "sha2": "SHA-1 and SHA-256 of the crates sha1 and sha2",
            "sha3": "AES-GCM of AWS-LC with eight blocks at once, and SHA-512 of the crate sha2",
        }
    }
}

/// Bytes of a block of AES.
pub(crate) const BLOCK_LEN: usize = 16;

/// What a kernel does with one expanded key, in place.
///
/// The provided methods are the modes of NIST SP 800-38A on top of [`BlockKernel::encrypt`] and
/// [`BlockKernel::decrypt`]; a kernel that can do better replaces them.
pub(crate) trait BlockKernel: Sync {
    /// Enciphers each block by itself: ECB.
    fn encrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]);

    /// The inverse of [`BlockKernel::encrypt`].
    fn decrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]);

    /// The round keys for enciphering.
    fn round_keys(&self) -> Box<RoundKeys>;

    /// XORs the key stream onto `in_out`; the block at its beginning has this counter block.
    fn ctr(&self, counter: u128, in_out: &mut [u8]) {
        let mut counters = (0..).map(|i| counter.wrapping_add(i).to_be_bytes());
        for batch in in_out.chunks_mut(BATCH * BLOCK_LEN) {
            let mut keystream = [[0; BLOCK_LEN]; BATCH];
            let used = &mut keystream[..batch.len().div_ceil(BLOCK_LEN)];
            used.iter_mut().zip(&mut counters).for_each(|(block, counter)| *block = counter);
            self.encrypt(used);
            xor(batch, used.as_flattened());
        }
    }

    /// Deciphers one message of CBC.
    fn cbc_decrypt(&self, iv: &[u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
        let mut previous = *iv;
        for batch in blocks.chunks_mut(BATCH) {
            let mut ciphertext = [[0; BLOCK_LEN]; BATCH];
            ciphertext[..batch.len()].copy_from_slice(batch);
            self.decrypt(batch);
            for (block, ciphertext) in batch.iter_mut().zip(ciphertext) {
                xor(block, &previous);
                previous = ciphertext;
            }
        }
    }

    /// The numbers of lanes that [`BlockKernel::cbc_encrypt_lanes`] takes, from the most to 1.
    fn lane_counts(&self) -> &'static [usize];

    /// Enciphers independent messages of CBC beside each other: all lanes have the same number of
    /// blocks, and `chain` holds what is XORed onto the next block of each, first its IV.
    fn cbc_encrypt_lanes(
        &self,
        chain: &mut [[u8; BLOCK_LEN]],
        lanes: &mut [&mut [[u8; BLOCK_LEN]]],
    ) {
        let blocks = lanes.first().map_or(0, |lane| lane.len());
        for index in 0..blocks {
            for (chain, lane) in chain.iter_mut().zip(&*lanes) {
                xor(chain, &lane[index]);
            }
            self.encrypt(chain);
            for (chain, lane) in chain.iter().zip(&mut *lanes) {
                lane[index] = *chain;
            }
        }
    }
}

/// Blocks that the provided methods hand to a kernel at once: a multiple of what each takes.
const BATCH: usize = 64;

/// Cuts a run of CTR where the lower 64 bits of its counters wrap, for kernels that count in 64
/// bits; and the counter of the second part.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn split_at_wrap(counter: u128, in_out: &mut [u8]) -> (&mut [u8], &mut [u8], u128) {
    let blocks = u128::from(u64::MAX) + 1 - u128::from(counter as u64);
    let bytes = usize::try_from(blocks * BLOCK_LEN as u128).unwrap_or(usize::MAX);
    let (before, after) = in_out.split_at_mut(bytes.min(in_out.len()));
    (before, after, counter.wrapping_add(blocks))
}

fn xor(onto: &mut [u8], from: &[u8]) {
    for (onto, from) in onto.iter_mut().zip(from) {
        *onto ^= from;
    }
}
