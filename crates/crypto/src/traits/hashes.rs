//! The hashes under the traits of the crate `digest`.

use digest::consts::U32;
use digest::{
    CustomizedInit, ExtendableOutput, FixedOutput, FixedOutputReset, HashMarker, Output,
    OutputSizeUser, Reset, Update, XofReader,
};

use crate::keccak::KeccakKernel;
use crate::sha2::Sha256;
use crate::sha3::Sha3_256;
use crate::tree_hash::{self, Hasher, TreeHash};

/// A hash with digests of 32 bytes.
macro_rules! hashes {
    ($($hash:ty),+) => {$(
        impl HashMarker for $hash {}

        impl OutputSizeUser for $hash {
            type OutputSize = U32;
        }

        impl Update for $hash {
            fn update(&mut self, data: &[u8]) {
                <$hash>::update(self, data);
            }
        }

        impl FixedOutput for $hash {
            fn finalize_into(self, out: &mut Output<Self>) {
                *out = self.finish().into();
            }
        }

        impl Reset for $hash {
            fn reset(&mut self) {
                *self = Self::new();
            }
        }

        impl FixedOutputReset for $hash {
            fn finalize_into_reset(&mut self, out: &mut Output<Self>) {
                std::mem::take(self).finalize_into(out);
            }
        }
    )+};
}

hashes!(Sha256, Sha3_256);

/// A tree hash with output of any length.
macro_rules! tree_hashes {
    ($($(#[$doc:meta])+ $name:ident, $hash:expr;)+) => {$(
        $(#[$doc])+
        pub struct $name(Hasher);

        impl HashMarker for $name {}

        impl CustomizedInit for $name {
            fn new_customized(customization: &[u8]) -> Self {
                Self(Hasher::new($hash, KeccakKernel::best(), customization))
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new_customized(b"")
            }
        }

        impl Update for $name {
            fn update(&mut self, data: &[u8]) {
                self.0.update(data);
            }
        }

        impl ExtendableOutput for $name {
            type Reader = tree_hash::Output;

            fn finalize_xof(self) -> tree_hash::Output {
                self.0.finish_xof()
            }
        }

        impl Reset for $name {
            /// Forgets the customization string as well.
            fn reset(&mut self) {
                *self = Self::default();
            }
        }
    )+};
}

tree_hashes! {
    /// KT128 (RFC 9861).
    Kt128, TreeHash::Kt128;
    /// ParallelHashXOF256 (NIST SP 800-185, section 6.3.1) with blocks of 8192 bytes.
    ParallelHashXof256, TreeHash::PARALLEL_HASH_256;
}

impl XofReader for tree_hash::Output {
    fn read(&mut self, buffer: &mut [u8]) {
        tree_hash::Output::read(self, buffer);
    }
}
