//! From a file to a container.

use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::ops::Range;
use std::path::Path;

use wattlock_engine::Engine;

use crate::armor;
use crate::error::{Error, Kind};
use crate::format::Format;
use crate::input::{Input, Opened};
use crate::keys::Wrapping;
use crate::metadata::Metadata;
use crate::payload::{Ends, Moved, Payload};
use crate::read_at::{InOrder, ReadAt};
use crate::remote::{RemoteOutput, Sent, complete};
use crate::signature::{SignError, Signer, stage_signature};
use crate::staging::{Attributes, NewOutput, Staged};
use crate::transfer::{Progress, Sink, Source};
use crate::unprotect::Target;
use crate::unpublished::Unpublished;
use crate::{Done, age_v1, wattlock_v1};

/// How files are to be protected: the same for all files of a run.
pub struct Protect<'a> {
    /// Does the work.
    pub engine: &'a Engine,
    /// Whom the containers are for.
    pub wrapping: &'a Wrapping,
    /// Which kind of container.
    pub format: Format,
    /// Whether age's ASCII armor goes around it; only age's format has one.
    pub armor: bool,
    /// Who signs the payload, if anybody does. The signature gets the container's name and `.sig`.
    pub signer: Option<&'a Signer>,
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
    match target {
        Target::File(path) => stage(how, input, &NewOutput::named(&path, how.overwrite))?.publish(),
        Target::Stream(writer) => {
            let output = Path::new("standard output");
            to_stream(how, input, writer, output).map(|written| written.done)
        }
        Target::Remote(output) => to_remote(how, input, output),
        Target::Nothing => Err(Error::usage("protecting needs an output")),
    }
}

/// Opens `input`, and says what an output gets of its attributes. One that is not a file has none;
/// its output is readable by its owner only.
fn open(how: &Protect<'_>, input: &Input) -> Result<(Opened, Attributes), Error> {
    let opened = input.open()?;
    if how.replace {
        input.check_removable()?;
        if let Opened::File(file) = &opened {
            file.check_is_only_name()?;
            file.check_mode_is_plain()?;
        }
    }
    let attributes = opened.attributes();
    Ok((opened, attributes))
}

/// A new header for `input`, and the payload that follows it.
fn payload(
    how: &Protect<'_>,
    input: &Input,
    opened: &Opened,
    attributes: &Attributes,
) -> Result<(Vec<u8>, Payload), Error> {
    let metadata = how.metadata.then(|| metadata(input, opened, attributes));
    new_payload(how.wrapping, how.format, metadata.as_ref())
}

/// A new header for the recipients of `wrapping`, and the payload that follows it.
pub(crate) fn new_payload(
    wrapping: &Wrapping,
    format: Format,
    metadata: Option<&Metadata>,
) -> Result<(Vec<u8>, Payload), Error> {
    wrapping.with_file_key(format, |file_key, stanzas| match format {
        Format::WattlockV1 => wattlock_v1::seal(file_key, stanzas, metadata),
        Format::AgeV1 => age_v1::seal(file_key, stanzas),
    })
}

/// Writes the container of `input` that will be `output`.
///
/// # Errors
/// As [`protect`].
pub(crate) fn stage<'a>(
    how: &Protect<'a>,
    input: &Input,
    output: &NewOutput,
) -> Result<Unpublished<'a>, Error> {
    let (opened, attributes) = open(how, input)?;
    let (header, payload) = payload(how, input, &opened, &attributes)?;
    let front = payload.front(&header);
    to_file(how, opened, attributes, output, (header.len(), front), payload)
}

/// The signature of a container whose payload stands in `range`, durable and without a name.
fn sign(
    how: &Protect<'_>,
    signer: &Signer,
    staged: &Staged,
    range: Range<u64>,
) -> Result<Staged, Error> {
    if how.format != Format::WattlockV1 {
        return Err(Error::usage("only wattlock v1 containers can be signed"));
    }
    let target = staged.target();
    let text = signer.sign(staged.file(), range).map_err(|error| match error {
        SignError::Read(error) => Error::io("read", target)(error),
        SignError::Key => Error::usage("the key cannot sign"),
    })?;
    stage_signature(staged.location(), text.as_bytes(), how.overwrite)
}

fn to_file<'a>(
    how: &Protect<'a>,
    mut opened: Opened,
    mut attributes: Attributes,
    output: &NewOutput,
    (header_len, front): (usize, Vec<u8>),
    payload: Payload,
) -> Result<Unpublished<'a>, Error> {
    let path = output.at.path();
    let staged = match &opened {
        Opened::File(file) => file.stage(output)?,
        Opened::Remote(..) => Staged::begin(output)?,
    };
    let moved = if how.armor {
        armored(how, &mut opened, &mut staged.file(), path, &front, &payload)?
    } else {
        let sink = Sink::File { file: staged.file(), front: &front };
        run(how, &mut opened, sink, path, &payload)?
    };
    let Moved { report, plain_bytes: bytes_in } = moved;
    opened.check_unchanged()?;
    if !how.metadata {
        attributes.modified = None;
    }
    if how.replace {
        attributes.extended = opened.extended()?;
    }
    staged.give(&attributes)?;
    let bytes_out = match how.armor {
        true => staged.file().metadata().map_err(Error::io("read", path))?.len(),
        false => front.len() as u64 + payload.layout.sealed_len(bytes_in),
    };
    let done = Done { bytes_in, bytes_out, format: how.format.name(), report, ..Done::default() };
    let signature =
        how.signer.map(|signer| sign(how, signer, &staged, header_len as u64..bytes_out));
    let ends_signature = how.signer.is_none() && staged.target_existed();
    let unpublished = Unpublished::new(staged, done)
        .with_companion(signature.transpose()?)
        .ending_signature(ends_signature);
    if !how.replace {
        return Ok(unpublished);
    }
    let (engine, armor) = (how.engine, how.armor);
    Ok(unpublished.replacing(move |staged| {
        let written = (staged.file(), staged.target());
        read_back(engine, &opened, written, &front, &payload, armor)?;
        opened.check_unchanged()?;
        Ok(opened)
    }))
}

/// A container that was written in order.
struct Written {
    done: Done,
    /// What it was made of.
    opened: Opened,
    front: Vec<u8>,
    payload: Payload,
}

fn to_stream(
    how: &Protect<'_>,
    input: &Input,
    writer: &mut (dyn Write + Send),
    output: &Path,
) -> Result<Written, Error> {
    if how.signer.is_some() {
        return Err(Error::usage("--sign needs an output that is a file"));
    }
    let (mut opened, attributes) = open(how, input)?;
    let (header, payload) = payload(how, input, &opened, &attributes)?;
    let front = payload.front(&header);
    let moved = if how.armor {
        armored(how, &mut opened, writer, output, &front, &payload)?
    } else {
        writer.write_all(&front).map_err(Error::io("write", output))?;
        run(how, &mut opened, Sink::stream(writer), output, &payload)?
    };
    writer.flush().map_err(Error::io("write", output))?;
    opened.check_unchanged()?;
    let Moved { report, plain_bytes: bytes_in } = moved;
    let bytes_out = front.len() as u64 + payload.layout.sealed_len(bytes_in);
    let done = Done { bytes_in, bytes_out, format: how.format.name(), report, ..Done::default() };
    Ok(Written { done, opened, front, payload })
}

/// Sends the container to a store, where it appears when it is complete. With `how.replace`, it is read
/// back from there before the original goes.
fn to_remote(
    how: &Protect<'_>,
    input: &Input,
    output: &mut dyn RemoteOutput,
) -> Result<Done, Error> {
    let name = output.name().to_owned();
    let written = to_stream(how, input, &mut Sent(output), &name)?;
    let Written { done, opened, front, payload } = written;
    if let (true, Opened::File(file)) = (how.replace, &opened) {
        file.check_has_no_attributes(&name)?;
    }
    let remote = complete(output)?;
    if how.replace {
        let read_back =
            read_back(how.engine, &opened, (&remote, &name), &front, &payload, how.armor);
        read_back.inspect_err(|error| {
            if error.kind() == Kind::Authentication {
                let _ = remote.remove();
            }
        })?;
        opened.check_unchanged()?;
        opened.remove()?;
    }
    Ok(Done { output: Some(name), ..done })
}

/// Writes all of the container to `writer` in age's ASCII armor.
fn armored(
    how: &Protect<'_>,
    opened: &mut Opened,
    writer: &mut (dyn Write + Send),
    output: &Path,
    front: &[u8],
    payload: &Payload,
) -> Result<Moved, Error> {
    how.format.check_armor()?;
    armor::write(writer, output, |writer| {
        writer.write_all(front).map_err(Error::io("write", output))?;
        run(how, opened, Sink::stream(writer), output, payload)
    })
}

fn run(
    how: &Protect<'_>,
    opened: &mut Opened,
    sink: Sink<'_>,
    output: &Path,
    payload: &Payload,
) -> Result<Moved, Error> {
    let name = opened.name().to_owned();
    let source = opened.source();
    payload.seal(how.engine, Ends { source, sink, input: &name, output }, how.progress)
}

/// Opens what was just written, from where it is, and compares it with the original.
fn read_back(
    engine: &Engine,
    opened: &Opened,
    (written, path): (&(impl ReadAt + Send), &Path),
    front: &[u8],
    payload: &Payload,
    armor: bool,
) -> Result<(), Error> {
    let failed = || Error::io("read", path);
    let mut start = vec![0; front.len()];
    let mut reader;
    let written_len = written.len().map_err(failed())?;
    let source = if armor {
        let in_order = BufReader::new(InOrder::new(written, written_len));
        reader = armor::reader(in_order).map_err(failed())?.reader;
        reader.read_exact(&mut start).map_err(failed())?;
        Source::stream(&mut reader)
    } else {
        let offset = front.len() as u64;
        let len = written_len.checked_sub(offset);
        let len = len.ok_or_else(|| Error::Mismatch(path.to_owned()))?;
        written.read_exact_at(&mut start, 0).map_err(failed())?;
        Source::At { source: written, offset, len }
    };
    if start != front {
        return Err(Error::Mismatch(path.to_owned()));
    }
    let original = opened.read_at();
    original.read_ahead(opened.range().unwrap_or_default());
    let ends = Ends { source, sink: Sink::Equals(original), input: path, output: path };
    let moved = payload.open_by_cpu(engine, ends, &Progress::default())?;
    // What is read in order may end too soon.
    if opened.known_len().is_some_and(|len| len != moved.plain_bytes) {
        return Err(Error::Mismatch(path.to_owned()));
    }
    Ok(())
}

fn metadata(input: &Input, opened: &Opened, attributes: &Attributes) -> Metadata {
    let Attributes { mode, modified, .. } = *attributes;
    let file_name = || input.name().file_name().map(OsString::from);
    match (input, opened) {
        (Input::Path(_) | Input::Located(_), Opened::File(file)) => {
            // What is not a file has a name that says nothing.
            let name = mode.and_then(|_| file_name());
            Metadata { name, mode, modified, sparse: file.has_holes() }
        }
        (Input::Remote(_), _) => Metadata { name: file_name(), modified, ..Metadata::default() },
        _ => Metadata::default(),
    }
}
