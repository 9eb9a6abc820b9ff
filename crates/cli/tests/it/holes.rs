//! Files with holes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use wattlock_testing::skip;

use crate::support::{Place, assert_exit, stdout};

const LEN: u64 = 8 << 20;

/// A file of 8 MiB with a little data at its start, in its middle and before a hole at its end; false,
/// with the reason said, if the file system keeps no holes.
fn sparse(path: &Path) -> bool {
    let file = File::create_new(path).unwrap();
    file.set_len(LEN).unwrap();
    for at in [0, 1_000_001, LEN - (1 << 20) - 17] {
        file.write_all_at(b"some data, which is not zero", at).unwrap();
    }
    file.sync_all().unwrap();
    let kept = is_sparse(path);
    if !kept {
        skip("holes", "this file system keeps no holes");
    }
    kept
}

fn is_sparse(path: &Path) -> bool {
    fs::metadata(path).unwrap().blocks() * 512 < LEN / 4
}

#[test]
fn holes_are_kept() {
    let place = Place::new();
    let file = place.path("image");
    if !sparse(&file) {
        return;
    }
    let original = fs::read(&file).unwrap();
    assert_exit(&place.protect(&[OsStr::new("--replace"), file.as_os_str()]), 0);
    let sealed = place.path("image.wlk");
    assert!(!is_sparse(&sealed));
    let shown = place.open("inspect", &[sealed.as_os_str()]);
    assert!(stdout(&shown).contains("sparse"), "{}", stdout(&shown));
    let shown = place.open("inspect", &[OsStr::new("--json"), sealed.as_os_str()]);
    assert!(stdout(&shown).contains("\"sparse\": true"), "{}", stdout(&shown));
    assert_exit(&place.open("unprotect", &[OsStr::new("--replace"), sealed.as_os_str()]), 0);
    assert!(fs::read(&file).unwrap() == original);
    assert!(is_sparse(&file));
}

#[test]
fn zeros_that_are_no_hole_stay_data() {
    let place = Place::new();
    let file = place.write("zeros", &vec![0; LEN as usize]);
    assert_exit(&place.protect(&[&file]), 0);
    fs::remove_file(&file).unwrap();
    assert_exit(&place.open("unprotect", &[place.path("zeros.wlk")]), 0);
    assert_eq!(fs::metadata(&file).unwrap().len(), LEN);
    if !sparse(&place.path("other")) {
        return;
    }
    File::open(&file).unwrap().sync_all().unwrap();
    assert!(!is_sparse(&file));
}

/// age's format has no place to note holes.
#[test]
fn without_a_note_the_bytes_are_the_same() {
    let place = Place::new();
    let file = place.path("image");
    if !sparse(&file) {
        return;
    }
    let original = fs::read(&file).unwrap();
    for args in [&["--format", "age"][..], &["--no-metadata"]] {
        let sealed = place.path("sealed");
        let out = place.path("out");
        let mut args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        args.extend([file.as_os_str(), OsStr::new("-o"), sealed.as_os_str()]);
        assert_exit(&place.protect(&args), 0);
        assert_exit(&place.open("unprotect", &[&sealed, Path::new("-o"), &out]), 0);
        assert!(fs::read(&out).unwrap() == original);
        fs::remove_file(sealed).unwrap();
        fs::remove_file(out).unwrap();
    }
}
