//! From a file to a container.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use wattlock_engine::Engine;

use crate::error::Error;
use crate::format::Format;
use crate::input::{Input, Opened};
use crate::keys::Wrapping;
use crate::metadata::Metadata;
use crate::payload::{Ends, Moved, Payload};
use crate::staging::{Attributes, Staged, mode_without_acl};
use crate::transfer::{Progress, Sink, Source};
use crate::unprotect::Target;
use crate::{Done, age_v1, wattlock_v1};

/// How files are to be protected: the same for all files of a run.
pub struct Protect<'a> {
    /// Does the work.
    pub engine: &'a Engine,
    /// Whom the containers are for.
    pub wrapping: &'a Wrapping,
    /// Which kind of container.
    pub format: Format,
    /// Whether name, mode and time are sealed into it, where the format can.
    pub metadata: bool,
    /// Whether outputs that exist are replaced.
    pub overwrite: bool,
    /// Whether the input is removed once the container is on the disk and verified.
    pub replace: bool,
    /// Counts every byte.
    pub progress: &'a Progress,
}

/// Protects `input` and puts the container at `target`.
///
/// # Errors
/// Anything in [`Error`]; the input is then as it was and there is no output, except on a stream,
/// which keeps what it was given.
pub fn protect(how: &Protect<'_>, input: &Input, target: Target<'_>) -> Result<Done, Error> {
    let mut opened = input.open()?;
    if how.replace {
        input.check_removable()?;
        opened.check_is_only_name()?;
        opened.check_mode_is_plain()?;
    }
    let metadata = how.metadata.then(|| metadata_of(input, &opened));
    let (header, payload) =
        how.wrapping.with_file_key(how.format, |file_key, stanzas| match how.format {
            Format::WattlockV1 => wattlock_v1::seal(file_key, stanzas, metadata.as_ref()),
            Format::AgeV1 => age_v1::seal(file_key, stanzas),
        })?;
    let front = [&header[..], &payload.prefix].concat();
    match target {
        Target::File(path) => to_file(how, &mut opened, &path, &front, &payload),
        Target::Stream(writer) => to_stream(how, &mut opened, writer, &front, &payload),
        Target::Nothing => Err(Error::usage("protecting needs an output")),
    }
}

fn to_file(
    how: &Protect<'_>,
    opened: &mut Opened,
    path: &Path,
    front: &[u8],
    payload: &Payload,
) -> Result<Done, Error> {
    opened.check_is_not(path)?;
    let staged = Staged::create(path, how.overwrite)?;
    staged.file().write_all_at(front, 0).map_err(Error::io("write", path))?;
    let sink = Sink::File { file: staged.file(), offset: front.len() as u64 };
    let moved = run(how, opened, sink, path, payload)?;
    opened.check_unchanged()?;
    let mut attributes = Attributes::of(&opened.file, &opened.status);
    if !how.metadata {
        attributes.modified = None;
    }
    if how.replace {
        attributes.extended = Some(opened.extended()?);
    }
    // An input that is not a file has no attributes to keep; its output is readable by its owner only.
    staged.settle(&if opened.status.is_file() { attributes } else { Attributes::default() })?;
    if how.replace {
        read_back(how, opened, &staged, front, path, payload)?;
        opened.check_unchanged()?;
    }
    let bytes_out = staged.file().metadata().map_err(Error::io("read", path))?.len();
    let output = staged.publish()?;
    if how.replace {
        opened.remove()?;
    }
    let Moved { report, plain_bytes: bytes_in } = moved;
    Ok(Done { bytes_in, bytes_out, output: Some(output), format: how.format.name(), report })
}

fn to_stream(
    how: &Protect<'_>,
    opened: &mut Opened,
    writer: &mut (dyn Write + Send),
    front: &[u8],
    payload: &Payload,
) -> Result<Done, Error> {
    let output = Path::new("standard output");
    writer.write_all(front).map_err(Error::io("write", output))?;
    let moved = run(how, opened, Sink::stream(writer), output, payload)?;
    writer.flush().map_err(Error::io("write", output))?;
    opened.check_unchanged()?;
    let Moved { report, plain_bytes: bytes_in } = moved;
    let bytes_out = front.len() as u64 + payload.layout.sealed_len(bytes_in);
    Ok(Done { bytes_in, bytes_out, output: None, format: how.format.name(), report })
}

fn run(
    how: &Protect<'_>,
    opened: &mut Opened,
    sink: Sink<'_>,
    output: &Path,
    payload: &Payload,
) -> Result<Moved, Error> {
    let name = opened.name.clone();
    let source = match (opened.start, opened.known_len()) {
        (Some(offset), Some(len)) => Source::File { file: &opened.file, offset, len },
        _ => Source::stream(&mut opened.file),
    };
    payload.seal(how.engine, Ends { source, sink, input: &name, output }, how.progress)
}

/// Opens what was just written, from the file, and compares it with the original.
fn read_back(
    how: &Protect<'_>,
    opened: &Opened,
    staged: &Staged,
    front: &[u8],
    path: &Path,
    payload: &Payload,
) -> Result<(), Error> {
    let mut written = vec![0; front.len()];
    staged.file().read_exact_at(&mut written, 0).map_err(Error::io("read", path))?;
    if written != front {
        return Err(Error::Mismatch(path.to_owned()));
    }
    let offset = front.len() as u64;
    let len = staged.file().metadata().map_err(Error::io("read", path))?.len() - offset;
    let ends = Ends {
        source: Source::File { file: staged.file(), offset, len },
        sink: Sink::Equals(&opened.file),
        input: path,
        output: path,
    };
    payload.open_by_cpu(how.engine, ends, &Progress::default())?;
    Ok(())
}

fn metadata_of(input: &Input, opened: &Opened) -> Metadata {
    if !opened.status.is_file() || *input == Input::Stdin {
        return Metadata::default();
    }
    Metadata {
        name: input.name().file_name().map(OsString::from),
        mode: Some(mode_without_acl(&opened.file, &opened.status)),
        modified: opened.status.modified().ok(),
    }
}
