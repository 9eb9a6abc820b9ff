//! The canonical form of additional data that has several parts.

use crate::error::Error;

/// What a record is bound to besides its key, in one form that every writer and reader has: the record opens only with
/// the same parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdditionalData<'a> {
    /// Whose record it is.
    pub tenant: Option<&'a str>,
    /// What it is about, such as the name of a topic.
    pub topic: Option<&'a str>,
    /// Where it came from.
    pub source: Option<&'a str>,
    /// When, in microseconds since 1970.
    pub time_us: Option<u64>,
    /// Its number among the caller's records.
    pub sequence: Option<u64>,
}

impl<'a> AdditionalData<'a> {
    /// Its bytes. Without any part there are none.
    ///
    /// # Errors
    /// [`Error::NameTooLong`].
    pub fn to_bytes(self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.append_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends its bytes to `bytes`.
    ///
    /// # Errors
    /// [`Error::NameTooLong`]; some bytes may have been appended then.
    pub fn append_to(self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        if self == Self::default() {
            return Ok(());
        }
        let start = bytes.len();
        bytes.extend_from_slice(&[FORM, 0]);
        for (bit, name) in [self.tenant, self.topic, self.source].into_iter().enumerate() {
            if let Some(name) = name {
                let len = u16::try_from(name.len()).map_err(|_| Error::NameTooLong(name.len()))?;
                bytes[start + 1] |= 1 << bit;
                bytes.extend_from_slice(&len.to_be_bytes());
                bytes.extend_from_slice(name.as_bytes());
            }
        }
        for (bit, number) in [(3, self.time_us), (4, self.sequence)] {
            if let Some(number) = number {
                bytes[start + 1] |= 1 << bit;
                bytes.extend_from_slice(&number.to_be_bytes());
            }
        }
        Ok(())
    }

    /// The parts of `bytes`; `None` if they have another form.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        let (&[FORM, parts @ 1..32], mut rest) = bytes.split_first_chunk()? else { return None };
        let mut name = |bit: u8| -> Option<Option<&'a str>> {
            if parts & 1 << bit == 0 {
                return Some(None);
            }
            let (len, behind) = rest.split_first_chunk()?;
            let (name, behind) = behind.split_at_checked(u16::from_be_bytes(*len).into())?;
            rest = behind;
            std::str::from_utf8(name).ok().map(Some)
        };
        let (tenant, topic, source) = (name(0)?, name(1)?, name(2)?);
        let mut number = |bit: u8| -> Option<Option<u64>> {
            if parts & 1 << bit == 0 {
                return Some(None);
            }
            let (number, behind) = rest.split_first_chunk()?;
            rest = behind;
            Some(Some(u64::from_be_bytes(*number)))
        };
        let (time_us, sequence) = (number(3)?, number(4)?);
        rest.is_empty().then_some(Self { tenant, topic, source, time_us, sequence })
    }
}

/// The first byte of this form.
const FORM: u8 = 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn its_bytes_are_those_of_the_specification() {
        let data =
            AdditionalData { tenant: Some("acme"), sequence: Some(258), ..Default::default() };
        assert_eq!(data.to_bytes().unwrap(), b"\x01\x11\0\x04acme\0\0\0\0\0\0\x01\x02");
        assert_eq!(AdditionalData::default().to_bytes().unwrap(), b"");
        let long = "x".repeat(65_536);
        let long = AdditionalData { topic: Some(&long), ..Default::default() };
        assert!(matches!(long.to_bytes(), Err(Error::NameTooLong(65_536))));
    }

    proptest! {
        #[test]
        fn every_part_comes_back(
            tenant in any::<Option<String>>(),
            topic in any::<Option<String>>(),
            source in any::<Option<String>>(),
            time_us in any::<Option<u64>>(),
            sequence in any::<Option<u64>>(),
        ) {
            let (tenant, topic, source) = (tenant.as_deref(), topic.as_deref(), source.as_deref());
            let data = AdditionalData { tenant, topic, source, time_us, sequence };
            let bytes = data.to_bytes().unwrap();
            prop_assert_eq!(AdditionalData::from_bytes(&bytes), Some(data));
        }

        #[test]
        fn what_is_read_has_one_form(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(data) = AdditionalData::from_bytes(&bytes) {
                prop_assert_eq!(data.to_bytes().unwrap(), bytes);
            }
        }
    }
}
