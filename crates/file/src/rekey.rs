//! New recipients for an existing container; its payload is copied as it is, or sealed again.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use wattlock_engine::crypto::Secret;
use wattlock_engine::{Engine, Report};

use crate::Done;
use crate::container::{Container, Sealed};
use crate::error::Error;
use crate::file_state::State;
use crate::format::Format;
use crate::header::{Header, Stanza};
use crate::input::{Input, Opened};
use crate::keys::{Identities, Wrapping};
use crate::protect::new_payload;
use crate::signature::{remove_signature, signature_of, stage_signature};
use crate::staging::{NewOutput, Planned, Staged};
use crate::transfer::Progress;
use crate::{age_v1, wattlock_v1};

/// How containers get new recipients.
pub struct Rekey<'a> {
    /// Seals payloads again.
    pub engine: &'a Engine,
    /// What opens them now.
    pub identities: &'a Identities,
    /// What shall open them from now on, instead.
    pub wrapping: &'a Wrapping,
    /// Whether another file at the target may be replaced. The container itself may be.
    pub overwrite: bool,
    /// Whether the payload is decrypted and sealed again under a new key.
    pub reseal: bool,
    /// Counts every byte that is sealed again.
    pub progress: &'a Progress,
}

/// Writes the container `input` with new stanzas to `target`, which may be the container itself.
///
/// Without `reseal`, the data key stays: a former recipient who kept that key, or the old container,
/// can still decrypt it.
///
/// # Errors
/// Anything in [`Error`]; the container is then as it was. [`Error::Changed`] if another file took
/// its place meanwhile, which stays.
pub fn rekey(how: &Rekey<'_>, input: &Input, target: &Path) -> Result<Done, Error> {
    let sealed = Sealed::read(input)?;
    let payload = sealed
        .payload_range()
        .ok_or_else(|| Error::usage("rekey needs a container in a file, and not an armored one"))?;
    let opened = sealed.opened.file()?.state();
    let is_opened = |status| State::of(&status).is_same_file(&opened);
    let in_place = input.name() == target || std::fs::symlink_metadata(target).is_ok_and(is_opened);
    let format = sealed.header.format().name();
    let bytes_in = sealed.opened.len();
    if in_place {
        // The other names would keep the old recipients.
        sealed.opened.file()?.check_is_only_name()?;
    }
    let output = match in_place {
        // Nothing but the container that was opened.
        true => NewOutput { planned: Planned::There(opened), ..NewOutput::named(target, true) },
        false => NewOutput::named(target, how.overwrite),
    };
    let (staged, opened_input, report) = if how.reseal {
        let container = sealed.unlock(how.identities)?;
        reseal(how, container, &output)?
    } else {
        let header = how
            .identities
            .with_file_key(&sealed.header, |old_key| new_header(how, &sealed.header, old_key))?;
        let staged = Staged::begin(&output)?;
        let failed = || Error::io("write", target);
        staged.file().write_all(&header).map_err(failed())?;
        let len = payload.end - payload.start;
        let copied = copy(&sealed.opened.file()?.file, payload.start, len, staged.file());
        // Says more than that the file ended too soon.
        sealed.opened.check_unchanged()?;
        copied.map_err(failed())?;
        (staged, sealed.opened, Report::default())
    };
    // The payload is the same, and so is who made it.
    let signature = match in_place || how.reseal {
        true => None,
        false => signature_of(opened_input.name())
            .map(|text| stage_signature(staged.location(), &text, how.overwrite))
            .transpose()?,
    };
    let mut attributes = opened_input.attributes();
    if in_place {
        attributes.extended = opened_input.extended()?;
    }
    staged.settle(&attributes)?;
    let bytes_out = staged.file().metadata().map_err(Error::io("read", target))?.len();
    let target_existed = staged.target_existed();
    let at = staged.location().clone();
    let output = staged.publish()?;
    if let Some(signature) = signature {
        signature.publish()?;
    }
    // It is that of the former payload.
    let removed_signature = if how.reseal && target_existed { remove_signature(&at) } else { None };
    Ok(Done {
        bytes_in,
        bytes_out,
        output: Some(output),
        format,
        report,
        removed_signature,
        ..Done::default()
    })
}

/// Writes the container anew, under a new data key.
fn reseal(
    how: &Rekey<'_>,
    mut container: Container,
    output: &NewOutput,
) -> Result<(Staged, Opened, Report), Error> {
    let format = container.header.format();
    let has_metadata = wattlock_v1::has_metadata(&container.header);
    let metadata = has_metadata.then(|| container.metadata.clone());
    let (header, payload) = new_payload(how.wrapping, format, metadata.as_ref())?;
    let front = payload.front(&header);
    let staged = Staged::begin(output)?;
    let file = (staged.file(), output.at.path());
    let moved = container.reseal_by_cpu(how.engine, file, (&front, &payload), how.progress)?;
    container.opened.check_unchanged()?;
    Ok((staged, container.opened, moved.report))
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
