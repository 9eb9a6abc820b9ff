//! Streams that earlier versions sealed: one file, several that follow each other, and those that were cut.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Read;
use std::net::TcpListener;
use std::thread;

use serde_json::Value;
use wattlock_vectors::sha256;

use crate::support::{assert_exit, installed, with_input};
use wattlock_testing::frozen::{Corpus, assert_plaintext, corpora, words};

const OPEN: [&str; 3] = ["stream", "--open", "-q"];

#[test]
fn streams_open_to_what_was_put_in() {
    for corpus in corpora() {
        for key in corpus.keys() {
            open_all_of(&corpus, key);
        }
        let every = corpus.files(&["stream"]);
        let keys = corpus.keys();
        assert!(
            every.iter().filter(|file| !keys.iter().any(|key| file.opens_with(key))).count() <= 1
        );
    }
}

#[test]
fn streams_for_a_plugin_open_to_what_was_put_in() {
    if !installed("python3") {
        return;
    }
    for corpus in corpora() {
        assert!(open_all_of(&corpus, "plugin") >= 2);
    }
}

fn open_all_of(corpus: &Corpus, key: &str) -> usize {
    let mut files = corpus.files(&["stream"]);
    files.retain(|file| file.opens_with(key));
    for file in &files {
        let mut open = corpus.with_key(&OPEN, key);
        let opened = open.stdin(corpus.stdin(file.name)).output().unwrap();
        let exits = i32::try_from(file.get("exits").as_i64().unwrap()).unwrap();
        assert_exit(&opened, exits);
        file.assert_opens_to(&opened.stdout);
    }
    files.len()
}

/// The files of a rotated stream, one after the other.
fn joined(corpus: &Corpus, sequence: &Value) -> Vec<u8> {
    let files = words(&sequence["files"]).into_iter();
    files.flat_map(|file| std::fs::read(corpus.folder.join(file)).unwrap()).collect()
}

fn sequences(corpus: &Corpus) -> &Vec<Value> {
    let sequences = corpus.manifest["sequences"].as_array().unwrap();
    assert!(sequences.len() >= 6);
    sequences
}

#[test]
fn rotated_streams_open_together() {
    for corpus in corpora() {
        for sequence in sequences(&corpus) {
            let mut open = corpus.with_key(&OPEN, words(&sequence["opens"])[0]);
            let opened = with_input(&mut open, &joined(&corpus, sequence));
            assert_exit(&opened, 0);
            assert_plaintext(
                &sequence["plaintext"],
                &opened.stdout,
                &sequence["files"].to_string(),
            );
        }
    }
}

#[test]
fn each_connection_comes_out_over_one_of_its_own() {
    for corpus in corpora() {
        for sequence in sequences(&corpus).iter().filter(|one| one["connections"].is_array()) {
            let expected = words(&sequence["connections"]);
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("tcp:{}", listener.local_addr().unwrap());
            let count = expected.len();
            let collected = thread::spawn(move || {
                // All are open at the same time, and each is read by a thread of its own.
                let readers = (0..count).map(|_| {
                    let (mut stream, _) = listener.accept().unwrap();
                    thread::spawn(move || {
                        let mut bytes = Vec::new();
                        stream.read_to_end(&mut bytes).unwrap();
                        sha256(&bytes)
                    })
                });
                let readers: Vec<_> = readers.collect();
                let mut digests: Vec<_> =
                    readers.into_iter().map(|reader| reader.join().unwrap()).collect();
                digests.sort();
                digests
            });
            let mut open = corpus.with_key(&OPEN, words(&sequence["opens"])[0]);
            open.args(["--connect", &address]);
            assert_exit(&with_input(&mut open, &joined(&corpus, sequence)), 0);
            assert_eq!(collected.join().unwrap(), expected);
        }
    }
}
