//! The loops of the AES kernels, over registers, instructions and rounds that a kernel names.
//!
//! Macros, since a function that is generic over the registers has no target features, and what it calls
//! would not be inlined into it. The kernel that uses one has in scope:
//! `load` and `store`, between memory and a register; `apply!(keys, state, encrypt)`, all rounds of an
//! array of registers; `load_keys`, for `for_rounds!`.

/// Defines the function `apply`, all rounds, for a register of one width: an addition of x86's, and the
/// instructions for a round to encipher, one to decipher, and the last ones.
#[cfg(target_arch = "x86_64")]
macro_rules! define_apply {
    (
        $features:literal, $vector:ty, $xor:ident,
        $encrypt:ident, $decrypt:ident, $encrypt_last:ident, $decrypt_last:ident
    ) => {
        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn apply<const KEYS: usize, const ENCRYPT: bool, const N: usize>(
            keys: &[$vector; KEYS],
            state: &mut [$vector; N],
        ) {
            for state in &mut *state {
                *state = $xor(*state, keys[0]);
            }
            for key in &keys[1..KEYS - 1] {
                for state in &mut *state {
                    *state = if ENCRYPT { $encrypt(*state, *key) } else { $decrypt(*state, *key) };
                }
            }
            let last = keys[KEYS - 1];
            for state in state {
                *state =
                    if ENCRYPT { $encrypt_last(*state, last) } else { $decrypt_last(*state, last) };
            }
        }
    };
}

/// Defines `load_keys`: each round key in a register, in every block of it.
macro_rules! define_load_keys {
    ($features:literal, $vector:ty, $one:ident) => {
        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn load_keys<const KEYS: usize>(keys: &RoundKeys) -> [$vector; KEYS] {
            let bytes: &[[u8; BLOCK_LEN]; KEYS] =
                keys.keys().first_chunk().expect("rounds were matched");
            let mut loaded = [$one(&bytes[0]); KEYS];
            for (loaded, bytes) in loaded.iter_mut().zip(bytes) {
                *loaded = $one(bytes);
            }
            loaded
        }
    };
}

/// Defines `ecb_units` and `cbc_decrypt_units`: whole registers, `WIDE` in flight and then one.
/// `$ahead` asks for what comes later to be fetched. The kernel has a `cbc_decrypt_group`.
macro_rules! define_unit_loops {
    ($features:literal, $vector:ty, $unit:ty, $ahead:ident) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn ecb_units<const KEYS: usize, const ENCRYPT: bool>(
            keys: &[$vector; KEYS],
            units: &mut [$unit],
        ) {
            let (groups, rest) = units.as_chunks_mut::<WIDE>();
            for group in groups {
                ecb_group::<KEYS, ENCRYPT, WIDE>(keys, group);
            }
            for unit in rest.as_chunks_mut::<1>().0 {
                ecb_group::<KEYS, ENCRYPT, 1>(keys, unit);
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn ecb_group<const KEYS: usize, const ENCRYPT: bool, const N: usize>(
            keys: &[$vector; KEYS],
            units: &mut [$unit; N],
        ) {
            let mut state = [keys[0]; N];
            for (state, unit) in state.iter_mut().zip(&*units) {
                $ahead(unit);
                *state = load(unit);
            }
            apply!(keys, state, ENCRYPT);
            for (state, unit) in state.iter().zip(units) {
                store(unit, *state);
            }
        }

        /// The last block of `previous` is what is XORed onto the first of `units`. Returns the last unit.
        #[inline]
        #[target_feature(enable = $features)]
        fn cbc_decrypt_units<const KEYS: usize>(
            keys: &[$vector; KEYS],
            mut previous: $vector,
            units: &mut [$unit],
        ) -> $vector {
            let (groups, rest) = units.as_chunks_mut::<WIDE>();
            for group in groups {
                previous = cbc_decrypt_group(keys, previous, group);
            }
            for unit in rest.as_chunks_mut::<1>().0 {
                previous = cbc_decrypt_group(keys, previous, unit);
            }
            previous
        }
    };
}

/// Defines `cbc_decrypt_group`. `$before` makes of a unit and the one before it the blocks that are
/// XORed onto the former.
macro_rules! define_cbc_decrypt_group {
    ($features:literal, $vector:ty, $unit:ty, $ahead:ident, $xor:ident, $before:ident) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn cbc_decrypt_group<const KEYS: usize, const N: usize>(
            keys: &[$vector; KEYS],
            mut previous: $vector,
            units: &mut [$unit; N],
        ) -> $vector {
            let mut state = [previous; N];
            for (state, unit) in state.iter_mut().zip(&*units) {
                $ahead(unit);
                *state = load(unit);
            }
            apply!(keys, state, false);
            for (state, unit) in state.iter().zip(units) {
                let ciphertext = load(unit);
                store(unit, $xor(*state, $before(ciphertext, previous)));
                previous = ciphertext;
            }
            previous
        }
    };
}

/// Defines `ctr`, from a `ctr_run` of the kernel.
macro_rules! define_ctr {
    ($features:literal) => {
        #[target_feature(enable = $features)]
        fn ctr(keys: &RoundKeys, counter: u128, in_out: &mut [u8]) {
            let (before, after, wrapped) = split_at_wrap(counter, in_out);
            for_rounds!(keys, ctr_run(counter, before));
            if !after.is_empty() {
                for_rounds!(keys, ctr_run(wrapped, after));
            }
        }
    };
}

/// Defines `ctr_units`: whole registers, `WIDE` in flight, then half as many, and then one. The kernel
/// has a `ctr_group`.
#[cfg(target_arch = "x86_64")]
macro_rules! define_ctr_units {
    ($features:literal, $vector:ty, $unit:ty) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn ctr_units<const KEYS: usize>(
            keys: &[$vector; KEYS],
            next: &mut $vector,
            units: &mut [$unit],
        ) {
            let (groups, rest) = units.as_chunks_mut::<WIDE>();
            for group in groups {
                ctr_group(keys, next, group);
            }
            let (halves, rest) = rest.as_chunks_mut::<{ WIDE / 2 }>();
            for half in halves {
                ctr_group(keys, next, half);
            }
            for unit in rest.as_chunks_mut::<1>().0 {
                ctr_group(keys, next, unit);
            }
        }
    };
}

/// Defines all modes of a kernel whose registers hold one block, whose `Key` has a proof and round keys, but for
/// `cbc_encrypt_one`, CBC of one message.
/// `$counter` makes a register of a counter, `$next` its block, and counts. `$few` is a module for few blocks, with
/// the functions of `aes_ni_few.rs`.
macro_rules! define_block_kernel {
    (
        $features:literal, $vector:ty, $xor:ident, $counter:ident, $next:ident
        $(, few: $few:ident)?
    ) => {
        impl BlockKernel for Key {
            fn encrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
                $(if blocks.len() <= $few::MOST {
                    // SAFETY: `_proof` says that the CPU has the instructions.
                    return unsafe { $few::ecb::<true>(&self.encrypt, blocks) };
                })?
                // SAFETY: `_proof` says that the CPU has the instructions.
                unsafe { ecb::<true>(&self.encrypt, blocks) }
            }

            fn decrypt(&self, blocks: &mut [[u8; BLOCK_LEN]]) {
                $(if blocks.len() <= $few::MOST {
                    // SAFETY: as above.
                    return unsafe { $few::ecb::<false>(&self.decrypt, blocks) };
                })?
                // SAFETY: as above.
                unsafe { ecb::<false>(&self.decrypt, blocks) }
            }

            fn ctr(&self, counter: u128, in_out: &mut [u8]) {
                $(if in_out.len() <= $few::MOST * BLOCK_LEN {
                    // SAFETY: as above.
                    return unsafe { $few::ctr(&self.encrypt, counter, in_out) };
                })?
                // SAFETY: as above.
                unsafe { ctr(&self.encrypt, counter, in_out) }
            }

            fn cbc_decrypt(&self, iv: &[u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
                $(if blocks.len() <= $few::MOST {
                    // SAFETY: as above.
                    return unsafe { $few::cbc_decrypt(&self.decrypt, iv, blocks) };
                })?
                // SAFETY: as above.
                unsafe { cbc_decrypt(&self.decrypt, iv, blocks) }
            }

            fn round_keys(&self) -> Box<RoundKeys> {
                RoundKeys::of(self.encrypt.keys())
            }

            fn lane_counts(&self) -> &'static [usize] {
                &[8, 4, 1]
            }

            fn cbc_encrypt_lanes(
                &self,
                chain: &mut [[u8; BLOCK_LEN]],
                lanes: &mut [&mut [[u8; BLOCK_LEN]]],
            ) {
                // SAFETY: as above.
                unsafe { cbc_encrypt_lanes(&self.encrypt, chain, lanes) }
            }
        }

        define_unit_loops!($features, $vector, [u8; BLOCK_LEN], nothing_ahead);
        define_cbc_decrypt_group!(
            $features,
            $vector,
            [u8; BLOCK_LEN],
            nothing_ahead,
            $xor,
            block_before
        );
        define_ctr!($features);

        /// Only the wide kernels look ahead.
        #[inline]
        fn nothing_ahead(_: &[u8; BLOCK_LEN]) {}

        /// What is XORed onto a block.
        #[inline]
        fn block_before(_: $vector, previous: $vector) -> $vector {
            previous
        }

        #[target_feature(enable = $features)]
        fn ecb<const ENCRYPT: bool>(keys: &RoundKeys, blocks: &mut [[u8; BLOCK_LEN]]) {
            for_rounds!(keys, ecb_run[ENCRYPT](blocks));
        }

        #[target_feature(enable = $features)]
        fn ecb_run<const KEYS: usize, const ENCRYPT: bool>(
            keys: &[$vector; KEYS],
            blocks: &mut [[u8; BLOCK_LEN]],
        ) {
            ecb_units::<KEYS, ENCRYPT>(keys, blocks);
        }

        /// CTR over counters that agree in their upper 64 bits.
        #[target_feature(enable = $features)]
        fn ctr_run<const KEYS: usize>(keys: &[$vector; KEYS], counter: u128, in_out: &mut [u8]) {
            let mut next = $counter(counter);
            macro_rules! key_stream {
                ($count:expr) => {{
                    let mut state = [keys[0]; $count];
                    for state in &mut state {
                        *state = $next(&mut next);
                    }
                    apply!(keys, state, true);
                    state
                }};
            }
            let (blocks, tail) = in_out.as_chunks_mut::<BLOCK_LEN>();
            let (groups, rest) = blocks.as_chunks_mut::<WIDE>();
            for group in groups {
                let state = key_stream!(WIDE);
                for (state, block) in state.iter().zip(group) {
                    store(block, $xor(*state, load(block)));
                }
            }
            for block in rest {
                let [state] = key_stream!(1);
                store(block, $xor(state, load(block)));
            }
            if !tail.is_empty() {
                let [state] = key_stream!(1);
                let mut block = [0; BLOCK_LEN];
                store(&mut block, state);
                super::xor(tail, &block);
            }
        }

        #[target_feature(enable = $features)]
        fn cbc_decrypt(keys: &RoundKeys, iv: &[u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
            for_rounds!(keys, cbc_decrypt_run(iv, blocks));
        }

        #[target_feature(enable = $features)]
        fn cbc_decrypt_run<const KEYS: usize>(
            keys: &[$vector; KEYS],
            iv: &[u8; BLOCK_LEN],
            blocks: &mut [[u8; BLOCK_LEN]],
        ) {
            cbc_decrypt_units(keys, load(iv), blocks);
        }

        #[target_feature(enable = $features)]
        fn cbc_encrypt_lanes(
            keys: &RoundKeys,
            chain: &mut [[u8; BLOCK_LEN]],
            lanes: &mut [&mut [[u8; BLOCK_LEN]]],
        ) {
            match lanes.len() {
                8 => cbc_encrypt_lane_count::<8>(keys, chain, lanes),
                4 => cbc_encrypt_lane_count::<4>(keys, chain, lanes),
                _ => cbc_encrypt_one(keys, &mut chain[0], lanes[0]),
            }
        }

        #[target_feature(enable = $features)]
        fn cbc_encrypt_lane_count<const N: usize>(
            keys: &RoundKeys,
            chain: &mut [[u8; BLOCK_LEN]],
            lanes: &mut [&mut [[u8; BLOCK_LEN]]],
        ) {
            let chain = chain.first_chunk_mut::<N>().expect("a chain for each lane");
            let lanes = lanes.first_chunk_mut::<N>().expect("as many lanes as were announced");
            for_rounds!(keys, cbc_encrypt_run[N](chain, lanes));
        }

        #[target_feature(enable = $features)]
        fn cbc_encrypt_run<const KEYS: usize, const N: usize>(
            keys: &[$vector; KEYS],
            chain: &mut [[u8; BLOCK_LEN]; N],
            lanes: &mut [&mut [[u8; BLOCK_LEN]]; N],
        ) {
            let mut state = [keys[0]; N];
            for (state, chain) in state.iter_mut().zip(&*chain) {
                *state = load(chain);
            }
            for index in 0..lanes.iter().map(|lane| lane.len()).min().unwrap_or(0) {
                for (state, lane) in state.iter_mut().zip(&*lanes) {
                    *state = $xor(*state, load(&lane[index]));
                }
                apply!(keys, state, true);
                for (state, lane) in state.iter().zip(&mut *lanes) {
                    store(&mut lane[index], *state);
                }
            }
            for (state, chain) in state.iter().zip(chain) {
                store(chain, *state);
            }
        }
    };
}

/// Defines `register_bound`. `$round` is one round, and `$key` a register of any value.
macro_rules! define_register_bound {
    ($features:literal, $proof:ty, $key:expr, |$state:ident, $round_key:ident| $round:expr) => {
        /// A bound for what this kernel can reach: `turns` times `rounds` rounds, of AES-256 at most, on
        /// `WIDE` registers that never go to memory. Returns the bytes that this would have enciphered.
        pub(crate) fn register_bound(_proof: $proof, rounds: usize, turns: u64) -> u64 {
            /// Returns the bytes of its registers.
            #[target_feature(enable = $features)]
            fn run(rounds: usize, turns: u64) -> usize {
                let $round_key = $key;
                let mut state = [$round_key; WIDE];
                for _ in 0..turns {
                    for _ in 0..rounds / 2 {
                        for _ in 0..2 {
                            for state in &mut state {
                                let $state = *state;
                                *state = $round;
                            }
                        }
                    }
                }
                size_of_val(&std::hint::black_box(state))
            }
            // SAFETY: `_proof` says that the CPU has the instructions.
            let bytes = unsafe { run(rounds.min(MOST_ROUNDS), turns) };
            turns * bytes as u64
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(super) use {define_apply, define_ctr_units};
pub(super) use {
    define_block_kernel, define_cbc_decrypt_group, define_ctr, define_load_keys,
    define_register_bound, define_unit_loops,
};
