//! `Keccak-p[1600]` with ARM's instructions for SHA-3: two states at once in 128-bit registers.
//!
//! The round is the one of `keccak_soft.rs`. EOR3 makes theta's parities, RAX1 what they add; XAR adds it
//! and rotates, which is theta and rho in one; BCAX is chi. A round is 10 + 5 (theta), 25 (rho), 25 (chi)
//! and 1 (iota) = 66 instructions, and 25 of the 32 registers hold the states. The compiler makes 83 to 94
//! of them, two of which put a register aside.

use std::arch::aarch64::{
    uint64x2_t, vbcaxq_u64, vcombine_u64, vcreate_u64, vdupq_n_u64, veor3q_u64, veorq_u64,
    vgetq_lane_u64, vrax1q_u64, vxarq_u64,
};

use super::cpu_arm::Armv8Sha3;
use super::keccak_rounds::{every_lane, rho_and_pi};
use super::keccak_soft::ROUND_CONSTANTS;

/// Absorbs the blocks of `inputs[n]` into state `n`, for eight states: see `keccak_soft::absorb`.
///
/// Where there is no input, the state is garbage afterwards. Two neighbours without one cost nothing.
pub(crate) fn absorb_8<const RATE: usize, const ROUNDS: usize>(
    _: Armv8Sha3,
    states: &mut [[u64; 8]; 25],
    inputs: [Option<&[u8]>; 8],
) {
    for (pair, inputs) in inputs.as_chunks().0.iter().enumerate() {
        let [one, two] = *inputs;
        let (Some(one), Some(two)) = (one.or(two), two.or(one)) else { continue };
        let inputs = (one.as_chunks::<RATE>().0, two.as_chunks::<RATE>().0);
        // SAFETY: the token proves that the CPU has the features which the function is compiled for.
        unsafe { absorb_2::<RATE, ROUNDS>(states, 2 * pair, inputs) }
    }
}

/// Permutes eight states `times` times: the bound of `absorb_8`.
pub(crate) fn permute_8<const ROUNDS: usize>(
    _: Armv8Sha3,
    states: &mut [[u64; 8]; 25],
    times: usize,
) {
    for pair in 0..4 {
        // SAFETY: the token proves that the CPU has the features which the function is compiled for.
        unsafe { permute_2_times::<ROUNDS>(states, 2 * pair, times) }
    }
}

/// `ROUNDS` rounds of the registers `$a`. A macro, since a function with so much in it is not inlined, and
/// the states would go to it through memory.
macro_rules! permute {
    ($a:ident) => {
        for &round_constant in &ROUND_CONSTANTS[24 - ROUNDS..] {
            // Theta: the parities of the columns, and what is added to each column.
            macro_rules! parity {
                ($x:literal) => {
                    veor3q_u64(
                        veor3q_u64($a[$x], $a[$x + 5], $a[$x + 10]),
                        $a[$x + 15],
                        $a[$x + 20],
                    )
                };
            }
            let c = [parity!(0), parity!(1), parity!(2), parity!(3), parity!(4)];
            let d = [
                vrax1q_u64(c[4], c[1]),
                vrax1q_u64(c[0], c[2]),
                vrax1q_u64(c[1], c[3]),
                vrax1q_u64(c[2], c[4]),
                vrax1q_u64(c[3], c[0]),
            ];
            // The addition, rho, which rotates to the left where XAR does to the right, and pi.
            macro_rules! rho {
                ($i:literal, $offset:literal) => {
                    vxarq_u64::<{ 64 - $offset }>($a[$i], d[$i % 5])
                };
            }
            macro_rules! row {
                ($b0:expr, $b1:expr, $b2:expr, $b3:expr, $b4:expr) => {{
                    let (b0, b1, b2, b3, b4) = ($b0, $b1, $b2, $b3, $b4);
                    [
                        vbcaxq_u64(b0, b2, b1),
                        vbcaxq_u64(b1, b3, b2),
                        vbcaxq_u64(b2, b4, b3),
                        vbcaxq_u64(b3, b0, b4),
                        vbcaxq_u64(b4, b1, b0),
                    ]
                }};
            }
            let r = rho_and_pi!(row, rho, veorq_u64($a[0], d[0]));
            macro_rules! lane {
                ($i:literal) => {
                    r[$i / 5][$i % 5]
                };
            }
            $a = every_lane!(lane);
            // Iota.
            $a[0] = veorq_u64($a[0], vdupq_n_u64(round_constant));
        }
    };
}

/// The states `first` and the one after it.
#[target_feature(enable = "sha3")]
fn absorb_2<const RATE: usize, const ROUNDS: usize>(
    states: &mut [[u64; 8]; 25],
    first: usize,
    (one, two): (&[[u8; RATE]], &[[u8; RATE]]),
) {
    let mut a = load(states, first);
    for (one, two) in one.iter().zip(two) {
        let words = (one.as_chunks().0, two.as_chunks().0);
        macro_rules! absorbed {
            ($i:literal) => {
                if $i < RATE / 8 {
                    let words = (u64::from_le_bytes(words.0[$i]), u64::from_le_bytes(words.1[$i]));
                    veorq_u64(a[$i], vcombine_u64(vcreate_u64(words.0), vcreate_u64(words.1)))
                } else {
                    a[$i]
                }
            };
        }
        a = every_lane!(absorbed);
        permute!(a);
    }
    store(states, first, &a);
}

#[target_feature(enable = "sha3")]
fn permute_2_times<const ROUNDS: usize>(states: &mut [[u64; 8]; 25], first: usize, times: usize) {
    let mut a = load(states, first);
    for _ in 0..times {
        permute!(a);
    }
    store(states, first, &a);
}

#[inline]
#[target_feature(enable = "neon")]
fn load(states: &[[u64; 8]; 25], first: usize) -> [uint64x2_t; 25] {
    macro_rules! load {
        ($i:literal) => {
            vcombine_u64(vcreate_u64(states[$i][first]), vcreate_u64(states[$i][first + 1]))
        };
    }
    every_lane!(load)
}

#[inline]
#[target_feature(enable = "neon")]
fn store(states: &mut [[u64; 8]; 25], first: usize, a: &[uint64x2_t; 25]) {
    for (words, lanes) in states.iter_mut().zip(a) {
        words[first] = vgetq_lane_u64::<0>(*lanes);
        words[first + 1] = vgetq_lane_u64::<1>(*lanes);
    }
}
