//! New recipients for an existing container; its payload is copied as it is.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use wattlock_engine::crypto::Secret;

use crate::container::Sealed;
use crate::error::Error;
use crate::file_state::State;
use crate::format::Format;
use crate::header::{Header, Stanza};
use crate::input::Input;
use crate::keys::{Identities, Wrapping};
use crate::staging::{Attributes, Staged};
use crate::{age_v1, wattlock_v1};

/// How containers get new recipients.
pub struct Rekey<'a> {
    /// What opens them now.
    pub identities: &'a Identities,
    /// What shall open them from now on, instead.
    pub wrapping: &'a Wrapping,
    /// Whether another file at the target may be replaced. The container itself may be.
    pub overwrite: bool,
}

/// Writes the container `input` with new stanzas to `target`, which may be the container itself.
///
/// The data key stays: a former recipient who kept that key, or the old container, can still decrypt
/// it. Only protecting the file anew changes that.
///
/// # Errors
/// Anything in [`Error`]; the container is then as it was. [`Error::Changed`] if another file took
/// its place meanwhile, which stays.
pub fn rekey(how: &Rekey<'_>, input: &Input, target: &Path) -> Result<PathBuf, Error> {
    let sealed = Sealed::read(input)?;
    let payload = sealed
        .payload_range()
        .ok_or_else(|| Error::usage("rekey needs a container in a file, and not an armored one"))?;
    let header = how
        .identities
        .with_file_key(&sealed.header, |old_key| new_header(how, &sealed.header, old_key))?;
    let opened = State::of(&sealed.opened.status);
    let is_opened = |status| State::of(&status).is_same_file(&opened);
    let in_place = input.name() == target || std::fs::symlink_metadata(target).is_ok_and(is_opened);
    let staged = Staged::create(target, how.overwrite || in_place)?;
    let failed = || Error::io("write", target);
    staged.file().write_all(&header).map_err(failed())?;
    let copied =
        copy(&sealed.opened.file, payload.start, payload.end - payload.start, staged.file());
    // Says more than that the file ended too soon.
    sealed.opened.check_unchanged()?;
    copied.map_err(failed())?;
    let mut attributes = Attributes::of(&sealed.opened.file, &sealed.opened.status);
    if in_place {
        attributes.extended = Some(sealed.opened.extended()?);
    }
    staged.settle(&attributes)?;
    if in_place { staged.publish_over(&opened) } else { staged.publish() }
}

fn new_header(how: &Rekey<'_>, old: &Header, old_key: &Secret<16>) -> Result<Vec<u8>, Error> {
    match old.format() {
        Format::WattlockV1 => {
            old.verify(&wattlock_v1::mac_key(old_key))?;
            let data_key = wattlock_v1::data_key(old, old_key)?;
            // Proves that the metadata, which are taken over as they are, belong to the key.
            wattlock_v1::metadata(old, &data_key)?;
            how.wrapping.with_file_key(Format::WattlockV1, |file_key, stanzas| {
                wattlock_v1::rekey(old, &data_key, file_key, stanzas)
            })
        }
        Format::AgeV1 => {
            // The payload's key follows from the file key, which therefore has to stay.
            old.verify(&age_v1::mac_key(old_key))?;
            let stanzas: Vec<Stanza> = how.wrapping.wrap(old_key)?;
            Header::encode(Format::AgeV1, &stanzas, &[], &age_v1::mac_key(old_key))
        }
    }
}

/// Copies `len` bytes inside the kernel where it can; a file system that shares blocks may copy
/// nothing at all.
fn copy(mut from: &File, start: u64, len: u64, mut to: &File) -> io::Result<()> {
    use io::Read;
    from.seek(SeekFrom::Start(start))?;
    let copied = io::copy(&mut (&mut from).take(len), &mut to)?;
    if copied == len { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
