//! Records that an attacker changed or cut off are refused, with the same errors as by OpenSSL
//! alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support::between::{Between, Toward};
use crate::support::installation::{OpenSsl, on_every_openssl};
use crate::support::site::Site;
use crate::support::talk::{Talk, s_client, s_server};
use wattlock_provider::statistics::{Counts, Path};

/// What is done to a record with its header.
type Change = (&'static str, fn(&mut Vec<u8>));

const CHANGES: [Change; 8] = [
    ("its middle", |record| {
        let middle = 5 + (record.len() - 5) / 2;
        record[middle] ^= 1;
    }),
    ("its first byte", |record| record[5] ^= 0x80),
    ("its last byte", |record| *record.last_mut().unwrap() ^= 1),
    // Under CBC a bit of the block before is one of the same place in the last one.
    ("the length of the padding", |record| {
        let at = record.len() - 17;
        record[at] ^= 0x0f;
    }),
    ("a length below a tag or a block", |record| cut(record, 8)),
    ("a block less", |record| {
        let len = record.len() - 5 - 16;
        cut(record, len);
    }),
    ("a byte less", |record| {
        let len = record.len() - 5 - 1;
        cut(record, len);
    }),
    ("no bytes at all", |record| cut(record, 0)),
];

/// Cuts the record to `len` bytes after its header, and sets the length in the header.
fn cut(record: &mut Vec<u8>, len: usize) {
    record.truncate(5 + len);
    record[3..5].copy_from_slice(&(len as u16).to_be_bytes());
}

const TLS_1_2: [(&[&str], &str, Path); 9] = [
    (&["ECDHE-RSA-AES256-GCM-SHA384"], "", Path::GcmRecord),
    (&["ECDHE-RSA-AES128-GCM-SHA256"], "", Path::GcmRecord),
    (&["ECDHE-RSA-AES128-SHA", "-no_etm"], "", Path::CompositeRecord),
    (&["ECDHE-RSA-AES256-SHA", "-no_etm"], "", Path::CompositeRecord),
    (&["ECDHE-RSA-AES128-SHA256", "-no_etm"], "", Path::CompositeRecord),
    (&["AES256-SHA256", "-no_etm"], "", Path::CompositeRecord),
    (&["ECDHE-RSA-AES256-SHA384", "-no_etm"], "paper_mode = 1", Path::CompositeRecord),
    (&["ECDHE-RSA-AES256-SHA384", "-no_etm"], "", Path::CbcRecord),
    (&["ECDHE-RSA-AES256-SHA384"], "", Path::CbcRecord),
];

fn a_changed_record_of_tls_1_2_is_refused_as_by_openssl(openssl: OpenSsl) {
    // With a version that is built, only one suite for each path through the provider.
    let mut tried = Vec::new();
    for (suite, settings, path) in TLS_1_2 {
        if openssl != OpenSsl::System && tried.contains(&path) {
            continue;
        }
        tried.push(path);
        let options = [&["-quiet", "-tls1_2", "-cipher"], suite].concat();
        refused_alike(openssl, &options, settings, path);
    }
}

fn a_changed_record_of_tls_1_3_is_refused_as_by_openssl(openssl: OpenSsl) {
    for suite in ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"] {
        let options = ["-quiet", "-tls1_3", "-ciphersuites", suite];
        refused_alike(openssl, &options, "", Path::GcmStream);
    }
}

/// Every change, to a record of either side.
fn refused_alike(openssl: OpenSsl, options: &[&str], settings: &str, path: Path) {
    let Some(site) = Site::with_settings(openssl, settings) else { return };
    let mut outcomes = Vec::new();
    for with in [false, true] {
        let before = site.counted(path).bytes;
        let (mut server, port) = s_server(&site, with, options);
        for (what, change) in CHANGES {
            for toward in [Toward::Server, Toward::Client] {
                let between = Between::new(port, toward, move |record| {
                    change(record);
                    true
                });
                let client = s_client(&site, with, between.port, options);
                let reason = after_a_change(&mut server, client, &between, toward);
                outcomes.push((what, toward, reason));
            }
        }
        let counted = site.counted(path).bytes - before;
        assert_eq!(counted > 0, with, "{options:?}: {counted} bytes");
    }
    let (theirs, ours) = outcomes.split_at(outcomes.len() / 2);
    for (theirs, ours) in theirs.iter().zip(ours) {
        assert_eq!(ours, theirs, "{options:?}");
    }
    let bad_mac = ours.iter().filter(|(_, _, reason)| reason.contains("bad record mac")).count();
    // All but some of those that are too short to have a tag or a block.
    assert!(bad_mac >= 2 * (CHANGES.len() - 3), "{ours:?}");
}

/// What the client says: of the alert that it got, or why it refused.
fn after_a_change(
    server: &mut Talk,
    mut client: Talk,
    between: &Between,
    toward: Toward,
) -> String {
    client.say(b"0123456789\n");
    server.hear(b"0123456789\n");
    server.say(b"9876543210\n");
    client.hear(b"9876543210\n");
    between.begin();
    match toward {
        Toward::Server => client.say(b"12345678901234567890 that does not arrive\n"),
        Toward::Client => server.say(b"12345678901234567890 that does not arrive\n"),
    }
    client.hear_errors(1, "SSL routines:");
    let (_, out, errors) = client.end();
    assert!(!String::from_utf8_lossy(&out).contains("that does not"), "it arrived");
    reason(&errors)
}

/// What libssl said first. In front of it are the thread's number and what the provider says, behind
/// it a place in the sources.
fn reason(errors: &str) -> String {
    let after = errors.split("SSL routines:").nth(1).unwrap_or_else(|| panic!("{errors}"));
    after.split(':').take(2).collect::<Vec<_>>().join(":")
}

fn a_cut_connection_is_distinguished_from_a_closed_one(openssl: OpenSsl) {
    let suites: [(&[&str], &str, Path); 4] = [
        (&["-tls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384"], "", Path::GcmRecord),
        (&["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA256", "-no_etm"], "", Path::CompositeRecord),
        (
            &["-tls1_2", "-cipher", "ECDHE-RSA-AES256-SHA384", "-no_etm"],
            "paper_mode = 1",
            Path::CompositeRecord,
        ),
        (&["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384"], "", Path::GcmStream),
    ];
    for (options, settings, path) in suites {
        let Some(site) = Site::with_settings(openssl, settings) else { return };
        let mut outcomes = Vec::new();
        for with in [false, true] {
            let before = site.counted(path);
            let (_server, port) = s_server(&site, with, &[&["-WWW", "-quiet"], options].concat());
            // Without a length, only TLS says where the page ends.
            let mut left = 6;
            let between = Between::new(port, Toward::Client, move |record| {
                left -= usize::from(record[0] == 23 && record.len() > 2000);
                left > 0
            });
            between.begin();
            let mut client = s_client(&site, with, between.port, &[&["-quiet"], options].concat());
            client.say(b"GET /2097152 HTTP/1.0\r\n\r\n");
            let (status, out, errors) = client.wait();
            let reason = reason(&errors);
            assert!(reason.contains("unexpected eof"), "{options:?}: {errors}");
            assert!(!status.success(), "{options:?}");
            outcomes.push((status.code(), out.len(), reason));
            let Counts { bytes, .. } = site.counted(path);
            assert_eq!(bytes - before.bytes > 0, with, "{options:?}");
        }
        let page = std::fs::read(site.path("pages").join((2 << 20).to_string())).unwrap();
        assert!(outcomes[0].1 < page.len());
        assert_eq!(outcomes[0], outcomes[1], "{options:?}");
    }
}

on_every_openssl!(
    a_changed_record_of_tls_1_2_is_refused_as_by_openssl,
    a_changed_record_of_tls_1_3_is_refused_as_by_openssl,
    a_cut_connection_is_distinguished_from_a_closed_one,
);
