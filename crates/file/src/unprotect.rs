//! From a container to a file, to a stream, to a comparison, or to nothing but a verdict.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use wattlock_engine::Engine;
use wattlock_engine::crypto::Secret;

use crate::Done;
use crate::container::{Container, Sealed};
use crate::error::Error;
use crate::folders::umask;
use crate::format::Format;
use crate::input::{Input, OpenFile, Opened};
use crate::keys::Identities;
use crate::lock::lock;
use crate::payload::Moved;
use crate::remote::{RemoteOutput, Sent, complete};
use crate::staging::{Attributes, NewOutput, Planned, Staged};
use crate::transfer::{Progress, Sink};
use crate::unpublished::Unpublished;
use crate::wattlock_v1;

/// Where an output goes.
pub enum Target<'a> {
    /// A file, whole or not at all.
    File(PathBuf),
    /// A stream, which gets bytes as soon as they are authentic.
    Stream(&'a mut (dyn Write + Send)),
    /// A remote object, whole or not at all.
    Remote(&'a mut dyn RemoteOutput),
    /// Nowhere.
    Nothing,
}

/// Which sealed names are used for outputs. A container may come from anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedName {
    /// Those that do not start with a dot.
    Visible,
    /// All of them.
    Any,
}

/// The outputs that a run has named by sealed names. Containers that seal the same name would
/// otherwise replace each other's output.
#[derive(Debug, Default)]
pub struct UsedNames(Mutex<HashSet<PathBuf>>);

impl UsedNames {
    /// Names that are taken before the run begins, as those of its inputs are.
    pub fn taken(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(Mutex::new(paths.into_iter().map(|path| resolved(&path)).collect()))
    }

    /// Takes `path`.
    ///
    /// # Errors
    /// [`Error::NameTaken`] if it is taken.
    fn take(&self, path: &Path) -> Result<(), Error> {
        let mut used = lock(&self.0);
        if used.insert(resolved(path)) { Ok(()) } else { Err(Error::NameTaken(path.to_owned())) }
    }
}

/// The path, with the links of its folder followed.
fn resolved(path: &Path) -> PathBuf {
    let folder = path.parent().map(|folder| if folder == "" { Path::new(".") } else { folder });
    let folder = folder.and_then(|folder| fs::canonicalize(folder).ok());
    folder.zip(path.file_name()).map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name))
}

/// How containers are to be opened: the same for all files of a run.
pub struct Unprotect<'a> {
    /// Does the work.
    pub engine: &'a Engine,
    /// What may open them.
    pub identities: &'a Identities,
    /// The plaintext bytes wanted; all of them if `None`. The end may lie beyond the file's.
    pub range: Option<Range<u64>>,
    /// Whether the output gets the name that is sealed in the container, in its target's folder.
    pub sealed_name: Option<SealedName>,
    /// The sealed names that this run has used, which it never uses twice.
    pub used_names: &'a UsedNames,
    /// Whether outputs that exist are replaced.
    pub overwrite: bool,
    /// Whether the container is removed once the output is on the disk and verified.
    pub replace: bool,
    /// Counts every byte.
    pub progress: &'a Progress,
}

/// Opens the container `input` and puts its plaintext at `target`.
///
/// # Errors
/// Anything in [`Error`]; there is then no output, except on a stream, which keeps the authentic
/// bytes it was given: [`Error::Incomplete`].
pub fn unprotect(how: &Unprotect<'_>, input: &Input, target: Target<'_>) -> Result<Done, Error> {
    let (output, sink) = match target {
        Target::File(path) => {
            return stage(how, input, &NewOutput::named(&path, how.overwrite))?.publish();
        }
        Target::Stream(writer) => (Path::new("standard output"), Some(writer)),
        Target::Remote(output) => return to_remote(how, input, output),
        Target::Nothing => (input.name(), None),
    };
    let (mut container, window) = open(how, input)?;
    let moved = match sink {
        Some(writer) => {
            let sink = Sink::stream(&mut *writer);
            let moved = container.run(how.engine, window.clone(), sink, output, how.progress)?;
            writer.flush().map_err(Error::io("write", output))?;
            moved
        }
        None => container.run(how.engine, window.clone(), Sink::Nothing, output, how.progress)?,
    };
    done(&container, window.as_ref(), moved)
}

/// Sends the plaintext of `input` to a store, where it appears when all of it is authentic.
fn to_remote(
    how: &Unprotect<'_>,
    input: &Input,
    output: &mut dyn RemoteOutput,
) -> Result<Done, Error> {
    let name = output.name().to_owned();
    let (mut container, window) = open(how, input)?;
    if let (true, Opened::File(file)) = (how.replace, &container.opened) {
        file.check_has_no_attributes(&name)?;
    }
    let mut sent = Sent(output);
    let sink = Sink::stream(&mut sent);
    let moved = container.run(how.engine, window.clone(), sink, &name, how.progress);
    // What did not appear was not released.
    let moved = moved.map_err(|error| match error {
        Error::Incomplete { source, .. } => *source,
        error => error,
    })?;
    let remote = complete(output)?;
    let done = Done { output: Some(name.clone()), ..done(&container, window.as_ref(), moved)? };
    if how.replace {
        container.compare_by_cpu(how.engine, &remote, &name, &Progress::default())?;
        container.opened.check_unchanged()?;
        container.opened.remove()?;
    }
    Ok(done)
}

/// Writes the plaintext of `input` that will be `output`, or stand in its folder under the sealed name.
///
/// # Errors
/// As [`unprotect`].
pub(crate) fn stage<'a>(
    how: &Unprotect<'a>,
    input: &Input,
    output: &NewOutput,
) -> Result<Unpublished<'a>, Error> {
    let (mut container, window) = open(how, input)?;
    let output = named_output(how, &container, output)?;
    let path = output.at.path().to_owned();
    if let Opened::File(file) = &container.opened {
        file.check_is_not(&path)?;
    }
    if how.sealed_name.is_some() {
        how.used_names.take(&path)?;
    }
    let staged = Staged::begin(&output)?;
    let sparse = container.metadata.sparse && window.is_none();
    let sink = match sparse {
        true => Sink::sparse(staged.file()),
        false => Sink::File { file: staged.file(), front: &[] },
    };
    let moved = container.run(how.engine, window.clone(), sink, &path, how.progress)?;
    if sparse {
        // It may end with a hole.
        staged.file().set_len(moved.plain_bytes).map_err(Error::io("write", &path))?;
    }
    let mut attributes = attributes(&container);
    if how.replace {
        attributes.extended = container.opened.extended()?;
    }
    staged.give(&attributes)?;
    let unpublished = Unpublished::new(staged, done(&container, window.as_ref(), moved)?);
    if !how.replace {
        return Ok(unpublished);
    }
    let engine = how.engine;
    Ok(unpublished.replacing(move |staged| {
        // From the file again, both of them: what is compared is what will be kept.
        let (file, path) = (staged.file(), staged.target());
        container.compare_by_cpu(engine, file, path, &Progress::default())?;
        container.opened.check_unchanged()?;
        Ok(container.opened)
    }))
}

/// Opens the container `input`, and the bytes of it that are wanted, if they are not all.
fn open(how: &Unprotect<'_>, input: &Input) -> Result<(Container, Option<Range<u64>>), Error> {
    if how.replace {
        input.check_removable()?;
    }
    let mut container = Container::open(input, how.identities)?;
    if let (true, Opened::File(file)) = (how.replace, &container.opened) {
        file.check_mode_is_plain()?;
    }
    let window = container.window(how.range.clone())?;
    if let (Some(range), Some(window)) = (&how.range, &window)
        && range.start > window.start
    {
        // Only the last chunk proves where the plaintext ends.
        let (sink, quiet) = (Sink::Nothing, Progress::default());
        container.run(how.engine, Some(window.clone()), sink, input.name(), &quiet)?;
        return Err(Error::usage(format!(
            "the range starts at byte {}, and there are only {}",
            range.start, window.end
        )));
    }
    Ok((container, window))
}

/// A container and a file that hold the same bytes.
pub(crate) struct MatchedPair {
    pub done: Done,
    container: Opened,
    plaintext: OpenFile,
}

impl MatchedPair {
    /// True if the plaintext has this mode and time, as far as they are given.
    pub fn has_attributes(&self, mode: Option<u32>, modified: Option<SystemTime>) -> bool {
        let own = Attributes::of(&self.plaintext.file, &self.plaintext.status);
        mode.is_none_or(|mode| own.mode == Some(mode))
            && modified.is_none_or(|time| own.modified == Some(time))
    }

    /// Makes the container durable and removes the plaintext.
    pub fn keep_container(&self) -> Result<(), Error> {
        self.plaintext.check_is_only_name()?;
        match &self.container {
            Opened::File(container) => {
                self.plaintext.check_leaves_nothing_behind(container)?;
                container.settle()?;
            }
            Opened::Remote(object, _) => self.plaintext.check_has_no_attributes(object.name())?,
        }
        self.plaintext.remove()
    }

    /// Makes the plaintext durable and removes the container.
    pub fn keep_plaintext(&self) -> Result<(), Error> {
        if let Opened::File(container) = &self.container {
            container.check_leaves_nothing_behind(&self.plaintext)?;
        }
        self.plaintext.settle()?;
        self.container.remove()
    }
}

/// Authenticates `container` and compares it with the file `plaintext`, byte for byte; with `by_time`, only
/// its length and the time that is sealed in it, if there is one.
///
/// # Errors
/// [`Error::Mismatch`] if they differ, [`Error::Changed`] if one of them is written to meanwhile,
/// or what [`unprotect`] returns.
pub(crate) fn compare(
    how: &Unprotect<'_>,
    mut container: Container,
    plaintext: &Input,
    by_time: bool,
) -> Result<MatchedPair, Error> {
    let opened = plaintext.open_file()?;
    let plaintext = plaintext.name();
    let len = opened.status.len();
    if container.plain_len()?.is_some_and(|plain_len| plain_len != len) {
        return Err(Error::Mismatch(plaintext.to_owned()));
    }
    let file = &opened.file;
    let sealed_time = container.metadata.modified.filter(|_| by_time);
    if let Some(time) = sealed_time {
        if opened.status.modified().ok() != Some(time) {
            return Err(Error::Mismatch(plaintext.to_owned()));
        }
        // The last chunk proves the length.
        let end = Some(len.saturating_sub(1)..len);
        let (window, sink) = (container.window(end)?, Sink::Nothing);
        let moved = container.run(how.engine, window, sink, plaintext, &Progress::default())?;
        how.progress.advance(len);
        let done = done(&container, None, Moved { plain_bytes: len, ..moved })?;
        return Ok(MatchedPair { done, container: container.opened, plaintext: opened });
    }
    let moved = container.compare_by_cpu(how.engine, file, plaintext, how.progress)?;
    if moved.plain_bytes != len {
        return Err(Error::Mismatch(plaintext.to_owned()));
    }
    container.opened.check_unchanged()?;
    opened.check_unchanged()?;
    let done = done(&container, None, moved)?;
    Ok(MatchedPair { done, container: container.opened, plaintext: opened })
}

/// The data key of a wattlock v1 container, for other implementations of Cobblestone-256, and
/// where in the file its payload starts.
///
/// # Errors
/// As [`unprotect`]; [`Error::Usage`] for another format.
pub fn data_key(input: &Input, identities: &Identities) -> Result<(Secret<32>, u64), Error> {
    let header = Sealed::read(input)?.header;
    if header.format() != Format::WattlockV1 {
        return Err(Error::usage("only a wattlock v1 container has a data key"));
    }
    identities.with_file_key(&header, |file_key| {
        header.verify(&wattlock_v1::mac_key(file_key))?;
        Ok((wattlock_v1::data_key(&header, file_key)?, header.len()))
    })
}

/// The output of `container`: `output`, or its sealed name in the same folder, which no plan knew.
///
/// # Errors
/// [`Error::NoSealedName`] or [`Error::HiddenName`] if a sealed name is wanted and cannot be had.
pub(crate) fn named_output(
    how: &Unprotect<'_>,
    container: &Container,
    output: &NewOutput,
) -> Result<NewOutput, Error> {
    let Some(wanted) = how.sealed_name else { return Ok(output.clone()) };
    // It is the name of a file in a folder and nothing else: see `Metadata`.
    let name = container.metadata.name.as_deref().ok_or(Error::NoSealedName)?;
    if wanted == SealedName::Visible && name.as_encoded_bytes().starts_with(b".") {
        return Err(Error::HiddenName(name.into()));
    }
    Ok(NewOutput { at: output.at.with_name(name), planned: Planned::NotYet, ..*output })
}

/// What is sealed in the container, and else what the container itself has. The mode gets no bit
/// that the user's mask takes from new files.
pub(crate) fn attributes(container: &Container) -> Attributes {
    let own = container.opened.attributes();
    Attributes {
        mode: container.metadata.mode.or(own.mode).map(|mode| mode & !umask()),
        modified: container.metadata.modified.or(own.modified),
        owner: own.owner,
        extended: None,
    }
}

fn done(container: &Container, window: Option<&Range<u64>>, moved: Moved) -> Result<Done, Error> {
    let format = container.header.format();
    let bytes_out = window.map_or(moved.plain_bytes, |window| window.end - window.start);
    let bytes_in = match window {
        Some(window) => container.bytes_read_for(window)?,
        None => container.opened.known_len().unwrap_or_else(|| {
            let payload = format.layout().sealed_len(bytes_out);
            container.header.len() + format.prefix_len() as u64 + payload
        }),
    };
    Ok(Done { bytes_in, bytes_out, format: format.name(), report: moved.report, ..Done::default() })
}
