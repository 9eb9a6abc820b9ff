//! File names that are not UTF-8, and names that a terminal would obey.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Output;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::Value;

use crate::support::{Place, assert_exit, installed, stderr, stdout, wattlock};

/// Runs the program in the place's folder.
fn run(place: &Place, args: &[&str], files: &[&OsStr]) -> Output {
    let mut command = wattlock();
    command.args(args).args(files).current_dir(place.path("")).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert_exit(output, 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The bytes of the names in `key` of each entry, by which two names differ whose texts do not.
fn bytes_of(entries: &Value, key: &str) -> BTreeSet<Vec<u8>> {
    let entries = entries.as_array().unwrap();
    let bytes = entries.iter().map(|entry| BASE64_STANDARD.decode(entry[key].as_str().unwrap()));
    bytes.map(Result::unwrap).collect()
}

#[test]
fn documents_tell_names_apart_that_are_not_utf8() {
    let place = Place::new();
    let plain: [&[u8]; 2] = [b"tree/a\xff", b"tree/a\xfe"];
    let sealed: [&[u8]; 2] = [b"tree/a\xff.wlk", b"tree/a\xfe.wlk"];
    fs::create_dir(place.path("tree")).unwrap();
    for name in plain {
        fs::write(place.path(OsStr::from_bytes(name)), b"text").unwrap();
    }
    fs::write(place.path("tree/b"), b"text").unwrap();
    let set = |names: &[&[u8]]| names.iter().map(|name| name.to_vec()).collect::<BTreeSet<_>>();
    let without_b = |document: &Value| {
        let all = document["files"].as_array().unwrap().iter();
        let (b, others): (Vec<_>, Vec<_>) =
            all.cloned().partition(|file| file["input"].as_str().unwrap().starts_with("tree/b"));
        assert_eq!(b.len(), 1);
        assert!(b[0].get("input_name_bytes").is_none() && b[0].get("output_name_bytes").is_none());
        Value::from(others)
    };

    let protect = ["protect", "--json", "-i", "key.txt", "--recursive", "tree"];
    let planned = without_b(&json(&run(&place, &[&protect[..], &["--dry-run"]].concat(), &[])));
    let made = without_b(&json(&run(&place, &protect, &[])));
    for files in [&planned, &made] {
        assert_eq!(bytes_of(files, "input_name_bytes"), set(&plain));
        assert_eq!(bytes_of(files, "output_name_bytes"), set(&sealed));
    }
    let named: Vec<&OsStr> = sealed.iter().map(|name| OsStr::from_bytes(name)).collect();
    let shown = run(&place, &[&protect[..2], &["-v", "--force"], &protect[2..]].concat(), &[]);
    assert!(stderr(&shown).contains(r"tree/a\xff → tree/a\xff.wlk"), "{}", stderr(&shown));
    let verified = run(&place, &["verify", "--json", "-i", "key.txt"], &named);
    fs::write(place.path("summary.json"), &verified.stdout).unwrap();
    assert_eq!(bytes_of(&json(&verified)["files"], "input_name_bytes"), set(&sealed));
    let inspected = json(&run(&place, &["inspect", "--json", "-i", "key.txt"], &named));
    assert_eq!(bytes_of(&inspected, "file_name_bytes"), set(&sealed));
    let sealed_names: Vec<Value> =
        inspected.as_array().unwrap().iter().map(|one| one["sealed"].clone()).collect();
    assert_eq!(bytes_of(&sealed_names.into(), "name_bytes"), set(&[b"a\xff", b"a\xfe"]));
    // Both count, where summaries are merged.
    let merged = json(&run(&place, &["report", "--merge", "summary.json"], &[]));
    assert_eq!(merged["files"]["done"], 2, "{merged}");
}

/// Escape sequences set colours, move the cursor and change the title; BEL rings.
#[test]
fn no_message_sends_controls_from_names() {
    let place = Place::new();
    let names: [&[u8]; 3] =
        [b"e\x1b]0;title\x07\x1b[31m", b"c\xc2\x9b31m\r\x7f", b"n\xff\xe2\x80\xae"];
    fs::create_dir(place.path("tree")).unwrap();
    for name in names {
        fs::write(place.path("tree").join(OsStr::from_bytes(name)), b"text").unwrap();
    }
    let evil = OsStr::from_bytes(names[0]);
    let is_shown = |output: &Output| {
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8(text.clone()).unwrap();
            let obeyed = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!text.contains(obeyed), "{text:?}");
        }
    };
    let tree: &OsStr = "tree".as_ref();
    let evil_file = Path::new("tree").join(evil);
    let evil_file = evil_file.as_os_str();
    let missing = OsStr::from_bytes(b"missing\x1b[2J");
    let with_key = |words: &[&str]| -> Vec<String> {
        [words, &["-i", "key.txt"]].concat().into_iter().map(str::to_owned).collect()
    };
    let runs: [(Vec<String>, &[&OsStr], i32); 13] = [
        (with_key(&["protect", "-v", "--recursive"]), &[tree], 0),
        (with_key(&["protect", "-v", "--recursive"]), &[tree], 1),
        (with_key(&["protect", "--dry-run", "--force"]), &[evil_file], 0),
        (with_key(&["verify", "--recursive"]), &[tree], 0),
        (with_key(&["rekey", "--recursive", "-r", &place.recipient]), &[tree], 0),
        (with_key(&["unprotect", "-v", "-f", "--recursive"]), &[tree], 0),
        (with_key(&["unprotect"]), &[missing], 1),
        (with_key(&["unprotect"]), &[evil_file], 3),
        (with_key(&["inspect"]), &[evil_file], 3),
        (vec!["protect".into(), "-R".into()], &[missing, "key.txt".as_ref()], 1),
        (vec!["protect".into(), "-r".into()], &[missing, "key.txt".as_ref()], 2),
        (vec!["unprotect".into(), "-i".into()], &[evil_file, "key.txt".as_ref()], 2),
        (vec!["report".into(), "--merge".into()], &[evil_file], 1),
    ];
    for (words, files, code) in runs {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = run(&place, &words, files);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", stderr(&output));
        is_shown(&output);
    }
    let inspected = run(&place, &["inspect", "-i", "key.txt"], &[&sealed(evil_file)]);
    assert_exit(&inspected, 0);
    is_shown(&inspected);
    assert!(stdout(&inspected).contains(r"\u{1b}]0;title"), "{}", stdout(&inspected));
    for wrong in ["frobnicate\x1b[31m", "--frobnicate\x1b[31m"] {
        let output = run(&place, &[wrong], &[]);
        assert_exit(&output, 2);
        is_shown(&output);
    }
    if !installed("sh") {
        return;
    }
    // What a command or a plugin says may be anything.
    let command = r"printf 'x\033[31m\007'; exit 1";
    is_shown(&run(&place, &["unprotect", "--identity-command", command], &[evil_file]));
}

fn sealed(name: &OsStr) -> std::ffi::OsString {
    let mut sealed = name.to_owned();
    sealed.push(".wlk");
    sealed
}
