//! What earlier versions wrote stays readable: each SEFPS container of `vectors/frozen` opens to what was
//! put in.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use wattlock_testing::assert_exit;
use wattlock_testing::frozen::corpora;

use crate::lab;

#[test]
fn sefps_containers_open_to_what_was_put_in() {
    for corpus in corpora() {
        let mut opened = 0;
        for key in corpus.keys().into_iter().filter(|key| key.starts_with("sefps")) {
            let mut files = corpus.files(&["sefps"]);
            files.retain(|file| file.opens_with(key));
            let out = tempfile::tempdir().unwrap();
            let words = corpus.words_that_open(key);
            // In 0.1 it was a format of `wattlock`, and had to be named.
            let words = words.strip_prefix(&["--format", "sefps"]).unwrap_or(&words);
            let mut open = corpus.with_words(lab(), &["sefps", "unprotect"], words);
            open.arg("--out-dir").arg(out.path()).args(files.iter().map(|file| file.name));
            assert_exit(&open.output().unwrap(), 0);
            for file in &files {
                file.assert_opens_to(&fs::read(out.path().join(file.plain_name())).unwrap());
            }
            opened += files.len();
        }
        assert_eq!(opened, corpus.files(&["sefps"]).len());
    }
}
