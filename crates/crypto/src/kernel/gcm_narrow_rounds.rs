//! The parts of `gcm_narrow.rs` that are written out where they stand: the rounds with what is between them, the
//! ends of texts, and the rest of a long message.

/// The last register of a text, with the extra byte, and zeros.
macro_rules! load_end {
    ($text:expr, $begun:expr) => {{
        let (text, begun): (&Text<'_>, usize) = ($text, $begun);
        if LANES == 2 && text.len() - begun >= BLOCK_LEN {
            // SAFETY: the text has a whole block there.
            let first = unsafe { _mm_loadu_si128(text.source().wrapping_add(begun).cast()) };
            of_blocks(first, load_block(text, begun + BLOCK_LEN))
        } else {
            wide(load_block(text, begun))
        }
    }};
}
pub(super) use load_end;

/// The inverse of [`load_end`]. Gives the register with zeros behind the text.
macro_rules! store_end {
    ($text:expr, $begun:expr, $register:expr) => {{
        let (text, begun, register): (&Text<'_>, usize, Register) = ($text, $begun, $register);
        if LANES == 2 && text.total() - begun >= BLOCK_LEN {
            let first = lowest(register);
            // SAFETY: the text has a whole block there.
            unsafe { _mm_storeu_si128(text.target().wrapping_add(begun).cast(), first) };
            of_blocks(first, store_block(text, begun + BLOCK_LEN, upper(register)))
        } else {
            wide(store_block(text, begun, lowest(register)))
        }
    }};
}
pub(super) use store_end;

/// Rounds 2 to the last but one, and something in each of the first eight of them.
macro_rules! rounds {
    ($key:ident, |$step:ident, $round_key:ident| $round:block, $after:block) => {
        rounds!(@all $key, $step, $round_key, $round, $after, 2 3 4 5 6 7 8 9);
        if $key.rounds > 10 {
            rounds!(@all $key, $step, $round_key, $round, {}, 10 11);
        }
        if $key.rounds > 12 {
            rounds!(@all $key, $step, $round_key, $round, {}, 12 13);
        }
    };
    (@all $key:ident, $step:ident, $round_key:ident, $round:block, $after:block, $($n:literal)*) => {
        $({
            #[allow(unused_variables, reason = "not all rounds have something after them")]
            let $step: usize = $n - 2;
            let $round_key = broadcast(&$key.tables.round_keys[$n]);
            $round
            $after
        })*
    };
}
pub(super) use rounds;

/// Rounds of a group, with something in each of the first eight of them.
macro_rules! group_rounds {
    ($key:ident, $state:ident, $sum:ident, |$step:ident| $after:block) => {
        rounds!(
            $key,
            |$step, round_key| {
                for state in &mut $state {
                    *state = round(*state, round_key);
                }
                keep(&mut $state, &mut $sum);
            },
            $after
        );
    };
}
pub(super) use group_rounds;

/// The rest of a long message, of `$n` registers, with the hash of all that is left.
macro_rules! rest {
    ($n:literal, $message:ident, $base:ident, $groups:ident, $hash:ident, $hashed:ident, $left:ident) => {{
        const LAST: usize = $n - 1;
        let (key, text) = ($message.key, $message.text);
        let at = WIDTH * GROUP * $groups;
        let begun = at + WIDTH * LAST - FRONT;
        let end = load_end!(text, begun);
        let mut state = $message.first_round::<$n>($base, $groups);
        let lengths = wide($message.lengths);
        let mut sum = Sum::of(lengths, wide(load_128(&key.tables.powers[MOST_POWER - 1])));
        // Sealing, the last group goes through the hash first.
        let before = if SEAL { LANES * GROUP } else { 0 };
        let powers = key.tables.powers.as_ptr().wrapping_add(MOST_POWER - 1 - $left - before);
        let powers = powers.cast::<u8>();
        group_rounds!(key, state, sum, |step| {
            if SEAL {
                // SAFETY: the last group was written, and there are powers for it and the rest.
                unsafe { sum.add($hashed.register(step, $hash), load_at(powers, WIDTH * step)) };
            } else if step < $n {
                let x = if step == LAST {
                    end
                } else {
                    // SAFETY: only the last register of a text may be a part.
                    unsafe { load_at($message.source, at + WIDTH * step) }
                };
                let x = if step == 0 { xor(swap(x), wide($hash)) } else { swap(x) };
                // SAFETY: there are powers for the rest.
                sum.add(x, unsafe { load_at(powers, WIDTH * step) });
            }
        });
        for (i, state) in state.iter().enumerate() {
            let data = if i == LAST {
                end
            } else {
                // SAFETY: only the last register of a text may be a part.
                unsafe { load_at($message.source, at + WIDTH * i) }
            };
            let mut out = last_round(*state, xor($message.last_key, data));
            if i == LAST {
                out = store_end!(text, begun, out);
            } else {
                // SAFETY: only the last register of a text may be a part.
                unsafe { store_at($message.target, at + WIDTH * i, out) };
            }
            if SEAL {
                // SAFETY: there are powers for the last group and the rest.
                sum.add(swap(out), unsafe { load_at(powers, WIDTH * (GROUP + i)) });
            }
        }
        sum
    }};
}
pub(super) use rest;
