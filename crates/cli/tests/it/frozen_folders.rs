//! Folders of segments that earlier versions wrote: every kind of key, several epochs and segments, a tenant, and writers
//! that were killed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use serde_json::Value;
use wattlock_testing::frozen::{Corpus, all_corpora, assert_plaintext, words};

use crate::support::stream::segments;
use crate::support::{assert_exit, installed, stderr};

/// The folders of all corpora; some are there.
fn folders(mut check: impl FnMut(&Corpus, &Value)) {
    let mut count = 0;
    for corpus in all_corpora() {
        for folder in corpus.manifest["folders"].as_array().into_iter().flatten() {
            check(&corpus, folder);
            count += 1;
        }
    }
    assert!(count >= 15, "{count}");
}

#[test]
fn folders_open_to_what_was_put_in() {
    let (mut most_epochs, mut most_segments, mut keys_tried) = (0, 0, 0);
    folders(|corpus, folder| {
        let path = corpus.folder.join(folder["folder"].as_str().unwrap());
        assert_eq!(folder["segments"], segments(&path).len());
        assert_eq!(folder["epochs"], std::fs::read_dir(path.join("keys")).unwrap().count());
        most_epochs = most_epochs.max(folder["epochs"].as_u64().unwrap());
        most_segments = most_segments.max(folder["segments"].as_u64().unwrap());
        for key in words(&folder["opens"]).into_iter().filter(|key| *key != "plugin") {
            assert_opens(corpus, folder, key);
            keys_tried += 1;
        }
    });
    assert!(most_epochs >= 4 && most_segments >= 7 && keys_tried >= 19);
}

#[test]
fn folders_for_a_plugin_open_to_what_was_put_in() {
    if !installed("python3") {
        return;
    }
    let mut count = 0;
    folders(|corpus, folder| {
        if words(&folder["opens"]).contains(&"plugin") {
            assert_opens(corpus, folder, "plugin");
            count += 1;
        }
    });
    assert!(count >= 2, "{count}");
}

/// Opens the folder, its segments by their names, and verifies them.
fn assert_opens(corpus: &Corpus, folder: &Value, key: &str) {
    let name = folder["folder"].as_str().unwrap();
    let exits = i32::try_from(folder["exits"].as_i64().unwrap()).unwrap();
    let open = ["stream", "--open", "-q"];
    let opened = corpus.with_key(&open, key).arg(name).output().unwrap();
    assert_exit(&opened, exits);
    assert_plaintext(&folder["plaintext"], &opened.stdout, name);
    let named = segments(&corpus.folder.join(name));
    let named = named.iter().map(|path| Path::new(name).join(path.file_name().unwrap()));
    let opened = corpus.with_key(&open, key).args(named).output().unwrap();
    assert_exit(&opened, exits);
    assert_plaintext(&folder["plaintext"], &opened.stdout, name);
    // A message that a sender did not complete is no fault of the folder.
    let verified = corpus.with_key(&["verify"], key).arg(name).output().unwrap();
    assert_exit(&verified, if exits == 3 { 3 } else { 0 });
    let inspected = corpus.with_words(wattlock_testing::wattlock(), &["inspect"], &[name]);
    let inspected = { inspected }.output().unwrap();
    assert_exit(&inspected, 0);
    if let Some(tenant) = folder["tenant"].as_str() {
        let text = String::from_utf8_lossy(&inspected.stdout).into_owned();
        assert!(text.contains(tenant), "{text}{}", stderr(&inspected));
    }
}
