//! Chunks in memory with something else between them.

use zeroize::Zeroizing;

use super::{AadRoom, Cipher, Data, Job, Operation};
use crate::error::Error;

/// Places in the caller's memory, each with room for one chunk: a TLS record with its header.
///
/// A place is `front` bytes that stay as they are, the chunk, and, for an AEAD, its tag. Only the
/// last place of a run may be shorter.
pub struct Records<'a> {
    /// The plaintexts, one after the other; `None` if the chunks stand in their places.
    pub input: Option<&'a [u8]>,
    /// The places.
    pub places: &'a mut [u8],
    /// Bytes of a place before its chunk.
    pub front: usize,
    /// A byte that is sealed behind what comes from `input`, and counts as part of the chunk: the
    /// type of the content in TLS 1.3 (RFC 8446, section 5.2).
    pub extra: Option<u8>,
}

impl Records<'_> {
    /// Bytes from one place to the next.
    fn place_len(&self, job: &Job<'_>) -> usize {
        self.front + job.slot_len()
    }

    /// Bytes that stand in the places for the cipher.
    pub(crate) fn len(&self, job: &Job<'_>) -> usize {
        let count = self.places.len().div_ceil(self.place_len(job).max(1));
        self.places.len().saturating_sub(count * self.front)
    }

    /// Works through all places on the caller's thread.
    ///
    /// # Errors
    /// As [`Job::apply`], and [`Error::Layout`] if the input does not fill the places.
    pub(crate) fn apply(&mut self, job: &Job<'_>) -> Result<(), Error> {
        let count = self.places.len().div_ceil(self.place_len(job).max(1)) as u64;
        self.for_each_body(job, |chunk, body, plaintext, extra| {
            let last = chunk + 1 == count;
            let (Some(plaintext), Cipher::Aead { operation, key, nonces, aad }) =
                (plaintext, job.cipher)
            else {
                bring(plaintext, extra, body);
                return job.apply(chunk, last, body);
            };
            let len = plaintext.len() + usize::from(extra.is_some());
            let (ciphertext, tag) = body.split_at_mut(len);
            if operation == Operation::Open {
                return Err(Error::Layout(plaintext.len()));
            }
            let mut room = AadRoom::default();
            let aad = aad.of_chunk(chunk, len, &mut room);
            let nonce = nonces.nonce(chunk, last);
            let sealed = key.seal_into(nonce, aad, plaintext, extra, ciphertext);
            tag.copy_from_slice(&sealed.map_err(|source| Error::Cipher { chunk, source })?);
            Ok(())
        })
    }

    /// The chunks side by side, for a device that takes nothing else.
    pub(crate) fn gather(&mut self, job: &Job<'_>) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut bodies = Zeroizing::new(Vec::with_capacity(self.len(job)));
        self.for_each_body(job, |_, body, plaintext, extra| {
            let from = bodies.len();
            bodies.extend_from_slice(body);
            bring(plaintext, extra, &mut bodies[from..]);
            Ok(())
        })?;
        Ok(bodies)
    }

    /// Puts back what came of them.
    pub(crate) fn scatter(&mut self, job: &Job<'_>, bodies: &[u8]) {
        let places = self.places.chunks_mut(self.front + job.slot_len());
        for (place, body) in places.zip(bodies.chunks(job.slot_len())) {
            place[self.front..].copy_from_slice(body);
        }
    }

    /// Calls `work` with the index of each chunk, its place without the front, and the bytes to
    /// copy there.
    fn for_each_body(
        &mut self,
        job: &Job<'_>,
        mut work: impl FnMut(u64, &mut [u8], Option<&[u8]>, Option<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let tag_len = job.slot_len() - job.chunk_len;
        let behind = tag_len + usize::from(self.extra.is_some());
        let place_len = self.place_len(job);
        let mut left = self.input;
        for (chunk, place) in (0..).zip(self.places.chunks_mut(place_len.max(1))) {
            let len = place.len();
            let body = place.get_mut(self.front..).ok_or(Error::Layout(len))?;
            let plaintext = match left {
                None => None,
                Some(input) => {
                    let len = body.len().checked_sub(behind).ok_or(Error::Layout(len))?;
                    let parts = input.split_at_checked(len).ok_or(Error::Layout(input.len()))?;
                    left = Some(parts.1);
                    Some(parts.0)
                }
            };
            work(chunk, body, plaintext, self.extra)?;
        }
        match left {
            Some(input) if !input.is_empty() => Err(Error::Layout(input.len())),
            _ => Ok(()),
        }
    }
}

/// Puts a plaintext where it is to be sealed.
fn bring(plaintext: Option<&[u8]>, extra: Option<u8>, body: &mut [u8]) {
    let Some(plaintext) = plaintext else { return };
    body[..plaintext.len()].copy_from_slice(plaintext);
    if let Some(extra) = extra {
        body[plaintext.len()] = extra;
    }
}

/// The memory of a job, taken out of it so that the job can be lent while its memory changes.
pub(crate) enum Memory<'a> {
    Slots(&'a mut [u8]),
    Records(Records<'a>),
}

impl<'a> Job<'a> {
    /// Takes its memory; `None` if its bytes are elsewhere.
    pub(crate) fn take_memory(&mut self) -> Option<Memory<'a>> {
        if matches!(self.data, Data::Moved(_)) {
            return None;
        }
        match std::mem::replace(&mut self.data, Data::InPlace { slots: &mut [] }) {
            Data::InPlace { slots } => Some(Memory::Slots(slots)),
            Data::Records(records) => Some(Memory::Records(records)),
            Data::Moved(_) => None,
        }
    }
}

impl Memory<'_> {
    /// Bytes of the chunks, tags included.
    pub fn len(&self, job: &Job<'_>) -> usize {
        match self {
            Self::Slots(slots) => slots.len(),
            Self::Records(records) => records.len(job),
        }
    }

    /// Works through all of it on the caller's thread.
    ///
    /// # Errors
    /// As [`Job::apply`].
    pub fn apply(&mut self, job: &Job<'_>) -> Result<(), Error> {
        match self {
            Self::Slots(slots) => job.apply(0, true, slots),
            Self::Records(records) => records.apply(job),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::{AeadAlgorithm, AeadKey};
    use crate::job::{Aad, Nonces};

    /// Records of TLS 1.3 under that key: header, content, type, tag.
    fn tls_1_3(
        operation: Operation,
        key: &AeadKey,
        records: Records<'_>,
        content: usize,
    ) -> Result<(), Error> {
        let nonces = Nonces::XorCount { base: [3; 12], first: 7 };
        let cipher = Cipher::Aead { operation, key, nonces, aad: Aad::Tls13 };
        let mut job =
            Job { cipher, chunk_len: content + 1, data: Data::Records(records), deadline: None };
        job.take_memory().expect("its memory is its own").apply(&job)
    }

    #[test]
    fn chunks_between_headers_are_those_of_single_jobs() {
        let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap();
        let input: Vec<u8> = (0..250).map(|i| i as u8).collect();
        let mut places = vec![0xee; 2 * (5 + 100 + 1 + 16) + (5 + 50 + 1 + 16)];
        let records =
            Records { input: Some(&input), places: &mut places, front: 5, extra: Some(23) };
        tls_1_3(Operation::Seal, &key, records, 100).unwrap();
        for (index, (place, part)) in (0..).zip(places.chunks_mut(122).zip(input.chunks(100))) {
            let (front, body) = place.split_at_mut(5);
            assert_eq!(front, [0xee; 5]);
            let (text, tag) = body.split_last_chunk_mut().unwrap();
            let mut nonce = [3; 12];
            nonce[11] ^= 7 + index;
            let sealed = (part.len() + 17) as u8;
            key.open(nonce, &[23, 3, 3, 0, sealed], text, tag).unwrap();
            assert_eq!(*text, [part, &[23]].concat());
        }
    }

    #[test]
    fn they_open_in_their_places() {
        let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap();
        let mut places = [5; 3 * (5 + 17)];
        fn records(places: &mut [u8]) -> Records<'_> {
            Records { input: None, places, front: 5, extra: None }
        }
        tls_1_3(Operation::Seal, &key, records(&mut places), 0).unwrap();
        assert_ne!(places, [5; 66]);
        tls_1_3(Operation::Open, &key, records(&mut places), 0).unwrap();
        assert!(places.chunks(22).all(|place| place[..6] == [5; 6]));
        places[10] ^= 1;
        assert!(tls_1_3(Operation::Open, &key, records(&mut places), 0).is_err());
    }

    #[test]
    fn an_input_that_does_not_fill_the_places_is_refused() {
        let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap();
        for len in [0, 99, 101, 300] {
            let input = vec![1; len];
            let mut places = [0; 5 + 100 + 1 + 16];
            let records =
                Records { input: Some(&input), places: &mut places, front: 5, extra: Some(23) };
            let sealed = tls_1_3(Operation::Seal, &key, records, 100);
            assert!(matches!(sealed, Err(Error::Layout(_))), "{len} bytes: {sealed:?}");
        }
    }
}
