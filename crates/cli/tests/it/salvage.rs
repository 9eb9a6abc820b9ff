//! `unprotect --salvage`: what is authentic of a damaged container, and nothing under the plain name.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{Place, assert_exit, pattern, stderr};

const LEN: usize = 3_000_000;

/// A container of the pattern in each format, the length of its chunks, and where they start.
fn containers(place: &Place) -> Vec<(PathBuf, usize, usize)> {
    let plain = place.write("f", &pattern(LEN));
    let made = [("wattlock", "wlk", 16 * 1024), ("age", "age", 64 * 1024)].map(
        |(format, suffix, chunk)| {
            let made =
                place.protect(&[OsStr::new("--format"), OsStr::new(format), plain.as_os_str()]);
            assert_exit(&made, 0);
            let path = place.path(format!("f.{suffix}"));
            let len = fs::metadata(&path).unwrap().len() as usize;
            let slots = (LEN / chunk + 1) * 16 + LEN;
            (path, chunk, len - slots)
        },
    );
    fs::remove_file(plain).unwrap();
    made.into()
}

fn salvage(place: &Place, file: &Path) -> Output {
    place.open("unprotect", &[OsStr::new("--salvage"), file.as_os_str()])
}

/// The ranges that a run said are lost.
fn lost(said: &str) -> Vec<Range<usize>> {
    let ranges = said.lines().filter_map(|line| line.split_once(": lost: bytes "));
    let range = |text: &str| {
        let (start, end) = text.split_once("..").unwrap();
        start.parse().unwrap()..end.parse().unwrap()
    };
    ranges.map(|(_, text)| range(text)).collect()
}

#[test]
fn twenty_flipped_bits_cost_the_chunks_that_they_are_in() {
    let place = Place::new();
    for (sealed, chunk, start) in containers(&place) {
        let mut bytes = fs::read(&sealed).unwrap();
        let mut hit = BTreeSet::new();
        for index in 0..20 {
            let at = start + (index * 149_993) % (bytes.len() - start);
            bytes[at] ^= 1 << (index % 8);
            hit.insert((at - start) / (chunk + 16));
        }
        fs::write(&sealed, &bytes).unwrap();
        let salvaged = salvage(&place, &sealed);
        assert_exit(&salvaged, 3);
        let mut expected = pattern(LEN);
        for index in &hit {
            let end = ((index + 1) * chunk).min(LEN);
            expected[index * chunk..end].fill(0);
        }
        let out = fs::read(place.path("f.salvaged")).unwrap();
        assert!(out == expected);
        let all: usize = lost(&stderr(&salvaged)).iter().map(|range| range.len()).sum();
        let wanted: usize =
            hit.iter().map(|index| ((index + 1) * chunk).min(LEN) - index * chunk).sum();
        assert_eq!(all, wanted);
        assert!(stderr(&salvaged).contains(&format!("{wanted} bytes are lost")));
        assert!(!place.path("f").exists());
        // An earlier result stays.
        assert_exit(&salvage(&place, &sealed), 1);
        fs::remove_file(place.path("f.salvaged")).unwrap();
        // Programs get the same ranges.
        let args = [OsStr::new("--salvage"), OsStr::new("--json"), sealed.as_os_str()];
        let json = place.open("unprotect", &args);
        assert_exit(&json, 3);
        let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        let ranges = document["files"][0]["lost"].as_array().unwrap().iter();
        let ranges = ranges.map(|pair| [&pair[0], &pair[1]].map(|n| n.as_u64().unwrap() as usize));
        let ranges: Vec<_> = ranges.map(|[start, end]| start..end).collect();
        assert_eq!(ranges, lost(&stderr(&salvaged)));
        fs::remove_file(place.path("f.salvaged")).unwrap();
    }
}

#[test]
fn a_cut_container_gives_what_it_has() {
    let place = Place::new();
    let _ = place.keygen("other.txt");
    for (sealed, chunk, start) in containers(&place) {
        let whole = fs::read(&sealed).unwrap();
        for (cut, kept) in [
            (start + 10 * (chunk + 16), 10 * chunk),
            (start + 10 * (chunk + 16) + 100, 10 * chunk),
            (whole.len() - 1, LEN / chunk * chunk),
        ] {
            fs::write(&sealed, &whole[..cut]).unwrap();
            let salvaged = salvage(&place, &sealed);
            assert_exit(&salvaged, 3);
            let out = fs::read(place.path("f.salvaged")).unwrap();
            assert!(out[..kept] == pattern(LEN)[..kept]);
            assert!(out[kept..].iter().all(|&byte| byte == 0));
            let said = stderr(&salvaged);
            assert!(said.contains("the end may be missing"), "{said}");
            fs::remove_file(place.path("f.salvaged")).unwrap();
        }
        // Too little for one chunk; a damaged header; another's key.
        fs::write(&sealed, &whole[..start + 100]).unwrap();
        assert_exit(&salvage(&place, &sealed), 3);
        let mut damaged = whole.clone();
        damaged[40] ^= 1;
        fs::write(&sealed, &damaged).unwrap();
        assert_exit(&salvage(&place, &sealed), 3);
        fs::write(&sealed, &whole).unwrap();
        let mut command = crate::support::wattlock();
        command.args(["unprotect", "--salvage", "-i"]).arg(place.path("other.txt")).arg(&sealed);
        assert_exit(&command.output().unwrap(), 3);
        assert!(!place.path("f.salvaged").exists() && !place.path("f").exists());
    }
}

#[test]
fn an_undamaged_container_comes_out_whole() {
    let place = Place::new();
    for (sealed, _, start) in containers(&place) {
        let salvaged = salvage(&place, &sealed);
        assert_exit(&salvaged, 0);
        assert!(fs::read(place.path("f.salvaged")).unwrap() == pattern(LEN));
        fs::remove_file(place.path("f.salvaged")).unwrap();
        // Of wattlock v1, the commitment is damaged and nothing else.
        if sealed.ends_with("f.wlk") {
            let mut bytes = fs::read(&sealed).unwrap();
            bytes[start - 1] ^= 1;
            fs::write(&sealed, bytes).unwrap();
            assert_exit(&place.open("verify", &[&sealed]), 3);
            let salvaged = salvage(&place, &sealed);
            assert_exit(&salvaged, 3);
            let said = stderr(&salvaged);
            assert!(said.contains("the key commitment is wrong"), "{said}");
            assert!(fs::read(place.path("f.salvaged")).unwrap() == pattern(LEN));
            fs::remove_file(place.path("f.salvaged")).unwrap();
        }
    }
}

#[test]
fn it_goes_with_nothing_that_writes_plain_names() {
    let place = Place::new();
    let file = place.container("f", b"text");
    for flag in ["--replace", "--resume", "--range=0..1", "--restore-name"] {
        let refused =
            place.open("unprotect", &[OsStr::new("--salvage"), OsStr::new(flag), file.as_os_str()]);
        assert_exit(&refused, 2);
    }
    let out = place.path("out");
    let named =
        [OsStr::new("--salvage"), file.as_os_str(), OsStr::new("--out-dir"), out.as_os_str()];
    assert_exit(&place.open("unprotect", &named), 0);
    assert_eq!(crate::support::names(&out), ["f.salvaged"]);
    let to_device =
        [OsStr::new("--salvage"), file.as_os_str(), OsStr::new("-o"), OsStr::new("/dev/null")];
    assert_exit(&place.open("unprotect", &to_device), 2);
    let shown = [OsStr::new("--salvage"), OsStr::new("-n"), file.as_os_str()];
    let shown = place.open("unprotect", &shown);
    assert!(crate::support::stdout(&shown).contains("f.salvaged"), "{shown:?}");
}

/// A sector that the disk cannot read costs the chunk that it is in.
#[test]
fn an_unreadable_sector_costs_its_chunk() {
    if !wattlock_testing::has_program("strace") {
        return;
    }
    let place = Place::new();
    for (sealed, chunk, _) in containers(&place) {
        let faulty = |which: &str| {
            let mut strace = std::process::Command::new("strace");
            strace.args(["-fqq", "-e", "trace=pread64", "-o"]).arg(place.path("trace"));
            // Chunks are read one after another, and nothing else is read as long as one.
            strace.args(["-e", &format!("inject=pread64:error=EIO:when={which}")]);
            strace.arg(crate::support::wattlock().get_program());
            strace.args(["unprotect", "--salvage", "-i"]).arg(place.path("key.txt"));
            strace.arg(&sealed).output().unwrap()
        };
        let traced = faulty("9");
        if !place.path("trace").exists() {
            return wattlock_testing::skip("ptrace", stderr(&traced));
        }
        assert_exit(&traced, 3);
        let ranges = lost(&stderr(&traced));
        let [range] = &ranges[..] else { panic!("{ranges:?}") };
        assert_eq!(range.len(), chunk);
        let mut expected = pattern(LEN);
        expected[range.clone()].fill(0);
        assert!(fs::read(place.path("f.salvaged")).unwrap() == expected);
        fs::remove_file(place.path("f.salvaged")).unwrap();
        // Where nothing can be read, that is what is said, and no output is made.
        let traced = faulty("1+");
        assert!(!traced.status.success());
        assert!(stderr(&traced).contains("cannot read"), "{}", stderr(&traced));
        assert!(!place.path("f.salvaged").exists());
    }
}
