//! A wattlock v1 header by itself: a data key for recipients, for what is no file.

use wattlock_engine::crypto::{Secret, random};

use crate::error::Error;
use crate::format::Format;
use crate::header::Header;
use crate::inspect::describe;
use crate::keys::{Identities, Wrapping};
use crate::wattlock_v1;

/// A fresh data key, and a header that wraps it for the recipients of `wrapping`.
///
/// # Errors
/// [`Error::Wrap`] and [`Error::Usage`] if a recipient cannot be wrapped for.
pub fn wrap_data_key(wrapping: &Wrapping) -> Result<(Vec<u8>, Secret<32>), Error> {
    let data_key = random::secret::<32>()?;
    let header = wrapping.with_file_key(Format::WattlockV1, |file_key, stanzas| {
        wattlock_v1::key_header(&data_key, file_key, stanzas)
    })?;
    Ok((header, data_key))
}

/// Unwraps the data key of such a header.
///
/// # Errors
/// Those of reading and opening the header of a container; [`Error::Header`] if anything follows
/// it, or it is of another format.
pub fn unwrap_data_key(header: &[u8], identities: &Identities) -> Result<Secret<32>, Error> {
    let mut rest = header;
    let header = Header::read(&mut rest)?;
    if header.format() != Format::WattlockV1 {
        return Err(Error::Header { line: 1, what: "a key header is one of wattlock/v1" });
    }
    if !rest.is_empty() {
        return Err(Error::Header { line: 1, what: "something follows the key header" });
    }
    identities.with_file_key(&header, |file_key| {
        header.verify(&wattlock_v1::mac_key(file_key))?;
        wattlock_v1::data_key(&header, file_key)
    })
}

/// The types of the recipients for whom such a header wraps its key.
///
/// # Errors
/// Those of reading the header of a container.
pub fn recipients_of_key(header: &[u8]) -> Result<Vec<String>, Error> {
    Ok(Header::read(&mut &*header)?.stanzas().iter().map(describe).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{NativeIdentity, Recipients};

    #[test]
    fn a_recipient_unwraps_the_key_and_a_stranger_does_not() {
        let identity = NativeIdentity::generate();
        let recipients = Recipients::new(vec![identity.recipient()]).unwrap();
        let (header, key) = wrap_data_key(&Wrapping::new(recipients)).unwrap();
        let own = Identities::new(vec![identity.into()]);
        assert!(unwrap_data_key(&header, &own).unwrap() == key);
        let stranger = Identities::new(vec![NativeIdentity::generate().into()]);
        assert!(matches!(unwrap_data_key(&header, &stranger), Err(Error::WrongKey { .. })));
        let longer = [&header[..], b"x"].concat();
        assert!(unwrap_data_key(&longer, &own).is_err());
    }
}
