//! What earlier versions wrote stays readable: each file of `vectors/frozen` opens to what was put in.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use wattlock_vectors::sha256;

use crate::support::{assert_exit, installed};
use wattlock_testing::frozen::{
    Corpus, Frozen, all_corpora, assert_plaintext, below, corpora, words,
};

const CONTAINERS: [&str; 2] = ["wattlock", "age"];

#[test]
fn the_manifest_names_every_file_as_it_was_written() {
    for corpus in all_corpora() {
        let files = corpus.manifest["files"].as_object().unwrap();
        let named: BTreeSet<String> = files.keys().cloned().collect();
        assert_eq!(named, corpus.paths());
        for (name, entry) in files {
            let bytes = fs::read(corpus.folder.join(name)).unwrap();
            let changed = "a frozen file never changes; write those of a new version instead";
            assert_eq!(entry["sha256"], sha256(&bytes), "{name}: {changed}");
            assert_eq!(entry["bytes"], bytes.len(), "{name}");
        }
    }
}

#[test]
fn containers_open_to_what_was_put_in() {
    for corpus in corpora() {
        let mut opened = BTreeSet::new();
        let of_files = |key: &&str| !key.starts_with("sefps") && !key.starts_with("stream");
        for key in corpus.keys().into_iter().filter(of_files) {
            open_all_of(&corpus, key, &mut opened);
        }
        let all = corpus.files(&CONTAINERS);
        let all = all.iter().filter(|file| *file.get("opens") != serde_json::json!(["plugin"]));
        assert_eq!(opened, all.map(|file| file.name.to_owned()).collect());
    }
}

#[test]
fn containers_for_a_plugin_open_to_what_was_put_in() {
    if !installed("python3") {
        return;
    }
    for corpus in corpora() {
        let mut opened = BTreeSet::new();
        open_all_of(&corpus, "plugin", &mut opened);
        assert!(opened.len() >= 6, "{opened:?}");
    }
}

/// Verifies, inspects and opens all containers that a key opens.
fn open_all_of(corpus: &Corpus, key: &str, opened: &mut BTreeSet<String>) {
    let mut files = corpus.files(&CONTAINERS);
    files.retain(|file| file.opens_with(key));
    assert!(!files.is_empty(), "{key}");
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    // One key derivation for each run and each file of age: the costly ones are not repeated.
    let is_costly = key == "passphrase-18";
    if !is_costly {
        assert_exit(&corpus.with_key(&["verify"], key).args(&names).output().unwrap(), 0);
    }

    let inspected = corpus.with_key(&["inspect", "--json"], key).args(&names).output().unwrap();
    assert_exit(&inspected, 0);
    let documents: Vec<Value> = serde_json::from_slice(&inspected.stdout).unwrap();
    assert_eq!(documents.len(), files.len());
    for (file, document) in files.iter().zip(&documents) {
        assert_inspected(file, document);
    }

    opened.extend(names.into_iter().map(str::to_owned));
    files.retain(|file| !file.is_in_tree());
    let out = tempfile::tempdir().unwrap();
    let mut open = corpus.with_key(&["unprotect"], key);
    open.arg("--out-dir").arg(out.path()).args(files.iter().map(|file| file.name));
    assert_exit(&open.output().unwrap(), 0);
    for file in &files {
        let path = out.path().join(file.plain_name());
        file.assert_opens_to(&fs::read(&path).unwrap());
        if file.get("sealed").is_object() {
            assert_mode_and_time(file, &path);
        }
    }
    for file in files.iter().filter(|_| !is_costly) {
        let mut open = corpus.with_key(&["unprotect"], key);
        let open = open.stdin(corpus.stdin(file.name)).output().unwrap();
        assert_exit(&open, 0);
        file.assert_opens_to(&open.stdout);
    }
}

fn assert_inspected(file: &Frozen<'_>, document: &Value) {
    let name = file.name;
    assert_eq!(document["file"], name);
    assert_eq!(document["format"], file.kind(), "{name}");
    assert_eq!(document["plaintext_bytes"], file.get("plaintext")["bytes"], "{name}");
    assert_eq!(document["header_authentic"], true, "{name}");
    // Behind the type stands what else can be seen: a tag, a work factor.
    let types = words(&document["recipients"]).into_iter();
    let mut types: Vec<&str> = types.map(|text| text.split(' ').next().unwrap()).collect();
    let mut expected = words(file.get("recipients"));
    types.sort_unstable();
    expected.sort_unstable();
    assert_eq!(types, expected, "{name}");
    let (sealed, expected) = (&document["sealed"], file.get("sealed"));
    if expected.is_null() {
        let nothing = |value: &Value| value.as_object().unwrap().values().all(Value::is_null);
        assert!(sealed.is_null() || nothing(sealed), "{name}: {sealed}");
        return;
    }
    assert_eq!(sealed["mode"], expected["mode"], "{name}");
    let time = expected["modified_unix_ns"].as_i64().unwrap();
    assert!(
        sealed["modified_unix_s"].as_i64().unwrap().abs_diff(time.div_euclid(1_000_000_000)) <= 1
    );
    assert_eq!(sealed["name"], sealed_name(file).to_string_lossy().as_ref(), "{name}");
}

fn sealed_name(file: &Frozen<'_>) -> OsString {
    let sealed = file.get("sealed");
    let digits = |hex: &str| -> Vec<u8> {
        let starts = (0..hex.len()).step_by(2);
        starts.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    let bytes = sealed["name"].as_str().map(|name| name.as_bytes().to_vec());
    OsString::from_vec(bytes.unwrap_or_else(|| digits(sealed["name_hex"].as_str().unwrap())))
}

/// The umask may take bits of the mode away, and the file system some of the time.
fn assert_mode_and_time(file: &Frozen<'_>, path: &Path) {
    let (name, sealed) = (file.name, file.get("sealed"));
    let found = fs::metadata(path).unwrap();
    let (mode, kept) = (sealed["mode"].as_str().unwrap(), found.permissions().mode() & 0o777);
    let mode = u32::from_str_radix(mode, 8).unwrap();
    assert!(kept == mode || kept == mode & !umask(), "{name}: {kept:o} and not {mode:o}");
    let nanoseconds = sealed["modified_unix_ns"].as_i64().unwrap();
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    let time = if nanoseconds < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance };
    assert_eq!(found.modified().unwrap(), what_is_kept_of(time, path), "{name}");
}

fn what_is_kept_of(time: SystemTime, path: &Path) -> SystemTime {
    let probe = path.with_file_name("probe");
    let file = fs::File::create(&probe).unwrap();
    file.set_modified(time).unwrap();
    let kept = file.metadata().unwrap().modified().unwrap();
    fs::remove_file(probe).unwrap();
    kept
}

fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap();
    u32::from_str_radix(line.trim(), 8).unwrap()
}

#[test]
fn sealed_names_come_back() {
    for corpus in corpora() {
        let mut files = corpus.files(&["wattlock"]);
        // A hidden file is not made by name alone; that its name is read, `inspect` has shown.
        let wanted = |file: &Frozen<'_>| {
            let sealed = file.get("sealed").is_object() && !file.is_in_tree();
            sealed
                && file.opens_with("x25519-a")
                && !sealed_name(file).as_encoded_bytes().starts_with(b".")
        };
        files.retain(wanted);
        assert!(files.len() > 20);
        let out = tempfile::tempdir().unwrap();
        let mut open = corpus.with_key(&["unprotect", "-N"], "x25519-a");
        open.arg("--out-dir").arg(out.path()).args(files.iter().map(|file| file.name));
        assert_exit(&open.output().unwrap(), 0);
        for file in &files {
            file.assert_opens_to(&fs::read(out.path().join(sealed_name(file))).unwrap());
        }
    }
}

#[test]
fn trees_come_back() {
    for corpus in corpora() {
        let trees = corpus.manifest["trees"].as_array().unwrap();
        assert!(trees.len() >= 4);
        for tree in trees {
            let folder = tree["folder"].as_str().unwrap();
            let out = tempfile::tempdir().unwrap();
            let command = ["unprotect", "--recursive"];
            let mut open = corpus.with_key(&command, words(&tree["opens"])[0]);
            assert_exit(&open.arg("--out-dir").arg(out.path()).arg(folder).output().unwrap(), 0);
            let files = tree["files"].as_object().unwrap();
            let out = out.path().join(folder);
            assert_eq!(below(&out), files.keys().cloned().collect::<BTreeSet<_>>(), "{folder}");
            for (path, expected) in files {
                assert_plaintext(expected, &fs::read(out.join(path)).unwrap(), path);
            }
        }
    }
}

#[test]
fn a_corpus_says_by_which_program_it_was_written() {
    for corpus in corpora() {
        let version = corpus.folder.file_name().unwrap().to_str().unwrap();
        assert_eq!(corpus.manifest["version"], version);
        let program = corpus.manifest["program"].as_str().unwrap();
        assert!(program.starts_with(&format!("wattlock {version}.")), "{program}");
        let digest = sha256(&fs::read(corpus.folder.join("manifest.json")).unwrap());
        let readme = fs::read_to_string(corpus.folder.join("README.md")).unwrap();
        assert!(readme.contains(&format!("| `manifest.json` | {digest} |")), "{digest}");
    }
}
