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

#[test]
fn a_number_out_of_range_is_told_its_range() {
    let place = Place::new();
    for (args, range) in [
        (&["protect", "--threads", "300"][..], "from 1 to 256"),
        (&["protect", "--threads", "many"], "from 1 to 256"),
        (&["protect", "--work-factor", "9"], "from 10 to 22"),
        (&["unprotect", "--max-recipients", "0"], "from 1 to 100000"),
        (&["measure", "--repeat", "0", "--", "true"], "from 1 to 65535"),
        (&["stream", "--idle-timeout", "5000000000"], "from 0 to 4294967295"),
        (&["stream", "--retry=-1"], "from 0 to 4294967295"),
        (&["stream", "--rotate-time", "0"], "from 1 to 4294967295"),
    ] {
        let refused = run(&place, args);
        assert_exit(&refused, 2);
        let said = stderr(&refused);
        assert!(said.contains(&format!("give a whole number {range}")), "{args:?}: {said}");
        assert!(said.contains(args[1].split('=').next().unwrap()), "{args:?}: {said}");
    }
}
