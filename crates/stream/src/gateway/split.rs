//! Where messages end.

use memchr::memchr;

use super::{Error, Next};
use crate::frame::Framing;
use crate::message::Message;

/// How input is split into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// By which marks.
    pub framing: Framing,
    /// Bytes of the longest message, marks not included; of [`Framing::Raw`], of the longest piece.
    pub limit: usize,
    /// Whether a last line without a newline is a message once the input has ended. It is in a
    /// file; a connection may have been cut there.
    pub bare_last: bool,
}

/// Whole messages at the start of what came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Bytes of them all, marks included.
    pub len: usize,
    /// How many.
    pub messages: u64,
    /// Bytes that the next one needs at least, from the start; more than there are.
    pub needed: usize,
}

impl Split {
    /// Maximum bytes of small messages that are sealed together if they arrive together.
    pub const BATCH: usize = 64 << 10;

    /// The whole messages at the start of `bytes`, the first `scanned` of which are known to hold
    /// no end of a line. Several go together, up to [`Split::BATCH`]: they came together. If the input has
    /// `ended`, what is left of a line is one where [`Split::bare_last`] says so.
    ///
    /// # Errors
    /// [`Error::TooLong`].
    pub fn whole(&self, bytes: &[u8], scanned: usize, ended: bool) -> Result<Whole, Error> {
        match self.framing {
            Framing::Raw => {
                let len = bytes.len().min(self.limit);
                let messages = u64::from(len > 0);
                Ok(Whole { len, messages, needed: len + 1 })
            }
            Framing::Lines => self.lines(bytes, scanned, ended),
            Framing::Length => self.prefixed(bytes),
        }
    }

    fn lines(&self, bytes: &[u8], scanned: usize, ended: bool) -> Result<Whole, Error> {
        let too_long = |len: usize| Error::TooLong { len: len as u64, limit: self.limit as u64 };
        let (mut len, mut messages) = (0, 0);
        let mut from = scanned;
        while len < Self::BATCH {
            let Some(at) = memchr(b'\n', &bytes[from..]) else { break };
            let end = from + at + 1;
            if messages > 0 && end > Self::BATCH {
                break;
            }
            if end - 1 - len > self.limit {
                if messages > 0 {
                    // What came before it is whole.
                    break;
                }
                return Err(too_long(end - 1 - len));
            }
            (len, from, messages) = (end, end, messages + 1);
        }
        let rest = bytes.len() - len;
        if messages == 0 && rest > self.limit {
            return Err(too_long(rest));
        }
        if messages == 0 && ended && rest > 0 && self.bare_last {
            return Ok(Whole { len: rest, messages: 1, needed: rest + 1 });
        }
        Ok(Whole { len, messages, needed: bytes.len() + 1 })
    }

    fn prefixed(&self, bytes: &[u8]) -> Result<Whole, Error> {
        let (mut len, mut messages) = (0, 0);
        loop {
            let Some(prefix) = bytes[len..].first_chunk::<MARK_LEN>() else {
                return Ok(Whole { len, messages, needed: len + MARK_LEN });
            };
            let message = u32::from_be_bytes(*prefix) as usize;
            if message > self.limit && messages == 0 {
                return Err(Error::TooLong { len: message as u64, limit: self.limit as u64 });
            }
            let end = len + MARK_LEN + message;
            if message > self.limit || end > bytes.len() || (messages > 0 && end > Self::BATCH) {
                return Ok(Whole { len, messages, needed: end });
            }
            (len, messages) = (end, messages + 1);
        }
    }
}

/// Finds the units of one input.
pub(super) struct UnitFinder {
    split: Split,
    /// Bytes that are kept of a unit besides its message.
    beside: usize,
    /// Bytes that are known to hold no end of a line.
    scanned: usize,
    /// Messages of the unit that was found.
    pub messages: u64,
}

impl UnitFinder {
    /// Nothing is found yet.
    pub fn new(split: Split, beside: usize) -> Self {
        Self { split, beside, scanned: 0, messages: 0 }
    }

    /// What stands at the start of `bytes`: whole messages, or a part of one.
    ///
    /// # Errors
    /// [`Error::TooLong`].
    pub fn find(&mut self, bytes: &[u8], ended: bool) -> Result<Next, Error> {
        let found = self.split.whole(bytes, self.scanned.min(bytes.len()), ended)?;
        let Whole { len, messages, needed } = found;
        self.messages = messages;
        if messages == 0 {
            self.scanned = bytes.len();
            return Ok(Next::More(needed));
        }
        self.scanned = 0;
        Ok(Next::Unit { len, needs: Message::charge(len, self.beside) })
    }
}

/// Bytes of a length in front of a message.
const MARK_LEN: usize = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(framing: Framing) -> Split {
        Split { framing, limit: 10, bare_last: true }
    }

    fn whole(framing: Framing, bytes: &[u8], ended: bool) -> Result<(usize, u64), Error> {
        split(framing).whole(bytes, 0, ended).map(|whole| (whole.len, whole.messages))
    }

    #[test]
    fn messages_end_where_their_framing_says() {
        use Framing::{Length, Lines, Raw};
        assert_eq!(whole(Raw, b"twelve bytes", false).unwrap(), (10, 1));
        assert_eq!(whole(Raw, b"1", false).unwrap(), (1, 1));
        assert_eq!(whole(Raw, b"", true).unwrap(), (0, 0));
        assert_eq!(whole(Lines, b"one\n\ntwo", false).unwrap(), (5, 2));
        assert_eq!(whole(Lines, b"two", false).unwrap(), (0, 0));
        assert_eq!(whole(Lines, b"two", true).unwrap(), (3, 1));
        assert_eq!(whole(Lines, b"2", true).unwrap(), (1, 1));
        assert_eq!(whole(Lines, b"", true).unwrap(), (0, 0));
        assert_eq!(whole(Lines, b"one\ntwo", true).unwrap(), (4, 1));
        assert_eq!(whole(Lines, b"ten bytes.\n", false).unwrap(), (11, 1));
        assert_eq!(whole(Lines, b"ten bytes.\nten bytes.\n", false).unwrap(), (22, 2));
        assert_eq!(whole(Length, b"\0\0\0\0\0\0\0\x02ab\0\0\0\x03ab", false).unwrap(), (10, 2));
        assert_eq!(whole(Length, b"\0\0\0", true).unwrap(), (0, 0));
    }

    #[test]
    fn half_a_line_at_the_end_of_a_connection_is_no_message() {
        let split = Split { bare_last: false, ..split(Framing::Lines) };
        let found = split.whole(b"half", 0, true).unwrap();
        assert_eq!((found.len, found.messages), (0, 0));
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_there() {
        let refused = |framing, bytes: &[u8]| {
            assert!(matches!(whole(framing, bytes, false), Err(Error::TooLong { .. })));
        };
        refused(Framing::Lines, b"eleven bytes and no end");
        refused(Framing::Lines, b"eleven byte\n");
        refused(Framing::Length, b"\0\0\0\x0b");
        refused(Framing::Length, b"\xff\xff\xff\xff");
        // What came before it is not lost.
        assert_eq!(whole(Framing::Length, b"\0\0\0\0\0\0\0\x0b", false).unwrap(), (4, 1));
        let there = b"\0\0\0\0\0\0\0\x0beleven byte";
        assert_eq!(whole(Framing::Length, there, false).unwrap(), (4, 1));
        assert_eq!(whole(Framing::Lines, b"one\neleven bytes\n", false).unwrap(), (4, 1));
    }

    #[test]
    fn a_refusal_says_how_long_the_message_is_and_may_be() {
        for (framing, bytes) in [
            (Framing::Lines, &b"twelve bytes\n"[..]),
            (Framing::Lines, b"twelve bytes"),
            (Framing::Length, b"\0\0\0\x0c"),
        ] {
            let refused = whole(framing, bytes, false);
            let right = matches!(refused, Err(Error::TooLong { len: 12, limit: 10 }));
            assert!(right, "{refused:?}");
        }
    }

    /// What is found where the longest message is as long as a batch of short ones.
    fn long(framing: Framing, bytes: &[u8]) -> Whole {
        let split = Split { framing, limit: 1 << 20, bare_last: false };
        split.whole(bytes, 0, false).unwrap()
    }

    #[test]
    fn short_messages_go_together_up_to_a_batch() {
        let lines = |lens: &[usize]| -> Vec<u8> {
            lens.iter().flat_map(|len| [vec![b'a'; len - 1], b"\n".to_vec()].concat()).collect()
        };
        let half = Split::BATCH / 2;
        for (lens, len, messages) in [
            (&[half, half][..], Split::BATCH, 2),
            (&[half, half + 1], half, 1),
            (&[half, half - 1, 1, 1], Split::BATCH, 3),
            (&[Split::BATCH + 1, 5], Split::BATCH + 1, 1),
            (&[5, Split::BATCH + 1], 5, 1),
        ] {
            let bytes = lines(lens);
            let found = long(Framing::Lines, &bytes);
            assert_eq!((found.len, found.messages), (len, messages), "{lens:?}");
            assert_eq!(found.needed, bytes.len() + 1);
        }
        let prefixed = |lens: &[usize]| -> Vec<u8> {
            let one =
                |len: &usize| [&(*len as u32 - 4).to_be_bytes()[..], &vec![b'a'; len - 4]].concat();
            lens.iter().flat_map(one).collect()
        };
        for (lens, len, messages) in [
            (&[half, half][..], Split::BATCH, 2),
            (&[half, half + 1], half, 1),
            (&[Split::BATCH + 1, 5], Split::BATCH + 1, 1),
        ] {
            let found = long(Framing::Length, &prefixed(lens));
            assert_eq!((found.len, found.messages), (len, messages), "{lens:?}");
        }
    }

    #[test]
    fn what_is_needed_next_is_known_as_far_as_it_can_be() {
        assert_eq!(long(Framing::Length, b"\0\0").needed, 4);
        assert_eq!(long(Framing::Length, b"\0\0\0\x09abc").needed, 13);
        assert_eq!(long(Framing::Length, b"\0\0\0\x01a\0\0\0\x09abc").needed, 5 + 13);
        assert_eq!(long(Framing::Length, b"\0\0\0\x01a\0").needed, 5 + 4);
        assert_eq!(long(Framing::Lines, b"abc").needed, 4);
        assert_eq!(long(Framing::Raw, b"abc").needed, 4);
        assert_eq!(split(Framing::Lines).whole(b"two", 0, true).unwrap().needed, 4);
        // As long as may be, and one more.
        assert_eq!(whole(Framing::Lines, b"ten bytes.", false).unwrap(), (0, 0));
        assert!(whole(Framing::Lines, b"ten bytes..", false).is_err());
        assert_eq!(whole(Framing::Length, b"\0\0\0\x0aten bytes.", false).unwrap(), (14, 1));
    }

    #[test]
    fn a_finder_does_not_look_again_where_no_line_ends() {
        // What was scanned holds no end, whatever is there.
        let found = split(Framing::Lines).whole(b"a\nb\nc", 2, false).unwrap();
        assert_eq!((found.len, found.messages), (4, 1));
        let mut finder = UnitFinder::new(split(Framing::Lines), 100);
        assert_eq!(finder.find(b"abc", false).unwrap(), Next::More(4));
        assert_eq!((finder.scanned, finder.messages), (3, 0));
        let unit = Next::Unit { len: 4, needs: Message::charge(4, 100) };
        assert_eq!(finder.find(b"abc\nd", false).unwrap(), unit);
        assert_eq!((finder.scanned, finder.messages), (0, 1));
        // Less than before, as after a unit was taken.
        assert_eq!(finder.find(b"de", false).unwrap(), Next::More(3));
        assert_eq!(finder.find(b"d", false).unwrap(), Next::More(2));
        assert_eq!(
            finder.find(b"d\ne\n", false).unwrap(),
            Next::Unit { len: 4, needs: Message::charge(4, 100) }
        );
        assert_eq!(finder.messages, 2);
        // Nor does it where bytes are no longer what they were.
        assert_eq!(finder.find(b"abc", false).unwrap(), Next::More(4));
        assert_eq!(finder.find(b"a\nc\n", false).unwrap(), unit);
        assert_eq!(finder.messages, 1);
    }

    #[test]
    fn a_finder_takes_the_last_line_once_the_input_has_ended() {
        let mut finder = UnitFinder::new(split(Framing::Lines), 100);
        assert_eq!(
            finder.find(b"\n", false).unwrap(),
            Next::Unit { len: 1, needs: Message::charge(1, 100) }
        );
        assert_eq!(finder.find(b"two", false).unwrap(), Next::More(4));
        assert_eq!(
            finder.find(b"two", true).unwrap(),
            Next::Unit { len: 3, needs: Message::charge(3, 100) }
        );
        assert_eq!((finder.scanned, finder.messages), (0, 1));
    }

    proptest! {
        #[test]
        fn any_input_is_whole_messages_and_a_rest(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(0), any::<u8>()], 0..200),
            which in 0usize..3,
        ) {
            let framing = [Framing::Raw, Framing::Lines, Framing::Length][which];
            if let Ok(found) = split(framing).whole(&bytes, 0, false) {
                prop_assert!(found.len <= bytes.len());
                prop_assert!((found.messages == 0) == (found.len == 0));
                let again = split(framing).whole(&bytes[..found.len], 0, false).unwrap();
                prop_assert_eq!((again.len, again.messages), (found.len, found.messages));
            }
        }
    }
}
