//! `Keccak-p[1600]` (FIPS 202, section 3) on the kernel that the caller or the CPU chooses.

use crate::choice;
use crate::error::Error;
use crate::kernel::cpu::{self, Avx2, Avx512};
use crate::kernel::cpu_arm::Armv8Sha3;
#[cfg(target_arch = "aarch64")]
use crate::kernel::keccak_armv8;
use crate::kernel::keccak_soft;
#[cfg(target_arch = "x86_64")]
use crate::kernel::{
    cpu::Measured, keccak_avx2, keccak_avx512, keccak_avx512_planes, keccak_avx512_words,
};

/// States that a kernel works on at once.
pub const LANES: usize = 8;

/// The implementations of `Keccak-p[1600]`, FIPS 202 section 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeccakKernel {
    /// Portable Rust, one state after the other.
    Soft,
    /// AVX2, four states at once.
    Avx2(Avx2),
    /// AVX-512, eight or four states at once, or one by planes or by words.
    Avx512(Avx512),
    /// The instructions of ARMv8, two states at once.
    Armv8(Armv8Sha3),
}

impl KeccakKernel {
    /// Messages or chunks that are hashed at once.
    pub const LANES: usize = LANES;

    /// The names of all kernels for ARM, those of other CPUs included, the slowest first.
    #[cfg(target_arch = "aarch64")]
    pub const NAMES: [&str; 2] = ["keccak-soft", "keccak-armv8"];

    /// The names of all kernels for x86-64, those of other CPUs included, the slowest first.
    #[cfg(not(target_arch = "aarch64"))]
    pub const NAMES: [&str; 3] = ["keccak-soft", "keccak-avx2", "keccak-avx512"];

    /// The default of this CPU: the widest kernel that it runs, but never `keccak-avx2` or `keccak-armv8`, which have to
    /// be named.
    pub fn best() -> Self {
        Avx512::detect().map_or(Self::Soft, Self::Avx512)
    }

    /// True if kernels were measured on CPUs of this class. Where they were not, [`Self::best`] goes by the
    /// instructions alone, and takes none of those that came later: they are used by name only.
    pub fn measured(self) -> bool {
        cpu::measured().is_some()
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], or [`Error::KernelAbsent`] with the reason.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "keccak-soft" => Ok(Self::Soft),
            "keccak-avx2" => choice::found(Avx2::detect(), name, Avx2::NEEDS).map(Self::Avx2),
            "keccak-avx512" => {
                choice::found(Avx512::detect(), name, Avx512::NEEDS).map(Self::Avx512)
            }
            "keccak-armv8" => {
                choice::found(Armv8Sha3::detect(), name, Armv8Sha3::NEEDS).map(Self::Armv8)
            }
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
            Self::Soft => "keccak-soft",
            Self::Avx2(_) => "keccak-avx2",
            Self::Avx512(_) => "keccak-avx512",
            Self::Armv8(_) => "keccak-armv8",
        }
    }

    /// Absorbs `inputs[n]` into the state `n`, whose lane `i` is `states[i][n]`.
    ///
    /// Where there is no input, the state is garbage afterwards. The time depends on the last input
    /// that there is: the first one alone, up to four, up to eight. Panics unless all inputs have the
    /// same length, a multiple of `RATE`.
    pub(crate) fn absorb<const RATE: usize, const ROUNDS: usize>(
        self,
        states: &mut [[u64; LANES]; 25],
        inputs: [Option<&[u8]>; LANES],
    ) {
        let Some(any) = inputs.into_iter().flatten().next() else { return };
        let one_length = inputs.into_iter().flatten().all(|input| input.len() == any.len());
        assert!(one_length, "inputs of one length");
        assert!(any.len().is_multiple_of(RATE), "whole blocks");
        #[cfg(target_arch = "aarch64")]
        if let Self::Armv8(token) = self {
            return keccak_armv8::absorb_8::<RATE, ROUNDS>(token, states, inputs);
        }
        #[cfg(target_arch = "x86_64")]
        if let used @ 2.. = inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1) {
            // An empty lane costs nothing more when it reads what another lane reads.
            let inputs @ [i0, i1, i2, i3, i4, i5, i6, i7] =
                inputs.map(|input| input.unwrap_or(any));
            let (low, high) = ([i0, i1, i2, i3], [i4, i5, i6, i7]);
            match self {
                Self::Soft | Self::Armv8(_) => {}
                Self::Avx2(token) => {
                    keccak_avx2::absorb_4::<RATE, ROUNDS>(token, states, 0, low);
                    if used > 4 {
                        keccak_avx2::absorb_4::<RATE, ROUNDS>(token, states, 4, high);
                    }
                    return;
                }
                Self::Avx512(token) if used > 4 => {
                    return keccak_avx512::absorb_8::<RATE, ROUNDS>(token, states, inputs);
                }
                Self::Avx512(token) => {
                    return keccak_avx512::absorb_4::<RATE, ROUNDS>(token, states, low);
                }
            }
        }
        for (n, input) in inputs.into_iter().enumerate() {
            let Some(input) = input else { continue };
            let mut state = states.map(|words| words[n]);
            self.absorb_one::<RATE, ROUNDS>(&mut state, input);
            for (words, word) in states.iter_mut().zip(state) {
                words[n] = word;
            }
        }
    }

    /// Absorbs `input` into one state.
    ///
    /// Panics unless the input's length is a multiple of `RATE`.
    pub(crate) fn absorb_one<const RATE: usize, const ROUNDS: usize>(
        self,
        state: &mut [u64; 25],
        input: &[u8],
    ) {
        match self {
            Self::Soft | Self::Avx2(_) | Self::Armv8(_) => {
                let mut lanes = state.map(|word| [word]);
                keccak_soft::absorb::<RATE, ROUNDS>(&mut lanes, input);
                *state = lanes.map(|[word]| word);
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(token) if cpu::measured() == Some(Measured::Zen5) => {
                keccak_avx512_words::absorb_1::<RATE, ROUNDS>(token, state, input);
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(token) => {
                keccak_avx512_planes::absorb_1::<RATE, ROUNDS>(token, state, input);
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512(_) => unreachable!("no such proof can be made on this architecture"),
        }
    }

    /// Permutes eight states `times` times in registers: what `absorb` could reach at most.
    #[cfg(any(test, feature = "roofline"))]
    pub(crate) fn permute<const ROUNDS: usize>(
        self,
        states: &mut [[u64; LANES]; 25],
        times: usize,
    ) {
        match self {
            Self::Soft => (0..times).for_each(|_| keccak_soft::permute::<LANES, ROUNDS>(states)),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(token) => keccak_avx2::permute_8::<ROUNDS>(token, states, times),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(token) => keccak_avx512::permute_8::<ROUNDS>(token, states, times),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2(_) | Self::Avx512(_) => {
                unreachable!("no such proof can be made on this architecture")
            }
            #[cfg(target_arch = "aarch64")]
            Self::Armv8(token) => keccak_armv8::permute_8::<ROUNDS>(token, states, times),
            #[cfg(not(target_arch = "aarch64"))]
            Self::Armv8(_) => unreachable!("no such proof can be made on this architecture"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Keccak-f[1600]` of the zero state, first and last lane: the Keccak team's `KeccakF-1600`
    /// test vectors.
    #[test]
    fn permutes_the_zero_state() {
        for kernel in KeccakKernel::all() {
            let mut states = [[0; LANES]; 25];
            kernel.permute::<24>(&mut states, 1);
            assert_eq!(states[0], [0xf125_8f79_40e1_dde7; LANES], "{}", kernel.name());
            assert_eq!(states[24], [0xeaf1_ff7b_5cec_a249; LANES], "{}", kernel.name());
            let mut state = [0; 25];
            kernel.absorb_one::<136, 24>(&mut state, &[0; 136]);
            assert_eq!(state, states.map(|words| words[0]), "{}", kernel.name());
        }
    }

    /// Each is used on another class of CPU.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn planes_and_words_agree() {
        let Some(token) = Avx512::detect() else { return };
        let data: Vec<u8> = (0..3 * 136 * 168).map(|i| (i % 251) as u8).collect();
        let mut states = [[3; 25]; 4];
        let [a, b, c, d] = &mut states;
        keccak_avx512_planes::absorb_1::<136, 24>(token, a, &data);
        keccak_avx512_words::absorb_1::<136, 24>(token, b, &data);
        keccak_avx512_planes::absorb_1::<168, 12>(token, c, &data[1..=2 * 168]);
        keccak_avx512_words::absorb_1::<168, 12>(token, d, &data[1..=2 * 168]);
        assert!(a == b && c == d && a != c);
    }

    #[test]
    fn the_lanes_of_all_kernels_agree_with_one_state() {
        agree::<136, 24>();
        agree::<168, 12>();
    }

    fn agree<const RATE: usize, const ROUNDS: usize>() {
        // One byte more than the blocks, so that every lane starts at another alignment.
        let data: Vec<u8> = (0..LANES * (5 * RATE + 1)).map(|i| (i % 251) as u8).collect();
        for kernel in KeccakKernel::all() {
            for blocks in 0..=5 {
                let inputs: [&[u8]; LANES] =
                    std::array::from_fn(|n| &data[n * (5 * RATE + 1)..][..blocks * RATE]);
                let mut states = [[0; LANES]; 25];
                for (i, words) in states.iter_mut().enumerate() {
                    *words = std::array::from_fn(|n| (i * 1000 + n) as u64);
                }
                let mut expected = states;
                kernel.absorb::<RATE, ROUNDS>(&mut states, inputs.map(Some));
                for n in 0..LANES {
                    let mut one = expected.map(|words| words[n]);
                    KeccakKernel::Soft.absorb_one::<RATE, ROUNDS>(&mut one, inputs[n]);
                    let mut same = expected.map(|words| words[n]);
                    kernel.absorb_one::<RATE, ROUNDS>(&mut same, inputs[n]);
                    assert_eq!(same, one, "{}, {blocks} blocks, lane {n}", kernel.name());
                    for (words, word) in expected.iter_mut().zip(one) {
                        words[n] = word;
                    }
                }
                assert_eq!(states, expected, "{}, {blocks} blocks", kernel.name());
                for lanes in 1..LANES {
                    fewer::<RATE, ROUNDS>(kernel, inputs, lanes);
                }
            }
        }
    }

    /// The first lanes only, with gaps: each takes its own input, whatever the width.
    fn fewer<const RATE: usize, const ROUNDS: usize>(
        kernel: KeccakKernel,
        inputs: [&[u8]; LANES],
        lanes: usize,
    ) {
        for gap in 0..lanes {
            let at = |n: usize| (n < lanes && (n != gap || lanes == 1)).then_some(inputs[n]);
            let mut states = [[7; LANES]; 25];
            kernel.absorb::<RATE, ROUNDS>(&mut states, std::array::from_fn(at));
            for n in (0..LANES).filter(|&n| at(n).is_some()) {
                let mut one = [7; 25];
                KeccakKernel::Soft.absorb_one::<RATE, ROUNDS>(&mut one, inputs[n]);
                assert_eq!(states.map(|words| words[n]), one, "{}, {lanes}, {n}", kernel.name());
            }
        }
    }

    #[test]
    #[should_panic(expected = "whole blocks")]
    fn a_partial_block_is_refused() {
        KeccakKernel::best().absorb::<136, 24>(&mut [[0; LANES]; 25], [Some(&[0; 135]); LANES]);
    }

    #[test]
    #[should_panic(expected = "inputs of one length")]
    fn inputs_of_two_lengths_are_refused() {
        let (short, long) = ([0; 136], [0; 272]);
        let mut inputs: [Option<&[u8]>; LANES] = [Some(&short); LANES];
        inputs[7] = Some(&long);
        KeccakKernel::best().absorb::<136, 24>(&mut [[0; LANES]; 25], inputs);
    }
}
