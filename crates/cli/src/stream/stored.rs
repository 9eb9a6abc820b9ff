//! Sealed streams in files and folders, for `verify`, `inspect` and `rekey`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use wattlock_engine::crypto::Secret;
use wattlock_file::{
    Attributes, Done, Error, Identities, Input, Kind, Rekey, Shown, Staged, inspect,
    recipients_of_key, unwrap_data_key, wrap_data_key,
};
use wattlock_host::exit::{AUTHENTICATION, FAILURE};
use wattlock_stream::frame::{self, Error as FrameError, WalkError};
use wattlock_stream::gateway::{Counters, MessageOutput, Notice, Replay};
use wattlock_stream::segment::{
    Error as SegmentError, Folder, KeyFile, KeyFolder, KeyKind, Segment, Selection, Tail,
};

use super::ends::{chain, code_of_frame, code_of_segment};
use super::folder::{Segments, key_store, of_inputs};
use super::key::{KeyHeader, OpeningKey};
use crate::lock::lock;

/// What summaries call the format of a stream.
pub const VERSION_1: &str = "wattlock-stream-v1";
const VERSION_2: &str = "wattlock-stream-v2";

/// True for a file that holds sealed streams, and for a folder of segments.
pub fn is_stream(path: &Path) -> bool {
    let is_folder_of_segments =
        || Folder::new(path).segments().is_ok_and(|segments| !segments.is_empty());
    match path.is_dir() {
        true => is_folder_of_segments(),
        false => start_of(path).is_ok_and(|start| start.starts_with(b"wattlock-stream/")),
    }
}

fn start_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    // Opening a pipe would wait for its writer.
    if fs::metadata(path)?.is_file() {
        File::open(path)?.take(32).read_to_end(&mut start)?;
    }
    Ok(start)
}

/// Opens all of a stream with `key`, and drops what it holds.
///
/// # Errors
/// What is wrong with it: the first fault, with the number of others.
pub fn verify(path: &Path, key: &OpeningKey) -> Result<Done, Error> {
    let segments = of_inputs(&[path.to_owned()]).map_err(|error| failed(Kind::Failure, &error))?;
    match segments {
        Some(segments) => verify_segments(segments, key),
        None => {
            let unlock = |header: &[u8]| key.unlock(header);
            let checked =
                frame::check(&mut reader(path)?, &unlock).map_err(|error| of_walk(&error))?;
            Ok(done(checked.bytes_in, 0, VERSION_1))
        }
    }
}

fn verify_segments(segments: Segments, key: &OpeningKey) -> Result<Done, Error> {
    let Segments { folder, paths, are_all } = segments;
    let keys = key_store(key.clone(), &folder);
    let counters = Arc::new(Counters::default());
    let faults: Arc<Mutex<Vec<(u8, String)>>> = Arc::default();
    let noted = Arc::clone(&faults);
    let notify = move |notice| {
        if let Notice::Segment { path, problem } = notice {
            let text = match are_all {
                true => format!("{}: {}", Shown(Path::new(&path)), chain(&problem)),
                false => chain(&problem),
            };
            lock(&noted).push((code_of_segment(&problem), text));
        }
    };
    let (output, selection) = (Box::new(Nothing), Selection::default());
    let replay = Replay::new(keys, selection, output, Arc::clone(&counters), notify);
    replay
        .run(&paths, are_all, &AtomicBool::new(false))
        .map_err(|error| failed(Kind::Failure, &error))?;
    let mut faults = std::mem::take(&mut *lock(&faults));
    // The gravest first.
    faults.sort_by_key(|(code, _)| std::cmp::Reverse(*code));
    if let Some((code, first)) = faults.first() {
        let more = match faults.len() {
            1 => String::new(),
            2 => ", and 1 other fault".into(),
            all => format!(", and {} other faults", all - 1),
        };
        return Err(failed(kind_of(*code), &format!("{first}{more}")));
    }
    Ok(done(counters.bytes_in.load(Ordering::Relaxed), 0, VERSION_2))
}

/// What a stream says of itself without a key.
#[derive(Default, Serialize)]
pub struct Description {
    /// As `inspect` prints it.
    pub file: String,
    /// In base64, if the name is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name_bytes: Option<String>,
    pub format: &'static str,
    pub version: u8,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipients: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// How a segment ends: "complete", "recovered", "written" or "cut".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<u64>,
    /// Segments of a folder that are not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub epochs: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub epochs_without_key: Vec<u32>,
}

/// Reads what a stream says of itself without a key.
///
/// # Errors
/// That it cannot be read, or is damaged.
pub fn describe(path: &Path) -> Result<Description, Error> {
    let segments = of_inputs(&[path.to_owned()]).map_err(|error| failed(Kind::Failure, &error))?;
    let file = path.display().to_string();
    let mut found = Description {
        file,
        file_name_bytes: wattlock_file::name_bytes(path),
        format: "wattlock-stream",
        version: 2,
        ..Description::default()
    };
    let Some(Segments { folder, paths, are_all }) = segments else {
        let header = frame::key_header(&mut reader(path)?).map_err(|error| of_walk(&error))?;
        found.version = 1;
        found.bytes = fs::metadata(path).map_err(Error::io("read", path))?.len();
        found.recipients = match &*header {
            [] => None,
            header => Some(recipients_of_key(header)?),
        };
        return Ok(found);
    };
    let mut incomplete = 0;
    for path in &paths {
        let Some(segment) = Segment::open(path).map_err(|error| of_segment(&error))? else {
            incomplete += 1;
            continue;
        };
        let header = segment.header();
        found.bytes += segment.file_len();
        found.epochs.push(header.epoch);
        found.tenant = header.additional_data().tenant.map(str::to_owned);
        found.writer = Some(header.writer.iter().map(|byte| format!("{byte:02x}")).collect());
        let end = match segment.tail() {
            Tail::Complete { .. } => "complete",
            Tail::Recovered { .. } => "recovered",
            Tail::Open if segment.is_written_to() => "written",
            Tail::Open => "cut",
        };
        incomplete += u64::from(end != "complete");
        found.end = Some(end);
    }
    found.epochs.sort_unstable();
    found.epochs.dedup();
    let keys = KeyFolder::of_segments(&folder);
    let (mut last, mut without) = (Vec::new(), Vec::new());
    for epoch in &found.epochs {
        match keys.files(*epoch) {
            files if files.is_empty() => without.push(*epoch),
            files => last = files,
        }
    }
    found.epochs_without_key = without;
    found.recipients = recipients_of(last)?;
    if are_all {
        (found.writer, found.end) = (None, None);
        (found.segments, found.incomplete) = (Some(paths.len() as u64), Some(incomplete));
    }
    Ok(found)
}

/// The recipients of the first of these key files that can be read; `None` if they are not for recipients.
fn recipients_of(files: Vec<KeyFile>) -> Result<Option<Vec<String>>, Error> {
    let mut problem = None;
    for file in files.into_iter().filter(|file| file.kind == KeyKind::Container) {
        match inspect(&Input::Path(file.path), &Identities::default()) {
            Ok(container) => return Ok(Some(container.recipients)),
            Err(error) => drop(problem.get_or_insert(error)),
        }
    }
    problem.map_or(Ok(None), Err)
}

/// Gives a stream new recipients. Of version 1, all is sealed again under a new key; of version 2, the key of the
/// segment's epoch is wrapped anew, or those of all epochs in a folder.
///
/// # Errors
/// Anything in [`Error`]; what was not done is as it was.
pub fn rekey(how: &Rekey<'_>, path: &Path, target: &Path) -> Result<Done, Error> {
    let segments = of_inputs(&[path.to_owned()]).map_err(|error| failed(Kind::Failure, &error))?;
    let Some(Segments { folder, paths, .. }) = segments else {
        return rekey_v1(how, path, target);
    };
    if how.reseal {
        return Err(Error::usage(
            "--reseal cannot change the keys of segments; a writer makes a new key for each run, and each day",
        ));
    }
    if path != target && fs::canonicalize(path).ok() != fs::canonicalize(target).ok() {
        return Err(Error::usage("segments are rekeyed where they are: leave out -o"));
    }
    let mut failures = Vec::new();
    let mut epochs = BTreeSet::new();
    for path in &paths {
        match Segment::open(path) {
            Ok(Some(segment)) => drop(epochs.insert(segment.header().epoch)),
            Ok(None) => {}
            Err(problem) => failures.push((path.clone(), of_segment(&problem))),
        }
    }
    let keys = KeyFolder::of_segments(&folder);
    let mut files = Vec::new();
    for epoch in epochs {
        match keys.files(epoch) {
            // One that was removed on purpose is no reason to leave the others as they are.
            none if none.is_empty() && paths.len() > 1 => {}
            none if none.is_empty() => {
                return Err(failed(
                    Kind::Failure,
                    &format!("the key of epoch {epoch} was removed"),
                ));
            }
            found if found.iter().all(|file| file.kind == KeyKind::Salt) => {
                return Err(Error::usage("it was sealed with --key-file, and has no recipients"));
            }
            // A salt beside a container was sent to this folder by another machine.
            found => files.extend(found.into_iter().filter(|file| file.kind == KeyKind::Container)),
        }
    }
    let (mut bytes_in, mut bytes_out, mut rekeyed) = (0, 0, 0);
    for KeyFile { path: key, .. } in files {
        match wattlock_file::rekey(how, &Input::Path(key.clone()), &key) {
            Ok(done) => {
                (bytes_in, bytes_out) = (bytes_in + done.bytes_in, bytes_out + done.bytes_out);
                rekeyed += 1;
            }
            Err(error) => failures.push((key, error)),
        }
    }
    match failures.is_empty() {
        true => Ok(done(bytes_in, bytes_out, VERSION_2)),
        false => Err(not_rekeyed(rekeyed, &failures)),
    }
}

/// Names the files that were not rekeyed, with the gravest kind of their errors. The others have new recipients.
fn not_rekeyed(rekeyed: u64, failures: &[(PathBuf, Error)]) -> Error {
    let is_authentication = |(_, error): &(PathBuf, Error)| error.kind() == Kind::Authentication;
    let kind = match failures.iter().any(is_authentication) {
        true => Kind::Authentication,
        false => Kind::Failure,
    };
    let named = failures.iter().map(|(path, error)| format!("{}: {error}", Shown(path)));
    let named = named.collect::<Vec<_>>().join("; ");
    let others = match rekeyed {
        0 => String::new(),
        1 => "; 1 other key file was rekeyed".into(),
        all => format!("; {all} other key files were rekeyed"),
    };
    failed(kind, &format!("{named}{others}"))
}

fn rekey_v1(how: &Rekey<'_>, path: &Path, target: &Path) -> Result<Done, Error> {
    let in_place = fs::canonicalize(path).ok() == fs::canonicalize(target).ok();
    let input = File::open(path).map_err(Error::io("read", path))?;
    let status = input.metadata().map_err(Error::io("read", path))?;
    if in_place && status.nlink() > 1 {
        return Err(Error::HardLinked { path: path.to_owned(), links: status.nlink() });
    }
    let staged = Staged::create(target, how.overwrite || in_place)?;
    let (header, key) = wrap_data_key(how.wrapping)?;
    let mut output = BufWriter::with_capacity(BUFFER, staged.file());
    let unlock = |header: &[u8]| unwrap(header, how.identities);
    let mut reader = BufReader::with_capacity(BUFFER, &input);
    let contents = frame::reseal(&mut reader, &unlock, &mut output, (&key, &header));
    drop(output);
    let contents = contents.map_err(|error| of_walk(&error))?;
    staged.settle(&Attributes::of(&input, &status))?;
    let bytes_out = staged.file().metadata().map_err(Error::io("read", target))?.len();
    let output = staged.publish()?;
    Ok(Done { output: Some(output), ..done(contents.bytes_in, bytes_out, VERSION_1) })
}

fn unwrap(header: &[u8], identities: &Identities) -> Result<Secret<32>, FrameError> {
    match header {
        [] => Err(FrameError::Key("it was sealed with --key-file, and has no recipients".into())),
        _ => unwrap_data_key(header, identities)
            .map_err(|error| FrameError::Key(KeyHeader(error).into())),
    }
}

fn reader(path: &Path) -> Result<BufReader<File>, Error> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    Ok(BufReader::with_capacity(BUFFER, file))
}

/// Bytes that are read and written at once.
const BUFFER: usize = 1 << 20;

fn done(bytes_in: u64, bytes_out: u64, format: &'static str) -> Done {
    Done { bytes_in, bytes_out, format, ..Done::default() }
}

fn failed(kind: Kind, what: &dyn std::fmt::Display) -> Error {
    Error::Stream { kind, what: what.to_string() }
}

fn of_walk(error: &WalkError) -> Error {
    let code = match error {
        WalkError::Stream(error) => code_of_frame(error),
        _ => FAILURE,
    };
    failed(kind_of(code), &chain(error))
}

fn of_segment(error: &SegmentError) -> Error {
    failed(kind_of(code_of_segment(error)), &chain(error))
}

/// The kind of an error that has this exit code.
fn kind_of(code: u8) -> Kind {
    match code {
        AUTHENTICATION => Kind::Authentication,
        _ => Kind::Failure,
    }
}

/// Drops messages.
struct Nothing;

impl MessageOutput for Nothing {
    fn data(&mut self, _: u64, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}
