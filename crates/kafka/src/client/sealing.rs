//! Seals the values of records, under session keys that are published before they are used.

use std::time::{Duration, Instant};

use wattlock_record::{OVERHEAD, SessionKey, Writer};

use super::cluster::Cluster;
use super::keys_topic::KeysTopic;
use super::mirror::Transform;
use crate::binding::Binding;
use crate::error::{Error, Fault};

/// Makes a session key, and the bytes from which its readers get it.
pub type MakeKey = dyn FnMut() -> Result<(SessionKey, Vec<u8>), String>;

/// When a new session key is made.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// After this time.
    pub age: Duration,
    /// After this number of records.
    pub records: u64,
    /// After this number of bytes of values.
    pub bytes: u64,
}

/// Seals the values of records.
pub struct Sealing {
    keys: KeysTopic,
    binding: Binding,
    make_key: Box<MakeKey>,
    rotation: Rotation,
    current: Option<Current>,
    made: u64,
    /// The additional data of a record.
    additional: Vec<u8>,
}

/// The writer in use.
struct Current {
    writer: Writer,
    since: Instant,
    records: u64,
    bytes: u64,
}

impl Sealing {
    /// Makes the topic of keys if it is missing. The first key is made for the first record.
    ///
    /// # Errors
    /// That the topic of keys cannot be used.
    pub fn new(
        cluster: Cluster,
        keys_topic: &str,
        binding: Binding,
        rotation: Rotation,
        make_key: Box<MakeKey>,
    ) -> Result<Self, Error> {
        let keys = KeysTopic::new(cluster, keys_topic)?;
        keys.ensure()?;
        Ok(Self {
            keys,
            binding,
            make_key,
            rotation,
            current: None,
            made: 0,
            additional: Vec::new(),
        })
    }

    /// The number of session keys that were made.
    pub fn keys_made(&self) -> u64 {
        self.made
    }

    /// Writes the record of `value` to `output`.
    fn seal(&mut self, value: &[u8], additional: &[u8], output: &mut Vec<u8>) -> Result<(), Fault> {
        let writer = self.writer(value.len() as u64).map_err(Fault::Failed)?;
        output.resize(value.len() + OVERHEAD, 0);
        writer
            .seal_into(value, additional, output)
            .map_err(|why| Fault::Unwritable(why.to_string()))
    }

    /// Returns a writer that may be used for `bytes` more.
    fn writer(&mut self, bytes: u64) -> Result<&mut Writer, Error> {
        let Rotation { records, bytes: most, .. } = self.rotation;
        let is_spent = |current: &Current| {
            current.records >= records
                || current.records > 0 && current.bytes.saturating_add(bytes) > most
        };
        if self.current.as_ref().is_none_or(is_spent) {
            self.current = Some(self.next()?);
        }
        let current = self.current.as_mut().expect("it was made above");
        current.records += 1;
        current.bytes += bytes;
        Ok(&mut current.writer)
    }

    /// Makes a key and a writer, and publishes them.
    fn next(&mut self) -> Result<Current, Error> {
        let (key, wrapped) = (self.make_key)()
            .map_err(|why| Error::Failed(format!("cannot make a session key: {why}")))?;
        let writer = Writer::new(key, EPOCH)
            .map_err(|why| Error::Failed(format!("cannot make a session key: {why}")))?;
        self.keys.publish(writer.identity(), &wrapped, self.binding.tenant.as_deref())?;
        self.made += 1;
        Ok(Current { writer, since: Instant::now(), records: 0, bytes: 0 })
    }
}

/// Each session key has one writer, and needs no number.
pub(super) const EPOCH: u32 = 0;

impl Transform for Sealing {
    fn prepare(&mut self) {
        let age = self.rotation.age;
        self.current.take_if(|current| current.records > 0 && current.since.elapsed() >= age);
    }

    fn apply(
        &mut self,
        key: Option<&[u8]>,
        value: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let mut additional = std::mem::take(&mut self.additional);
        let bound = self.binding.write_additional(key, &mut additional);
        let outcome = match bound {
            Ok(()) => self.seal(value, &additional, output),
            Err(why) => Err(Fault::Unwritable(why.to_string())),
        };
        self.additional = additional;
        outcome
    }
}
