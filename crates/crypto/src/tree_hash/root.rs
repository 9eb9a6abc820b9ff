//! The root of a tree: absorbs the head, the chaining values and the end of the message, in order.

use std::array::from_fn;

use super::encode::{left_encode, length_encode, right_encode};
use super::{
    CSHAKE_DOMAIN, KT_CHAINING_VALUE_LEN, KT_CHUNK_LEN, KT_FINAL_DOMAIN, KT_LEAF_DOMAIN, KT_RATE,
    KT_ROUNDS, KT_SINGLE_DOMAIN, Output, PH_CHAINING_VALUE_LEN, PH_RATE, PH_ROUNDS, TreeHash,
    whole,
};
use crate::error::Error;
use crate::keccak::{KeccakKernel, LANES};
use crate::sponge::{EqualLanes, Sponge};

/// The root of one message's tree: takes the head, the chaining values and the rest, in order.
pub struct Root {
    pub(super) hash: TreeHash,
    kernel: KeccakKernel,
    sponge: RootSponge,
    /// KT128 appends it to the message, so it waits for the end; empty for ParallelHash256.
    customization: Vec<u8>,
    pub(super) head_absorbed: bool,
    leaves: u64,
}

enum RootSponge {
    Kt128(Sponge<KT_RATE, KT_ROUNDS>),
    ParallelHash256(Sponge<PH_RATE, PH_ROUNDS>),
}

impl Root {
    /// The root of a message under the customization string `customization`, usually empty.
    pub fn new(hash: TreeHash, kernel: KeccakKernel, customization: &[u8]) -> Self {
        let (sponge, customization) = match hash {
            TreeHash::Kt128 => (RootSponge::Kt128(Sponge::new()), customization.to_vec()),
            TreeHash::ParallelHash256 { block_len } => {
                let sponge = parallel_hash_root(kernel, customization, block_len.get() as u64);
                (RootSponge::ParallelHash256(sponge), Vec::new())
            }
        };
        Self { hash, kernel, sponge, customization, head_absorbed: false, leaves: 0 }
    }

    /// Absorbs the first [`TreeHash::head_len`] bytes of the message.
    ///
    /// Call it before any leaf; leave it out, or pass nothing, for a message that is shorter.
    ///
    /// # Errors
    /// [`Error::BufferLength`] for another length, and [`Error::PartOrder`] for a second head; nothing is absorbed then.
    pub fn absorb_head(&mut self, head: &[u8]) -> Result<(), Error> {
        if head.is_empty() {
            return Ok(());
        }
        let (len, expected) = (head.len(), self.hash.head_len());
        if len != expected {
            return Err(Error::BufferLength { len, expected });
        }
        if self.head_absorbed {
            return Err(Error::PartOrder);
        }
        self.absorb(head);
        self.absorb_head_mark();
        Ok(())
    }

    /// Absorbs the chaining values of the next chunks.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] unless they are whole, and [`Error::PartOrder`] while a head is missing; nothing is
    /// absorbed then.
    pub fn absorb_leaves(&mut self, chaining_values: &[u8]) -> Result<(), Error> {
        whole(chaining_values.len(), self.hash.chaining_value_len())?;
        if !(chaining_values.is_empty() || self.head_absorbed || self.hash.head_len() == 0) {
            return Err(Error::PartOrder);
        }
        self.absorb_whole_leaves(chaining_values);
        Ok(())
    }

    /// What [`Self::absorb_leaves`] does, of whole chaining values behind the head.
    fn absorb_whole_leaves(&mut self, chaining_values: &[u8]) {
        self.absorb(chaining_values);
        self.leaves += (chaining_values.len() / self.hash.chaining_value_len()) as u64;
    }

    /// Absorbs `rest`, all of the message that was not absorbed yet, and fills `out`.
    ///
    /// Without a head or leaves before, `rest` is the whole message: its head and its leaves share the
    /// lanes of the kernel. The length of `out` is a parameter of ParallelHash256: a shorter digest is
    /// another one.
    pub fn finish(mut self, rest: &[u8], out: &mut [u8]) {
        let domain = self.end(rest, 8 * out.len() as u64);
        match &mut self.sponge {
            RootSponge::Kt128(sponge) => sponge.finish(self.kernel, domain, out),
            RootSponge::ParallelHash256(sponge) => sponge.finish(self.kernel, domain, out),
        }
    }

    /// The digest as a stream of any length, after `rest`: see [`Output`].
    pub(super) fn finish_xof(mut self, rest: &[u8]) -> Output {
        // SP 800-185, section 6.3.1: a length of 0 stands for any.
        let domain = self.end(rest, 0);
        match self.sponge {
            RootSponge::Kt128(sponge) => Output::kt128(sponge, self.kernel, domain),
            RootSponge::ParallelHash256(sponge) => {
                Output::parallel_hash(sponge, self.kernel, domain)
            }
        }
    }

    /// Absorbs `rest` and what the tree ends with. Returns the domain byte of the root.
    fn end(&mut self, rest: &[u8], output_bits: u64) -> u8 {
        let (chunks, rest) = rest.split_at(rest.len() - rest.len() % self.hash.chunk_len());
        self.absorb_chunks(chunks);
        match self.hash {
            TreeHash::Kt128 => self.kt128_end(rest),
            TreeHash::ParallelHash256 { .. } => {
                if !rest.is_empty() {
                    let mut leaf = [None; LANES];
                    leaf[0] = Some(rest);
                    let [value, ..] = self.hash.leaf_group(self.kernel, leaf);
                    self.absorb_whole_leaves(&value);
                }
                self.absorb(&right_encode(self.leaves));
                self.absorb(&right_encode(output_bits));
                CSHAKE_DOMAIN
            }
        }
    }

    /// Whole chunks of the message, the head among them, on this thread.
    pub(super) fn absorb_chunks(&mut self, chunks: &[u8]) {
        let mut leaves = chunks;
        if self.hash == TreeHash::Kt128 && !self.head_absorbed && !chunks.is_empty() {
            let (first, others) = chunks.split_at(chunks.len().min(LANES * KT_CHUNK_LEN));
            self.absorb_head_and_leaves(first);
            leaves = others;
        }
        if leaves.len() <= LANES.saturating_mul(self.hash.chunk_len()) {
            self.absorb_leaf_chunks(leaves, &mut [0; LANES * PH_CHAINING_VALUE_LEN]);
        } else {
            self.absorb_leaf_chunks(leaves, &mut [0; LEAVES_AT_ONCE * PH_CHAINING_VALUE_LEN]);
        }
    }

    /// The head of KT128 beside up to seven leaves: it has their length, and a lane of its own.
    fn absorb_head_and_leaves(&mut self, chunks: &[u8]) {
        let chunk = |n: usize| chunks.get(n * KT_CHUNK_LEN..)?.get(..KT_CHUNK_LEN);
        let mut inputs = from_fn(chunk);
        let mut lanes = EqualLanes::<KT_RATE, KT_ROUNDS>::absorb(self.kernel, inputs);
        let Some(head) = inputs[0].take() else { return };
        self.sponge = RootSponge::Kt128(lanes.sponge(0, head));
        self.absorb_head_mark();
        lanes.finish(self.kernel, inputs, KT_LEAF_DOMAIN);
        let mut values = [[0; KT_CHAINING_VALUE_LEN]; LANES];
        values.iter_mut().enumerate().for_each(|(n, value)| lanes.digest(n, value));
        self.absorb_whole_leaves(values[1..chunks.len() / KT_CHUNK_LEN].as_flattened());
    }

    /// Leaves of whole chunks, as many at once as `values` has room for.
    fn absorb_leaf_chunks(&mut self, chunks: &[u8], values: &mut [u8]) {
        let at_once = values.len() / PH_CHAINING_VALUE_LEN;
        for group in chunks.chunks(at_once.saturating_mul(self.hash.chunk_len())) {
            let values = &mut values[..self.hash.leaves_len(group.len())];
            self.hash.write_leaves(self.kernel, group, values);
            self.absorb_whole_leaves(values);
        }
    }

    /// RFC 9861, section 3.2, from the bytes after the last whole chunk of the message on, which the
    /// customization string and its length follow; the domain byte.
    fn kt128_end(&mut self, rest: &[u8]) -> u8 {
        let customization = std::mem::take(&mut self.customization);
        let len = length_encode(customization.len() as u64);
        let pieces = [rest, &customization, &len];
        if !self.head_absorbed
            && pieces.iter().map(|piece| piece.len()).sum::<usize>() <= KT_CHUNK_LEN
        {
            pieces.iter().for_each(|piece| self.absorb(piece));
            return KT_SINGLE_DOMAIN;
        }
        // The head, if it is still to come, and the last leaves, one after the other.
        let mut leaf = Sponge::new();
        let mut filled = 0;
        for mut piece in pieces {
            while !piece.is_empty() {
                let (now, later) = piece.split_at(piece.len().min(KT_CHUNK_LEN - filled));
                if self.head_absorbed {
                    leaf.update(self.kernel, now);
                } else {
                    self.absorb(now);
                }
                piece = later;
                filled += now.len();
                if filled == KT_CHUNK_LEN {
                    self.end_node(&mut leaf);
                    filled = 0;
                }
            }
        }
        if filled > 0 {
            self.end_node(&mut leaf);
        }
        self.absorb(&length_encode(self.leaves));
        self.absorb(&[0xff, 0xff]);
        KT_FINAL_DOMAIN
    }

    /// Ends the head, or this leaf.
    fn end_node(&mut self, leaf: &mut Sponge<KT_RATE, KT_ROUNDS>) {
        if self.head_absorbed {
            let mut value = [0; KT_CHAINING_VALUE_LEN];
            leaf.finish(self.kernel, KT_LEAF_DOMAIN, &mut value);
            *leaf = Sponge::new();
            self.absorb_whole_leaves(&value);
        } else {
            self.absorb_head_mark();
        }
    }

    /// RFC 9861, section 3.2: the mark between S_0 and the chaining values.
    fn absorb_head_mark(&mut self) {
        self.absorb(&[3, 0, 0, 0, 0, 0, 0, 0]);
        self.head_absorbed = true;
    }

    fn absorb(&mut self, data: &[u8]) {
        match &mut self.sponge {
            RootSponge::Kt128(sponge) => sponge.update(self.kernel, data),
            RootSponge::ParallelHash256(sponge) => sponge.update(self.kernel, data),
        }
    }
}

/// cSHAKE256 with the name "ParallelHash", as far as the block length: SP 800-185, sections 3.3
/// and 6.3.
fn parallel_hash_root(
    kernel: KeccakKernel,
    customization: &[u8],
    block_len: u64,
) -> Sponge<PH_RATE, PH_ROUNDS> {
    let mut sponge = Sponge::new();
    sponge.update(kernel, &left_encode(PH_RATE as u64));
    for string in [b"ParallelHash", customization] {
        sponge.update(kernel, &left_encode(8 * string.len() as u64));
        sponge.update(kernel, string);
    }
    sponge.pad_block_with_zeros(kernel);
    sponge.update(kernel, &left_encode(block_len));
    sponge
}

/// Chunks between two visits to the root: eight in each lane.
const LEAVES_AT_ONCE: usize = 8 * LANES;
