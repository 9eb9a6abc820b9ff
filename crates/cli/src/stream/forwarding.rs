//! Segments on their way to other machines, and those that come from there.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use wattlock_file::Shown;
use wattlock_host::exit::{Ended, usage};
use wattlock_stream::forward::{Forwarder, Forwarding, Sender, Store, Stored};
use wattlock_stream::gateway::{Address, Counters, Recording, TlsServer, remove_stale};

use super::ends::Findings;
use super::service::Signals;
use super::tenants::Tenants;
use super::{folder, key, metrics, tls};
use crate::args;
use crate::lock::lock;

/// Starts to forward to each peer.
pub fn start(
    args: &args::Stream,
    recording: &Recording,
    findings: &Findings,
) -> anyhow::Result<Vec<Forwarder>> {
    let removal = Arc::new(Removal { peers: args.forward.len(), have: Mutex::default() });
    let shared = key::shared(args)?.map(Arc::new);
    let start = |(peer, address): (usize, &Address)| {
        let removal = Arc::clone(&removal);
        let forwarded = move |segment: &Path| removal.peer_has(peer, segment);
        let job = Forwarding {
            folder: recording.folder().to_owned(),
            to: tls::destination(args, address)?,
            check_key: folder::check_key(shared.clone()),
            progress: Arc::clone(recording.progress()),
            copies: recording.copies().map(|copies| (Arc::clone(copies), peer)),
            forwarded: args.remove_forwarded.then(|| Box::new(forwarded) as Box<_>),
        };
        Forwarder::start(job, findings.listener())
            .with_context(|| format!("cannot forward {}", Shown(recording.folder())))
    };
    args.forward.iter().enumerate().map(start).collect()
}

/// Removes segments that all peers have.
struct Removal {
    peers: usize,
    /// Which peers have a segment.
    have: Mutex<HashMap<PathBuf, HashSet<usize>>>,
}

impl Removal {
    /// Notes that a peer has a segment. The same peer may say so again.
    fn peer_has(&self, peer: usize, segment: &Path) {
        let mut have = lock(&self.have);
        let peers = have.entry(segment.to_owned()).or_default();
        peers.insert(peer);
        if peers.len() >= self.peers {
            have.remove(segment);
            // One that stays is offered to the peers again by the next run.
            let _ = fs::remove_file(segment);
        }
    }
}

/// Waits until the peers have all, as long as --drain allows. What they do not have stays in the folder.
pub fn finish(
    args: &args::Stream,
    forwarders: Vec<Forwarder>,
    findings: &Findings,
    (code, deadline): (ExitCode, Instant),
) -> ExitCode {
    if forwarders.is_empty() {
        return code;
    }
    for (forwarder, address) in forwarders.into_iter().zip(args.forward.iter().cycle()) {
        let sent = forwarder.sent();
        if !forwarder.finish(deadline) {
            findings.report(&format!(
                "{address} has not stored all segments; the next run goes on ({sent} bytes in this one)"
            ));
        }
    }
    // They may have found something since.
    ExitCode::from(findings.code())
}

/// `wattlock stream --store`.
pub fn store(args: &args::Stream, tls: Option<TlsServer>, tenants: Option<Tenants>) -> Ended {
    let (Some(address), Some(folder)) = (&args.listen, &args.output) else {
        return Err(usage("--store requires --listen and -o FOLDER/"));
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", Shown(folder)))?;
    let served = Arc::new(Served {
        store: Store::new(folder),
        tls,
        tenants,
        counters: Counters::default(),
        most: u64::from(args.max_connections),
        findings: Findings::new(args.quiet),
    });
    listen(address, Arc::clone(&served)).with_context(|| format!("cannot listen at {address}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot watch for signals")?;
    runtime.block_on(async {
        let scraped = metrics::listen(args).await?;
        let mut signals = Signals::new()?;
        tokio::select! {
            () = metrics::serve_at(scraped, || metrics::text_of(&served.counters)) => {}
            () = signals.next() => {}
        }
        anyhow::Ok(())
    })?;
    if let Address::Unix(path) = address {
        let _ = fs::remove_file(path);
    }
    // What was acknowledged is durable, and the rest is sent again.
    if args.json {
        let document = json!({
            "command": "stream",
            "store": true,
            "connections": served.counters.connections.load(Ordering::Relaxed),
            "stored_bytes": served.counters.bytes_out.load(Ordering::Relaxed),
        });
        tell!("{document}");
    }
    Ok(ExitCode::from(served.findings.code()))
}

struct Served {
    store: Store,
    tls: Option<TlsServer>,
    /// All may forward if there is no list.
    tenants: Option<Tenants>,
    counters: Counters,
    most: u64,
    findings: Findings,
}

/// Accepts forwarders, each on a thread of its own.
fn listen(address: &Address, served: Arc<Served>) -> io::Result<()> {
    match address {
        Address::Tcp(name) | Address::Tls(name) => {
            let listener = TcpListener::bind(name)?;
            let own = listener.local_addr()?.to_string();
            let own = match address {
                Address::Tls(_) => Address::Tls(own),
                _ => Address::Tcp(own),
            };
            served.findings.report(&format!("listening at {own}"));
            accept(served, move || {
                let (stream, peer) = listener.accept()?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Ok((Accepted::Tcp(stream), peer.to_string()))
            })
        }
        Address::Unix(path) => {
            remove_stale(path)?;
            let listener = UnixListener::bind(path)?;
            served.findings.report(&format!("listening at {address}"));
            accept(served, move || {
                let (stream, _) = listener.accept()?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Ok((Accepted::Unix(stream), "a local peer".into()))
            })
        }
    }
}

/// How long a forwarder may be silent: one that has nothing to send says so more often.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection, before its handshake.
enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Served {
    /// Serves one forwarder to its end.
    fn serve(&self, connection: Accepted) -> io::Result<()> {
        let stored = |what| {
            match what {
            Stored::Bytes(bytes) => {
                self.counters.bytes_out.fetch_add(bytes, Ordering::Relaxed);
            }
            Stored::OtherKey { path, kept } => self.findings.report(&match kept {
                Some(kept) => format!(
                    "{}: a forwarder sent different bytes for this key file; they are kept beside it as {kept}",
                    Shown(&path)
                ),
                None => format!(
                    "{}: a forwarder sent a different key file for this epoch; it was refused, because 16 \
                     additional ones are kept already; remove those that open no segment",
                    Shown(&path)
                ),
            }),
        }
        };
        match (connection, &self.tls) {
            (Accepted::Tcp(stream), Some(tls)) => {
                let stream = tls.accept(stream, PATIENCE)?;
                let certificate = stream.certificate();
                let tenant = match &self.tenants {
                    None => None,
                    Some(tenants) => {
                        let refused = |why| io::Error::new(io::ErrorKind::PermissionDenied, why);
                        let names = certificate.as_ref().map_or(&[][..], |shown| &shown.names);
                        let tenant = tenants.of_certificate(names).map_err(refused)?;
                        Some(tenant.ok_or_else(|| {
                            refused("its certificate is not in the list of tenants")
                        })?)
                    }
                };
                let sender = Sender { tenant, certificate: certificate.as_ref() };
                self.store.serve(stream, sender, &stored)
            }
            (Accepted::Tcp(stream), None) => self.store.serve(stream, Sender::default(), &stored),
            (Accepted::Unix(stream), _) => self.store.serve(stream, Sender::default(), &stored),
        }
    }
}

fn accept(
    served: Arc<Served>,
    next: impl Fn() -> io::Result<(Accepted, String)> + Send + 'static,
) -> io::Result<()> {
    let work = move || {
        loop {
            let Ok((connection, who)) = next() else {
                // Files or memory are short, or the peer is gone already.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            let served = Arc::clone(&served);
            let counters = &served.counters;
            if counters.open.load(Ordering::SeqCst) >= served.most {
                counters.refused.fetch_add(1, Ordering::Relaxed);
                served
                    .findings
                    .report(&format!("{who} was refused: there are too many connections"));
                continue;
            }
            counters.connections.fetch_add(1, Ordering::Relaxed);
            counters.open.fetch_add(1, Ordering::SeqCst);
            let serve = move || {
                if let Err(error) = served.serve(connection) {
                    served.counters.cut.fetch_add(1, Ordering::Relaxed);
                    served.findings.report(&format!("{who} was cut: {error}"));
                }
                served.counters.open.fetch_sub(1, Ordering::SeqCst);
            };
            // Without a thread, it is closed, and its peer comes again.
            let _ = thread::Builder::new().name("store".into()).spawn(serve);
        }
    };
    thread::Builder::new().name("accept".into()).spawn(work).map(drop)
}
