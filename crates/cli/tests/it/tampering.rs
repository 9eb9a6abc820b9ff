//! Containers that are not what was sealed: exit code 3, and nothing left behind.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use crate::support::{Place, assert_exit, pattern, stderr, stdout, wattlock, with_input};

/// Bytes of a full chunk with its tag.
const SLOT: usize = 16 * 1024 + 16;

struct Parts {
    bytes: Vec<u8>,
    /// Where the payload starts, its salt and commitment, and its chunks.
    payload: usize,
    chunks: usize,
}

fn parts(place: &Place, len: usize) -> Parts {
    let path = place.container("f", &pattern(len));
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(path).unwrap();
    let mac = bytes.windows(5).position(|window| window == b"\n--- ").unwrap();
    let payload = mac + 5 + 43 + 1;
    Parts { bytes, payload, chunks: payload + 56 }
}

/// A tampered container fails with 3 in every way of opening it, and leaves only itself.
#[track_caller]
fn assert_refused(place: &Place, what: &str, bytes: &[u8]) {
    let path = place.write("d/f.wlk", bytes);
    let opened = place.open("unprotect", &[&path]);
    assert_eq!(opened.status.code(), Some(3), "{what}: {}", stderr(&opened));
    assert!(stderr(&opened).contains("f.wlk"), "{what}: the error names the file");
    assert_eq!(place.names(), ["f.wlk"], "{what}");
    let verified = place.open("verify", &[&path]);
    assert_eq!(verified.status.code(), Some(3), "{what}: {}", stderr(&verified));
    let mut unprotect = wattlock();
    unprotect.args(["unprotect", "-i"]).arg(place.path("key.txt"));
    let piped = with_input(&mut unprotect, bytes);
    assert_eq!(piped.status.code(), Some(3), "{what}, piped: {}", stderr(&piped));
    let authentic = pattern(10_000_000);
    assert!(authentic.starts_with(&piped.stdout), "{what}: only authentic bytes come out");
    if !piped.stdout.is_empty() {
        assert!(stderr(&piped).contains("authentic but incomplete"), "{}", stderr(&piped));
    }
}

#[test]
fn a_byte_flipped_in_every_region() {
    let place = Place::new();
    let Parts { bytes, payload, chunks } = parts(&place, 50_000);
    let text = String::from_utf8_lossy(&bytes[..payload]).into_owned();
    let at = |what: &str| text.find(what).unwrap();
    let regions = [
        ("share", at("-> X25519 ") + 14),
        ("wrapped file key", at("-> X25519 ") + 60),
        ("salt of the data key", at("=> data-key ") + 15),
        ("sealed data key", at("=> data-key ") + 40),
        ("sealed metadata", at("=> metadata ") + 40),
        ("MAC", payload - 10),
        ("salt", payload + 3),
        ("commitment", payload + 30),
        ("first chunk", chunks + 100),
        ("first tag", chunks + SLOT - 1),
        ("middle chunk", chunks + 2 * SLOT - 100),
        ("last chunk", bytes.len() - 20),
        ("last tag", bytes.len() - 1),
    ];
    for (what, at) in regions {
        let mut flipped = bytes.clone();
        // In the header, one base64 letter for another.
        flipped[at] = if at >= payload {
            flipped[at] ^ 1
        } else if flipped[at] == b'x' {
            b'y'
        } else {
            b'x'
        };
        assert_refused(&place, what, &flipped);
    }
}

#[test]
fn a_header_cut_or_flipped_anywhere() {
    let place = Place::new();
    let Parts { bytes, payload, .. } = parts(&place, 10);
    for len in (12..payload).step_by(29) {
        assert_refused(&place, &format!("cut at {len}"), &bytes[..len]);
    }
    for at in (12..payload).step_by(17) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        assert_refused(&place, &format!("flipped at {at}"), &flipped);
    }
}

#[test]
fn a_payload_cut_grown_swapped_or_doubled() {
    let place = Place::new();
    let Parts { bytes, payload, chunks } = parts(&place, 50_000);
    let chunk = |index: usize| chunks + index * SLOT..chunks + (index + 1) * SLOT;
    let mut swapped = bytes.clone();
    swapped[chunk(0)].copy_from_slice(&bytes[chunk(1)]);
    swapped[chunk(1)].copy_from_slice(&bytes[chunk(0)]);
    let cases: [(&str, Vec<u8>); 9] = [
        ("cut in the prefix", bytes[..payload + 20].to_vec()),
        ("cut before the first chunk", bytes[..chunks].to_vec()),
        ("cut in a chunk", bytes[..chunks + SLOT + 1000].to_vec()),
        ("cut at a chunk boundary", bytes[..chunks + 2 * SLOT].to_vec()),
        ("one byte short", bytes[..bytes.len() - 1].to_vec()),
        ("swapped chunks", swapped),
        ("a chunk doubled", [&bytes[..chunk(1).end], &bytes[chunk(1).start..]].concat()),
        ("a chunk gone", [&bytes[..chunk(1).start], &bytes[chunk(1).end..]].concat()),
        ("bytes appended", [&bytes[..], b"appended"].concat()),
    ];
    for (what, bytes) in cases {
        assert_refused(&place, what, &bytes);
    }
}

#[test]
fn the_same_for_age() {
    let place = Place::new();
    let file = place.write("f", &pattern(300_000));
    let sealed = place.path("f.age");
    let made = wattlock()
        .args(["protect", "--format=age", "-r", &place.recipient])
        .arg(file)
        .output()
        .unwrap();
    assert_exit(&made, 0);
    let bytes = fs::read(sealed).unwrap();
    let slot = 64 * 1024 + 16;
    let chunks = bytes.windows(5).position(|w| w == b"\n--- ").unwrap() + 5 + 43 + 1 + 16;
    assert_refused(&place, "cut at a chunk boundary", &bytes[..chunks + 2 * slot]);
    assert_refused(&place, "cut in a chunk", &bytes[..chunks + 2 * slot + 99]);
    assert_refused(&place, "appended", &[&bytes[..], b"x"].concat());
    let mut flipped = bytes;
    flipped[chunks + 3 * slot] ^= 1;
    assert_refused(&place, "flipped", &flipped);
}

#[test]
fn what_came_out_before_the_fault_is_authentic_but_incomplete() {
    let place = Place::new();
    let len = 8_000_000;
    let Parts { mut bytes, .. } = parts(&place, len);
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    let mut unprotect = wattlock();
    unprotect.args(["unprotect", "-i"]).arg(place.path("key.txt"));
    let piped = with_input(&mut unprotect, &bytes);
    assert_exit(&piped, 3);
    assert!(!piped.stdout.is_empty() && piped.stdout.len() < len);
    assert!(pattern(len).starts_with(&piped.stdout));
    let said = stderr(&piped);
    assert!(said.contains(&format!("{} bytes", piped.stdout.len())), "{said}");
    assert!(said.contains("authentic but incomplete"), "{said}");
}

#[test]
fn wrong_keys_and_things_that_are_no_containers() {
    let place = Place::new();
    let path = place.container("f", b"text");
    place.keygen("other.txt");
    let other = wattlock()
        .args(["unprotect", "-i"])
        .arg(place.path("other.txt"))
        .arg(&path)
        .output()
        .unwrap();
    assert_exit(&other, 3);
    assert!(stderr(&other).contains("X25519") && stderr(&other).contains("-i"));
    assert_eq!(place.names(), ["f.wlk"]);
    for bytes in [&b""[..], b"\n", b"wattlock", b"wattlock/v2\n", b"plain text\n", &[0; 100]] {
        let path = place.write("d/f.wlk", bytes);
        let opened = place.open("unprotect", &[&path]);
        assert!(matches!(opened.status.code(), Some(1 | 3)), "{}", stderr(&opened));
        assert_eq!(place.names(), ["f.wlk"]);
        assert!(stdout(&opened).is_empty());
    }
}

#[test]
fn a_batch_ends_with_the_gravest_code_and_does_the_rest() {
    let place = Place::new();
    let (good, bad) = (place.container("good", b"good"), place.container("bad", b"bad"));
    let mut bytes = fs::read(&bad).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&bad, bytes).unwrap();
    let missing = place.path("d/missing.wlk");
    let opened = place.open("unprotect", &[&good, &bad]);
    assert_exit(&opened, 3);
    assert_eq!(place.names(), ["bad.wlk", "good", "good.wlk"]);
    assert_exit(&place.open("unprotect", &[&missing]), 1);
}
