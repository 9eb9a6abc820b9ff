//! Journals, profiles and documents that earlier versions left: they are read as what they are.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::support::{Place, assert_exit, stdout, wattlock, with_input};
use wattlock_testing::frozen::corpora;

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn journals_restore_the_clocks() {
    for corpus in corpora() {
        for file in corpus.files(&["journal"]) {
            let machine = tempfile::tempdir().unwrap();
            let root = machine.path();
            for (path, value) in file.get("machine").as_object().unwrap() {
                let value = value.as_str().unwrap();
                write(&root.join(path), format!("{value}\n").as_bytes());
            }
            let journal = root.join("run/wattlock/journal.json");
            write(&journal, &fs::read(corpus.folder.join(file.name)).unwrap());
            // As the program makes them: for its user only.
            let mode = fs::Permissions::from_mode;
            fs::set_permissions(journal.parent().unwrap(), mode(0o700)).unwrap();
            fs::set_permissions(&journal, mode(0o600)).unwrap();
            let mut restore = wattlock();
            let ran = restore.arg("restore").env("WATTLOCK_ROOT", root).output().unwrap();
            assert_exit(&ran, 0);
            for (path, value) in file.get("restored").as_object().unwrap() {
                let found = fs::read_to_string(root.join(path)).unwrap();
                assert_eq!(found.trim(), value.as_str().unwrap(), "{}: {path}", file.name);
                let knob = path.rsplit('/').nth(1).unwrap();
                assert!(stdout(&ran).contains(knob), "{}", stdout(&ran));
            }
            assert!(!journal.exists(), "{}", file.name);
        }
    }
}

/// The first device of `wattlock devices`, with the profiles in `cache`.
fn cpu(cache: &Path) -> Value {
    let mut devices = wattlock();
    devices.args(["devices", "--json"]).env("WATTLOCK_CACHE", cache);
    let ran = devices.output().unwrap();
    assert_exit(&ran, 0);
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    document["devices"][0].clone()
}

#[test]
fn profiles_are_found_again() {
    for corpus in corpora() {
        for file in corpus.files(&["profiles"]) {
            let cache = tempfile::tempdir().unwrap();
            let here = cpu(cache.path());
            let mut document = corpus.document(file.name);
            let machine = &mut document["machines"][0];
            // They are of another machine; all else of the file stays as it is.
            let all = machine["cpus"].clone();
            for key in ["cpu", "cpu_id", "cpus", "virtual_machine"] {
                machine[key] = here[key].clone();
            }
            for profile in machine["profiles"].as_array_mut().unwrap() {
                if profile["workers"] == all {
                    profile["workers"] = here["workers"].clone();
                }
            }
            let expected = machine["profiles"].as_array().unwrap().clone();
            assert_eq!(file.get("profiles"), expected.len());
            fs::write(cache.path().join("profiles.json"), document.to_string()).unwrap();
            let found = cpu(cache.path());
            assert!(found["why_not_calibrated"].is_null(), "{}", found["why_not_calibrated"]);
            let rows = found["operations"].as_array().unwrap();
            let found: Vec<_> =
                rows.iter().flat_map(|row| row["profiles"].as_array().unwrap()).collect();
            // On one CPU, all workers are one, and the later of both profiles is kept.
            let kept = expected.iter().filter(|profile| profile["device"] == "cpu");
            let kept: Vec<_> =
                kept.filter(|one| here["workers"] != 1 || found.contains(one)).collect();
            assert!(kept.len() >= 15);
            for profile in kept {
                assert!(found.contains(&profile), "{profile}");
            }
        }
    }
}

/// Asserts that all keys of `old` are in `new`, with values of the same types.
#[track_caller]
fn assert_has_keys_of(old: &Value, new: &Value, place: &str) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let found = new.get(key).unwrap_or_else(|| panic!("{place} has no {key}"));
                assert_has_keys_of(value, found, &format!("{place}.{key}"));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            if let Some((old, new)) = old.first().zip(new.first()) {
                assert_has_keys_of(old, new, &format!("{place}[0]"));
            }
        }
        _ => assert_eq!(std::mem::discriminant(old), std::mem::discriminant(new), "{place}"),
    }
}

#[test]
fn summaries_have_the_keys_that_programs_look_for() {
    let place = Place::new();
    let plain = place.write("d/f", &[1; 5000]);
    let protected = place.protect(&["--json".as_ref(), plain.as_os_str()]);
    let container = place.path("d/f.wlk");
    let opened =
        place.open("unprotect", &["--json".as_ref(), "-f".as_ref(), container.as_os_str()]);
    let mut stream = wattlock();
    let streamed =
        with_input(stream.args(["stream", "--json", "-r", &place.recipient]), b"a line\n");
    for corpus in corpora() {
        for (command, output, text) in [
            ("protect", &protected, &protected.stdout),
            ("unprotect", &opened, &opened.stdout),
            ("stream", &streamed, &streamed.stderr),
        ] {
            assert_exit(output, 0);
            let name = format!("summary-{command}.json");
            // A note of the clocks may stand before the document of a stream.
            let text = String::from_utf8_lossy(text);
            let document = &text[text.find('{').unwrap()..];
            let new: Value = serde_json::from_str(document).unwrap();
            assert_has_keys_of(&corpus.document(&name), &new, &name);
        }
        for file in corpus.files(&["simulated"]) {
            assert!(corpus.document(file.name)["schema"].is_string());
        }
    }
}
