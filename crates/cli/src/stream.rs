//! `wattlock stream`: messages of many connections, sealed as they come, and opened again.

mod descriptors;
mod ends;
pub mod folder;
mod forwarding;
mod joules;
mod key;
mod metrics;
mod pace;
mod replay;
mod service;
mod status;
pub mod stored;

use std::net::ToSocketAddrs;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use wattlock_file::Shown;
use wattlock_host::exit::{self, Ended, usage};
use wattlock_host::invocation::is_stdout;
use wattlock_stream::frame::{Framing, Ratchet};
use wattlock_stream::gateway::{
    Address, Counters, Error, Inlet, Opening, Protocol, Recording, Rotation, Sealing, Split,
};
use wattlock_stream::{Live, Message, Room};

use crate::args;
use ends::Findings;
use service::Service;

/// Either way.
#[derive(Clone)]
pub enum Way {
    Seal(Arc<Sealing>),
    Record(Arc<Recording>),
    Open(Arc<Opening>),
}

impl Way {
    /// An inlet for an input that `who` names.
    pub fn inlet(&self, who: String) -> Box<dyn Inlet> {
        match self {
            Self::Seal(sealing) => sealing.inlet(),
            Self::Record(recording) => recording.inlet(who),
            Self::Open(opening) => opening.inlet(who),
        }
    }

    /// What was done.
    pub fn counters(&self) -> &Arc<Counters> {
        match self {
            Self::Seal(sealing) => sealing.counters(),
            Self::Record(recording) => recording.counters(),
            Self::Open(opening) => opening.counters(),
        }
    }

    /// True if a file or a key has been used for as long as it may.
    pub fn is_due(&self) -> bool {
        match self {
            Self::Seal(sealing) => sealing.is_due(),
            Self::Record(recording) => recording.is_due(),
            Self::Open(_) => false,
        }
    }

    /// Ends the file; the next begins with the next message.
    ///
    /// # Errors
    /// That its end cannot be sealed.
    pub fn rotate(&self, room: Room<Message>) -> Result<(), Error> {
        match self {
            Self::Seal(sealing) => sealing.rotate(room),
            Self::Record(recording) => recording.rotate(room),
            Self::Open(_) => Ok(()),
        }
    }

    /// Ends what is sealed.
    ///
    /// # Errors
    /// As [`Way::rotate`].
    pub fn finish(&self, room: Room<Message>) -> Result<(), Error> {
        match self {
            Self::Seal(sealing) => sealing.finish(room),
            Self::Record(recording) => recording.finish(room),
            Self::Open(_) => Ok(()),
        }
    }

    /// Bytes of the window that the end of a file needs.
    pub const END_NEEDS: u64 = 64;
}

/// `wattlock stream`.
pub fn run(args: &args::Stream) -> Ended {
    check(args)?;
    let segments = folder::of_inputs(&args.paths)?;
    if let Some(segments) = segments {
        return replay::run(args, &segments);
    }
    if args.from.is_some() || args.until.is_some() || args.source.is_some() {
        return Err(usage("--from, --until and --source require segments, which a folder holds"));
    }
    descriptors::raise_limit();
    if args.store {
        return forwarding::store(args);
    }
    let findings = Findings::new(args.quiet);
    let (settings, note) = pace::settings(args)?;
    let mut forwarders = Vec::new();
    let (way, live) = if args.open {
        let unlock = key::unlock(args)?;
        let limit = usize::try_from(longest(args))? + MARKS;
        let header_limit = key::max_header(args);
        let opening = Opening::new(unlock, limit, header_limit, findings.listener());
        let exit = ends::exit(args, opening.counters(), &findings)?;
        let live = Live::start(settings, opening.sink(exit))?;
        opening.use_pool(live.pool());
        (Way::Open(opening), live)
    } else if let Some(path) = folder::of_output(args) {
        let recording = folder::recording(args, &path, split(args), &findings)?;
        let retry = ends::retry(args, recording.counters(), &findings);
        let sink =
            recording.sink(retry).with_context(|| format!("cannot write to {}", Shown(&path)))?;
        let live = Live::start(settings, sink)?;
        recording.use_pool(live.pool());
        forwarders = forwarding::start(args, &path, &recording, &findings)?;
        (Way::Record(recording), live)
    } else {
        let (stream_key, key_header) = key::stream_key(args)?;
        let rotation = Rotation { bytes: args.rotate_size, seconds: args.rotate_time };
        let ratchet = Ratchet::default();
        let sealing = Sealing::new(stream_key, key_header, split(args), rotation, ratchet);
        let counters = sealing.counters();
        let live = match &args.connect {
            None => {
                let outlet = ends::outlet(args, counters, &findings)?;
                Live::start(settings, sealing.sink(outlet))?
            }
            Some(address) => {
                let retry = ends::retry(args, counters, &findings);
                let link = sealing.link(address, retry);
                let link = link.with_context(|| format!("cannot connect to {address}"))?;
                Live::start(settings, link)?
            }
        };
        sealing.use_pool(live.pool());
        (Way::Seal(sealing), live)
    };
    if let Some(note) = note.filter(|_| !args.quiet) {
        say!("{note}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the network's thread")?;
    let service = Service { args, way, live, findings: findings.clone() };
    let code = runtime.block_on(service.run())?;
    let code = forwarding::finish(args, forwarders, &findings, code);
    // A thread that reads standard input may be left; it must not be waited for.
    runtime.shutdown_background();
    Ok(code)
}

/// Bytes of the marks around a message, and then some.
const MARKS: usize = 64;

/// Bytes of the longest message, if nothing else was asked for.
const MAX_MESSAGE: u64 = 16 << 20;

/// Bytes that are sealed at once of what has no messages, if nothing else was asked for.
const RAW_MESSAGE: u64 = 64 << 10;

/// Bytes of the longest frame: of one message, or of short ones that came together.
fn longest(args: &args::Stream) -> u64 {
    args.max_message.unwrap_or(MAX_MESSAGE).max(Split::BATCH as u64)
}

/// How what comes in is cut.
fn split(args: &args::Stream) -> Split {
    let framing = args.framing.framing();
    let default = match args.framing {
        Protocol::Plain(Framing::Raw) => RAW_MESSAGE,
        _ => MAX_MESSAGE,
    };
    let limit = usize::try_from(args.max_message.unwrap_or(default)).unwrap_or(usize::MAX);
    // A connection that ends within a line may have been cut there.
    Split { framing, limit, bare_last: args.listen.is_none() }
}

/// Refuses what cannot work, before anything is opened.
fn check(args: &args::Stream) -> anyhow::Result<()> {
    let longest = longest(args);
    if longest >= 1 << 31 {
        return Err(usage("--max-message is above the limit of 2 GiB"));
    }
    if args.window < longest + 2 * MARKS as u64 {
        return Err(usage(format!(
            "the window of {} bytes cannot hold the longest message; raise --window, or lower \
             --max-message",
            args.window
        )));
    }
    if !args.insecure {
        let listens = args.listen.as_ref().is_some_and(|address| !is_local(address));
        if listens || args.metrics.is_some_and(|address| !address.ip().is_loopback()) {
            return Err(usage(
                "--listen and --metrics have neither encryption nor authentication: use a loopback \
                 address or a Unix socket, or allow other machines with --insecure",
            ));
        }
    }
    if args.open && !args.recipients.recipients.is_empty() {
        return Err(usage("--open takes no -r; use -i for an identity"));
    }
    if args.open && args.listen.is_some() && args.passphrase.is_given() {
        return Err(usage(
            "--open --listen takes no passphrase, since each connection would derive a key from it; \
             use -i or --key-file",
        ));
    }
    folder::check(args)?;
    if args.listen.is_none() && args.paths.is_empty() {
        exit::check_stdin()?;
    }
    if args.connect.is_none() && args.output.as_deref().is_none_or(is_stdout) {
        exit::check_stdout()?;
    }
    Ok(())
}

/// True if only this machine can connect to an address.
fn is_local(address: &Address) -> bool {
    match address {
        Address::Unix(_) => true,
        // A name that has no address is nothing that can be listened at.
        Address::Tcp(name) => name
            .to_socket_addrs()
            .map_or(true, |mut addresses| addresses.all(|address| address.ip().is_loopback())),
    }
}

/// The code of the end.
fn code(code: u8) -> ExitCode {
    code.into()
}
