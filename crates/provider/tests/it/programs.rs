//! Commands of `openssl` that come to the provider's ciphers by other ways than `enc`, `cms` and TLS,
//! which `wattlock provider check` goes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support::installation::{OpenSsl, on_every_openssl};
use crate::support::site::Site;
use wattlock_provider::statistics::Path;

/// Runs `openssl` with the provider or without, in the folder of pages; its output.
fn run(site: &Site, with: bool, arguments: &[&str]) -> Vec<u8> {
    let ran = site
        .command("openssl", with)
        .args(arguments)
        .current_dir(site.path("pages"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    ran.stdout
}

fn macs_that_are_made_of_ciphers_are_the_same(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    let key = format!("hexkey:{}", "0f".repeat(32));
    for page in ["1", "1000", "65536"] {
        for (name, cipher, path) in
            [("CMAC", "AES-256-CBC", Path::Block), ("GMAC", "AES-256-GCM", Path::GcmStream)]
        {
            let cipher = format!("cipher:{cipher}");
            let mut arguments = vec!["mac", "-macopt", &cipher, "-macopt", &key, "-in", page];
            if name == "GMAC" {
                arguments.extend(["-macopt", "hexiv:000102030405060708090a0b"]);
            }
            arguments.push(name);
            let before = site.counted(Path::Block).plus(site.counted(path)).calls;
            let ours = run(&site, true, &arguments);
            assert_eq!(ours, run(&site, false, &arguments), "{name} of {page}");
            // Additional data of GCM is no message, and counts nothing.
            if name == "CMAC" {
                let calls = site.counted(Path::Block).plus(site.counted(path)).calls - before;
                assert!(calls > 0, "{name} of {page} was not made here");
            }
        }
    }
}

fn keys_that_are_kept_under_a_passphrase_are_read_by_either_side(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    let key = site.path("key.pem");
    let key = key.to_str().unwrap();
    let plain = run(&site, false, &["pkey", "-in", key, "-outform", "DER"]);
    for cipher in ["-aes128", "-aes-192-cbc", "-aes-256-cbc"] {
        for (seals, opens) in [(true, false), (false, true), (true, true)] {
            let before = site.counted(Path::Block).bytes;
            let kept = site.path("kept.pem");
            let kept = kept.to_str().unwrap();
            let keep = ["pkey", "-in", key, cipher, "-passout", "pass:no secret", "-out", kept];
            run(&site, seals, &keep);
            let read = ["pkey", "-in", kept, "-passin", "pass:no secret", "-outform", "DER"];
            assert!(run(&site, opens, &read) == plain, "{cipher}: {seals}, {opens}");
            let least = 1000 * (u64::from(seals) + u64::from(opens));
            assert!(site.counted(Path::Block).bytes - before > least, "{cipher}");
        }
    }
}

fn openssl_speed_measures_the_provider(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    for (cipher, path) in [
        ("aes-256-cbc", Path::Block),
        ("aes-192-ctr", Path::Ctr),
        ("aes-192-gcm", Path::GcmStream),
        ("aes-256-gcm", Path::GcmStream),
    ] {
        let before = site.counted(path).bytes;
        run(&site, true, &["speed", "-seconds", "1", "-bytes", "16384", "-evp", cipher]);
        assert!(site.counted(path).bytes - before >= 16_384, "{cipher}");
    }
}

on_every_openssl!(
    macs_that_are_made_of_ciphers_are_the_same,
    keys_that_are_kept_under_a_passphrase_are_read_by_either_side,
    openssl_speed_measures_the_provider,
);
