//! Sealing as work for the engine: MAC and CBC on a CPU, and for a device CBC alone.

use wattlock_crypto::{AesKey, HmacKey, HmacRecord};
use wattlock_engine::{Cipher, Rest, Transform};

use super::{SealRecord, seal_records};
use crate::record::{BLOCK, Overhead, RecordAad, pad};

/// Records that follow each other, to be sealed where they stand.
///
/// A place is `front` bytes that stay as they are, the first bytes of the chain (an explicit IV,
/// where it is enciphered with the rest), the payload, and room for MAC and padding.
pub struct Seal<'a> {
    /// The key of the chains.
    pub key: &'a AesKey,
    /// The key of the MACs.
    pub mac: &'a HmacKey,
    /// The additional data of the first record. All have as many bytes of payload.
    pub first: RecordAad,
    /// What each chain begins with.
    pub ivs: &'a [[u8; BLOCK]],
    /// Bytes of a place before its chain.
    pub front: usize,
    /// Bytes of a chain before the payload.
    pub explicit: usize,
}

impl Seal<'_> {
    /// Bytes from one place to the next.
    pub fn place_len(&self) -> usize {
        let padded = Overhead::padded(self.first.len(), self.mac.algorithm().tag_len());
        self.front + self.explicit + padded
    }

    fn record<'p>(&self, index: usize, place: &'p mut [u8]) -> SealRecord<'p> {
        let len = self.first.len();
        let aad = self.first.later(index, len);
        let payload = self.explicit..self.explicit + len;
        let in_out = &mut place[self.front..];
        SealRecord { header: aad.bytes(), iv: self.ivs[index], payload, in_out }
    }
}

impl Transform for Seal<'_> {
    fn apply(
        &self,
        offset: u64,
        in_out: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let place_len = self.place_len();
        let first = offset as usize / place_len;
        if in_out.len() <= place_len {
            // One record takes no memory.
            seal_records(self.key, self.mac, &mut [self.record(first, in_out)])?;
            return Ok(());
        }
        let places = (first..).zip(in_out.chunks_mut(place_len));
        let mut records: Vec<_> = places.map(|(index, place)| self.record(index, place)).collect();
        Ok(seal_records(self.key, self.mac, &mut records)?)
    }

    fn rest(&self) -> Option<Rest<'_>> {
        let cipher = Cipher::CbcEncrypt { key: self.key, ivs: self.ivs };
        Some(Rest { cipher, front: self.front })
    }

    /// MACs and padding.
    fn prepare(&self, in_out: &mut [u8]) {
        let tag_len = self.mac.algorithm().tag_len();
        let places = in_out.chunks_mut(self.place_len()).enumerate();
        let signed = places.map(|(index, place)| {
            let len = self.first.len();
            let aad = self.first.later(index, len);
            let (data, rest) = place[self.front + self.explicit..].split_at_mut(len);
            let (tag, padding) = rest.split_at_mut(tag_len);
            pad(padding);
            HmacRecord { header: aad.bytes(), data, tag }
        });
        let signed = self.mac.sign_records(&mut signed.collect::<Vec<_>>());
        signed.expect("each tag was cut to the key's length");
    }
}
