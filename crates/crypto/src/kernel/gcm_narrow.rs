//! AES-GCM on registers of one or two blocks, without AVX-512: one source for both widths.
//!
//! `kernel` makes a kernel from what its module calls a `Register` and the instructions on it. What it
//! writes out where it stands is in `gcm_narrow_rounds.rs`: a function with so much in it is not inlined. Of 16
//! registers, eight hold blocks; the round keys and the powers of the hash key come from memory.

/// Bytes of the virtual blocks in front of a long message (see `gcm.rs`): registers of any width begin where
/// the text does.
pub(super) const FRONT: usize = 2 * super::BLOCK_LEN;

/// Registers in flight: a group.
pub(super) const GROUP: usize = 8;

/// A kernel of that many blocks a register.
macro_rules! kernel {
    ($features:literal, $proof:ident, $kind:ident, $lanes:literal) => {
        /// Blocks of a register.
        const LANES: usize = $lanes;
        /// Bytes of a register.
        const WIDTH: usize = LANES * BLOCK_LEN;
        /// Blocks of the longest message that goes through at once.
        const MOST_AT_ONCE: usize = if LANES == 1 { GROUP } else { MOST_SHORT / BLOCK_LEN };
        /// Groups whose counters differ in nothing but their last byte.
        const PAGE: usize = 256 / (GROUP * LANES);

        const _: () = assert!(2 * GROUP * LANES < MOST_POWER, "a group, the rest, and the lengths");

        /// Expands a key of 16, 24 or 32 bytes. `None` for any other length.
        pub(crate) fn key(proof: $proof, key: &[u8]) -> Option<Key> {
            let rounds = crate::kernel::round_keys::rounds_of(key)?;
            // SAFETY: `proof` says that the CPU has what this needs.
            let tables = unsafe { gcm_narrow_key::tables(key) };
            let works = const { &WORKS_OF_BOTH };
            Some(Key::new(tables, rounds, works, Proof::$kind(proof)))
        }

        const WORKS_OF_BOTH: Works =
            Works { seal: by_length::<true>(), open: by_length::<false>(), parts: None };

        const fn by_length<const SEAL: bool>() -> [Work; WORKS] {
            let mut works: [Work; WORKS] = [long::<SEAL>; _];
            let by_registers: [Work; GROUP + 1] = [
                short::<SEAL, 0>,
                short::<SEAL, 1>,
                short::<SEAL, 2>,
                short::<SEAL, 3>,
                short::<SEAL, 4>,
                short::<SEAL, 5>,
                short::<SEAL, 6>,
                short::<SEAL, 7>,
                short::<SEAL, 8>,
            ];
            let mut blocks = 0;
            while blocks <= MOST_AT_ONCE {
                works[blocks] = by_registers[blocks.div_ceil(LANES)];
                blocks += 1;
            }
            works
        }

        /// A message of `N` registers, the last one in part. All are in flight at once, and there is one reduction.
        #[target_feature(enable = $features)]
        fn short<const SEAL: bool, const N: usize>(
            key: &Key,
            nonce: &[u8; 12],
            aad: &[u8],
            text: &Text<'_>,
            tag: &mut [u8; BLOCK_LEN],
        ) {
            let total = text.total();
            let blocks = total.div_ceil(BLOCK_LEN);
            debug_assert!(blocks.div_ceil(LANES) == N, "the length was matched");
            let base = first_round_base(key, nonce_block(nonce), 0);
            let [_, term, terms @ ..] = &key.tables.first_terms;
            let mut mask = _mm_xor_si128(base, load_128(term));
            let mut state = [spread(base); N];
            for (i, state) in state.iter_mut().enumerate() {
                // SAFETY: there are terms for more blocks than such a message has.
                *state = xor(*state, unsafe { load_at(terms.as_ptr().cast(), WIDTH * i) });
            }
            let end = if N == 0 { wide(mask) } else { load_end!(text, WIDTH * (N - 1)) };

            let mut sum = Sum::of(wide(lengths(aad, total)), wide(power(key, 1)));
            let head = match aad.len() {
                0..=BLOCK_LEN => load_bytes(aad),
                _ => long_aad(key, aad),
            };
            sum.add(wide(swap_128(head)), wide(power(key, blocks + 2)));
            let powers = key.tables.powers.as_ptr().wrapping_add(MOST_POWER - 1 - blocks).cast();
            if !SEAL {
                for i in 0..N {
                    let data = if i + 1 == N {
                        end
                    } else {
                        // SAFETY: only the last register of a text may be a part.
                        unsafe { load_at(text.source(), WIDTH * i) }
                    };
                    // SAFETY: there are powers for all of the text, and zeros behind.
                    sum.add(swap(data), unsafe { load_at(powers, WIDTH * i) });
                }
            }

            rounds!(
                key,
                |step, round_key| {
                    mask = _mm_aesenc_si128(mask, lowest(round_key));
                    for state in &mut state {
                        *state = round(*state, round_key);
                    }
                },
                {}
            );
            let last_key = broadcast(&key.tables.round_keys[key.rounds]);
            mask = _mm_aesenclast_si128(mask, lowest(last_key));
            for (i, state) in state.iter().enumerate() {
                let data = if i + 1 == N {
                    end
                } else {
                    // SAFETY: only the last register of a text may be a part.
                    unsafe { load_at(text.source(), WIDTH * i) }
                };
                let mut out = last_round(*state, xor(last_key, data));
                if i + 1 == N {
                    out = store_end!(text, WIDTH * i, out);
                } else {
                    // SAFETY: only the last register of a text may be a part.
                    unsafe { store_at(text.target(), WIDTH * i, out) };
                }
                if SEAL {
                    // SAFETY: there are powers for all of the text, and zeros behind.
                    sum.add(swap(out), unsafe { load_at(powers, WIDTH * i) });
                }
            }
            store_tag(tag, sum, mask);
        }

        /// A longer message: groups of eight registers, whose rounds are interleaved with the hash, of the group before
        /// if this seals, and of the same group if it opens.
        #[target_feature(enable = $features)]
        fn long<const SEAL: bool>(
            key: &Key,
            nonce: &[u8; 12],
            aad: &[u8],
            text: &Text<'_>,
            tag: &mut [u8; BLOCK_LEN],
        ) {
            let total = text.total();
            assert!(total > MOST_AT_ONCE * BLOCK_LEN, "shorter messages go through at once");
            let registers = (FRONT + total).div_ceil(WIDTH);
            let groups = (registers - 1) / GROUP;
            let left = (FRONT + total).div_ceil(BLOCK_LEN) - GROUP * LANES * groups;
            let nonce = nonce_block(nonce);
            let mut base = spread(first_round_base(key, nonce, 0));
            let front = front(key, aad);
            let message = Message {
                key,
                text,
                source: text.source().wrapping_sub(FRONT),
                target: text.target().wrapping_sub(FRONT),
                terms: terms(key, total).as_ptr().cast(),
                last_key: broadcast(&key.tables.round_keys[key.rounds]),
                lengths: lengths(aad, total),
            };
            let powers = key.tables.powers.as_ptr().wrapping_add(MOST_POWER - GROUP * LANES).cast();

            // The first group, with the virtual blocks.
            let mut hash = _mm_setzero_si128();
            let mut sum = Sum::zero();
            let mut state = message.first_round::<GROUP>(base, 0);
            let whole = if SEAL { message.target } else { message.source };
            let mut hashed = Hashed { front: front.as_ptr().cast(), place: whole };
            group_rounds!(key, state, sum, |step| {
                if !SEAL {
                    // SAFETY: the text has a group and more, and the front as many bytes as it stands for.
                    unsafe { sum.add(hashed.register(step, hash), load_at(powers, WIDTH * step)) };
                }
            });
            for (i, state) in state.iter_mut().enumerate() {
                if i < FRONT / WIDTH {
                    *state = last_round(*state, message.last_key);
                } else {
                    // SAFETY: the text has a group and more.
                    unsafe { message.last_round(*state, WIDTH * i) };
                }
            }
            let mask = if LANES == 1 { lowest(state[1]) } else { upper(state[0]) };
            if !SEAL {
                hash = folded(sum.reduced());
            }

            for group in 1..groups {
                if group.is_multiple_of(PAGE) {
                    base = spread(first_round_base(key, nonce, (group / PAGE) as u32));
                }
                let at = WIDTH * GROUP * group;
                if !SEAL {
                    hashed = Hashed::group(whole.wrapping_add(at));
                }
                let mut state = message.first_round::<GROUP>(base, group);
                let mut sum = Sum::zero();
                group_rounds!(key, state, sum, |step| {
                    // SAFETY: the text has this group and more, and the group before was written.
                    unsafe { sum.add(hashed.register(step, hash), load_at(powers, WIDTH * step)) };
                });
                for (i, state) in state.iter().enumerate() {
                    // SAFETY: the text has this group and more.
                    unsafe { message.last_round(*state, at + WIDTH * i) };
                }
                if SEAL {
                    hashed = Hashed::group(whole.wrapping_add(at));
                }
                hash = folded(sum.reduced());
            }

            if groups.is_multiple_of(PAGE) {
                base = spread(first_round_base(key, nonce, (groups / PAGE) as u32));
            }
            let sum = match registers - GROUP * groups {
                1 => rest!(1, message, base, groups, hash, hashed, left),
                2 => rest!(2, message, base, groups, hash, hashed, left),
                3 => rest!(3, message, base, groups, hash, hashed, left),
                4 => rest!(4, message, base, groups, hash, hashed, left),
                5 => rest!(5, message, base, groups, hash, hashed, left),
                6 => rest!(6, message, base, groups, hash, hashed, left),
                7 => rest!(7, message, base, groups, hash, hashed, left),
                _ => rest!(8, message, base, groups, hash, hashed, left),
            };
            store_tag(tag, sum, mask);
        }

        /// A long message.
        struct Message<'m, 't> {
            key: &'m Key,
            text: &'m Text<'t>,
            /// Where the text would begin with the virtual blocks.
            source: *const u8,
            target: *mut u8,
            terms: *const u8,
            last_key: Register,
            lengths: __m128i,
        }

        impl Message<'_, '_> {
            /// The first round of a group's counters.
            #[inline]
            #[target_feature(enable = $features)]
            fn first_round<const N: usize>(&self, base: Register, group: usize) -> [Register; N] {
                let mut state = [base; N];
                for (i, state) in state.iter_mut().enumerate() {
                    let at = GROUP * WIDTH * (group % PAGE) + WIDTH * i;
                    // SAFETY: there are terms of a page, or of as many blocks as the message has.
                    *state = xor(base, unsafe { load_at(self.terms, at) });
                }
                state
            }

            /// The last round of a register, and the text.
            ///
            /// # Safety
            /// The message must have a register there.
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn last_round(&self, state: Register, at: usize) {
                // SAFETY: as the caller promises.
                let data = unsafe { load_at(self.source, at) };
                // SAFETY: the same.
                unsafe { store_at(self.target, at, last_round(state, xor(self.last_key, data))) };
            }
        }

        /// A group that goes through the hash. What its virtual blocks are lies elsewhere.
        struct Hashed {
            front: *const u8,
            place: *const u8,
        }

        impl Hashed {
            fn group(place: *const u8) -> Self {
                Self { front: place, place }
            }

            /// A register as it is multiplied, with the hash before in the first.
            ///
            /// # Safety
            /// The group must be readable, but for what lies elsewhere.
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn register(&self, index: usize, hash: __m128i) -> Register {
                let place = if index < FRONT / WIDTH { self.front } else { self.place };
                // SAFETY: as the caller promises.
                let x = swap(unsafe { load_at(place, WIDTH * index) });
                if index == 0 { xor(x, wide(hash)) } else { x }
            }
        }

        /// A sum of products that is not reduced: what belongs to the lower 128 bits, the middle, the upper.
        #[derive(Clone, Copy)]
        pub(super) struct Sum {
            low: Register,
            middle: Register,
            high: Register,
        }

        impl Sum {
            #[inline]
            #[target_feature(enable = $features)]
            fn zero() -> Self {
                let zero = wide(_mm_setzero_si128());
                Self { low: zero, middle: zero, high: zero }
            }

            #[inline]
            #[target_feature(enable = $features)]
            pub(super) fn of(x: Register, power: Register) -> Self {
                Self {
                    low: product::<0x00>(x, power),
                    middle: xor(product::<0x01>(x, power), product::<0x10>(x, power)),
                    high: product::<0x11>(x, power),
                }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn add(&mut self, x: Register, power: Register) {
                self.low = xor(self.low, product::<0x00>(x, power));
                self.middle = xor(self.middle, product::<0x01>(x, power));
                self.middle = xor(self.middle, product::<0x10>(x, power));
                self.high = xor(self.high, product::<0x11>(x, power));
            }

            /// The remainder of each lane.
            #[inline]
            #[target_feature(enable = $features)]
            pub(super) fn reduced(self) -> Register {
                let polynomial = spread(_mm_set_epi64x(POLY, 1));
                let t = product::<0x01>(polynomial, self.low);
                let middle = xor(xor(self.middle, swap_halves::<0x4e>(self.low)), t);
                let t = product::<0x01>(polynomial, middle);
                xor(xor(self.high, swap_halves::<0x4e>(middle)), t)
            }
        }

        /// The first round of the counters `256 * page` to `256 * page + 255`, but for their last byte.
        #[inline]
        #[target_feature(enable = $features)]
        fn first_round_base(key: &Key, nonce_block: __m128i, page: u32) -> __m128i {
            let counter = (page << 8).swap_bytes().cast_signed();
            let block = _mm_insert_epi32::<3>(nonce_block, counter);
            let [first, second, ..] = &key.tables.round_keys;
            _mm_aesenc_si128(_mm_xor_si128(block, load_128(first)), load_128(second))
        }

        /// The last block of the hash: the lengths in bits.
        #[inline]
        #[target_feature(enable = $features)]
        fn lengths(aad: &[u8], total: usize) -> __m128i {
            _mm_set_epi64x((8 * aad.len()).cast_signed() as i64, (8 * total).cast_signed() as i64)
        }

        /// The virtual blocks of the hash.
        #[inline]
        #[target_feature(enable = $features)]
        fn front(key: &Key, aad: &[u8]) -> [__m128i; 2] {
            if aad.len() > FRONT {
                return [_mm_setzero_si128(), long_aad(key, aad)];
            }
            match aad.split_first_chunk() {
                Some((first, last)) if !last.is_empty() => [load_128(first), load_bytes(last)],
                _ => [_mm_setzero_si128(), load_bytes(aad)],
            }
        }

        /// Hashes all but the last block of additional data, and adds that: what a single block would have to be.
        #[cold]
        #[inline(never)]
        #[target_feature(enable = $features)]
        fn long_aad(key: &Key, aad: &[u8]) -> __m128i {
            let (before, last) = aad.split_at((aad.len() - 1) / BLOCK_LEN * BLOCK_LEN);
            let mut state = _mm_setzero_si128();
            for block in before.as_chunks::<BLOCK_LEN>().0 {
                let x = _mm_xor_si128(state, swap_128(load_128(block)));
                state = lowest(Sum::of(wide(x), wide(power(key, 1))).reduced());
            }
            _mm_xor_si128(load_bytes(last), swap_128(state))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn power(key: &Key, power: usize) -> __m128i {
            load_128(&key.tables.powers[MOST_POWER - power])
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn store_tag(tag: &mut [u8; BLOCK_LEN], sum: Sum, mask: __m128i) {
            let made = _mm_xor_si128(swap_128(folded(sum.reduced())), mask);
            // SAFETY: a tag has 16 bytes, and the store needs no alignment.
            unsafe { _mm_storeu_si128(tag.as_mut_ptr().cast(), made) };
        }

        /// The terms for a message of that many bytes.
        fn terms(key: &Key, len: usize) -> &[[u8; BLOCK_LEN]] {
            if len <= FIRST_TERMS_LAST {
                return &key.tables.first_terms;
            }
            let make = || {
                // SAFETY: the key's proof says that the CPU has what this needs.
                unsafe { gcm_narrow_key::terms(&key.tables.round_keys[0]) }
            };
            &key.terms.get_or_init(make).0
        }
    };
}
pub(super) use kernel;
