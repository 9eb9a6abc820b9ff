//! Where the chunks of a payload are: arithmetic on lengths, without any I/O.

use std::ops::Range;

use wattlock_engine::crypto::TAG_LEN;

use crate::error::Damage;

/// How a payload is cut into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Plaintext bytes of every chunk but the last.
    pub chunk_len: usize,
    /// How the last chunk is known.
    pub ending: Ending,
}

/// How the last chunk of a payload is known from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is shorter than the others, and empty when nothing is left for it (Cobblestone).
    Short,
    /// Its nonce says so; it is empty only if the whole payload is (age).
    Marked,
}

impl Layout {
    /// Bytes of a full chunk with its tag.
    pub fn slot_len(self) -> usize {
        self.chunk_len + TAG_LEN
    }

    /// Chunks of a payload of `plain_len` bytes.
    pub fn chunks(self, plain_len: u64) -> u64 {
        let chunk_len = self.chunk_len as u64;
        match self.ending {
            Ending::Short => plain_len / chunk_len + 1,
            Ending::Marked => plain_len.div_ceil(chunk_len).max(1),
        }
    }

    /// Bytes of the chunks with their tags for `plain_len` bytes of plaintext.
    pub(crate) fn sealed_len(self, plain_len: u64) -> u64 {
        plain_len + self.chunks(plain_len) * TAG_LEN as u64
    }

    /// Bytes of plaintext in chunks that take `sealed_len` bytes with their tags.
    ///
    /// # Errors
    /// [`Damage`] if no payload has that length. Nothing is authenticated here.
    pub fn plain_len(self, sealed_len: u64) -> Result<u64, Damage> {
        let full = sealed_len / self.slot_len() as u64;
        let rest = sealed_len % self.slot_len() as u64;
        let in_full = full * self.chunk_len as u64;
        let tag_len = TAG_LEN as u64;
        match self.ending {
            Ending::Marked if rest == 0 && full > 0 => Ok(in_full),
            Ending::Marked if rest == tag_len && full > 0 => Err(Damage::EmptyLastChunk),
            _ if rest < tag_len => Err(Damage::Truncated),
            _ => Ok(in_full + rest - tag_len),
        }
    }

    /// The chunks that hold the plaintext bytes of `range`, which lies within `plain_len`; at
    /// least one.
    pub(crate) fn chunks_of(self, range: &Range<u64>, plain_len: u64) -> Range<u64> {
        let chunk_len = self.chunk_len as u64;
        let all = self.chunks(plain_len);
        let first = (range.start / chunk_len).min(all - 1);
        // A range up to the end takes the last chunk along, which proves that it is the end.
        let end = if range.end >= plain_len { all } else { range.end.div_ceil(chunk_len) };
        first..end.max(first + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::Format;

    #[test]
    fn cobblestone_examples() {
        // From the text of C2SP chunked-encryption.
        let layout = Format::WattlockV1.layout();
        for (plain_len, chunks) in [(0, 1), (1024, 1), (16384, 2), (20480, 2)] {
            assert_eq!(layout.chunks(plain_len), chunks, "{plain_len}");
        }
        assert_eq!(layout.plain_len(16400), Err(Damage::Truncated));
        assert_eq!(layout.plain_len(15), Err(Damage::Truncated));
        assert_eq!(layout.plain_len(16400 + 15), Err(Damage::Truncated));
        assert_eq!(layout.plain_len(16400 + 16), Ok(16384));
    }

    #[test]
    fn age_examples() {
        let layout = Format::AgeV1.layout();
        for (plain_len, chunks) in [(0, 1), (1, 1), (65536, 1), (65537, 2)] {
            assert_eq!(layout.chunks(plain_len), chunks, "{plain_len}");
        }
        assert_eq!(layout.plain_len(16), Ok(0));
        assert_eq!(layout.plain_len(65552), Ok(65536));
        assert_eq!(layout.plain_len(65552 + 16), Err(Damage::EmptyLastChunk));
        assert_eq!(layout.plain_len(0), Err(Damage::Truncated));
    }

    #[test]
    fn a_range_at_an_end_takes_the_last_chunk() {
        let (short, marked) = (Format::WattlockV1.layout(), Format::AgeV1.layout());
        let cases = [
            // Nothing at all is one chunk; so is an empty range anywhere.
            (short, 0, 0..0, 0..1),
            (marked, 0, 0..0, 0..1),
            (short, 50_000, 5..5, 0..1),
            (short, 50_000, 16384..16384, 1..2),
            (short, 50_000, 16383..16384, 0..1),
            (short, 50_000, 16383..16385, 0..2),
            (short, 50_000, 0..49_999, 0..4),
            (short, 50_000, 0..49_152, 0..3),
            // Up to the end, the chunk is there that proves it, though it is empty.
            (short, 16384, 0..16384, 0..2),
            (short, 16384, 0..16383, 0..1),
            (short, 32768, 16384..32768, 1..3),
            (short, 32768, 32768..32768, 2..3),
            (marked, 65536, 0..65536, 0..1),
            (marked, 65536, 65536..65536, 0..1),
            (marked, 131_072, 131_072..131_072, 1..2),
            (marked, 131_073, 131_073..131_073, 2..3),
            (marked, 131_072, 1..65536, 0..1),
        ];
        for (layout, plain_len, range, chunks) in cases {
            assert_eq!(layout.chunks_of(&range, plain_len), chunks, "{range:?} of {plain_len}");
        }
    }

    #[test]
    fn a_chunk_takes_a_tag_more() {
        let (short, marked) = (Format::WattlockV1.layout(), Format::AgeV1.layout());
        assert_eq!((short.slot_len(), marked.slot_len()), (16_400, 65_552));
        for (layout, plain_len, sealed_len) in [
            (short, 0, 16),
            (short, 16_383, 16_399),
            (short, 16_384, 16_416),
            (marked, 0, 16),
            (marked, 65_536, 65_552),
            (marked, 65_537, 65_569),
        ] {
            assert_eq!(layout.sealed_len(plain_len), sealed_len, "{plain_len}");
        }
    }

    proptest! {
        #[test]
        fn lengths_round_trip(plain_len in 0u64..1 << 50) {
            for format in Format::ALL {
                let layout = format.layout();
                prop_assert_eq!(layout.plain_len(layout.sealed_len(plain_len)), Ok(plain_len));
            }
        }

        #[test]
        fn a_sealed_length_is_right_or_refused(sealed_len in 0u64..1 << 50) {
            for format in Format::ALL {
                let layout = format.layout();
                if let Ok(plain_len) = layout.plain_len(sealed_len) {
                    prop_assert_eq!(layout.sealed_len(plain_len), sealed_len);
                }
            }
        }

        #[test]
        fn a_range_lies_in_its_chunks(len in 1u64..1 << 40, a in 0u64..1 << 40, b in 0u64..1 << 40) {
            let (a, b) = (a % len, b % len);
            let range = a.min(b)..a.max(b) + 1;
            for format in Format::ALL {
                let layout = format.layout();
                let chunks = layout.chunks_of(&range, len);
                let chunk_len = layout.chunk_len as u64;
                prop_assert!(chunks.start * chunk_len <= range.start);
                prop_assert!(range.end <= chunks.end * chunk_len);
                prop_assert!(chunks.end <= layout.chunks(len));
                // No chunk too many, but for the last, which proves the end.
                prop_assert!((chunks.start + 1) * chunk_len > range.start);
                if range.end < len {
                    prop_assert!((chunks.end - 1) * chunk_len < range.end);
                }
            }
        }
    }
}
