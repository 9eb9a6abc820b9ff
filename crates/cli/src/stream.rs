//! `wattlock stream`: messages of many connections, sealed as they come, and opened again.

mod descriptors;
mod ends;
pub mod folder;
mod follow;
mod forwarding;
mod joules;
pub mod key;
mod metrics;
mod pace;
mod replay;
mod running;
mod service;
mod status;
pub mod stored;
mod tenants;
mod tls;

use std::net::ToSocketAddrs;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use wattlock_file::Shown;
use wattlock_host::exit::{self, Ended, usage};
use wattlock_host::invocation::is_stdout;
use wattlock_stream::frame::{Framing, Ratchet};
use wattlock_stream::gateway::{
    Address, Counters, Error, Inlet, Opening, OpeningLimits, Protocol, Recording, Recordings,
    Rotation, Sealing, Split,
};
use wattlock_stream::{Live, Message, Room, Settings};

use crate::args;
use ends::Findings;
use running::{Stream, Streams};
use service::Service;
use tenants::Tenants;

/// Either way.
#[derive(Clone)]
pub enum Way {
    Seal(Arc<Sealing>),
    Record(Arc<Recordings>),
    Open(Arc<Opening>),
}

/// What writes files that end, each by itself.
pub enum Writer<'a> {
    Stream(&'a Sealing),
    Folder(&'a Recording),
}

impl Writer<'_> {
    /// True if a file or a key has been used for as long as it may.
    pub fn is_due(&self) -> bool {
        match self {
            Self::Stream(sealing) => sealing.is_due(),
            Self::Folder(recording) => recording.is_due(),
        }
    }

    /// Ends the file; the next begins with the next message.
    ///
    /// # Errors
    /// That its end cannot be sealed.
    pub fn rotate(&self, room: Room<Message>) -> Result<(), Error> {
        match self {
            Self::Stream(sealing) => sealing.rotate(room),
            Self::Folder(recording) => recording.rotate(room),
        }
    }

    /// Ends what is sealed.
    ///
    /// # Errors
    /// As [`Writer::rotate`].
    pub fn finish(&self, room: Room<Message>) -> Result<(), Error> {
        match self {
            Self::Stream(sealing) => sealing.finish(room),
            Self::Folder(recording) => recording.finish(room),
        }
    }

    /// Bytes of the window that the end of a file needs.
    pub const END_NEEDS: u64 = 64;
}

impl Way {
    /// An inlet for an input that `who` names, of a tenant or of the only one. `None` if that is not known.
    pub fn inlet(&self, tenant: &str, who: String) -> Option<Box<dyn Inlet>> {
        match self {
            Self::Seal(sealing) => Some(sealing.inlet()),
            Self::Record(recordings) => recordings.inlet(tenant, who),
            Self::Open(opening) => Some(opening.inlet(who)),
        }
    }

    /// What seals.
    pub fn writers(&self) -> Vec<Writer<'_>> {
        match self {
            Self::Seal(sealing) => vec![Writer::Stream(sealing)],
            Self::Record(recordings) => recordings.all().map(|all| Writer::Folder(all)).collect(),
            Self::Open(_) => Vec::new(),
        }
    }

    /// What was done.
    pub fn counters(&self) -> &Arc<Counters> {
        match self {
            Self::Seal(sealing) => sealing.counters(),
            Self::Record(recordings) => recordings.counters(),
            Self::Open(opening) => opening.counters(),
        }
    }
}

/// `wattlock stream`.
pub fn run(args: &args::Stream) -> Ended {
    check(args)?;
    if args.follow {
        return follow::run(args);
    }
    let segments = folder::of_inputs(&args.paths)?;
    if let Some(segments) = segments {
        return replay::run(args, &segments);
    }
    if args.from.is_some() || args.until.is_some() || args.source.is_some() {
        return Err(usage("--from, --until and --source require segments, which a folder holds"));
    }
    descriptors::raise_limit();
    let tenants = args.tenants.as_deref().map(Tenants::read).transpose()?;
    let tls = tls::server(args, tenants.as_ref())?;
    if args.store {
        return forwarding::store(args, tls, tenants);
    }
    let findings = Findings::new(args.quiet);
    let mut forwarders = Vec::new();
    let mut note = None;
    let rate = pace::rate_of_one()?;
    let mut settings = || {
        let (settings, told) = pace::settings(args, rate)?;
        note = told;
        anyhow::Ok(settings)
    };
    let mut streams = Vec::new();
    if args.open {
        let unlock = key::unlock(args)?;
        let limits = OpeningLimits {
            frame: usize::try_from(longest(args))? + MARKS,
            header: key::max_header(args),
            keys: if args.listen.is_some() { KEYS_OF_PEERS } else { KEYS_OF_FILES },
        };
        let first = Opening::new(unlock, limits, findings.listener());
        for exit in ends::exits(args, first.counters(), &findings)? {
            let opening = if streams.is_empty() { Arc::clone(&first) } else { first.another() };
            let live = Live::start(settings()?, opening.sink(exit))?;
            opening.use_pool(live.pool());
            streams.push(Stream { way: Way::Open(opening), live });
        }
    } else if let Some(path) = folder::of_output(args) {
        let names = tenants.as_ref().map(Tenants::names);
        let retry = ends::retry(args, &Arc::default(), &findings);
        let recordings = folder::recordings(args, &path, names, split(args), &retry)?;
        let sink =
            recordings.sink(&retry).with_context(|| format!("cannot write to {}", Shown(&path)))?;
        let live = Live::start(settings()?, sink)?;
        recordings.use_pool(live.pool());
        for recording in recordings.all() {
            forwarders.extend(forwarding::start(args, recording, &findings)?);
        }
        streams.push(Stream { way: Way::Record(recordings), live });
    } else {
        let (stream_key, key_header) = key::stream_key(args)?;
        let rotation = Rotation { bytes: args.rotate_size, seconds: args.rotate_time };
        let ratchet = Ratchet::default();
        let first = Sealing::new(stream_key, key_header, split(args), rotation, ratchet);
        for number in 0..args.readers {
            let sealing = if number == 0 { Arc::clone(&first) } else { first.another() };
            let live = seal(args, &sealing, settings()?, &findings)?;
            sealing.use_pool(live.pool());
            streams.push(Stream { way: Way::Seal(sealing), live });
        }
    }
    let mut streams = streams.into_iter();
    let first = streams.next().context("there is no stream")?;
    let streams = Streams { first, others: streams.collect() };
    if let Some(note) = note.filter(|_| !args.quiet) {
        say!("{note}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the network's thread")?;
    let service =
        Service { args, streams, tenants: tenants.map(Arc::new), tls, findings: findings.clone() };
    let ended = runtime.block_on(service.run())?;
    let code = forwarding::finish(args, forwarders, &findings, ended);
    // A thread that reads standard input may be left; it must not be waited for.
    runtime.shutdown_background();
    Ok(code)
}

/// Starts a stream that seals for a peer, files or standard output.
fn seal(
    args: &args::Stream,
    sealing: &Arc<Sealing>,
    settings: Settings,
    findings: &Findings,
) -> anyhow::Result<Live> {
    let counters = sealing.counters();
    let Some(address) = &args.connect else {
        let outlet = ends::outlet(args, counters, findings)?;
        return Ok(Live::start(settings, sealing.sink(outlet))?);
    };
    let retry = ends::retry(args, counters, findings);
    let link = sealing.link(tls::destination(args, address)?, retry);
    let link = link.with_context(|| format!("cannot connect to {address}"))?;
    Ok(Live::start(settings, link)?)
}

/// Bytes of the marks around a message, and then some.
const MARKS: usize = 64;

/// Expanded keys that are kept for a peer's stream: few, since a gateway has a connection for each of the peer's, and each takes memory.
const KEYS_OF_PEERS: usize = 1 << 10;

/// Expanded keys that are kept for a file.
const KEYS_OF_FILES: usize = 1 << 14;

/// Bytes of the longest message, if nothing else was asked for.
const MAX_MESSAGE: u64 = 16 << 20;

/// Bytes that are sealed at once of what has no messages, if nothing else was asked for.
const RAW_MESSAGE: u64 = 64 << 10;

/// Bytes of the longest frame: of one message, or of short ones that came together.
fn longest(args: &args::Stream) -> u64 {
    args.max_message.unwrap_or(MAX_MESSAGE).max(Split::BATCH as u64)
}

/// Bytes of the window: enough for the longest message, if nothing else was asked for.
fn window_len(args: &args::Stream) -> u64 {
    args.window.unwrap_or_else(|| WINDOW.max(longest(args) + Message::BESIDE_PAYLOAD))
}

/// Bytes of the window, if nothing else was asked for and messages are not longer.
const WINDOW: u64 = 32 << 20;

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
    if !args.store && window_len(args) < longest + Message::BESIDE_PAYLOAD {
        return Err(usage(format!(
            "the window of {} bytes cannot hold the longest message; raise --window, or lower \
             --max-message",
            window_len(args)
        )));
    }
    if let [path, ..] = &args.paths[..]
        && !args.open
    {
        let shown = Shown(path);
        return Err(usage(format!(
            "cannot use {shown} as an input: paths require --open; to encrypt it, use wattlock stream -r RECIPIENT \
             < {shown} > {shown}.wls; to decrypt it, use wattlock stream --open -i IDENTITY {shown}"
        )));
    }
    if args.store
        && let Some(address) = &args.listen
        && !is_local(address)
        && !(matches!(address, Address::Tls(_)) && args.tls_client_ca.is_some())
    {
        return Err(usage(
            "--store requires client certificates for connections from other machines: use tls:HOST:PORT with \
             --tls-client-ca, or listen on a loopback address or a Unix socket",
        ));
    }
    if !args.insecure {
        let shows_who_it_is = args.tls_client_ca.is_some() || args.tenants.is_some();
        let is_safe = |address: &Address| {
            is_local(address) || matches!(address, Address::Tls(_)) && shows_who_it_is
        };
        if args.listen.as_ref().is_some_and(|address| !is_safe(address)) {
            return Err(usage(
                "other machines could connect to --listen without showing who they are: use tls: with \
                 --tls-client-ca or --tenants, a loopback address or a Unix socket, or allow it with \
                 --insecure",
            ));
        }
        if args.metrics.is_some_and(|address| !address.ip().is_loopback()) {
            return Err(usage(
                "--metrics has neither encryption nor authentication: use a loopback address, or allow \
                 other machines with --insecure",
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
    // Where another option excludes --listen or --connect, clap does not ask for them.
    if args.readers > 1 && (args.listen.is_none() || args.connect.is_none()) {
        return Err(usage("--readers requires --listen and --connect"));
    }
    folder::check(args)?;
    tls::check(args)?;
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
        Address::Tcp(name) | Address::Tls(name) => name
            .to_socket_addrs()
            .map_or(true, |mut addresses| addresses.all(|address| address.ip().is_loopback())),
    }
}

/// The code of the end.
fn code(code: u8) -> ExitCode {
    code.into()
}
