//! What goes in comes out: sizes, formats, streams, ranges, names, modes, times.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use crate::support::{Place, assert_exit, pattern, stderr, stdout, wattlock, with_input};

#[test]
fn sizes_around_every_boundary_in_both_formats() {
    let place = Place::new();
    let kib = 1024;
    let lengths = [0usize, 1, 15, 16, 17].into_iter().chain(
        [16 * kib, 64 * kib, 496 * kib, 2048 * kib].into_iter().flat_map(|n| [n - 1, n, n + 1]),
    );
    for len in lengths {
        let plain = pattern(len);
        for format in ["wattlock", "age"] {
            let file = place.write("d/f", &plain);
            let sealed = place.path("sealed");
            for threads in ["1", "3"] {
                let made = wattlock()
                    .args(["protect", "-f", "--format", format, "--threads", threads, "-r"])
                    .args([OsStr::new(&place.recipient), file.as_os_str(), OsStr::new("-o")])
                    .arg(&sealed)
                    .output()
                    .unwrap();
                assert_exit(&made, 0);
                let opened = place.open("unprotect", &[sealed.as_os_str(), OsStr::new("-o-")]);
                assert_exit(&opened, 0);
                assert!(opened.stdout == plain, "{format}, {len} bytes, {threads} threads");
                assert_exit(&place.open("verify", &[&sealed]), 0);
            }
            // The same through pipes, where the length is unknown.
            let piped = with_input(
                wattlock().args(["protect", "--format", format, "-r", &place.recipient]),
                &plain,
            );
            assert_exit(&piped, 0);
            let mut unprotect = wattlock();
            unprotect.args(["unprotect", "-i"]).arg(place.path("key.txt"));
            let opened = with_input(&mut unprotect, &piped.stdout);
            assert_exit(&opened, 0);
            assert!(opened.stdout == plain, "{format}, {len} bytes through pipes");
        }
    }
}

#[test]
fn more_than_four_gibibytes() {
    let place = Place::new();
    let len = (4u64 << 30) + 12_345;
    let plain = place.path("d/sparse");
    fs::File::create(&plain).unwrap().set_len(len).unwrap();
    assert_exit(&place.protect(&[&plain]), 0);
    let sealed = place.path("d/sparse.wlk");
    let inspected = wattlock().args(["inspect", "--json"]).arg(&sealed).output().unwrap();
    assert!(stdout(&inspected).contains(&format!("\"plaintext_bytes\": {len}")));
    let tail = format!("{}..", len - 5);
    let mut unprotect = vec![sealed.as_os_str(), OsStr::new("-o-"), OsStr::new("--range")];
    unprotect.push(OsStr::new(&tail));
    let opened = place.open("unprotect", &unprotect);
    assert_exit(&opened, 0);
    assert_eq!(opened.stdout, [0; 5]);
}

#[test]
fn name_mode_and_time_come_back() {
    let place = Place::new();
    let file = place.write("d/report.txt", b"text");
    let modified = SystemTime::UNIX_EPOCH + Duration::new(981_173_106, 123_456_789);
    fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert_exit(&place.protect(&[&file]), 0);
    fs::remove_file(&file).unwrap();
    // The container itself may have changed hands; what is sealed counts.
    let renamed = place.path("d/renamed.wlk");
    fs::rename(place.path("d/report.txt.wlk"), &renamed).unwrap();
    fs::set_permissions(&renamed, fs::Permissions::from_mode(0o600)).unwrap();
    assert_exit(&place.open("unprotect", &[OsStr::new("-N"), renamed.as_os_str()]), 0);
    let status = fs::metadata(&file).unwrap();
    assert_eq!(status.permissions().mode() & 0o7777, 0o640);
    assert_eq!(status.modified().unwrap(), modified);
    let shown = place.open("inspect", &[&renamed]);
    let said = stdout(&shown);
    assert!(said.contains("report.txt") && said.contains("0640"), "{said}");
    assert!(said.contains("2001-02-03T04:05:06Z\n") && !said.contains("981173106"), "{said}");
    let len = "4 bytes (4 B), worked out from the container's length, not verified";
    assert!(said.contains(len), "{said}");
    let json = place.open("inspect", &[OsStr::new("--json"), renamed.as_os_str()]);
    assert!(stdout(&json).contains("\"modified_unix_s\": 981173106"), "{}", stdout(&json));
    // Without a key, none of it shows.
    let shown = wattlock().arg("inspect").arg(&renamed).output().unwrap();
    assert!(!stdout(&shown).contains("report") && !stdout(&shown).contains("0640"));
    assert!(!fs::read(&renamed).unwrap().windows(6).any(|window| window == b"report"));
}

#[test]
fn metadata_can_be_left_out() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    assert_exit(&place.protect(&[OsStr::new("--no-metadata"), file.as_os_str()]), 0);
    let shown = place.open("inspect", &[place.path("d/f.wlk")]);
    assert!(stdout(&shown).contains("metadata    none"), "{}", stdout(&shown));
}

#[test]
fn names_that_are_not_utf8() {
    let place = Place::new();
    let name = OsStr::from_bytes(b"d/caf\xe9 \xff\n.txt");
    let file = place.write(name, b"text");
    assert_exit(&place.protect(&[&file]), 0);
    fs::remove_file(&file).unwrap();
    let mut sealed = file.clone().into_os_string();
    sealed.push(".wlk");
    assert_exit(&place.open("unprotect", &[&sealed]), 0);
    assert_eq!(fs::read(&file).unwrap(), b"text");
    fs::remove_file(&file).unwrap();
    assert_exit(&place.open("unprotect", &[OsStr::new("-N"), &sealed]), 0);
    assert_eq!(fs::read(&file).unwrap(), b"text");
}

#[test]
fn ranges_give_just_those_bytes_and_read_just_those_chunks() {
    let place = Place::new();
    let plain = pattern(200_000);
    for format in ["wattlock", "age"] {
        let file = place.write("d/f", &plain);
        let sealed = place.path("sealed");
        let mut protect = vec![OsStr::new("-f"), OsStr::new("--format"), OsStr::new(format)];
        protect.extend([file.as_os_str(), OsStr::new("-o"), sealed.as_os_str()]);
        assert_exit(&place.protect(&protect), 0);
        let ranges = [
            (0, 0),
            (0, 1),
            (16383, 16385),
            (16384, 32768),
            (65535, 65537),
            (199_999, 200_000),
            (200_000, 200_000),
            (5, 199_995),
            (0, 200_000),
        ];
        for (start, end) in ranges {
            let range = format!("{start}..{end}");
            let args = [sealed.as_os_str(), OsStr::new("-o-"), OsStr::new("--range")];
            let opened = place.open("unprotect", &[&args[..], &[OsStr::new(&range)]].concat());
            assert_exit(&opened, 0);
            assert!(opened.stdout == plain[start..end], "{format} {range}");
            let part = place.path("part");
            let args = [sealed.as_os_str(), OsStr::new("-fo"), part.as_os_str()];
            let range = [OsStr::new("--range"), OsStr::new(&range)];
            assert_exit(&place.open("unprotect", &[&args[..], &range].concat()), 0);
            assert!(fs::read(&part).unwrap() == plain[start..end]);
        }
        // A fault in a chunk that is not asked for does no harm; in one that is, it does.
        let mut bytes = fs::read(&sealed).unwrap();
        let at = bytes.len() - 100_000;
        bytes[at] ^= 1;
        fs::write(&sealed, bytes).unwrap();
        let open = |range| {
            let args = [sealed.as_os_str(), OsStr::new("-o-"), OsStr::new("--range")];
            place.open("unprotect", &[&args[..], &[OsStr::new(range)]].concat())
        };
        assert_exit(&open("0..60000"), 0);
        assert_exit(&open("190000.."), 0);
        assert_exit(&open("60000..150000"), 3);
        assert_exit(&open("200001.."), 2);
        // The end of a truncated container is unknown.
        fs::write(&sealed, &fs::read(&sealed).unwrap()[..150_000]).unwrap();
        assert_exit(&open("200001.."), 3);
    }
}

#[test]
fn json_summary_says_bytes_seconds_and_threads() {
    let place = Place::new();
    let file = place.write("d/f", &pattern(100_000));
    let args = [OsStr::new("--json"), OsStr::new("--threads=2"), file.as_os_str()];
    let made = place.protect(&args);
    assert_exit(&made, 0);
    let summary: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(summary["in_bytes"], 100_000);
    assert_eq!(summary["threads"], 2);
    assert_eq!(summary["files"][0]["status"], "done");
    assert_eq!(summary["devices"][0]["name"], "cpu");
    for key in ["wall_ns", "cpu_ns", "out_bytes"] {
        assert!(summary[key].as_u64().unwrap() > 0, "{key}");
    }
    assert!(stderr(&made).is_empty(), "silent where there is no terminal");
    // Where standard output is taken, the summary goes to standard error.
    let args = [OsStr::new("--json"), OsStr::new("-o-"), file.as_os_str()];
    let made = place.protect(&args);
    assert!(made.stdout.starts_with(b"wattlock/v1\n"));
    assert!(serde_json::from_slice::<serde_json::Value>(&made.stderr).is_ok());
}
