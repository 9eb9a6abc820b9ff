//! The compression functions of SHA-1 and SHA-2 (FIPS 180-4) on the kernel that the caller or the
//! CPU chooses: one message, or many side by side.

use std::ops::{BitAnd, BitOrAssign};

use zeroize::Zeroize;

use crate::choice;
use crate::error::Error;
use crate::kernel::cpu::{self, Avx512, ShaNi};
#[cfg(target_arch = "x86_64")]
use crate::kernel::{sha_avx512, sha_ni};

/// The implementations of SHA-1, SHA-256 and SHA-512.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShaKernel {
    /// One message after the other, by the crates sha1 and sha2, which take the CPU's instructions
    /// for SHA where it has them and run everywhere.
    RustCrypto,
    /// SHA-NI: two messages of SHA-256 interleaved. The rest is as above.
    ShaNi(ShaNi),
    /// AVX-512: 16 messages at once, of SHA-512 eight. A few are as above, in pairs where the CPU has
    /// SHA-NI as well.
    Avx512(Avx512, Option<ShaNi>),
}

impl ShaKernel {
    /// The names of all kernels, those of other CPUs included, the slowest first.
    pub const NAMES: [&str; 3] = ["sha-rustcrypto", "sha-ni", "sha-avx512"];

    /// The widest kernel that this CPU runs.
    pub fn best() -> Self {
        let narrow = ShaNi::detect();
        match Avx512::detect() {
            Some(wide) => Self::Avx512(wide, narrow),
            None => narrow.map_or(Self::RustCrypto, Self::ShaNi),
        }
    }

    /// True for RustCrypto's code, and if kernels were measured on CPUs of this class. Where they were not, [`Self::best`] goes by the
    /// instructions alone.
    pub fn measured(self) -> bool {
        self == Self::RustCrypto || cpu::measured().is_some()
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], or [`Error::KernelAbsent`] with the reason.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "sha-rustcrypto" => Ok(Self::RustCrypto),
            "sha-ni" => choice::found(ShaNi::detect(), name, ShaNi::NEEDS).map(Self::ShaNi),
            "sha-avx512" => choice::found(Avx512::detect(), name, Avx512::NEEDS)
                .map(|wide| Self::Avx512(wide, ShaNi::detect())),
            _ => Err(Error::UnknownKernel(name.to_owned())),
        }
    }

    /// The kernels that run on this CPU, the slowest first.
    pub fn all() -> Vec<Self> {
        choice::all(&Self::NAMES, Self::named)
    }

    /// The kernels that do not, each with the reason.
    pub fn absent() -> Vec<(&'static str, String)> {
        choice::absent(&Self::NAMES, Self::named)
    }

    /// The name that file, flag, bench and JSON share.
    pub fn name(self) -> &'static str {
        match self {
            Self::RustCrypto => "sha-rustcrypto",
            Self::ShaNi(_) => "sha-ni",
            Self::Avx512(..) => "sha-avx512",
        }
    }
}

/// A compression function: what SHA-1, SHA-256 and SHA-512 differ in.
///
/// `LANES` messages fill the widest registers, and `BLOCK` bytes are 16 words. A state has eight
/// words; SHA-1 leaves the last three alone.
pub(crate) trait Compression<const LANES: usize, const BLOCK: usize> {
    /// 32 or 64 bits.
    type Word: Word;

    /// Fewer messages than this are faster in pairs or one after the other. Measured on Emerald
    /// Rapids, where SHA-1 and SHA-256 have instructions of their own and SHA-512 has none.
    const FEWEST: usize;

    /// Works on `blocks` from `state`, by RustCrypto.
    fn compress(state: &mut [Self::Word; 8], blocks: &[[u8; BLOCK]]);

    /// Works on the blocks of two inputs, interleaved, where that is faster.
    const PAIR: Option<CompressPair<Self::Word, BLOCK>> = None;

    /// Works on the blocks of `inputs[n]` from the state `n`, whose word `i` is `states[i][n]`;
    /// as many blocks as the shortest input has. What is behind the first `busy` states is garbage
    /// afterwards.
    fn compress_lanes(
        proof: Avx512,
        states: &mut [[Self::Word; LANES]; 8],
        inputs: &[&[[u8; BLOCK]]; LANES],
        busy: usize,
    );

    /// The same for one block each, whose word `i` is `words[i][n]`.
    fn compress_words(
        proof: Avx512,
        states: &mut [[Self::Word; LANES]; 8],
        words: &[[Self::Word; LANES]; 16],
        busy: usize,
    );
}

/// Works on the blocks of `inputs[n]` from `states[n]`; as many as the shortest input has.
pub(crate) type CompressPair<W, const BLOCK: usize> =
    fn(ShaNi, states: &mut [[W; 8]; 2], inputs: &[&[[u8; BLOCK]]; 2]);

/// A word of a state.
pub(crate) trait Word:
    Copy + Default + Zeroize + BitAnd<Output = Self> + BitOrAssign + 'static
{
    /// Eight bits as all of them, so that 0x00 and 0xff are masks.
    #[cfg(feature = "mac-then-encrypt")]
    fn repeat(byte: u8) -> Self;

    /// The first and the last word of a padding (FIPS 180-4, section 5.1).
    fn padding(message_bits: u32) -> [Self; 2];

    /// Writes all bytes of the word, big-endian (FIPS 180-4, section 3.1).
    fn write(self, bytes: &mut [u8]);
}

impl Word for u32 {
    #[inline]
    fn padding(message_bits: u32) -> [Self; 2] {
        [1 << (Self::BITS - 1), message_bits]
    }

    #[cfg(feature = "mac-then-encrypt")]
    #[inline]
    fn repeat(byte: u8) -> Self {
        Self::from_ne_bytes([byte; 4])
    }

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        *bytes.first_chunk_mut().expect("the bytes of a word") = self.to_be_bytes();
    }
}

impl Word for u64 {
    #[inline]
    fn padding(message_bits: u32) -> [Self; 2] {
        [1 << (Self::BITS - 1), message_bits.into()]
    }

    #[cfg(feature = "mac-then-encrypt")]
    #[inline]
    fn repeat(byte: u8) -> Self {
        Self::from_ne_bytes([byte; 8])
    }

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        *bytes.first_chunk_mut().expect("the bytes of a word") = self.to_be_bytes();
    }
}

/// SHA-1. Collisions are found (Stevens et al., 2017), which HMAC does not rest on.
pub(crate) struct Sha1;

/// SHA-256.
pub(crate) struct Sha256;

/// SHA-512, and SHA-384 from another initial state.
pub(crate) struct Sha512;

/// Hands lanes to a kernel, which only a CPU with the proof can be asked to.
macro_rules! lanes {
    ($word:ty, $lanes:literal, $block:literal, $function:ident, $words_function:ident) => {
        fn compress_lanes(
            proof: Avx512,
            states: &mut [[$word; $lanes]; 8],
            inputs: &[&[[u8; $block]]; $lanes],
            busy: usize,
        ) {
            #[cfg(target_arch = "x86_64")]
            sha_avx512::$function(proof, states, inputs, busy);
            #[cfg(not(target_arch = "x86_64"))]
            {
                let _ = (proof, states, inputs, busy);
                unreachable!("no such proof can be made on this architecture")
            }
        }

        fn compress_words(
            proof: Avx512,
            states: &mut [[$word; $lanes]; 8],
            words: &[[$word; $lanes]; 16],
            busy: usize,
        ) {
            #[cfg(target_arch = "x86_64")]
            sha_avx512::$words_function(proof, states, words, busy);
            #[cfg(not(target_arch = "x86_64"))]
            {
                let _ = (proof, states, words, busy);
                unreachable!("no such proof can be made on this architecture")
            }
        }
    };
}

impl Compression<16, 64> for Sha1 {
    type Word = u32;
    const FEWEST: usize = 4;

    #[inline]
    fn compress(state: &mut [u32; 8], blocks: &[[u8; 64]]) {
        let state = state.first_chunk_mut().expect("five of eight words");
        sha1::block_api::compress(state, blocks);
    }

    lanes!(u32, 16, 64, sha1_lanes, sha1_words);
}

impl Compression<16, 64> for Sha256 {
    type Word = u32;
    const FEWEST: usize = 7;
    #[cfg(target_arch = "x86_64")]
    const PAIR: Option<CompressPair<u32, 64>> = Some(sha_ni::sha256);

    #[inline]
    fn compress(state: &mut [u32; 8], blocks: &[[u8; 64]]) {
        sha2::block_api::compress256(state, blocks);
    }

    lanes!(u32, 16, 64, sha256_lanes, sha256_words);
}

impl Compression<8, 128> for Sha512 {
    type Word = u64;
    const FEWEST: usize = 2;

    #[inline]
    fn compress(state: &mut [u64; 8], blocks: &[[u8; 128]]) {
        sha2::block_api::compress512(state, blocks);
    }

    lanes!(u64, 8, 128, sha512_lanes, sha512_words);
}

/// FIPS 180-4, section 5.3.1; the rest of the state is not SHA-1's.
pub(crate) const SHA_1: [u32; 8] =
    [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0, 0, 0, 0];

/// Section 5.3.3.
pub(crate) const SHA_256: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// Section 5.3.4.
pub(crate) const SHA_384: [u64; 8] = [
    0xcbbb_9d5d_c105_9ed8,
    0x629a_292a_367c_d507,
    0x9159_015a_3070_dd17,
    0x152f_ecd8_f70e_5939,
    0x6733_2667_ffc0_0b31,
    0x8eb4_4a87_6858_1511,
    0xdb0c_2e0d_64f9_8fa7,
    0x47b5_481d_befa_4fa4,
];

/// Section 5.3.5.
pub(crate) const SHA_512: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lanes_agree_with_one_message() {
        let Some(proof) = Avx512::detect() else {
            wattlock_testing::skip("cpu", "this CPU has no AVX-512");
            return;
        };
        lanes_agree::<Sha1, 16, 64>(proof, 5, |i, n| (i * 1000 + n * 77 + 1) as u32);
        lanes_agree::<Sha256, 16, 64>(proof, 8, |i, n| (i * 1000 + n * 77 + 1) as u32);
        lanes_agree::<Sha512, 8, 128>(proof, 8, |i, n| ((i * 1000 + n * 77 + 1) as u64) << 20);
    }

    #[test]
    fn a_pair_agrees_with_one_message() {
        let (Some(proof), Some(pair)) = (ShaNi::detect(), Sha256::PAIR) else {
            wattlock_testing::skip("cpu", "this CPU has no SHA-NI");
            return;
        };
        let data: Vec<u8> = (0..642).map(|i| (i % 251) as u8).collect();
        for blocks in 0..=5 {
            let inputs = [&data[1..], &data[322..]].map(|data| &data.as_chunks().0[..blocks]);
            let mut found = [1, 2].map(|n| std::array::from_fn(|i| 0x0123_4567 * i as u32 + n));
            let mut expected = found;
            pair(proof, &mut found, &inputs);
            for (state, input) in expected.iter_mut().zip(inputs) {
                Sha256::compress(state, input);
            }
            assert_eq!(found, expected, "{blocks} blocks");
        }
    }

    fn lanes_agree<H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize>(
        proof: Avx512,
        words: usize,
        word: impl Fn(usize, usize) -> H::Word,
    ) where
        H::Word: PartialEq + std::fmt::Debug,
    {
        // One byte more than the blocks, so that every lane starts at another alignment.
        let stride = 5 * BLOCK + 1;
        let data: Vec<u8> = (0..LANES * stride).map(|i| (i % 251) as u8).collect();
        for (blocks, busy) in (0..=5).flat_map(|blocks| (1..=LANES).map(move |n| (blocks, n))) {
            let inputs: [&[[u8; BLOCK]]; LANES] =
                std::array::from_fn(|n| data[n * stride..][..blocks * BLOCK].as_chunks().0);
            let mut states: [[H::Word; LANES]; 8] =
                std::array::from_fn(|i| std::array::from_fn(|n| word(i, n)));
            H::compress_lanes(proof, &mut states, &inputs, busy);
            for n in 0..busy {
                let mut expected = std::array::from_fn(|i| word(i, n));
                H::compress(&mut expected, inputs[n]);
                let found = states.map(|row| row[n]);
                assert_eq!(found[..words], expected[..words], "{blocks} blocks, {n} of {busy}");
            }
        }
    }
}
