//! The program holds nothing of the laboratory: no broken cipher, no peer, no server of a bench.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use wattlock_testing::wattlock_path;

#[test]
fn the_program_holds_nothing_of_the_laboratory() {
    let program = fs::read(wattlock_path()).unwrap();
    // Texts, as `strings` finds them: three letters alone may be a number.
    let texts = program.split(|byte| !matches!(byte, b' '..=b'~')).filter(|text| text.len() >= 8);
    let texts: Vec<_> = texts.map(String::from_utf8_lossy).collect();
    // AWS-LC's names of object identifiers, which come with the certificates of TLS; the ciphers do not.
    let is_identifier = |text: &str| {
        ["PBE-SHA1-", "pbeWithSHA1", "RC4-HMAC-MD5"].iter().any(|i| text.starts_with(i))
    };
    let texts: Vec<_> = texts.into_iter().filter(|text| !is_identifier(text)).collect();
    let holds = |word: &str| texts.iter().any(|text| text.contains(word));
    assert!(holds("authenticated encryption"), "texts are found");
    for word in [
        "RC4",
        "parc4",
        "pblock",
        "aes-ttable",
        "extended_block",
        "wattlock_peers",
        "wattlock-peers",
        "RustCrypto:",
        // Of the configuration with which the bench starts a server.
        "worker_processes",
        "access_log",
    ] {
        assert!(!holds(word), "the program holds {word:?}");
    }
}
