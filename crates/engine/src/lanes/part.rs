//! What a device does of a request, where it cannot do all of it: the caller does the rest, before or
//! after.

use crate::crypto::TAG_LEN;
use crate::crypto::gcm::LateAad;
use crate::device::Device;
use crate::error::Error;
use crate::job::{Aad, AadRoom, Cipher, Data, Job, Memory, Operation, Records};

/// The device's part.
pub(super) struct Part<'a> {
    cipher: Cipher<'a>,
    /// Bytes of each chunk that are not the device's.
    front: usize,
    rest: Rest<'a>,
}

/// The caller's part.
enum Rest<'a> {
    Nothing,
    /// What [`crate::Transform::prepare`] does.
    Prepare(&'a dyn crate::job::Transform),
    /// Additional data gets into tags that were made without.
    LateAad(Aad<'a>),
}

impl<'a> Part<'a> {
    /// The part of `device`; `None` if it can do nothing of the job.
    pub fn of(job: &Job<'a>, memory: &Memory<'_>, device: &dyn Device) -> Option<Self> {
        let whole = |cipher| Self { cipher, front: 0, rest: Rest::Nothing };
        if device.supports(&job.cipher) {
            return Some(whole(job.cipher));
        }
        match job.cipher {
            Cipher::Aead { operation: operation @ Operation::Seal, key, nonces, aad } => {
                let cipher = Cipher::Aead { operation, key, nonces, aad: Aad::None };
                let late = Self { rest: Rest::LateAad(aad), ..whole(cipher) };
                device.supports(&cipher).then_some(late)
            }
            Cipher::Other(transform) if matches!(memory, Memory::Slots(_)) => {
                let rest = transform.rest().filter(|rest| device.supports(&rest.cipher))?;
                let (cipher, front) = (rest.cipher, rest.front);
                Some(Self { cipher, front, rest: Rest::Prepare(transform) })
            }
            _ => None,
        }
    }

    /// Has `work` do the device's part of the job, and does the rest.
    ///
    /// # Errors
    /// What `work` says, and what is wrong with the job.
    pub fn run<R>(
        self,
        job: &Job<'_>,
        memory: &mut Memory<'_>,
        work: impl FnOnce(&Job<'_>, &mut [u8]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if let (Rest::Prepare(transform), Memory::Slots(slots)) = (&self.rest, &mut *memory) {
            transform.prepare(slots);
        }
        let chunk_len = job.chunk_len.saturating_sub(self.front);
        let data = Data::InPlace { slots: &mut [] };
        let deadline = job.deadline;
        let reduced = Job { cipher: self.cipher, chunk_len, data, deadline };
        let all = |slots: &mut [u8]| {
            let done = work(&reduced, slots)?;
            if let Rest::LateAad(aad) = self.rest {
                change_tags(&reduced, aad, slots)?;
            }
            Ok(done)
        };
        let mut records = match memory {
            Memory::Slots(slots) if self.front == 0 => return all(slots),
            Memory::Slots(places) => {
                Records { input: None, places, front: self.front, extra: None }
            }
            Memory::Records(records) => Records { places: &mut *records.places, ..*records },
        };
        let mut bodies = records.gather(&reduced)?;
        let done = all(&mut bodies)?;
        records.scatter(&reduced, &bodies);
        Ok(done)
    }
}

/// Puts additional data into the tags of sealed chunks.
fn change_tags(job: &Job<'_>, aad: Aad<'_>, slots: &mut [u8]) -> Result<(), Error> {
    let Cipher::Aead { key, .. } = job.cipher else { return Ok(()) };
    let mut late: Option<(usize, LateAad)> = None;
    for (chunk, slot) in (0..).zip(slots.chunks_mut(job.slot_len())) {
        let slot_len = slot.len();
        let (text, tag) = slot.split_last_chunk_mut::<TAG_LEN>().ok_or(Error::Layout(slot_len))?;
        let len = text.len();
        if late.as_ref().is_none_or(|(made_for, _)| *made_for != len) {
            late = LateAad::new(key, len).map(|late| (len, late));
        }
        let (_, late) = late.as_ref().ok_or(Error::Layout(slot_len))?;
        let mut room = AadRoom::default();
        let changed = late.change(*tag, aad.of_chunk(chunk, len, &mut room));
        *tag = changed.map_err(|source| Error::Cipher { chunk, source })?;
    }
    Ok(())
}
