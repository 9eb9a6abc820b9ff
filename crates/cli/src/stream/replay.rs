//! `--open` of segments: their messages, all or those that are wanted.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use tokio::time::timeout;
use wattlock_host::exit::{self, Ended, FAILURE};
use wattlock_stream::gateway::{Counters, Replay};
use wattlock_stream::segment::Selection;

use super::ends::{self, Findings, chain};
use super::folder::{self, Segments};
use super::key::OpeningKey;
use super::metrics;
use super::service::Signals;
use crate::args;

/// Opens segments to the output.
pub fn run(args: &args::Stream, segments: &Segments) -> Ended {
    let findings = Findings::new(args.quiet);
    let keys = folder::key_store(OpeningKey::new(args)?, &segments.folder);
    let selection =
        Selection { from_us: args.from, until_us: args.until, source: args.source.clone() };
    let counters = Arc::new(Counters::default());
    let output = ends::exit(args, &counters, &findings)?;
    let replay = Replay::new(keys, selection, output, Arc::clone(&counters), findings.listener());
    let stop = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a thread")?;
    let work = {
        let (paths, are_all, stop) = (segments.paths.clone(), segments.are_all, Arc::clone(&stop));
        move || replay.run(&paths, are_all, &stop)
    };
    let opened = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let scraped = metrics::listen(args).await?;
        let mut working = tokio::task::spawn_blocking(work);
        tokio::select! {
            opened = &mut working => return opened.context("a thread panicked"),
            () = metrics::serve_at(scraped, || metrics::text_of(&counters)) => {}
            () = signals.next() => {}
        }
        stop.store(true, Ordering::SeqCst);
        // The output may be what it waits for.
        let patience = Duration::from_secs(args.drain.into());
        match timeout(patience, working).await {
            Ok(opened) => opened.context("a thread panicked"),
            Err(_) => Ok(Err(std::io::ErrorKind::TimedOut.into())),
        }
    });
    runtime.shutdown_background();
    if let Err(error) = opened? {
        if args.connect.is_none() {
            exit::end_if_closed(&error, std::io::stdout());
        }
        say!("{}", chain(&error));
        findings.note(FAILURE);
    }
    if args.json {
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let document = json!({
            "command": "stream",
            "open": true,
            "segments": segments.paths.len(),
            "units": load(&counters.messages),
            "in_bytes": load(&counters.bytes_in),
            "out_bytes": load(&counters.bytes_out),
            "elapsed_ns": started.elapsed().as_nanos() as u64,
        });
        tell!("{document}");
    }
    Ok(ExitCode::from(findings.code()))
}
