//! SHA-1, SHA-256 and SHA-512 (FIPS 180-4) in AVX-512: each lane of a register is one message.
//!
//! One message is a chain of additions. Of 16 messages (eight of SHA-512) a register holds the same
//! word each, and their chains hide each other's latency. 16 registers hold the last 16 words of the
//! message schedule and eight the state; only the state before a block goes to memory.
//!
//! A round of SHA-2 is 17 instructions, a word of its schedule 11; 12 of the 28 are rotations and
//! shifts. Intel starts two instructions of 512 bits a cycle, one of which may rotate, and three of
//! 256 bits, two of which may: where half the lanes are enough, registers of half the width cost
//! two thirds.

use std::arch::x86_64::*;

use super::cpu::Avx512;
use super::sha_avx512_words::{words_32_by_8, words_32_by_16, words_64_by_4, words_64_by_8};

/// x ^ y ^ z as the truth table of `vpternlog`: Parity, and the sums of rotations.
pub(super) const XOR3: i32 = 0x96;
/// (x & y) ^ (!x & z) as the truth table of `vpternlog`.
pub(super) const CH: i32 = 0xca;
/// (x & y) ^ (x & z) ^ (y & z) as the truth table of `vpternlog`.
pub(super) const MAJ: i32 = 0xe8;

/// Defines the functions that callers use, for two widths of registers.
macro_rules! define_lanes {
    (
        $(#[$doc:meta])* $name:ident, $name_words:ident, [$word:ty; $lanes:literal],
        $wide:ident, $narrow:ident
    ) => {
        $(#[$doc])*
        ///
        /// Works on the blocks of `inputs[n]` from the state `n`, whose word `i` is
        /// `states[i][n]`; as many blocks as the shortest input has. The lanes behind the first
        /// `busy` may be left as they are.
        pub(crate) fn $name(
            _: Avx512,
            states: &mut [[$word; $lanes]; 8],
            inputs: &[&[[u8; 16 * size_of::<$word>()]]; $lanes],
            busy: usize,
        ) {
            if busy > $lanes / 2 {
                // SAFETY: the token proves that the CPU has the features of the function.
                unsafe { $wide::<false>(states, inputs, &[[0; $lanes]; 16]) }
            } else {
                // SAFETY: as above.
                unsafe { $narrow::<false>(states, inputs, &[[0; $lanes]; 16]) }
            }
        }

        $(#[$doc])*
        ///
        /// Works on one block each, whose word `i` in lane `n` is `words[i][n]`.
        pub(crate) fn $name_words(
            _: Avx512,
            states: &mut [[$word; $lanes]; 8],
            words: &[[$word; $lanes]; 16],
            busy: usize,
        ) {
            if busy > $lanes / 2 {
                // SAFETY: the token proves that the CPU has the features of the function.
                unsafe { $wide::<true>(states, &[&[]; $lanes], words) }
            } else {
                // SAFETY: as above.
                unsafe { $narrow::<true>(states, &[&[]; $lanes], words) }
            }
        }
    };
}

define_lanes!(
    /// SHA-1 of up to 16 messages.
    sha1_lanes,
    sha1_words,
    [u32; 16],
    sha1_wide,
    sha1_narrow
);
define_lanes!(
    /// SHA-256 of up to 16 messages.
    sha256_lanes,
    sha256_words,
    [u32; 16],
    sha256_wide,
    sha256_narrow
);
define_lanes!(
    /// SHA-512 of up to eight messages.
    sha512_lanes,
    sha512_words,
    [u64; 8],
    sha512_wide,
    sha512_narrow
);

/// Calls `$step!` with 0 to 15.
///
/// The registers are never indexed in a loop: one that the compiler does not unroll would put them
/// all into memory.
macro_rules! sixteen {
    ($step:ident $(, $argument:tt)*) => {
        $step!(0 $(, $argument)*);
        $step!(1 $(, $argument)*);
        $step!(2 $(, $argument)*);
        $step!(3 $(, $argument)*);
        $step!(4 $(, $argument)*);
        $step!(5 $(, $argument)*);
        $step!(6 $(, $argument)*);
        $step!(7 $(, $argument)*);
        $step!(8 $(, $argument)*);
        $step!(9 $(, $argument)*);
        $step!(10 $(, $argument)*);
        $step!(11 $(, $argument)*);
        $step!(12 $(, $argument)*);
        $step!(13 $(, $argument)*);
        $step!(14 $(, $argument)*);
        $step!(15 $(, $argument)*);
    };
}
pub(super) use sixteen;

/// Defines SHA-256 or SHA-512 (FIPS 180-4, sections 6.2.2 and 6.4.2) for registers of one width.
/// The numbers are the rotations of the big and the small sigmas (sections 4.1.2 and 4.1.3), and
/// the shifts of the latter.
macro_rules! define_sha2 {
    (
        $name:ident, [$word:ty; $lanes:literal] in $vector:ty, $words:expr, $constants:ident,
        $splat:ident, $add:ident, $ternary:ident, $ror:ident, $shr:ident, $load:ident, $store:ident,
        [$a0:literal, $a1:literal, $a2:literal], [$e0:literal, $e1:literal, $e2:literal],
        [$s0:literal, $s1:literal, $s2:literal], [$t0:literal, $t1:literal, $t2:literal]
    ) => {
        /// Works on `words` if `WORDS`, on `inputs` otherwise.
        #[target_feature(enable = "avx512f,avx512vl,avx512bw")]
        fn $name<const WORDS: bool>(
            states: &mut [[$word; $lanes]; 8],
            inputs: &[&[[u8; 16 * size_of::<$word>()]]; $lanes],
            words: &[[$word; $lanes]; 16],
        ) {
            macro_rules! load {
                ($i:literal) => {
                    // SAFETY: the row has at least the bytes of a register, and the load needs no
                    // alignment.
                    unsafe { $load(states[$i].as_ptr().cast()) }
                };
            }
            macro_rules! load_word {
                ($i:literal, $w:ident) => {
                    // SAFETY: as above.
                    $w[$i] = unsafe { $load(words[$i].as_ptr().cast()) };
                };
            }
            let mut state =
                [load!(0), load!(1), load!(2), load!(3), load!(4), load!(5), load!(6), load!(7)];
            let shortest = inputs.iter().map(|input| input.len()).min().unwrap_or(0);
            for index in 0..if WORDS { 1 } else { shortest } {
                let mut w = [state[0]; 16];
                if WORDS {
                    sixteen!(load_word, w);
                } else {
                    w = $words(inputs, index);
                }
                let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
                macro_rules! round {
                    ($i:literal, $k:ident) => {
                        let t1 = $add(h, $add(w[$i], $splat($k[$i].cast_signed())));
                        let t1 = $add(t1, $ternary::<CH>(e, f, g));
                        let sum = $ternary::<XOR3>($ror::<$e0>(e), $ror::<$e1>(e), $ror::<$e2>(e));
                        let t1 = $add(t1, sum);
                        let sum = $ternary::<XOR3>($ror::<$a0>(a), $ror::<$a1>(a), $ror::<$a2>(a));
                        let t2 = $add(sum, $ternary::<MAJ>(a, b, c));
                        (h, g, f, e) = (g, f, e, $add(d, t1));
                        (d, c, b, a) = (c, b, a, $add(t1, t2));
                    };
                }
                // The word of 16 rounds later takes the place of this round's.
                macro_rules! round_and_word {
                    ($i:literal, $k:ident) => {
                        round!($i, $k);
                        let (x, y) = (w[($i + 1) % 16], w[($i + 14) % 16]);
                        let s = $ternary::<XOR3>($ror::<$s0>(x), $ror::<$s1>(x), $shr::<$s2>(x));
                        let t = $ternary::<XOR3>($ror::<$t0>(y), $ror::<$t1>(y), $shr::<$t2>(y));
                        w[$i] = $add($add(w[$i], w[($i + 9) % 16]), $add(s, t));
                    };
                }
                let (last, others) = $constants.split_last().expect("the rounds are not none");
                for k in others {
                    sixteen!(round_and_word, k);
                }
                sixteen!(round, last);
                let [o0, o1, o2, o3, o4, o5, o6, o7] = state;
                state = [
                    $add(a, o0), $add(b, o1), $add(c, o2), $add(d, o3),
                    $add(e, o4), $add(f, o5), $add(g, o6), $add(h, o7),
                ];
            }
            for (row, value) in states.iter_mut().zip(state) {
                // SAFETY: the row has at least the bytes of a register, and the store needs no
                // alignment.
                unsafe { $store(row.as_mut_ptr().cast(), value) };
            }
        }
    };
}

define_sha2!(
    sha256_wide, [u32; 16] in __m512i, words_32_by_16::<256>, K_256,
    _mm512_set1_epi32, _mm512_add_epi32, _mm512_ternarylogic_epi32,
    _mm512_ror_epi32, _mm512_srli_epi32, _mm512_loadu_si512, _mm512_storeu_si512,
    [2, 13, 22], [6, 11, 25], [7, 18, 3], [17, 19, 10]
);
define_sha2!(
    sha256_narrow, [u32; 16] in __m256i, words_32_by_8::<256>, K_256,
    _mm256_set1_epi32, _mm256_add_epi32, _mm256_ternarylogic_epi32,
    _mm256_ror_epi32, _mm256_srli_epi32, _mm256_loadu_si256, _mm256_storeu_si256,
    [2, 13, 22], [6, 11, 25], [7, 18, 3], [17, 19, 10]
);
define_sha2!(
    sha512_wide, [u64; 8] in __m512i, words_64_by_8, K_512,
    _mm512_set1_epi64, _mm512_add_epi64, _mm512_ternarylogic_epi64,
    _mm512_ror_epi64, _mm512_srli_epi64, _mm512_loadu_si512, _mm512_storeu_si512,
    [28, 34, 39], [14, 18, 41], [1, 8, 7], [19, 61, 6]
);
define_sha2!(
    sha512_narrow, [u64; 8] in __m256i, words_64_by_4, K_512,
    _mm256_set1_epi64x, _mm256_add_epi64, _mm256_ternarylogic_epi64,
    _mm256_ror_epi64, _mm256_srli_epi64, _mm256_loadu_si256, _mm256_storeu_si256,
    [28, 34, 39], [14, 18, 41], [1, 8, 7], [19, 61, 6]
);

/// Defines SHA-1 (FIPS 180-4, section 6.1.2) for registers of one width.
macro_rules! define_sha1 {
    (
        $name:ident, $words:expr, $splat:ident, $add:ident, $ternary:ident, $xor:ident,
        $rol:ident, $load:ident, $store:ident
    ) => {
        #[target_feature(enable = "avx512f,avx512vl,avx512bw")]
        fn $name<const WORDS: bool>(
            states: &mut [[u32; 16]; 8],
            inputs: &[&[[u8; 64]]; 16],
            words: &[[u32; 16]; 16],
        ) {
            macro_rules! load {
                ($i:literal) => {
                    // SAFETY: the row has at least the bytes of a register, and the load needs no
                    // alignment.
                    unsafe { $load(states[$i].as_ptr().cast()) }
                };
            }
            macro_rules! load_word {
                ($i:literal, $w:ident) => {
                    // SAFETY: as above.
                    $w[$i] = unsafe { $load(words[$i].as_ptr().cast()) };
                };
            }
            let mut state = [load!(0), load!(1), load!(2), load!(3), load!(4)];
            let shortest = inputs.iter().map(|input| input.len()).min().unwrap_or(0);
            for index in 0..if WORDS { 1 } else { shortest } {
                let mut w = [state[0]; 16];
                if WORDS {
                    sixteen!(load_word, w);
                } else {
                    w = $words(inputs, index);
                }
                let [mut a, mut b, mut c, mut d, mut e] = state;
                macro_rules! round {
                    ($i:literal, $sixteenth:literal) => {
                        let round = 16 * $sixteenth + $i;
                        let (f, k) = match round / 20 {
                            0 => ($ternary::<CH>(b, c, d), 0x5a82_7999_u32),
                            1 => ($ternary::<XOR3>(b, c, d), 0x6ed9_eba1),
                            2 => ($ternary::<MAJ>(b, c, d), 0x8f1b_bcdc),
                            _ => ($ternary::<XOR3>(b, c, d), 0xca62_c1d6),
                        };
                        let t = $add(e, $add(w[$i], $splat(k.cast_signed())));
                        let t = $add(t, $add(f, $rol::<5>(a)));
                        (e, d, c, b, a) = (d, c, $rol::<30>(b), a, t);
                    };
                }
                // The word of 16 rounds later takes the place of this round's.
                macro_rules! round_and_word {
                    ($i:literal, $sixteenth:literal) => {
                        round!($i, $sixteenth);
                        let (x, y, z) = (w[($i + 2) % 16], w[($i + 8) % 16], w[($i + 13) % 16]);
                        w[$i] = $rol::<1>($ternary::<XOR3>($xor(w[$i], x), y, z));
                    };
                }
                sixteen!(round_and_word, 0);
                sixteen!(round_and_word, 1);
                sixteen!(round_and_word, 2);
                sixteen!(round_and_word, 3);
                sixteen!(round, 4);
                let [o0, o1, o2, o3, o4] = state;
                state = [$add(a, o0), $add(b, o1), $add(c, o2), $add(d, o3), $add(e, o4)];
            }
            for (row, value) in states.iter_mut().zip(state) {
                // SAFETY: the row has at least the bytes of a register, and the store needs no
                // alignment.
                unsafe { $store(row.as_mut_ptr().cast(), value) };
            }
        }
    };
}

define_sha1!(
    sha1_wide,
    words_32_by_16::<1>,
    _mm512_set1_epi32,
    _mm512_add_epi32,
    _mm512_ternarylogic_epi32,
    _mm512_xor_si512,
    _mm512_rol_epi32,
    _mm512_loadu_si512,
    _mm512_storeu_si512
);
define_sha1!(
    sha1_narrow,
    words_32_by_8::<1>,
    _mm256_set1_epi32,
    _mm256_add_epi32,
    _mm256_ternarylogic_epi32,
    _mm256_xor_si256,
    _mm256_rol_epi32,
    _mm256_loadu_si256,
    _mm256_storeu_si256
);

/// FIPS 180-4, section 4.2.3: the first 64 bits of the fractional parts of the cube roots of the
/// first 80 primes, 16 rounds a row.
#[rustfmt::skip]
const CUBE_ROOTS: [u64; 80] = [
    0x428a_2f98_d728_ae22, 0x7137_4491_23ef_65cd, 0xb5c0_fbcf_ec4d_3b2f, 0xe9b5_dba5_8189_dbbc,
    0x3956_c25b_f348_b538, 0x59f1_11f1_b605_d019, 0x923f_82a4_af19_4f9b, 0xab1c_5ed5_da6d_8118,
    0xd807_aa98_a303_0242, 0x1283_5b01_4570_6fbe, 0x2431_85be_4ee4_b28c, 0x550c_7dc3_d5ff_b4e2,
    0x72be_5d74_f27b_896f, 0x80de_b1fe_3b16_96b1, 0x9bdc_06a7_25c7_1235, 0xc19b_f174_cf69_2694,
    0xe49b_69c1_9ef1_4ad2, 0xefbe_4786_384f_25e3, 0x0fc1_9dc6_8b8c_d5b5, 0x240c_a1cc_77ac_9c65,
    0x2de9_2c6f_592b_0275, 0x4a74_84aa_6ea6_e483, 0x5cb0_a9dc_bd41_fbd4, 0x76f9_88da_8311_53b5,
    0x983e_5152_ee66_dfab, 0xa831_c66d_2db4_3210, 0xb003_27c8_98fb_213f, 0xbf59_7fc7_beef_0ee4,
    0xc6e0_0bf3_3da8_8fc2, 0xd5a7_9147_930a_a725, 0x06ca_6351_e003_826f, 0x1429_2967_0a0e_6e70,
    0x27b7_0a85_46d2_2ffc, 0x2e1b_2138_5c26_c926, 0x4d2c_6dfc_5ac4_2aed, 0x5338_0d13_9d95_b3df,
    0x650a_7354_8baf_63de, 0x766a_0abb_3c77_b2a8, 0x81c2_c92e_47ed_aee6, 0x9272_2c85_1482_353b,
    0xa2bf_e8a1_4cf1_0364, 0xa81a_664b_bc42_3001, 0xc24b_8b70_d0f8_9791, 0xc76c_51a3_0654_be30,
    0xd192_e819_d6ef_5218, 0xd699_0624_5565_a910, 0xf40e_3585_5771_202a, 0x106a_a070_32bb_d1b8,
    0x19a4_c116_b8d2_d0c8, 0x1e37_6c08_5141_ab53, 0x2748_774c_df8e_eb99, 0x34b0_bcb5_e19b_48a8,
    0x391c_0cb3_c5c9_5a63, 0x4ed8_aa4a_e341_8acb, 0x5b9c_ca4f_7763_e373, 0x682e_6ff3_d6b2_b8a3,
    0x748f_82ee_5def_b2fc, 0x78a5_636f_4317_2f60, 0x84c8_7814_a1f0_ab72, 0x8cc7_0208_1a64_39ec,
    0x90be_fffa_2363_1e28, 0xa450_6ceb_de82_bde9, 0xbef9_a3f7_b2c6_7915, 0xc671_78f2_e372_532b,
    0xca27_3ece_ea26_619c, 0xd186_b8c7_21c0_c207, 0xeada_7dd6_cde0_eb1e, 0xf57d_4f7f_ee6e_d178,
    0x06f0_67aa_7217_6fba, 0x0a63_7dc5_a2c8_98a6, 0x113f_9804_bef9_0dae, 0x1b71_0b35_131c_471b,
    0x28db_77f5_2304_7d84, 0x32ca_ab7b_40c7_2493, 0x3c9e_be0a_15c9_bebc, 0x431d_67c4_9c10_0d4c,
    0x4cc5_d4be_cb3e_42b6, 0x597f_299c_fc65_7e2a, 0x5fcb_6fab_3ad6_faec, 0x6c44_198c_4a47_5817,
];

static K_512: [[u64; 16]; 5] = {
    let mut rows = [[0; 16]; 5];
    let mut i = 0;
    while i < 80 {
        rows[i / 16][i % 16] = CUBE_ROOTS[i];
        i += 1;
    }
    rows
};

/// Section 4.2.2: the first 32 bits of the first 64 of them.
pub(super) static K_256: [[u32; 16]; 4] = {
    let mut rows = [[0; 16]; 4];
    let mut i = 0;
    while i < 64 {
        rows[i / 16][i % 16] = (CUBE_ROOTS[i] >> 32) as u32;
        i += 1;
    }
    rows
};
