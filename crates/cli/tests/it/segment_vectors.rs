//! Folders of segments that another implementation made, each with what must happen to it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Place, assert_exit, stderr, wattlock};

fn hexadecimal(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Seconds since 1970, as an option takes them.
fn seconds(microseconds: &Value) -> String {
    let microseconds = microseconds.as_u64().unwrap();
    assert_eq!(microseconds % 1_000_000, 0, "options of vectors are whole seconds");
    format!("@{}", microseconds / 1_000_000)
}

#[test]
fn every_folder_opens_or_is_refused_as_its_case_says() {
    let place = Place::new();
    let key = place.write("key", &(0..32).collect::<Vec<u8>>());
    let vectors = wattlock_vectors::folder("stream-v2");
    let mut cases = 0;
    for entry in fs::read_dir(vectors).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            check(&entry, &key);
            cases += 1;
        }
    }
    assert!(cases >= 82, "{cases}");
}

#[track_caller]
fn check(folder: &Path, key: &Path) {
    let case: Value = serde_json::from_slice(&fs::read(folder.join("case.json")).unwrap()).unwrap();
    let name = folder.file_name().unwrap().display();
    let mut command = wattlock();
    command.args(["stream", "--open", "-q", "--key-file"]).arg(key).arg(folder);
    let selection = &case["selection"];
    if let Some(source) = selection["source"].as_str() {
        command.args(["--source", source]);
    }
    for (option, key) in [("--from", "from_us"), ("--until", "until_us")] {
        if !selection[key].is_null() {
            command.args([option, &seconds(&selection[key])]);
        }
    }
    let output = command.output().unwrap();
    let said = stderr(&output);
    if selection.is_null() {
        let mut verify = wattlock();
        verify.args(["verify", "--key-file"]).arg(key).arg(folder);
        assert_exit(&verify.output().unwrap(), if case["expect"] == "success" { 0 } else { 3 });
    }
    match case["expect"].as_str().unwrap() {
        "success" => {
            let lost = said.contains("had been cut when");
            assert!(output.status.code() == Some(i32::from(lost)), "{name}: {said}");
        }
        "damaged" => assert_exit(&output, 3),
        other => panic!("{name} expects {other}"),
    }
    let messages = hexadecimal(case["messages"].as_str().unwrap());
    assert_eq!(output.stdout, messages, "{name}: {}; {said}", case["why"]);
}
