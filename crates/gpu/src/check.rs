//! Sums over the bytes of a piece, on the CPU: `kernels/check.h` is the same for the device.
//!
//! With them the host finds out what a bus or a memory has changed: the device sums what it read and
//! what it sends, and the host what it sent and what arrived.

use wattlock_engine::crypto::random;

use crate::task::{BLOCK, Batch};

/// Random numbers that sums of one piece are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChecksumSeed {
    salt: [u32; 4],
    /// Odd, so that different blocks have different numbers.
    step: [u32; 4],
}

/// A sum over whole blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    hash: u64,
    plain: u64,
    blocks: u64,
}

/// What a device has found in one range: its kernel's rows, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    input: [u64; 2],
    result: [u64; 2],
    /// Blocks of both results that are equal.
    equal: u64,
}

/// What a device has found in a piece, and in its side data (IVs or nonces, and tags).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub piece: Found,
    pub side: Found,
}

/// The bytes of a piece that are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub start: u64,
    pub end: u64,
    /// The last block of each `stride` is room for a tag and is not summed; 0 if there are no tags.
    pub stride: u32,
}

/// What the sums of a piece have to be, as far as it is known before the device has worked.
pub(crate) struct Expected {
    pub salt: ChecksumSeed,
    input: Sum,
    side: Sum,
}

/// Words of a row of the kernel's: [`Found`].
pub(crate) const ROW: usize = 5;

impl ChecksumSeed {
    /// A new one; `None` if the system has no random numbers.
    pub fn random() -> Option<Self> {
        let bytes = random::array::<32>().ok()?;
        let word = |n: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[4 * n + byte]));
        Some(Self {
            salt: std::array::from_fn(word),
            step: std::array::from_fn(|n| word(4 + n) | 1),
        })
    }

    /// As the kernel takes it.
    pub fn words(&self) -> [u64; 4] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let ([a, b, c, d], [e, f, g, h]) = (self.salt, self.step);
        [pair(a, b), pair(c, d), pair(e, f), pair(g, h)]
    }

    /// Adds `bytes`, padded with zeros to whole blocks, starting at block `first`.
    fn add(&self, sum: &mut Sum, first: usize, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        let mut places = self.step.map(|step| step.wrapping_mul(first as u32));
        for block in blocks {
            self.add_block(sum, &mut places, block);
        }
        if !rest.is_empty() {
            let mut block = [0; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            self.add_block(sum, &mut places, &block);
        }
        sum.blocks += (blocks.len() + usize::from(!rest.is_empty())) as u64;
    }

    #[inline(always)]
    fn add_block(&self, sum: &mut Sum, places: &mut [u32; 4], block: &[u8; BLOCK]) {
        let words: [u32; 4] = std::array::from_fn(|n| {
            u32::from_le_bytes([block[4 * n], block[4 * n + 1], block[4 * n + 2], block[4 * n + 3]])
        });
        let keyed: [u64; 4] =
            std::array::from_fn(|n| u64::from(words[n].wrapping_add(places[n] ^ self.salt[n])));
        let products =
            keyed[0].wrapping_mul(keyed[1]).wrapping_add(keyed[2].wrapping_mul(keyed[3]));
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let plain = pair(words[0], words[1]).wrapping_add(pair(words[2], words[3]));
        sum.hash = sum.hash.wrapping_add(products);
        sum.plain = sum.plain.wrapping_add(plain);
        *places = std::array::from_fn(|n| places[n].wrapping_add(self.step[n]));
    }

    /// The sum of a piece's `bytes`, which begin `extent.start` bytes into the first block.
    pub fn sum(&self, extent: ByteRange, bytes: &[u8]) -> Sum {
        let mut sum = Sum::default();
        let bytes = &bytes[..((extent.end - extent.start) as usize).min(bytes.len())];
        if extent.stride > 0 {
            let stride = extent.stride as usize;
            for (n, slot) in bytes.chunks(stride * BLOCK).enumerate() {
                let text = &slot[..slot.len().min((stride - 1) * BLOCK)];
                self.add(&mut sum, n * stride, text);
            }
            return sum;
        }
        let start = extent.start as usize;
        let (head, body) = bytes.split_at(((BLOCK - start) % BLOCK).min(bytes.len()));
        if head.is_empty() {
            self.add(&mut sum, 0, body);
            return sum;
        }
        let mut block = [0; BLOCK];
        block[start..][..head.len()].copy_from_slice(head);
        self.add(&mut sum, 0, &block);
        self.add(&mut sum, 1, body);
        sum
    }
}

impl ByteRange {
    /// Of a piece of `len` bytes that is worked on as `batch`.
    pub fn of(batch: &Batch, len: usize) -> Self {
        let start = batch.start() as u64;
        match batch {
            Batch::Gcm { chunks, chunk_len, last_len, .. } => {
                let stride = chunk_len / BLOCK as u32 + 1;
                let before = u64::from(chunks.saturating_sub(1)) * u64::from(stride);
                let end = before * BLOCK as u64 + u64::from(*last_len);
                Self { start, end, stride }
            }
            _ => Self { start, end: start + len as u64, stride: 0 },
        }
    }

    /// Of its side data: IVs or nonces, and as many tags.
    pub fn side(batch: &Batch) -> Self {
        Self { start: 0, end: batch.ivs().len() as u64, stride: 0 }
    }
}

impl Expected {
    /// Of a piece of `input`, before it is sent.
    pub fn new(salt: ChecksumSeed, batch: &Batch, input: &[u8]) -> Self {
        Self {
            salt,
            input: salt.sum(ByteRange::of(batch, input.len()), input),
            side: salt.sum(ByteRange::side(batch), batch.ivs()),
        }
    }

    /// Compares what a device has found with what was sent and what `made` of it has arrived.
    ///
    /// # Errors
    /// What is wrong.
    pub fn compare(
        &self,
        batch: &Batch,
        found: &Sums,
        made: &[u8],
        tags: &[u8],
    ) -> Result<(), &'static str> {
        let Self { salt, input, side } = self;
        let result = salt.sum(ByteRange::of(batch, made.len()), made);
        let tags = match batch.tags() {
            // Without tags, IVs stand in their place.
            0 => *side,
            _ => salt.sum(ByteRange::side(batch), tags),
        };
        for (found, sent, arrived) in [(found.piece, input, result), (found.side, side, tags)] {
            if found.input != sent.pair() {
                return Err("the input it read differs from what was sent");
            }
            if found.equal != sent.blocks {
                return Err("it computed two different results for one input");
            }
            if found.result != arrived.pair() {
                return Err("the output that arrived differs from what it computed");
            }
        }
        Ok(())
    }
}

impl Sum {
    fn pair(&self) -> [u64; 2] {
        [self.hash, self.plain]
    }
}

impl Found {
    /// Adds up rows of the kernel's.
    pub fn of(rows: &[u64]) -> Self {
        let mut found = Self::default();
        for row in rows.as_chunks::<ROW>().0 {
            let add = |to: &mut u64, from: u64| *to = to.wrapping_add(from);
            add(&mut found.input[0], row[0]);
            add(&mut found.input[1], row[1]);
            add(&mut found.result[0], row[2]);
            add(&mut found.result[1], row[3]);
            add(&mut found.equal, row[4]);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn salt() -> ChecksumSeed {
        ChecksumSeed::random().unwrap()
    }

    fn whole(len: usize) -> ByteRange {
        ByteRange { start: 0, end: len as u64, stride: 0 }
    }

    #[test]
    fn every_single_wrong_byte_and_every_swap_of_blocks_changes_the_sum() {
        let salt = salt();
        for fill in [0, 0xff, 0x5a] {
            let bytes = vec![fill; 1000];
            let sum = salt.sum(whole(1000), &bytes);
            for at in 0..1000 {
                for bit in 0..8 {
                    let mut wrong = bytes.clone();
                    wrong[at] ^= 1 << bit;
                    assert_ne!(salt.sum(whole(1000), &wrong), sum, "{salt:?} {at} {bit}");
                }
            }
        }
        // One page of zeros has one byte in it, and pages change places.
        let mut pages = vec![0; 4 * 4096];
        pages[15] = 1;
        let sum = salt.sum(whole(pages.len()), &pages);
        for other in 1..4 {
            let mut swapped = pages.clone();
            let (first, rest) = swapped.split_at_mut(other * 4096);
            first[..4096].swap_with_slice(&mut rest[..4096]);
            assert_ne!(salt.sum(whole(pages.len()), &swapped), sum, "{salt:?} {other}");
        }
    }

    #[test]
    fn a_start_within_a_block_is_zeros_before_it() {
        let salt = salt();
        for (start, len) in [(1, 100), (15, 1), (3, 5), (7, 9), (8, 8), (5, 27), (0, 33)] {
            let bytes: Vec<u8> = (0..len).map(|n| n as u8 + 1).collect();
            let mut padded = vec![0; start];
            padded.extend(&bytes);
            let extent = ByteRange { start: start as u64, end: (start + len) as u64, stride: 0 };
            assert_eq!(salt.sum(extent, &bytes), salt.sum(whole(start + len), &padded));
        }
    }

    #[test]
    fn room_for_tags_is_left_out() {
        let salt = salt();
        let extent = ByteRange { start: 0, end: 3 * 48 - 48 + 21, stride: 3 };
        let mut slots = vec![7; 2 * 48 + 21 + 16];
        let sum = salt.sum(extent, &slots);
        assert_eq!(sum.blocks, 2 + 2 + 2);
        for tag in [32..48, 80..96, 117..133] {
            slots[tag].fill(9);
        }
        assert_eq!(salt.sum(extent, &slots), sum);
        slots[116] = 9;
        assert_ne!(salt.sum(extent, &slots), sum);
    }
}
