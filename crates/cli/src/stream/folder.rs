//! A folder of segments as the output, or as the input of `--open`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use wattlock_engine::Engine;
use wattlock_engine::crypto::{Secret, hkdf, random};
use wattlock_file::{self as file, Format, Identities, Input, Opener, Sealer, Shown, inspect};
use wattlock_host::exit::usage;
use wattlock_record::{AdditionalData, SessionKey, new_session_key};
use wattlock_stream::forward::CheckKey;
use wattlock_stream::gateway::{
    Address, Durability, EpochLimits, FolderLimit, RecordingSettings, Recordings, Retry, Rotation,
    TenantFolder, WhenFull,
};
use wattlock_stream::segment::{Folder, KeyKind, KeyStore, NewKeys, OpenKey, is_segment};
use zeroize::Zeroizing;

use super::key::{self, OpeningKey};
use crate::args;

/// The folder of the output, if it is one.
pub fn of_output(args: &args::Stream) -> Option<PathBuf> {
    let path = args.output.as_ref().filter(|_| !args.open)?;
    let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir();
    let tenant = args.tenant.as_deref().unwrap_or("");
    is_folder.then(|| path.join(tenant))
}

/// Refuses options that a folder does not go with, and options that only go with one.
pub fn check(args: &args::Stream) -> anyhow::Result<()> {
    let is_folder = of_output(args).is_some();
    if args.framing.acknowledges() && (!is_folder || args.listen.is_none()) {
        return Err(usage(
            "--framing with acknowledgements requires --listen and a folder for the messages: -o FOLDER/",
        ));
    }
    let defaults = (args.key_age, args.key_bytes, args.key_records) == (86_400, 64 << 30, 1 << 31);
    let has_own = args.tenant.is_some()
        || args.tenants.is_some() && !args.store
        || args.sync.is_some()
        || args.max_size.is_some()
        || !args.forward.is_empty();
    if !is_folder && (has_own || !defaults) {
        return Err(usage(
            "--sync, --max-size, --forward, --tenant, --tenants, --key-age, --key-bytes and --key-records require \
             a folder: -o FOLDER/",
        ));
    }
    if args.max_size.is_some_and(|bytes| bytes < 2 * segment_len(args)) {
        return Err(usage("--max-size has to hold two segments; lower --rotate-size"));
    }
    if !is_folder {
        return Ok(());
    }
    if args.tenants.is_some() && args.listen.is_none() {
        return Err(usage("--tenants requires --listen"));
    }
    if args.tenants.is_some() && args.max_size.is_some() && args.when_full == WhenFull::Block {
        return Err(usage(
            "--max-size with --tenants requires --when-full drop-oldest: one tenant must not block others",
        ));
    }
    if args.ack_forwarded && !args.framing.acknowledges() {
        return Err(usage(
            "--ack-forwarded requires senders that are acknowledged: --framing relp, fluent or numbered",
        ));
    }
    if args.ack_forwarded && args.sync == Some(Durability::AtEnd) {
        return Err(usage("--ack-forwarded requires --sync batch or N: peers get what is synced"));
    }
    let is_twice = |(at, address): (usize, &Address)| args.forward[..at].contains(address);
    if args.forward.iter().enumerate().any(is_twice) {
        return Err(usage("--forward has the same address twice"));
    }
    if args.force {
        return Err(usage("--force replaces a file; in a folder nothing is replaced"));
    }
    if args.device.is_some() {
        return Err(usage("records of a folder are sealed by the CPU; leave out --device"));
    }
    if args.max_message.is_some_and(|bytes| bytes > LONGEST_MESSAGE) {
        return Err(usage("--max-message is above the limit of a folder, 63 MiB"));
    }
    Ok(())
}

/// A record also holds where its messages came from.
const LONGEST_MESSAGE: u64 = 63 << 20;

/// What seals into a folder, or into one for each of these tenants, which are made if they are not there.
pub fn recordings(
    args: &args::Stream,
    path: &Path,
    tenants: Option<BTreeSet<&str>>,
    split: wattlock_stream::gateway::Split,
    retry: &Retry,
) -> anyhow::Result<Arc<Recordings>> {
    let keys = new_keys(args)?;
    let folder = |path: &Path, tenant: Option<&str>| {
        fs::create_dir_all(path).with_context(|| format!("cannot create {}", Shown(path)))?;
        let additional = AdditionalData { tenant, ..AdditionalData::default() }.to_bytes()?;
        anyhow::Ok(TenantFolder { folder: Folder::new(path), additional })
    };
    let mut folders = BTreeMap::new();
    match tenants {
        None => {
            folders.insert(String::new(), folder(path, args.tenant.as_deref())?);
        }
        Some(tenants) => {
            for tenant in tenants {
                folders.insert(tenant.to_owned(), folder(&path.join(tenant), Some(tenant))?);
            }
        }
    }
    let settings = RecordingSettings {
        keys,
        protocol: args.framing,
        split,
        peers: if args.ack_forwarded { args.forward.len() } else { 0 },
        limit: args.max_size.map(|bytes| FolderLimit { bytes, when_full: args.when_full }),
        durability: args.sync.unwrap_or(
            match args.framing.acknowledges() || !args.forward.is_empty() {
                true => Durability::EachBatch,
                false => Durability::AtEnd,
            },
        ),
        rotation: Rotation { bytes: Some(segment_len(args)), seconds: args.rotate_time },
        epochs: EpochLimits {
            age: Duration::from_secs(args.key_age),
            bytes: args.key_bytes,
            records: args.key_records,
        },
    };
    let recordings = Recordings::new(settings, folders, retry);
    recordings.with_context(|| format!("cannot write to {}", Shown(path)))
}

/// Bytes of a segment: so many that a folder of a limited size has some of them.
fn segment_len(args: &args::Stream) -> u64 {
    let default =
        args.max_size.map_or(SEGMENT_LEN, |bytes| (bytes / 8).clamp(64 << 10, SEGMENT_LEN));
    args.rotate_size.unwrap_or(default)
}

/// Bytes of a segment, unless --rotate-size or --max-size say otherwise.
const SEGMENT_LEN: u64 = 256 << 20;

/// The segments that `--open` is to read.
pub struct Segments {
    /// Where they are.
    pub folder: PathBuf,
    /// The segments, in their order.
    pub paths: Vec<PathBuf>,
    /// True if these are all of the folder.
    pub are_all: bool,
}

/// The segments among the inputs. `None` if the inputs are streams of version 1.
pub fn of_inputs(paths: &[PathBuf]) -> anyhow::Result<Option<Segments>> {
    if let [folder] = paths
        && folder.is_dir()
    {
        let segments = Folder::new(folder).segments()?;
        if segments.is_empty() {
            return Err(usage(format!("{} holds no segments", Shown(folder))));
        }
        let paths = segments.into_iter().map(|segment| segment.path).collect();
        return Ok(Some(Segments { folder: folder.clone(), paths, are_all: true }));
    }
    let mut folders = Vec::new();
    for path in paths {
        if path.is_dir() {
            return Err(usage(format!("{} is a folder: open it alone", Shown(path))));
        }
        let mut start = Vec::new();
        let opened = File::open(path).and_then(|file| file.take(32).read_to_end(&mut start));
        opened.with_context(|| format!("cannot read {}", Shown(path)))?;
        if is_segment(&start) {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            folders.push(folder.unwrap_or(Path::new(".")).to_owned());
        }
    }
    if folders.is_empty() {
        return Ok(None);
    }
    if folders.len() < paths.len() || folders.iter().any(|folder| *folder != folders[0]) {
        return Err(usage(
            "open the segments of one folder at a time, and no other files with them",
        ));
    }
    Ok(Some(Segments { folder: folders.remove(0), paths: paths.to_vec(), are_all: false }))
}

/// Makes the keys of a folder: wrapped for recipients, or derived from the key of --key-file.
fn new_keys(args: &args::Stream) -> anyhow::Result<NewKeys> {
    if let Some(shared) = key::shared(args)? {
        let make = move || {
            let salt = random::array::<32>()?;
            Ok((from_salt(&shared, &salt), salt.to_vec()))
        };
        return Ok(NewKeys::new(KeyKind::Salt, Box::new(make)));
    }
    let wrapping = key::wrapping(args)?;
    let engine = Engine::new(1);
    let make = move || {
        let key = new_session_key()?;
        let sealer = Sealer::new(&engine, &wrapping, Format::WattlockV1);
        let container = sealer.seal_bytes(key.expose())?;
        Ok((key, container))
    };
    Ok(NewKeys::new(KeyKind::Container, Box::new(make)))
}

/// Finds the keys of the segments in a folder.
pub fn key_store(key: OpeningKey, folder: &Path) -> KeyStore {
    match key {
        OpeningKey::Shared(shared) => {
            let open = move |file: &[u8]| {
                let salt = file.try_into().map_err(|_| NOT_A_KEY)?;
                Ok(from_salt(&shared, salt))
            };
            KeyStore::new(folder, KeyKind::Salt, Box::new(open))
        }
        OpeningKey::Identities(identities) => {
            KeyStore::new(folder, KeyKind::Container, unwrapping(identities))
        }
    }
}

/// Checks key files before they are sent to another machine: one that follows from a shared key is opened. One that is
/// wrapped for recipients cannot be opened here; it has to be a container of a key.
pub fn check_key(shared: Option<Arc<Secret<32>>>) -> Box<CheckKey> {
    Box::new(move |file, content| match file.kind {
        KeyKind::Salt => {
            let salt = content.try_into().map_err(|_| NOT_A_KEY)?;
            Ok(shared.as_ref().map(|shared| from_salt(shared, salt)))
        }
        KeyKind::Container => {
            let container = inspect(&Input::Path(file.path.clone()), &Identities::default())?;
            match container.plain_len {
                Some(32) => Ok(None),
                _ => Err(NOT_A_KEY.into()),
            }
        }
    })
}

/// Opens key files that were wrapped for recipients.
pub fn unwrapping(identities: Arc<Identities>) -> Box<OpenKey> {
    let engine = Engine::new(1);
    Box::new(move |container| {
        let view = Opener::new(&engine, &identities).view(container)?;
        if view.plaintext.len() != 32 {
            return Err(NOT_A_KEY.into());
        }
        let mut key = Zeroizing::new([0; 32]);
        view.open_into(&mut *key, &file::Progress::default())?;
        Ok(SessionKey::new(&key))
    })
}

const NOT_A_KEY: &str = "it is not a key file";

fn from_salt(shared: &Secret<32>, salt: &[u8; 32]) -> SessionKey {
    let key = hkdf::expand_sha256::<32>(shared, &[b"wattlock-stream/v2 session", salt]);
    SessionKey::new(key.expose())
}
