//! The rounds of `Keccak-p[1600]` on vectors of any width: one register for each lane of the state, one
//! element of it for each state.
//!
//! The round is the one of `keccak_soft.rs`, over instructions that a kernel names. ARM's, with another way
//! to write theta and chi, is in `keccak_armv8.rs`.

/// x ^ y ^ z as the truth table of `vpternlogq`.
#[cfg(target_arch = "x86_64")]
pub(super) const XOR3: i32 = 0x96;
/// x ^ (!y & z), the step chi, as the truth table of `vpternlogq`.
#[cfg(target_arch = "x86_64")]
pub(super) const CHI: i32 = 0xd2;

/// `[$lane!(0), $lane!(1), ..., $lane!(24)]`.
///
/// The registers are never indexed in a loop: one that the compiler does not unroll would put the
/// whole state into memory.
#[rustfmt::skip]
macro_rules! every_lane {
    ($lane:ident) => {
        [
            $lane!(0), $lane!(1), $lane!(2), $lane!(3), $lane!(4),
            $lane!(5), $lane!(6), $lane!(7), $lane!(8), $lane!(9),
            $lane!(10), $lane!(11), $lane!(12), $lane!(13), $lane!(14),
            $lane!(15), $lane!(16), $lane!(17), $lane!(18), $lane!(19),
            $lane!(20), $lane!(21), $lane!(22), $lane!(23), $lane!(24),
        ]
    };
}

/// The five rows after rho and pi, each of five lanes from other rows, by `$row!`. `$rho!(i, n)` is lane
/// `i` rotated by `n` (FIPS 202, table 2); `$first` is lane 0, which is not rotated.
#[rustfmt::skip]
macro_rules! rho_and_pi {
    ($row:ident, $rho:ident, $first:expr) => {
        [
            $row!($first, $rho!(6, 44), $rho!(12, 43), $rho!(18, 21), $rho!(24, 14)),
            $row!($rho!(3, 28), $rho!(9, 20), $rho!(10, 3), $rho!(16, 45), $rho!(22, 61)),
            $row!($rho!(1, 1), $rho!(7, 6), $rho!(13, 25), $rho!(19, 8), $rho!(20, 18)),
            $row!($rho!(4, 27), $rho!(5, 36), $rho!(11, 10), $rho!(17, 15), $rho!(23, 56)),
            $row!($rho!(2, 62), $rho!(8, 55), $rho!(14, 39), $rho!(15, 41), $rho!(21, 2)),
        ]
    };
}
pub(super) use {every_lane, rho_and_pi};

/// XORs a block of each state into the registers `$a`: the rate is four groups of four words and one word,
/// or five groups and one word. The kernel's `transpose` makes registers of a group of each block, and
/// `$set` one of a word of each.
#[cfg(target_arch = "x86_64")]
macro_rules! xor_blocks {
    ($a:ident, $xor:ident, $set:ident, $($block:ident)*) => {
        const { assert!(RATE == 136 || RATE == 168) };
        macro_rules! four_words {
            ($group:literal) => {
                let words = transpose([$(&$block.as_chunks().0[$group]),*]);
                $a[4 * $group] = $xor($a[4 * $group], words[0]);
                $a[4 * $group + 1] = $xor($a[4 * $group + 1], words[1]);
                $a[4 * $group + 2] = $xor($a[4 * $group + 2], words[2]);
                $a[4 * $group + 3] = $xor($a[4 * $group + 3], words[3]);
            };
        }
        four_words!(0);
        four_words!(1);
        four_words!(2);
        four_words!(3);
        if RATE == 168 {
            four_words!(4);
        }
        let last = $set($(i64::from_le_bytes($block.as_chunks().0[RATE / 8 - 1])),*);
        $a[RATE / 8 - 1] = $xor($a[RATE / 8 - 1], last);
    };
}

/// Defines `Keccak-p[1600, ROUNDS]` over 25 registers of one width.
#[cfg(target_arch = "x86_64")]
macro_rules! define_permute {
    ($features:literal, $name:ident, $vector:ty, $splat:ident, $xor:ident, $ternary:ident, $rol:ident) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn $name<const ROUNDS: usize>(a: &mut [$vector; 25]) {
            for &round_constant in &ROUND_CONSTANTS[24 - ROUNDS..] {
                // Theta: the parities of the columns...
                macro_rules! parity {
                    ($x:literal) => {
                        $ternary::<XOR3>(
                            $ternary::<XOR3>(a[$x], a[$x + 5], a[$x + 10]),
                            a[$x + 15],
                            a[$x + 20],
                        )
                    };
                }
                let c = [parity!(0), parity!(1), parity!(2), parity!(3), parity!(4)];
                // ... and two of them into every lane. The order of the columns lets the rotated
                // parity take the register of its source as soon as that one is used up, so that
                // at most six registers are live besides the state.
                macro_rules! column {
                    ($x:literal, $left:expr, $right:expr) => {
                        a[$x] = $ternary::<XOR3>(a[$x], $left, $right);
                        a[$x + 5] = $ternary::<XOR3>(a[$x + 5], $left, $right);
                        a[$x + 10] = $ternary::<XOR3>(a[$x + 10], $left, $right);
                        a[$x + 15] = $ternary::<XOR3>(a[$x + 15], $left, $right);
                        a[$x + 20] = $ternary::<XOR3>(a[$x + 20], $left, $right);
                    };
                }
                column!(0, c[4], $rol::<1>(c[1]));
                let r4 = $rol::<1>(c[4]);
                column!(1, c[0], $rol::<1>(c[2]));
                let r0 = $rol::<1>(c[0]);
                column!(2, c[1], $rol::<1>(c[3]));
                column!(3, c[2], r4);
                column!(4, c[3], r0);

                // Rho, pi and chi: five lanes, each from another row, make a row.
                macro_rules! row {
                    ($b0:expr, $b1:expr, $b2:expr, $b3:expr, $b4:expr) => {{
                        let (b0, b1, b2, b3, b4) = ($b0, $b1, $b2, $b3, $b4);
                        [
                            $ternary::<CHI>(b0, b1, b2),
                            $ternary::<CHI>(b1, b2, b3),
                            $ternary::<CHI>(b2, b3, b4),
                            $ternary::<CHI>(b3, b4, b0),
                            $ternary::<CHI>(b4, b0, b1),
                        ]
                    }};
                }
                macro_rules! rho {
                    ($i:literal, $offset:literal) => {
                        $rol::<$offset>(a[$i])
                    };
                }
                let r = rho_and_pi!(row, rho, a[0]);
                macro_rules! lane {
                    ($i:literal) => {
                        r[$i / 5][$i % 5]
                    };
                }
                *a = every_lane!(lane);
                // Iota.
                a[0] = $xor(a[0], $splat(round_constant.cast_signed()));
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use {define_permute, xor_blocks};
