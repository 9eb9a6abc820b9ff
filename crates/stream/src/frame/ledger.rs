//! Judges frames that were opened, in their order: what each means, and whether it can stand there.

use std::collections::{HashMap, HashSet};

use wattlock_engine::crypto::TAG_LEN;

use super::{End, Error, Framing, HEADER_LEN, Header, Kind, OPEN_LEN, SALT_LEN};

/// What is known of the connections of a stream, and of the streams that follow it.
#[derive(Default)]
pub struct Ledger {
    open: HashMap<u64, Known>,
    /// Connections that go on in the next stream, by the salt of their last part.
    continued: HashMap<[u8; SALT_LEN], (u32, u64)>,
    /// Connections of all streams.
    seen: u64,
    /// The salts of parts that were not read when the next part was: they may not follow.
    missed: HashSet<[u8; SALT_LEN]>,
    /// Streams that ended.
    closed: u64,
}

#[derive(Clone, Copy)]
struct Known {
    number: u64,
    salt: [u8; SALT_LEN],
    part: u32,
}

/// What a frame means. Connections are numbered over all streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection began.
    Opened {
        /// Its number.
        connection: u64,
        /// How its messages were split.
        framing: Framing,
        /// True if it began in an earlier stream, which was not read.
        headless: bool,
    },
    /// A connection of an earlier stream goes on.
    Resumed {
        /// Its number.
        connection: u64,
    },
    /// The body of the frame belongs to a connection.
    Data {
        /// Its number.
        connection: u64,
    },
    /// Nothing that anybody has to know.
    Rekeyed,
    /// A connection ended.
    Ended {
        /// Its number.
        connection: u64,
        /// Why.
        end: End,
    },
    /// The stream ended, with nothing missing.
    Closed,
}

impl Ledger {
    /// Takes a frame whose body was opened: all of its bytes, the tag included.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it cannot stand here.
    pub fn take(&mut self, frame: &[u8]) -> Result<Event, Error> {
        let short = Error::Malformed("a frame is shorter than its header");
        let header = Header::decode(frame.first_chunk().ok_or(short)?)?;
        let known = self.open.get(&header.connection).copied();
        Ok(match (header.kind, known) {
            (Kind::Open, None) => self.open(header.connection, frame)?,
            (Kind::Data, Some(known)) => Event::Data { connection: known.number },
            (Kind::Rekey, Some(_)) => Event::Rekeyed,
            (Kind::End, Some(known)) => {
                let end = frame.get(HEADER_LEN).and_then(|code| End::of(*code));
                let end = end.ok_or(Error::Malformed("a connection ends for an unknown reason"))?;
                self.open.remove(&header.connection);
                if end == End::Continued && self.missed.contains(&known.salt) {
                    return Err(Error::Malformed("the parts of a connection are out of order"));
                }
                if end == End::Continued {
                    self.continued.insert(known.salt, (known.part, known.number));
                }
                Event::Ended { connection: known.number, end }
            }
            (Kind::Close, _) => {
                self.closed += 1;
                Event::Closed
            }
            _ => return Err(Error::Malformed("a frame of a connection that is not open")),
        })
    }

    /// Where the messages are in a frame of data.
    pub fn messages(frame: &[u8]) -> &[u8] {
        &frame[HEADER_LEN..frame.len() - TAG_LEN]
    }

    /// Connections that are open, numbered over all streams, in ascending order: those that are cut
    /// if the input ends here.
    pub(crate) fn unfinished(&self) -> Vec<u64> {
        let mut numbers: Vec<_> = self.open.values().map(|known| known.number).collect();
        numbers.extend(self.continued.values().map(|(_, number)| number));
        numbers.sort_unstable();
        numbers
    }

    /// Streams that ended with nothing missing.
    pub fn closed(&self) -> u64 {
        self.closed
    }

    fn open(&mut self, connection: u64, frame: &[u8]) -> Result<Event, Error> {
        let short = || Error::Malformed("a connection opens without its salt");
        let (salt, rest) = frame[HEADER_LEN..].split_first_chunk().ok_or_else(short)?;
        let body: &[u8; OPEN_LEN] = rest.first_chunk().ok_or_else(short)?;
        let framing = Framing::of(body[0]).ok_or(Error::Malformed("an unknown framing"))?;
        let (part, before) = body[1..].split_first_chunk().expect("four bytes of part");
        let part = u32::from_be_bytes(*part);
        let before: &[u8; SALT_LEN] = before.first_chunk().expect("a salt behind it");
        let previous = self.continued.remove(before);
        let (event, number) = match previous {
            Some((last, number)) if part == last + 1 => {
                (Event::Resumed { connection: number }, number)
            }
            Some(_) => return Err(Error::Malformed("a part of a connection is missing")),
            // Who has all from the beginning misses nothing that began before.
            None if part > 0 && self.closed > 0 && self.missed.is_empty() => {
                return Err(Error::Malformed("a part of a connection is missing"));
            }
            None => {
                self.seen += 1;
                let headless = part > 0;
                if headless {
                    self.missed.insert(*before);
                }
                (Event::Opened { connection: self.seen, framing, headless }, self.seen)
            }
        };
        self.open.insert(connection, Known { number, salt: *salt, part });
        Ok(event)
    }
}
