//! What a wattlock v1 container knows of the file: name, mode, time of last change. Sealed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Damage, Error};
use crate::shown::Shown;

/// The sealed metadata of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The file's name, without any directory.
    pub name: Option<OsString>,
    /// Permission bits, the lowest nine.
    pub mode: Option<u32>,
    /// Time of last change.
    pub modified: Option<SystemTime>,
    /// True if the file has holes: the output gets holes in place of zeros.
    pub sparse: bool,
}

impl Metadata {
    /// Fails for a name that [`Metadata::encode`] would leave out.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.name.as_deref() {
            Some(name) if !is_file_name(name) => Err(Error::usage(format!(
                "the name {} is not that of a file in its folder",
                Shown(Path::new(name))
            ))),
            _ => Ok(()),
        }
    }

    /// The encoding of `docs/spec/wattlock-v1.md`, padded to a multiple of 64 bytes so that the
    /// length of a name shows only roughly.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PADDED);
        let mut entry = |kind: u8, value: &[u8]| {
            out.push(kind);
            out.extend_from_slice(&(value.len() as u16).to_be_bytes());
            out.extend_from_slice(value);
        };
        if let Some(name) = self.name.as_deref().filter(|name| is_file_name(name)) {
            entry(NAME, name.as_bytes());
        }
        if let Some(mode) = self.mode {
            entry(MODE, &(mode & 0o777).to_be_bytes());
        }
        if let Some((seconds, nanoseconds)) = self.modified.and_then(since_epoch) {
            let mut value = seconds.to_be_bytes().to_vec();
            value.extend_from_slice(&nanoseconds.to_be_bytes());
            entry(MODIFIED, &value);
        }
        if self.sparse {
            out.extend_from_slice(&[SPARSE, 0, 0]);
        }
        out.resize(out.len().next_multiple_of(PADDED), 0);
        out
    }

    /// Reads what [`Metadata::encode`] wrote. Kinds of entry that are not known are passed over.
    ///
    /// # Errors
    /// [`Damage::Metadata`].
    pub fn decode(mut bytes: &[u8]) -> Result<Self, Damage> {
        let mut metadata = Self::default();
        while let Some((&kind, rest)) = bytes.split_first() {
            if kind == PADDING {
                return if rest.iter().all(|&b| b == 0) {
                    Ok(metadata)
                } else {
                    Err(Damage::Metadata)
                };
            }
            let (len, rest) = rest.split_first_chunk::<2>().ok_or(Damage::Metadata)?;
            let (value, rest) =
                rest.split_at_checked(u16::from_be_bytes(*len).into()).ok_or(Damage::Metadata)?;
            match kind {
                NAME => metadata.name = Some(name(value)?),
                MODE => metadata.mode = Some(u32::from_be_bytes(exactly(value)?) & 0o777),
                MODIFIED => metadata.modified = Some(time(value)?),
                SPARSE => {
                    let [] = exactly(value)?;
                    metadata.sparse = true;
                }
                _ => {}
            }
            bytes = rest;
        }
        Ok(metadata)
    }
}

const PADDING: u8 = 0;
const NAME: u8 = 1;
const MODE: u8 = 2;
const MODIFIED: u8 = 3;
const SPARSE: u8 = 4;

/// The encoding is a multiple of this.
const PADDED: usize = 64;

/// True for a name that stands for a file in its directory and nothing else. A container must not
/// be able to choose the directory that its file goes to.
fn is_file_name(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= 255
        && bytes != b"."
        && bytes != b".."
        && !bytes.contains(&b'/')
        && !bytes.contains(&0)
}

fn name(value: &[u8]) -> Result<OsString, Damage> {
    let name = OsString::from_vec(value.to_vec());
    if is_file_name(&name) { Ok(name) } else { Err(Damage::Metadata) }
}

fn time(value: &[u8]) -> Result<SystemTime, Damage> {
    let (seconds, nanoseconds) = value.split_first_chunk::<8>().ok_or(Damage::Metadata)?;
    let seconds = i64::from_be_bytes(*seconds);
    let nanoseconds = u32::from_be_bytes(exactly(nanoseconds)?);
    if nanoseconds >= 1_000_000_000 {
        return Err(Damage::Metadata);
    }
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let at =
        if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    at.and_then(|at| at.checked_add(Duration::from_nanos(nanoseconds.into())))
        .ok_or(Damage::Metadata)
}

/// Seconds since the epoch, rounded down, and the nanoseconds above them.
fn since_epoch(time: SystemTime) -> Option<(i64, u32)> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Some((after.as_secs().try_into().ok()?, after.subsec_nanos())),
        Err(before) => {
            let before = before.duration();
            let seconds = -i64::try_from(before.as_secs()).ok()?;
            match before.subsec_nanos() {
                0 => Some((seconds, 0)),
                nanoseconds => Some((seconds - 1, 1_000_000_000 - nanoseconds)),
            }
        }
    }
}

fn exactly<const N: usize>(value: &[u8]) -> Result<[u8; N], Damage> {
    value.try_into().map_err(|_| Damage::Metadata)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(
            name in proptest::option::of(proptest::collection::vec(1u8..=255, 1..=255)),
            mode in proptest::option::of(0u32..0o1000),
            modified in proptest::option::of((-1i64 << 40..1 << 40, 0u32..1_000_000_000)),
            sparse: bool,
        ) {
            let name = name.map(OsString::from_vec).filter(|name| is_file_name(name));
            let modified = modified.map(|(seconds, nanoseconds)| {
                let whole = Duration::from_secs(seconds.unsigned_abs());
                let at = if seconds < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole };
                at + Duration::from_nanos(nanoseconds.into())
            });
            let metadata = Metadata { name, mode, modified, sparse };
            let encoded = metadata.encode();
            prop_assert_eq!(encoded.len() % PADDED, 0);
            prop_assert_eq!(Metadata::decode(&encoded), Ok(metadata));
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Metadata::decode(&bytes);
        }
    }

    #[test]
    fn a_name_with_a_directory_is_refused() {
        for evil in [&b"../x"[..], b"/etc/passwd", b"..", b".", b"", b"a/b", b"a\0b"] {
            let mut bytes = vec![NAME, 0, evil.len() as u8];
            bytes.extend_from_slice(evil);
            assert_eq!(Metadata::decode(&bytes), Err(Damage::Metadata), "{evil:?}");
        }
    }

    #[test]
    fn unknown_entries_are_passed_over_and_setuid_is_dropped() {
        let bytes = [77, 0, 1, 5, MODE, 0, 4, 0, 0, 0o15, 0o355, 0, 0];
        let metadata = Metadata::decode(&bytes).unwrap();
        assert_eq!(metadata.mode, Some(0o15 << 8 & 0o777 | 0o355));
    }
}
