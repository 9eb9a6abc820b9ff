//! What errors say: what the user gave, what is wrong with it, and what to do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Output;

use crate::support::{Place, assert_exit, stderr, wattlock};

/// `wattlock ARGS…` in `place`.
fn run(place: &Place, args: &[&str]) -> Output {
    wattlock().args(args).current_dir(place.path("")).output().unwrap()
}

#[test]
fn a_number_is_repeated_and_a_key_is_not() {
    let place = Place::new();
    let number = "20000000000000000000";
    let key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    for flag in ["--window", "--threads", "--retry", "--max-message"] {
        let refused = run(&place, &["stream", flag, number]);
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains(number), "{}", stderr(&refused));
        let refused = run(&place, &["stream", flag, "0xfeed"]);
        assert!(stderr(&refused).contains("0xfeed"), "{}", stderr(&refused));
        for key in [key.to_owned(), format!("0x{key}")] {
            let refused = run(&place, &["stream", flag, &key]);
            assert_exit(&refused, 2);
            assert!(!stderr(&refused).contains("8899aabb"), "{}", stderr(&refused));
        }
    }
    let refused = run(&place, &["stream", "--window", number]);
    assert!(stderr(&refused).contains("too large"), "{}", stderr(&refused));
    // The key where its file is to be named.
    let refused = run(&place, &["stream", "--key-file", key]);
    assert!(!stderr(&refused).contains("8899aabb"), "{}", stderr(&refused));
    let refused = run(&place, &["stream", "--window", "age-secret-key-1qqqqqqq"]);
    assert_exit(&refused, 2);
    assert!(!stderr(&refused).to_lowercase().contains("key-1qqq"), "{}", stderr(&refused));
}
