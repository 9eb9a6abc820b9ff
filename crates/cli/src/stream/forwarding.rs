//! Segments on their way to other machines, and those that come from there.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use wattlock_file::Shown;
use wattlock_host::exit::{Ended, usage};
use wattlock_stream::forward::{Forwarder, Forwarding, Store};
use wattlock_stream::gateway::{Address, Recording, remove_stale};

use super::ends::Findings;
use super::service::Signals;
use crate::args;
use crate::lock::lock;

/// Starts to forward to each peer.
pub fn start(
    args: &args::Stream,
    folder: &Path,
    recording: &Recording,
    findings: &Findings,
) -> anyhow::Result<Vec<Forwarder>> {
    let removal = Arc::new(Removal { peers: args.forward.len(), have: Mutex::default() });
    let start = |(peer, address): (usize, &Address)| {
        let removal = Arc::clone(&removal);
        let forwarded = move |segment: &Path| removal.peer_has(peer, segment);
        let job = Forwarding {
            folder: folder.to_owned(),
            address: address.clone(),
            progress: Arc::clone(recording.progress()),
            forwarded: args.remove_forwarded.then(|| Box::new(forwarded) as Box<_>),
        };
        Forwarder::start(job, findings.listener())
            .with_context(|| format!("cannot forward {}", Shown(folder)))
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
    code: ExitCode,
) -> ExitCode {
    if forwarders.is_empty() {
        return code;
    }
    let deadline = Instant::now() + Duration::from_secs(args.drain.into());
    for (forwarder, address) in forwarders.into_iter().zip(&args.forward) {
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
pub fn store(args: &args::Stream) -> Ended {
    let (Some(address), Some(folder)) = (&args.listen, &args.output) else {
        return Err(usage("--store requires --listen and -o FOLDER/"));
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", Shown(folder)))?;
    let served = Arc::new(Served {
        store: Store::new(folder),
        stored: AtomicU64::new(0),
        connections: AtomicU64::new(0),
        open: AtomicU64::new(0),
        most: u64::from(args.max_connections),
        findings: Findings::new(args.quiet),
    });
    listen(address, Arc::clone(&served)).with_context(|| format!("cannot listen at {address}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot watch for signals")?;
    runtime.block_on(async {
        Signals::new()?.next().await;
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
            "connections": served.connections.load(Ordering::Relaxed),
            "stored_bytes": served.stored.load(Ordering::Relaxed),
        });
        tell!("{document}");
    }
    Ok(ExitCode::from(served.findings.code()))
}

struct Served {
    store: Store,
    stored: AtomicU64,
    connections: AtomicU64,
    open: AtomicU64,
    most: u64,
    findings: Findings,
}

/// Accepts forwarders, each on a thread of its own.
fn listen(address: &Address, served: Arc<Served>) -> io::Result<()> {
    match address {
        Address::Tcp(address) => {
            let listener = TcpListener::bind(address)?;
            let own = Address::Tcp(listener.local_addr()?.to_string());
            served.findings.report(&format!("listening at {own}"));
            accept(served, move || {
                let (stream, peer) = listener.accept()?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Ok((stream.try_clone()?, stream, peer.to_string()))
            })
        }
        Address::Unix(path) => {
            remove_stale(path)?;
            let listener = UnixListener::bind(path)?;
            served.findings.report(&format!("listening at {address}"));
            accept(served, move || {
                let (stream, _) = listener.accept()?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Ok((stream.try_clone()?, stream, "a local peer".into()))
            })
        }
    }
}

/// How long a forwarder may be silent: one that has nothing to send says so more often.
const PATIENCE: Duration = Duration::from_secs(30);

fn accept<R: io::Read + Send + 'static, W: io::Write + Send + 'static>(
    served: Arc<Served>,
    next: impl Fn() -> io::Result<(R, W, String)> + Send + 'static,
) -> io::Result<()> {
    let work = move || {
        loop {
            let Ok((from, to, who)) = next() else {
                // Files or memory are short, or the peer is gone already.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            let served = Arc::clone(&served);
            if served.open.load(Ordering::SeqCst) >= served.most {
                continue;
            }
            served.connections.fetch_add(1, Ordering::Relaxed);
            served.open.fetch_add(1, Ordering::SeqCst);
            let serve = move || {
                let stored = &served.stored;
                let heard = |bytes| {
                    stored.fetch_add(bytes, Ordering::Relaxed);
                };
                if let Err(error) = served.store.serve(from, to, &heard) {
                    served.findings.report(&format!("{who} was cut: {error}"));
                }
                served.open.fetch_sub(1, Ordering::SeqCst);
            };
            // Without a thread, it is closed, and its peer comes again.
            let _ = thread::Builder::new().name("store".into()).spawn(serve);
        }
    };
    thread::Builder::new().name("accept".into()).spawn(work).map(drop)
}
