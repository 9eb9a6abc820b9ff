//! Where bytes go, and what has to be said of those that did not get there.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::Context;
use wattlock_file::Shown;
use wattlock_stream::gateway::{
    Counters, Exit, Files, Merged, Notice, Outlet, Peer, PerConnection, Stdout,
};

use crate::args;
use crate::exit::{AUTHENTICATION, FAILURE, usage};
use crate::files::is_stream;

/// What was found while streams came and went.
#[derive(Clone)]
pub struct Findings {
    quiet: bool,
    found: Arc<Mutex<Found>>,
}

#[derive(Default)]
struct Found {
    code: u8,
    told: u64,
    opened: u64,
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

    /// Tells what it hears.
    pub fn listener(&self) -> impl Fn(Notice) + Send + Sync + use<> {
        let findings = self.clone();
        move |notice| findings.hear(notice)
    }

    fn hear(&self, notice: Notice) {
        match notice {
            Notice::Cut { who, why } => self.tell(&format!("{who} was cut: {why}")),
            Notice::Opened { who, cut, headless, unfinished, failure } => {
                if let Some(error) = failure {
                    self.note(if error.is_authentication() { AUTHENTICATION } else { FAILURE });
                    self.tell_always(&format!("{who}: {error}"));
                    if unfinished > 0 {
                        self.tell_always(&format!(
                            "  {unfinished} connections had not ended there; what was whole of \
                             them was released"
                        ));
                    }
                }
                if cut > 0 {
                    self.note(FAILURE);
                    self.tell_always(&format!(
                        "{who}: {cut} connections had been cut when they were sealed"
                    ));
                }
                if headless > 0 {
                    self.tell(&format!("{who}: {headless} connections began in an earlier file"));
                }
                lock(&self.found).opened += 1;
            }
        }
    }

    fn tell(&self, text: &str) {
        if !self.quiet {
            self.tell_always(text);
        }
    }

    /// A flood of these is no help.
    fn tell_always(&self, text: &str) {
        let mut found = lock(&self.found);
        found.told += 1;
        match found.told {
            ..MOST_TOLD => tell!("wattlock: {text}"),
            MOST_TOLD => tell!("wattlock: more like these are not told"),
            _ => {}
        }
    }
}

const MOST_TOLD: u64 = 100;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Where sealed bytes go.
pub fn outlet(args: &args::Stream, counters: &Arc<Counters>) -> anyhow::Result<Box<dyn Outlet>> {
    if let Some(address) = &args.connect {
        let peer = Peer::connect(address);
        return Ok(Box::new(peer.with_context(|| format!("cannot connect to {address}"))?));
    }
    file_or_stdout(args, counters)
}

/// Where opened messages go.
pub fn exit(args: &args::Stream, counters: &Arc<Counters>) -> anyhow::Result<Box<dyn Exit>> {
    Ok(match &args.connect {
        Some(address) => Box::new(PerConnection::new(address.clone())),
        None => Box::new(Merged(file_or_stdout(args, counters)?)),
    })
}

fn file_or_stdout(
    args: &args::Stream,
    counters: &Arc<Counters>,
) -> anyhow::Result<Box<dyn Outlet>> {
    let output = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let Some(path) = output else {
        if !args.open && io::stdout().is_terminal() {
            return Err(usage(
                "a sealed stream is no text; send it to a file, or name one with -o",
            ));
        }
        let descriptor = io::stdout().as_fd().try_clone_to_owned();
        let file = File::from(descriptor.context("standard output is closed")?);
        return Ok(Box::new(Stdout::new(file)));
    };
    let failed = || format!("cannot write {}", Shown(path));
    if is_stream(path) {
        let file = File::options().write(true).open(path).with_context(failed)?;
        return Ok(Box::new(Stdout::new(file)));
    }
    let numbered = args.rotate_size.is_some() || args.rotate_time.is_some();
    match Files::create(path, numbered, args.force, Arc::clone(counters)) {
        Ok(files) => Ok(Box::new(files)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(usage(format!("{} exists already; --force replaces it", Shown(path))))
        }
        Err(error) => Err(error).with_context(failed),
    }
}
