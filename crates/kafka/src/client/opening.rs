//! Opens the values of records, with session keys from the topic of keys.

use std::collections::HashMap;

use wattlock_record::{Reader, SessionKey};

use super::cluster::Cluster;
use super::keys_topic::{KeyState, KeysTopic, hex};
use super::mirror::Transform;
use super::sealing::EPOCH;
use crate::binding::Binding;
use crate::error::{Error, Fault};

/// Gets a session key from the bytes that were published for it.
pub type OpenKey = dyn Fn(&[u8]) -> Result<SessionKey, String>;

/// Opens the values of records.
pub struct Opening {
    keys: KeysTopic,
    binding: Binding,
    open_key: Box<OpenKey>,
    published: HashMap<[u8; 16], KeyState>,
    readers: HashMap<[u8; 16], Reader>,
    /// The additional data of a record.
    additional: Vec<u8>,
}

impl Opening {
    /// Reads the topic of keys to its end.
    ///
    /// # Errors
    /// That it is missing or cannot be read.
    pub fn new(
        cluster: Cluster,
        keys_topic: &str,
        binding: Binding,
        open_key: Box<OpenKey>,
    ) -> Result<Self, Error> {
        let keys = KeysTopic::new(cluster, keys_topic)?;
        let published = keys.read()?;
        Ok(Self {
            keys,
            binding,
            open_key,
            published,
            readers: HashMap::new(),
            additional: Vec::new(),
        })
    }

    /// Writes the value that is sealed in `record` to `output`.
    fn open(
        &mut self,
        record: &[u8],
        additional: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let refused = |why: wattlock_record::Error| Fault::Refused(why.to_string());
        let len = Reader::message_len(record).map_err(refused)?;
        let reader = self.reader(Reader::writer_of(record).map_err(refused)?)?;
        output.resize(len, 0);
        reader.open_into(record, additional, output).map_err(|why| match why {
            wattlock_record::Error::Authentication => Fault::Refused(UNAUTHENTIC.to_owned()),
            other => refused(other),
        })
    }

    /// Returns what opens the records of a writer. Reads the topic of keys again if the writer is unknown.
    fn reader(&mut self, writer: [u8; 16]) -> Result<&mut Reader, Fault> {
        if !self.readers.contains_key(&writer) {
            if !self.published.contains_key(&writer) {
                self.published = self.keys.read().map_err(Fault::Failed)?;
            }
            let id = hex(&writer);
            let topic = self.keys.name();
            let key = match self.published.get(&writer) {
                None => Err(format!("the topic {topic} has no key for the writer {id}")),
                Some(KeyState::Shredded) => {
                    Err(format!("the key of the writer {id} was removed from the topic {topic}"))
                }
                Some(KeyState::Wrapped(wrapped)) => (self.open_key)(wrapped)
                    .map_err(|why| format!("the key of the writer {id} cannot be used: {why}")),
            };
            let reader = Reader::new([(EPOCH, key.map_err(Fault::Refused)?)]);
            if self.readers.len() >= MOST_READERS {
                self.readers.clear();
            }
            self.readers.insert(writer, reader);
        }
        Ok(self.readers.get_mut(&writer).expect("it was made above"))
    }
}

/// Writers whose keys are kept in memory.
const MOST_READERS: usize = 4096;

impl Transform for Opening {
    fn prepare(&mut self) {}

    fn apply(
        &mut self,
        key: Option<&[u8]>,
        value: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let mut additional = std::mem::take(&mut self.additional);
        let bound = self.binding.write_additional(key, &mut additional);
        let outcome = match bound {
            Ok(()) => self.open(value, &additional, output),
            Err(why) => Err(Fault::Refused(why.to_string())),
        };
        self.additional = additional;
        outcome
    }
}

const UNAUTHENTIC: &str = "the record is not authentic: it was changed, or sealed for another topic, record key or \
                           tenant";
