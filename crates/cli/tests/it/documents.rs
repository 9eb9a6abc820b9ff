//! What the program says of itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support::{Place, assert_exit, names, stdout, wattlock};

#[test]
fn completions_and_manual_pages() {
    for shell in ["bash", "zsh", "fish"] {
        let made = wattlock().args(["completions", shell]).output().unwrap();
        assert_exit(&made, 0);
        assert!(stdout(&made).contains("passphrase-file"), "{shell}");
    }
    let page = wattlock().arg("man").output().unwrap();
    assert!(stdout(&page).contains(".TH wattlock 1"));
    let place = Place::new();
    assert_exit(&wattlock().arg("man").arg(place.path("d/man")).output().unwrap(), 0);
    let pages = names(&place.path("d/man"));
    for page in ["wattlock.1", "wattlock-protect.1", "wattlock-unprotect.1", "wattlock-rekey.1"] {
        assert!(pages.iter().any(|name| name == page), "{pages:?}");
    }
}

#[test]
fn help_names_the_exit_codes() {
    for command in [&["--help"][..], &["protect", "--help"], &["unprotect", "-h"]] {
        let help = wattlock().args(command).output().unwrap();
        assert_exit(&help, 0);
        assert!(stdout(&help).contains("3 wrong key or tampered"));
    }
}
