//! `wattlock kafka`: seals the records of a topic into another, and opens them again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use wattlock_engine::Engine;
use wattlock_engine::crypto::{Secret, hkdf, random};
use wattlock_file::{Format, Sealer, Shown, Wrapping};
use wattlock_host::exit::{self, Ended, authentication, usage};
use wattlock_kafka::{
    Address, Binding, Cluster, Done, Error, MakeKey, Mirror, OpenKey, Opening, Rotation, Sealing,
    Settings,
};
use wattlock_record::{SessionKey, new_session_key};
use zeroize::Zeroizing;

use crate::args;
use crate::keys;
use crate::stream::{folder, key};

/// `wattlock kafka`.
pub fn run(args: &args::Kafka) -> Ended {
    let is_same_cluster = args.from.is_same_cluster(&args.to);
    check(args, is_same_cluster)?;
    let settings = settings(args, is_same_cluster)?;
    let (mut done, mut keys_made) = (Done::default(), None);
    let started = Instant::now();
    let stop = Arc::new(AtomicBool::new(false));
    let note = |what: &str| {
        if !args.quiet {
            say!("{what}");
        }
    };
    let ended = if args.open {
        let mut opening = opening(args, &settings)?;
        stop_on_signals(&stop)?;
        Mirror { settings: &settings, stop: &stop, note: &note }.run(&mut opening, &mut done)
    } else {
        let mut sealing = sealing(args, &settings)?;
        stop_on_signals(&stop)?;
        let ended =
            Mirror { settings: &settings, stop: &stop, note: &note }.run(&mut sealing, &mut done);
        keys_made = Some(sealing.keys_made());
        ended
    };
    let code = match ended {
        Ok(()) => 0.into(),
        Err(error) => exit::say(&coded(error)),
    };
    let elapsed = started.elapsed();
    if args.json {
        let document = json!({
            "command": "kafka",
            "open": args.open,
            "exactly_once": is_same_cluster,
            "records": done.records,
            "tombstones": done.tombstones,
            "in_bytes": done.in_bytes,
            "out_bytes": done.out_bytes,
            "transactions": done.transactions,
            "transactions_aborted": done.aborted,
            "keys_made": keys_made,
            "elapsed_ns": u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
        });
        tell!("{}", serde_json::to_string_pretty(&document)?);
    } else if !args.quiet {
        let what = if args.open { "opened" } else { "sealed" };
        let records = if done.records == 1 { "record" } else { "records" };
        let bytes = if done.in_bytes == 1 { "byte" } else { "bytes" };
        say!("{what} {} {records}, {} {bytes}", done.records, done.in_bytes);
    }
    Ok(code)
}

/// Refuses what cannot work, before anything is opened.
fn check(args: &args::Kafka, is_same_cluster: bool) -> anyhow::Result<()> {
    if args.open && args.recipients.are_given() {
        return Err(usage("--open takes no -r; use -i for an identity"));
    }
    if is_same_cluster && args.from.topic == args.to.topic {
        return Err(usage("--from and --to are the same topic"));
    }
    let sealed = &sealed(args).topic;
    let keys = keys_topic(args);
    if [&args.from.topic, &args.to.topic, sealed].contains(&&keys) {
        return Err(usage("--keys has to be a topic of its own"));
    }
    Ok(())
}

/// The topic of sealed records.
fn sealed(args: &args::Kafka) -> &Address {
    if args.open { &args.from } else { &args.to }
}

/// The topic of wrapped keys.
fn keys_topic(args: &args::Kafka) -> String {
    args.keys.clone().unwrap_or_else(|| format!("{}.keys", sealed(args).topic))
}

fn settings(args: &args::Kafka, is_same_cluster: bool) -> anyhow::Result<Settings> {
    let from = client_settings(args.config.as_deref())?;
    let to = match &args.to_config {
        None => from.clone(),
        Some(_) if is_same_cluster => {
            return Err(usage("--to-config requires another cluster in --to"));
        }
        path => client_settings(path.as_deref())?,
    };
    let group = args.group.clone().unwrap_or_else(|| format!("wattlock.{}", args.to.topic));
    let id = match &args.id {
        Some(id) => id.clone(),
        None => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    };
    if group.is_empty() || id.is_empty() {
        return Err(usage("--group and --id take a name"));
    }
    Ok(Settings {
        from: Cluster::new(&args.from.servers, from).map_err(coded)?,
        from_topic: args.from.topic.clone(),
        to: Cluster::new(&args.to.servers, to).map_err(coded)?,
        to_topic: args.to.topic.clone(),
        is_same_cluster,
        group,
        id,
        until_end: args.until_end,
    })
}

/// The settings in a file: a name and a value on each line.
fn client_settings(path: Option<&Path>) -> anyhow::Result<Vec<(String, String)>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let shown = Shown(path);
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let text = Zeroizing::new(text);
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(at, line)| {
            // The line is not repeated: it may hold a password.
            let setting = line.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
            let (name, value) = setting
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| usage(format!("{shown}, line {}: expected NAME=VALUE", at + 1)))?;
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect()
}

fn binding(args: &args::Kafka) -> Binding {
    Binding { tenant: args.tenant.clone(), topic: sealed(args).topic.clone() }
}

fn sealing(args: &args::Kafka, settings: &Settings) -> anyhow::Result<Sealing> {
    let rotation = Rotation {
        age: Duration::from_secs(args.key_age),
        records: args.key_records,
        bytes: args.key_bytes,
    };
    let make_key = make_key(args)?;
    let (cluster, topic) = (settings.to.clone(), keys_topic(args));
    Sealing::new(cluster, &topic, binding(args), rotation, make_key).map_err(coded)
}

fn opening(args: &args::Kafka, settings: &Settings) -> anyhow::Result<Opening> {
    let open_key = open_key(args)?;
    let (cluster, topic) = (settings.from.clone(), keys_topic(args));
    Opening::new(cluster, &topic, binding(args), open_key).map_err(coded)
}

/// Makes session keys: wrapped for recipients, or derived from the key of --key-file.
fn make_key(args: &args::Kafka) -> anyhow::Result<Box<MakeKey>> {
    if let Some(path) = &args.key_file {
        let shared = key::from_file(path)?;
        return Ok(Box::new(move || {
            let salt = random::array::<32>().map_err(|error| error.to_string())?;
            Ok((from_salt(&shared, &salt), salt.to_vec()))
        }));
    }
    let own = keys::own_recipients(&args.recipients, &args.identities, &args.passphrase)?;
    let passphrase = keys::passphrase(&args.passphrase, true)?;
    let recipients = keys::recipients(&args.recipients, &own, passphrase, false)?;
    let (wrapping, engine) = (Wrapping::new(recipients), Engine::new(1));
    Ok(Box::new(move || {
        let key = new_session_key().map_err(|error| error.to_string())?;
        let sealer = Sealer::new(&engine, &wrapping, Format::WattlockV1);
        let container = sealer.seal_bytes(key.expose()).map_err(|error| error.to_string())?;
        Ok((key, container))
    }))
}

/// Gets session keys from what was published.
fn open_key(args: &args::Kafka) -> anyhow::Result<Box<OpenKey>> {
    if let Some(path) = &args.key_file {
        let shared = key::from_file(path)?;
        return Ok(Box::new(move |published| match published.try_into() {
            Ok(salt) => Ok(from_salt(&shared, salt)),
            Err(_) => Err("it was sealed for recipients: open it with -i or -p".to_owned()),
        }));
    }
    let passphrase = keys::passphrase(&args.passphrase, false)?;
    let identities = keys::some_identities(&args.identities, passphrase, false, args.limits)?;
    let unwrap = folder::unwrapping(Arc::new(identities));
    Ok(Box::new(move |published| match published.len() {
        SALT_LEN => Err("it was sealed with --key-file, and needs that file".to_owned()),
        _ => unwrap(published).map_err(|error| error.to_string()),
    }))
}

/// Bytes of what is published for a key that is derived.
const SALT_LEN: usize = 32;

fn from_salt(shared: &Secret<32>, salt: &[u8; SALT_LEN]) -> SessionKey {
    let key = hkdf::expand_sha256::<32>(shared, &[b"wattlock-kafka/v1 session", salt]);
    SessionKey::new(key.expose())
}

/// Ends the mirror at the first signal, and the program at the second.
fn stop_on_signals(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    for signal in [SIGTERM, SIGINT] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(stop))
            .and_then(|_| flag::register(signal, Arc::clone(stop)))
            .context("cannot watch for signals")?;
    }
    Ok(())
}

/// The error with its exit code.
fn coded(error: Error) -> anyhow::Error {
    match error {
        Error::Refused { .. } => authentication(error.to_string()),
        Error::Settings(why) => usage(why),
        other => other.into(),
    }
}
