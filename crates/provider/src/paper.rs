//! Paper mode: the suite of the EECA paper, ECDHE-RSA-AES256-SHA384, through the same path.
//!
//! libssl knows no composite for HMAC-SHA-384. If AES-256-CBC itself says that it is an AEAD and
//! takes many records at once, libssl hands it the key of the MAC, and then it is a composite.
//! That changes every use of AES-256-CBC in TLS by the process, and libssl must not negotiate
//! Encrypt-then-MAC (`Options = -EncryptThenMac`); so it happens only by configuration.

use wattlock_crypto::hmac::HmacAlgorithm;

use crate::abi::name;
use crate::block::BlockCipher;
use crate::buffer::Buffers;
use crate::cipher::{Cipher, Direction};
use crate::composite::Composite;
use crate::error::Error;
use crate::multiblock;
use crate::offers::turn_multiblock_off;
use crate::params::Params;

/// AES-CBC, which in paper mode becomes a composite once it has the key of a MAC.
#[derive(Clone)]
pub(crate) struct Paper {
    plain: BlockCipher,
    is_on: bool,
    composite: Option<Box<Composite>>,
}

impl Paper {
    /// A composite to be, if `is_on`.
    pub(crate) fn new(plain: BlockCipher, is_on: bool) -> Self {
        Self { plain, is_on, composite: None }
    }

    #[inline(never)]
    fn set_in_paper_mode(&mut self, params: &Params<'_>) -> Result<(), Error> {
        if let Some(value) = params.find(name::MAC_KEY) {
            // libssl gives as many bytes of key as the MAC has.
            let len = value.octets()?.len();
            let algorithm = HmacAlgorithm::ALL
                .into_iter()
                .find(|algorithm| algorithm.tag_len() == len)
                .ok_or(Error::KeyLength)?;
            let (key, direction, iv) = self.plain.keyed().ok_or(Error::NoKey)?;
            let fresh = Composite::new(self.plain.requests(), key.bits() / 8, algorithm);
            self.composite = Some(Box::new(fresh.with_key(key, direction, iv)));
        }
        match &mut self.composite {
            Some(composite) => composite.set(params),
            // Many records without the key of a MAC: taken for done, they would go out as they are.
            None if multiblock::is_asked(params) => {
                turn_multiblock_off();
                Err(Error::Multiblock)
            }
            None => self.plain.set(params),
        }
    }
}

impl Cipher for Paper {
    fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Error> {
        if key.is_some() {
            self.composite = None;
        }
        self.plain.init(direction, key, iv)?;
        match &mut self.composite {
            Some(composite) => composite.init(direction, None, iv),
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn update(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        match &mut self.composite {
            None => self.plain.update(buffers),
            Some(composite) => composite.update(buffers),
        }
    }

    #[inline(always)]
    fn finish(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        match &mut self.composite {
            None => self.plain.finish(buffers),
            Some(composite) => composite.finish(buffers),
        }
    }

    fn at_once(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        match &mut self.composite {
            None => self.plain.at_once(buffers),
            Some(composite) => composite.at_once(buffers),
        }
    }

    #[inline(always)]
    fn set(&mut self, params: &Params<'_>) -> Result<(), Error> {
        if !self.is_on {
            return self.plain.set(params);
        }
        self.set_in_paper_mode(params)
    }

    fn get(&mut self, params: &Params<'_>) -> Result<(), Error> {
        match &mut self.composite {
            None => self.plain.get(params),
            Some(composite) => composite.get(params),
        }
    }
}
