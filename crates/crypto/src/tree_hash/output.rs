//! The output of a tree hash as a stream.

use super::{KT_RATE, KT_ROUNDS, PH_RATE, PH_ROUNDS};
use crate::keccak::KeccakKernel;
use crate::sponge;

/// The digest of a tree hash as a stream of any length.
///
/// Of KT128 it begins with every shorter digest (RFC 9861, section 3.2). Of ParallelHash256, whose digests depend on
/// their length, it is another function, ParallelHashXOF256 (SP 800-185, section 6.3.1).
pub struct Output(Squeezing);

enum Squeezing {
    Kt128(sponge::Output<KT_RATE, KT_ROUNDS>),
    ParallelHash256(sponge::Output<PH_RATE, PH_ROUNDS>),
}

impl Output {
    pub(super) fn kt128(
        root: sponge::Sponge<KT_RATE, KT_ROUNDS>,
        kernel: KeccakKernel,
        domain: u8,
    ) -> Self {
        Self(Squeezing::Kt128(sponge::Output::new(root, kernel, domain)))
    }

    pub(super) fn parallel_hash(
        root: sponge::Sponge<PH_RATE, PH_ROUNDS>,
        kernel: KeccakKernel,
        domain: u8,
    ) -> Self {
        Self(Squeezing::ParallelHash256(sponge::Output::new(root, kernel, domain)))
    }

    /// Fills `out` with the next bytes.
    pub fn read(&mut self, out: &mut [u8]) {
        match &mut self.0 {
            Squeezing::Kt128(output) => output.read(out),
            Squeezing::ParallelHash256(output) => output.read(out),
        }
    }
}
