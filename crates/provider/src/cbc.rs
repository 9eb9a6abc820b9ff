//! AES in CBC, which in paper mode may become a composite.

use std::sync::Arc;

use wattlock_tls::BLOCK;

use crate::abi::{Param, mode};
use crate::allocation::Allocation;
use crate::block::{BlockCipher, Chaining, Ecb, GETTABLE, SETTABLE};
use crate::cipher::{Algorithm, Traits};
use crate::paper::Paper;

/// AES-`BITS`-CBC.
pub(crate) struct Cbc<const BITS: usize>;

impl<const BITS: usize> Algorithm for Cbc<BITS> {
    const TRAITS: Traits =
        Traits { mode: mode::CBC, iv_len: BLOCK, paper: BITS == 256, ..Ecb::<BITS>::TRAITS };
    const SETTABLE: &'static [Param] = SETTABLE;
    const GETTABLE: &'static [Param] = GETTABLE;

    type Context = Paper;

    fn context(requests: &Arc<Allocation>, paper_mode: bool) -> Paper {
        let plain = BlockCipher::new(requests, Chaining::Cbc, BITS / 8);
        Paper::new(plain, Self::TRAITS.paper && paper_mode)
    }
}
