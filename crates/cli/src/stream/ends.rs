//! Where bytes go, and what is reported of those that did not get there.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::fs::stat;
use wattlock_file::Shown;
use wattlock_host::exit::{self, AUTHENTICATION, FAILURE, usage};
use wattlock_host::invocation::{is_read_and_appended_to, is_stdin, is_stream};
use wattlock_stream::frame::Error as FrameError;
use wattlock_stream::gateway::{
    Address, BackendLimits, Counters, Files, Merged, MessageOutput, Notice, Outlet, PerConnection,
    Retry, Segments, Stdout, Unended,
};
use wattlock_stream::segment::Error as SegmentError;

use crate::args;
use crate::lock::lock;
use crate::stream::key::KeyHeader;
use crate::stream::{descriptors, tls, window_len};

/// What was found while streams came and went.
#[derive(Clone)]
pub struct Findings {
    quiet: bool,
    found: Arc<Mutex<Found>>,
}

#[derive(Default)]
struct Found {
    code: u8,
    opened: u64,
    /// Lines that were printed in the current minute, which began then.
    printed: u64,
    minute: Option<Instant>,
}

impl Findings {
    /// Nothing yet.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, found: Arc::default() }
    }

    /// The exit code that all this asks for.
    pub fn code(&self) -> u8 {
        lock(&self.found).code
    }

    /// Inputs that were opened to their end, however that was.
    pub fn opened(&self) -> u64 {
        lock(&self.found).opened
    }

    /// Notes that something failed; the worst code counts.
    pub fn note(&self, code: u8) {
        let mut found = lock(&self.found);
        found.code = found.code.max(code);
    }

    /// Returns a listener that reports notices.
    pub fn listener(&self) -> impl Fn(Notice) + Send + Sync + use<> {
        let findings = self.clone();
        move |notice| findings.hear(notice)
    }

    fn hear(&self, notice: Notice) {
        match notice {
            Notice::Cut { who, why } => self.report(&format!("{who} was cut: {why}")),
            Notice::Waits { output, why } => self.report_always(&format!(
                "cannot write to {output}: {why}; retrying"
            )),
            Notice::GoesOn { output } => self.report(&format!("writing to {output} again")),
            Notice::PeerLost { who, why, units } => self.report_always(&format!(
                "lost the connection to {who}: {why}; {} sent over it may be lost",
                frames(units)
            )),
            Notice::Dropped { who, why, units } => {
                self.note(FAILURE);
                self.report_always(&format!("dropped {} for {who}: {why}", frames(units)));
            }
            Notice::Unreachable { who, why } => {
                self.report_always(&format!("cannot forward to {who}: {why}; retrying"));
            }
            Notice::OtherKey { who, path } => self.report_always(&format!(
                "{path}: {who} has another key file of this epoch and keeps both: this one was rekeyed, one of \
                 the two is damaged, or two folders have the same file `id`"
            )),
            Notice::FolderFailed { folder, why } => {
                self.note(FAILURE);
                self.report_always(&format!(
                    "cannot write to {folder} any more: {why}; its senders are refused until a restart"
                ));
            }
            Notice::KeyKept { epoch, why } => self.report_always(&format!(
                "cannot make a new key: {}; the key of epoch {epoch} stays in use, and a new one is \
                 tried soon",
                chain(&why)
            )),
            Notice::Segment { path, problem } => {
                self.note(code_of_segment(&problem));
                self.report_always(&format!("{path}: {}", chain(&problem)));
            }
            Notice::Damaged { path, at } => self.report_always(&format!(
                "{path}: an earlier run wrote this segment, which is damaged at byte {at}; it is kept unchanged. \
                 To read the intact records: wattlock stream --open --from 1970-01-01 -i IDENTITY FOLDER \
                 (or --key-file KEY)"
            )),
            Notice::Unended { path, records, why } => self.report(&match why {
                Unended::Killed => format!(
                    "{path}: its writer was killed; opened the {records} records that it had written"
                ),
                Unended::Written => {
                    format!("{path}: still being written; opened as far as it is: {records} records")
                }
                Unended::Empty => format!("{path}: without records; its writer was killed before the first"),
            }),
            Notice::Opened { who, cut, headless, unfinished, stopped, failure } => {
                let is_forged =
                    failure.as_ref().is_some_and(|error| !matches!(error, FrameError::Cut(_)));
                if let Some(error) = failure {
                    self.note(code_of_frame(&error));
                    let advice = match &error {
                        FrameError::Container => "; open it with `wattlock unprotect`",
                        _ => "",
                    };
                    self.report_always(&format!("{who}: {error}{advice}"));
                }
                if stopped {
                    self.note(FAILURE);
                    self.report_always(&format!("{who}: stopped in the middle of a stream"));
                }
                if unfinished > 0 {
                    let elsewhere =
                        if is_forged { "" } else { " here, and may go on in another file" };
                    self.report_always(&format!(
                        "{who}: {unfinished} connection{} incomplete{elsewhere}; complete messages \
                         before that were written",
                        if unfinished == 1 { " is" } else { "s are" }
                    ));
                }
                if cut > 0 {
                    self.note(FAILURE);
                    self.report_always(&format!(
                        "{who}: {} cut when {} sealed",
                        plural(cut, "connection had been", "connections had been"),
                        if cut == 1 { "it was" } else { "they were" },
                    ));
                }
                if headless > 0 {
                    self.report_always(&format!(
                        "{who}: {} in an earlier file, which was not given",
                        plural(headless, "connection began", "connections began"),
                    ));
                }
                lock(&self.found).opened += 1;
            }
        }
    }

    /// Prints a line, unless only errors are wanted.
    pub fn report(&self, text: &str) {
        if !self.quiet {
            self.report_always(text);
        }
    }

    /// Prints a line, unless there were too many of them in this minute.
    fn report_always(&self, text: &str) {
        let mut found = lock(&self.found);
        if found.minute.is_none_or(|minute| minute.elapsed() > Duration::from_secs(60)) {
            (found.minute, found.printed) = (Some(Instant::now()), 0);
        }
        found.printed += 1;
        match found.printed {
            ..MOST_TOLD => say!("{text}"),
            MOST_TOLD => say!("too many messages; no more are shown in this minute"),
            _ => {}
        }
    }
}

/// The exit code of an error of a stream: where its key header is at fault, that of a container's
/// header.
pub fn code_of_frame(error: &FrameError) -> u8 {
    match error {
        FrameError::Key(why) => {
            why.downcast_ref::<KeyHeader>().map_or(AUTHENTICATION, |why| exit::code_of(&why.0))
        }
        error if error.is_authentication() => AUTHENTICATION,
        _ => FAILURE,
    }
}

/// The exit code of an error of a segment: where its key is at fault, that of a container.
pub fn code_of_segment(error: &SegmentError) -> u8 {
    match error {
        SegmentError::Unwrap { source, .. } => match source.downcast_ref() {
            Some(why) => exit::code_of(why),
            None => AUTHENTICATION,
        },
        error if error.is_authentication() => AUTHENTICATION,
        _ => FAILURE,
    }
}

/// An error with what it comes from.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}

fn plural(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// A number of sealed units of a stream, for a message.
pub fn frames(count: u64) -> String {
    format!("{count} frame{}", if count == 1 { "" } else { "s" })
}

/// Lines within a minute.
const MOST_TOLD: u64 = 100;

/// How long outputs are tried again: for ever by a service, for a while in a pipeline.
pub fn retry(args: &args::Stream, counters: &Arc<Counters>, findings: &Findings) -> Retry {
    let is_service = args.listen.is_some() || args.follow;
    let from_stdin = (!is_service).then_some(RETRY_FROM_STDIN);
    let limit = args.retry.or(from_stdin).map(|seconds| Duration::from_secs(seconds.into()));
    Retry::new(limit, Arc::clone(counters), findings.listener())
}

const RETRY_FROM_STDIN: u32 = 30;

/// Where opened messages go.
pub fn exit(
    args: &args::Stream,
    counters: &Arc<Counters>,
    findings: &Findings,
) -> anyhow::Result<Box<dyn MessageOutput>> {
    Ok(match &args.connect {
        None => Box::new(Merged::new(outlet(args, counters, findings)?, Arc::clone(counters))),
        Some(address) => Box::new(backends(args, address, counters, findings)?),
    })
}

/// The same for each of `--readers`, of which there are several with `--connect` only.
pub fn exits(
    args: &args::Stream,
    counters: &Arc<Counters>,
    findings: &Findings,
) -> anyhow::Result<Vec<Box<dyn MessageOutput>>> {
    let Some(address) = &args.connect else { return Ok(vec![exit(args, counters, findings)?]) };
    let first = backends(args, address, counters, findings)?;
    let mut exits: Vec<Box<dyn MessageOutput>> = Vec::new();
    for _ in 1..args.readers {
        exits.push(Box::new(first.another().context("cannot start a thread")?));
    }
    exits.push(Box::new(first));
    Ok(exits)
}

fn backends(
    args: &args::Stream,
    address: &Address,
    counters: &Arc<Counters>,
    findings: &Findings,
) -> anyhow::Result<PerConnection> {
    let limits = BackendLimits {
        queued: window_len(args),
        stall: Duration::from_secs(args.peer_timeout.into()),
        connections: descriptors::for_connections(args),
    };
    let to = tls::destination(args, address)?;
    PerConnection::new(to, limits, Arc::clone(counters), findings.listener())
        .context("cannot start a thread")
}

/// Standard output, or files.
pub fn outlet(
    args: &args::Stream,
    counters: &Arc<Counters>,
    findings: &Findings,
) -> anyhow::Result<Box<dyn Outlet>> {
    let retry = retry(args, counters, findings);
    let output = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let Some(path) = output else {
        if !args.open && io::stdout().is_terminal() {
            return Err(usage("refusing to write binary data to a terminal; use -o FILE"));
        }
        if args.listen.is_none() && is_read_and_appended_to() {
            return Err(usage("the output is appended to the input, and would never end"));
        }
        let descriptor = io::stdout().as_fd().try_clone_to_owned();
        let file = File::from(descriptor.context("standard output is closed")?);
        return Ok(Box::new(Stdout::new(file, "standard output".into(), retry)));
    };
    let shown = Shown(path);
    let failed = || format!("cannot write {shown}");
    if is_stream(path) {
        let file = File::options().write(true).open(path).with_context(failed)?;
        return Ok(Box::new(Stdout::new(file, shown.to_string(), retry)));
    }
    let is_input = || stat(path).is_ok_and(|output| is_stdin(&output));
    let is_output = |input: &PathBuf| {
        stat(input).ok().zip(stat(path).ok()).is_some_and(|(input, output)| {
            (input.st_dev, input.st_ino) == (output.st_dev, output.st_ino)
        })
    };
    let whole = |path: &Path| path.canonicalize().ok();
    let folder = path
        .parent()
        .map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let is_inside = |input: &PathBuf| {
        input.is_dir()
            && whole(input)
                .zip(folder.and_then(whole))
                .is_some_and(|(input, own)| own.starts_with(input))
    };
    if args.paths.iter().any(is_inside) {
        return Err(usage(format!("{shown} is inside the folder that is opened")));
    }
    if args.paths.iter().any(is_output) {
        return Err(usage(format!("{shown} is an input, too")));
    }
    if args.listen.is_none() && segments(args) == Segments::Replace && is_input() {
        return Err(usage(format!("{shown} is the input; --force would empty it")));
    }
    match Files::create(path, segments(args), retry) {
        Ok(files) => {
            if let Some(segment) = files.current()
                && segments(args) == Segments::Continue
                && segment != shown.to_string()
            {
                findings.report(&format!("{shown} exists and is kept; writing to {segment}"));
            }
            Ok(Box::new(files))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(anyhow::anyhow!("{shown} exists already; --force replaces it"))
        }
        Err(error) => Err(error).with_context(failed),
    }
}

/// How output files are named. What a stream is sealed to, and what a service opens, goes on in a
/// further file after a restart.
fn segments(args: &args::Stream) -> Segments {
    if args.rotate_size.is_some() || args.rotate_time.is_some() {
        Segments::Numbered
    } else if args.force {
        Segments::Replace
    } else if args.open && args.listen.is_none() && !args.follow {
        Segments::Single
    } else {
        Segments::Continue
    }
}
