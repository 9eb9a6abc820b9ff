//! What a sealed record is bound to: the additional data of `docs/spec/record.md`, as `docs/spec/kafka.md` uses it.

use std::borrow::Cow;
use std::fmt::Write;

use wattlock_record::AdditionalData;

/// Binds the records of a tenant to the topic that they are sealed for.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The tenant, if there is one.
    pub tenant: Option<String>,
    /// The topic that sealed records are written to, and read from for opening.
    pub topic: String,
}

/// The key of a record is too long to be bound.
#[derive(Debug, thiserror::Error)]
#[error(
    "the record's key is too long to be bound: at most 65,535 bytes of UTF-8, or 32,767 of other bytes"
)]
pub(crate) struct LongKey;

impl Binding {
    /// Replaces `additional` by the additional data of a record with this key.
    ///
    /// # Errors
    /// [`LongKey`].
    pub(crate) fn write_additional(
        &self,
        key: Option<&[u8]>,
        additional: &mut Vec<u8>,
    ) -> Result<(), LongKey> {
        let source = key.map(source);
        let data = AdditionalData {
            tenant: self.tenant.as_deref(),
            topic: Some(&self.topic),
            source: source.as_deref(),
            ..AdditionalData::default()
        };
        additional.clear();
        data.append_to(additional).map_err(|_| LongKey)
    }
}

/// The text form of a key: itself if it is UTF-8 that does not begin with U+0000, else U+0000 and lower-case hex. Keys
/// that differ have text forms that differ.
fn source(key: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(key)
        && !text.starts_with(MARK)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(1 + 2 * key.len());
    text.push(MARK);
    for byte in key {
        write!(text, "{byte:02x}").expect("a string grows");
    }
    Cow::Owned(text)
}

/// Begins the text form of a key that is written as hex.
const MARK: char = '\0';

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn binding(tenant: Option<&str>) -> Binding {
        Binding { tenant: tenant.map(str::to_owned), topic: "t".to_owned() }
    }

    impl Binding {
        fn additional(&self, key: Option<&[u8]>) -> Result<Vec<u8>, LongKey> {
            let mut additional = vec![7; 3];
            self.write_additional(key, &mut additional).map(|()| additional)
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let additional = |key| binding(Some("acme")).additional(key).unwrap();
        assert_eq!(additional(None), b"\x01\x03\0\x04acme\0\x01t");
        assert_eq!(additional(Some(b"")), b"\x01\x07\0\x04acme\0\x01t\0\0");
        assert_eq!(additional(Some("é".as_bytes())), "\x01\x07\0\x04acme\0\x01t\0\x02é".as_bytes());
        assert_eq!(additional(Some(b"\xff\x0a")), b"\x01\x07\0\x04acme\0\x01t\0\x05\0ff0a");
        // A number in four bytes is UTF-8, too.
        assert_eq!(additional(Some(&[0, 0, 0, 7])), b"\x01\x07\0\x04acme\0\x01t\0\x09\x0000000007");
        assert_eq!(binding(None).additional(None).unwrap(), b"\x01\x02\0\x01t");
    }

    #[test]
    fn a_key_that_is_too_long_is_refused() {
        let binding = binding(None);
        assert!(binding.additional(Some(&[b'x'; 65_535])).is_ok());
        assert!(binding.additional(Some(&[b'x'; 65_536])).is_err());
        assert!(binding.additional(Some(&[0xff; 32_767])).is_ok());
        assert!(binding.additional(Some(&[0xff; 32_768])).is_err());
    }

    proptest! {
        #[test]
        fn keys_that_differ_are_bound_differently(
            a in proptest::option::of(proptest::collection::vec(prop_oneof![Just(0_u8), Just(b'0'), any::<u8>()], 0..8)),
            b in proptest::option::of(proptest::collection::vec(prop_oneof![Just(0_u8), Just(b'0'), any::<u8>()], 0..8)),
        ) {
            let bound = |key: &Option<Vec<u8>>| binding(None).additional(key.as_deref()).unwrap();
            prop_assert_eq!(a == b, bound(&a) == bound(&b));
        }
    }
}
