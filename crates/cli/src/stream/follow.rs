//! `wattlock stream --open --follow`: messages of a folder as they are written, until they have arrived.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use tokio::time::timeout;
use wattlock_file::Shown;
use wattlock_host::exit::{Ended, FAILURE, usage};
use wattlock_stream::gateway::{Counters, Delivery, FollowError, Follower, MessageOutput};
use wattlock_stream::segment::Folder;

use super::ends::{self, Findings, chain};
use super::folder;
use super::key::OpeningKey;
use super::service::Signals;
use super::{metrics, tls};
use crate::args;

/// Delivers until a signal comes.
pub fn run(args: &args::Stream) -> Ended {
    let [path] = &args.paths[..] else {
        return Err(usage("--follow reads one folder"));
    };
    if !path.is_dir() {
        return Err(usage(format!("{} is not a folder", Shown(path))));
    }
    let findings = Findings::new(args.quiet);
    if Folder::new(path).segments()?.is_empty() {
        let mut subfolders = fs::read_dir(path)?.flatten().map(|entry| entry.path());
        let has_segments = |path: &PathBuf| {
            path.is_dir() && Folder::new(path).segments().is_ok_and(|found| !found.is_empty())
        };
        findings.report(&match subfolders.find(has_segments) {
            None => format!("{} holds no segments yet; waiting", Shown(path)),
            Some(other) => format!(
                "{} holds no segments yet; waiting. Subfolders are not read: {} holds some",
                Shown(path),
                Shown(&other)
            ),
        });
    }
    let keys = folder::key_store(OpeningKey::new(args)?, path);
    let counters = Arc::new(Counters::default());
    let retry = ends::retry(args, &counters, &findings);
    let output: Box<dyn MessageOutput> = match &args.connect {
        Some(address) => {
            let to = tls::destination(args, address)?;
            Box::new(Delivery::new(to, args.acknowledged, retry.clone()))
        }
        None => ends::exit(args, &counters, &findings)?,
    };
    let from = (Folder::new(path), keys);
    let position = args.position.as_deref();
    let follower = Follower::new(from, position, output, retry, findings.listener());
    let follower = follower.with_context(|| match position {
        Some(position) => format!("cannot use {}", Shown(position)),
        None => "cannot start delivery".into(),
    })?;
    let stop = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a thread")?;
    let work = {
        let stop = Arc::clone(&stop);
        move || follower.run(&stop)
    };
    let ended = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let scraped = metrics::listen(args).await?;
        let mut working = tokio::task::spawn_blocking(work);
        tokio::select! {
            ended = &mut working => return ended.context("a thread panicked").map(Some),
            () = metrics::serve_at(scraped, || metrics::text_of(&counters)) => {}
            () = signals.next() => {}
        }
        stop.store(true, Ordering::SeqCst);
        // The output may be what it waits for.
        let patience = Duration::from_secs(args.drain.into());
        match timeout(patience, working).await {
            Ok(ended) => ended.context("a thread panicked").map(Some),
            Err(_) => Ok(None),
        }
    });
    runtime.shutdown_background();
    match ended? {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            say!("{}", chain(&error));
            findings.note(match &error {
                FollowError::Segment(_, problem) => ends::code_of_segment(problem),
                _ => FAILURE,
            });
        }
        None if position.is_some() => {
            findings.report("not all messages were delivered; the next run continues");
        }
        None => {
            say!("not all messages were delivered");
            findings.note(FAILURE);
        }
    }
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let maybe_lost = load(&counters.maybe_lost);
    if maybe_lost > 0 {
        say!("{} may be lost: a connection broke after sending", ends::frames(maybe_lost));
        findings.note(FAILURE);
    }
    if args.json {
        let document = json!({
            "command": "stream",
            "open": true,
            "follow": true,
            "units": load(&counters.messages),
            "out_bytes": load(&counters.bytes_out),
            "peer_failures": load(&counters.peer_failures),
            "units_maybe_lost": maybe_lost,
            "elapsed_ns": started.elapsed().as_nanos() as u64,
        });
        tell!("{document}");
    }
    Ok(ExitCode::from(findings.code()))
}
