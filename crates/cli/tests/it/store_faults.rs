//! Objects in a store that fails, and programs that are ended while they use one. It is long because it
//! lists what a store may do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};

use wattlock_testing::wait_until;
use wattlock_testing_store::{Fault, Seen, StoreServer};

use crate::support::stores::{LONG, Stored};
use crate::support::{assert_exit, pattern, signal, stderr, stdout};

/// The faults of every request whose method and target match, as long as `times` lasts.
fn at(
    method: &'static str,
    part: &'static str,
    times: usize,
    fault: Fault,
) -> impl FnMut(&Seen) -> Option<Fault> + Send + 'static {
    let mut left = times;
    move |seen| {
        let meant = seen.method == method && seen.target.contains(part) && left > 0;
        left -= usize::from(meant);
        meant.then_some(fault)
    }
}

#[test]
fn faults_of_the_store_are_repaired() {
    let s = Stored::new();
    let bytes = pattern(LONG);
    fs::write(s.place.path("a.bin"), &bytes).unwrap();
    let put = ["-f", "a.bin", "-o", "s3://bucket/a.wlk"];
    let part = "partNumber=2";
    for (method, target, fault) in [
        ("PUT", part, Fault::Status(500, "InternalError")),
        ("PUT", part, Fault::Status(503, "SlowDown")),
        ("PUT", part, Fault::Cut),
        ("PUT", part, Fault::CutAfter),
        ("POST", "uploads", Fault::Status(503, "SlowDown")),
        ("POST", "uploadId", Fault::CutAfter),
    ] {
        s.server.break_with(at(method, target, 2, fault));
        s.protect(0, &put);
        s.server.repair();
        assert!(s.server.unfinished() <= 1, "{fault:?}");
        s.open(0, "unprotect", &["-f", "s3://bucket/a.wlk", "-o", "b.bin"]);
        assert!(fs::read(s.place.path("b.bin")).unwrap() == bytes, "{method} {fault:?}");
    }
    for fault in [
        Fault::Status(500, "InternalError"),
        Fault::Status(503, "SlowDown"),
        Fault::Cut,
        Fault::CutAnswer(5_000),
    ] {
        let _ = fs::remove_file(s.place.path("b.bin"));
        s.server.break_with(at("GET", "a.wlk", 2, fault));
        s.open(0, "unprotect", &["s3://bucket/a.wlk", "-o", "b.bin"]);
        s.server.repair();
        assert!(fs::read(s.place.path("b.bin")).unwrap() == bytes, "{fault:?}");
    }
    // A new small object whose answer is lost is known again, and is no other's.
    fs::write(s.place.path("small"), b"small").unwrap();
    s.server.break_with(at("PUT", "small", 1, Fault::CutAfter));
    s.protect(0, &["small", "-o", "s3://bucket/small.wlk"]);
    s.server.repair();
    s.protect(1, &["small", "-o", "s3://bucket/small.wlk"]);
    s.open(0, "verify", &["s3://bucket/small.wlk"]);
}

#[test]
fn a_busy_store_is_asked_again_when_it_says() {
    let s = Stored::new();
    let bytes = pattern(LONG);
    fs::write(s.place.path("a.bin"), &bytes).unwrap();
    let busy = Fault::Rewrite(|answer| {
        *answer.status_mut() = 503.try_into().unwrap();
        answer.headers_mut().insert("retry-after", "0".parse().unwrap());
    });
    // More often than without such a word.
    s.server.break_with(at("PUT", "partNumber=2", 12, busy));
    s.protect(0, &["a.bin", "-o", "s3://bucket/a.wlk"]);
    s.server.break_with(at("GET", "a.wlk", 12, busy));
    s.open(0, "unprotect", &["s3://bucket/a.wlk", "-o", "b.bin"]);
    assert!(fs::read(s.place.path("b.bin")).unwrap() == bytes);
    let busy = Fault::Rewrite(|answer| {
        *answer.status_mut() = 429.try_into().unwrap();
        answer.headers_mut().insert("retry-after", "3600".parse().unwrap());
    });
    s.server.break_with(at("GET", "a.wlk", 9, busy));
    let said = s.open(1, "verify", &["s3://bucket/a.wlk"]);
    assert!(said.contains("busy (status 429)") && said.contains("3600 s"), "{said}");
}

#[test]
fn answers_without_a_length_are_read() {
    let s = Stored::new();
    let bytes = pattern(LONG);
    fs::write(s.place.path("a.bin"), &bytes).unwrap();
    s.protect(0, &["a.bin", "-o", "s3://bucket/a.wlk"]);
    let chunked = Fault::Rewrite(|answer| {
        answer.headers_mut().insert("transfer-encoding", "chunked".parse().unwrap());
    });
    let whole = Fault::Rewrite(|answer| {
        *answer.status_mut() = 200.try_into().unwrap();
        answer.headers_mut().remove("content-range");
        answer.headers_mut().insert("transfer-encoding", "chunked".parse().unwrap());
    });
    let no_total = Fault::Rewrite(|answer| {
        answer.headers_mut().insert("content-range", "bytes 0-4095/*".parse().unwrap());
    });
    for fault in [chunked, whole, no_total] {
        s.server.break_with(move |seen| (seen.method == "GET").then_some(fault));
        s.open(0, "unprotect", &["-f", "s3://bucket/a.wlk", "-o", "b.bin"]);
        assert!(fs::read(s.place.path("b.bin")).unwrap() == bytes);
        fs::remove_file(s.place.path("b.bin")).unwrap();
    }
}

#[test]
fn messages_say_what_happened() {
    let s = Stored::new();
    fs::write(s.place.path("a.bin"), pattern(LONG)).unwrap();
    s.protect(0, &["a.bin", "-o", "s3://bucket/a.wlk"]);
    // An answer that ends early is asked for again, and is no change of the object.
    let short = Fault::Rewrite(|answer| answer.body_mut().truncate(1000));
    let get = ["-f", "s3://bucket/a.wlk", "-o", "b.bin"];
    s.server.break_with(at("GET", "a.wlk", 2, short));
    s.open(0, "unprotect", &get);
    s.server.break_with(at("GET", "a.wlk", 99, short));
    let said = s.open(1, "unprotect", &get);
    assert!(said.contains("ended after 1000 of"), "{said}");
    // A proxy that compresses.
    s.server.break_with(at(
        "GET",
        "a.wlk",
        9,
        Fault::Rewrite(|answer| {
            answer.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
            answer.body_mut()[..2].copy_from_slice(b"\x1f\x8b");
        }),
    ));
    let said = s.open(1, "unprotect", &get);
    assert!(said.contains("compressed the answer (Content-Encoding: gzip)"), "{said}");
    s.server.break_with(at(
        "GET",
        "a.wlk",
        99,
        Fault::Rewrite(|answer| {
            answer.headers_mut().insert("content-encoding", "aws-chunked".parse().unwrap());
        }),
    ));
    s.open(0, "unprotect", &get);
    // An upload that was aborted meanwhile.
    s.server.break_with(at("PUT", "partNumber=2", 9, Fault::Status(404, "NoSuchUpload")));
    let said = s.protect(1, &["a.bin", "-o", "s3://bucket/new.wlk"]);
    assert!(said.contains("the store no longer has the upload"), "{said}");
    // Nothing gives credentials, and the machine's own service refuses.
    s.server.break_with(at("PUT", "/latest/api/token", 9, Fault::Status(403, "Forbidden")));
    let mut command = s.wattlock(&["verify", "-i", "key.txt", "s3://bucket/a.wlk"]);
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    let ended = command.env("AWS_METADATA_ENDPOINT", s.server.endpoint()).output().unwrap();
    assert_exit(&ended, 1);
    assert!(stderr(&ended).contains("no credentials were found"), "{}", stderr(&ended));
    s.server.repair();
}

/// Where a store redirects to.
static ELSEWHERE: OnceLock<String> = OnceLock::new();

#[test]
fn a_redirect_takes_no_credentials_along() {
    let (s, other) = (Stored::new(), StoreServer::new());
    fs::write(s.place.path("a"), b"a").unwrap();
    s.protect(0, &["a", "-o", "s3://bucket/a.wlk"]);
    let _ = ELSEWHERE.set(format!("{}/bucket/a.wlk", other.endpoint()));
    let redirect = Fault::Rewrite(|answer| {
        *answer.status_mut() = 307.try_into().unwrap();
        answer.headers_mut().insert("location", ELSEWHERE.wait().parse().unwrap());
    });
    s.server.break_with(move |_| Some(redirect));
    for args in [
        &["unprotect", "-i", "key.txt", "s3://bucket/a.wlk", "-o", "b"][..],
        &["protect", "-i", "key.txt", "-f", "a", "-o", "s3://bucket/b.wlk"],
        &["doctor", "s3://bucket"],
    ] {
        let ended = s.wattlock(args).env("AWS_SESSION_TOKEN", "a-token").output().unwrap();
        assert_exit(&ended, 1);
        let said = stderr(&ended);
        assert!(said.contains("redirects the request to 127.0.0.1"), "{said}");
        assert!(!said.contains("a-token"), "{said}");
    }
    assert!(other.take_requests().is_empty());
}

#[test]
fn what_cannot_be_repaired_is_said_and_leaves_nothing() {
    let s = Stored::new();
    fs::write(s.place.path("a.bin"), pattern(LONG)).unwrap();
    s.protect(0, &["a.bin", "-o", "s3://bucket/a.wlk"]);
    let get = ["s3://bucket/a.wlk", "-o", "b.bin"];

    // Replaced, and removed, while it is read.
    let path = s.server.path("a.wlk");
    let sealed = fs::read(&path).unwrap();
    let other = fs::read(&path).unwrap();
    let mut reads = 0;
    s.server.break_with(move |seen| {
        reads += usize::from(seen.method == "GET");
        (reads == 2).then_some(Fault::Status(412, "PreconditionFailed"))
    });
    let said = s.open(1, "unprotect", &get);
    assert!(said.contains("changed meanwhile") && !said.contains("authentic"), "{said}");
    let mut reads = 0;
    let gone = path.clone();
    s.server.break_with(move |seen| {
        reads += usize::from(seen.method == "GET");
        if reads == 2 {
            let _ = fs::remove_file(&gone);
        }
        None
    });
    let said = s.open(1, "unprotect", &get);
    assert!(said.contains("removed meanwhile"), "{said}");
    s.server.repair();
    let said = s.open(1, "unprotect", &get);
    assert!(said.contains("s3://bucket/a.wlk: no such object"), "{said}");
    assert!(!s.place.path("b.bin").exists());
    fs::write(&path, &sealed).unwrap();
    // A store that knows no conditions, and serves another version.
    s.server.ignore_conditions();
    let mut reads = 0;
    let replaced = path;
    s.server.break_with(move |seen| {
        reads += usize::from(seen.method == "GET");
        if reads == 2 {
            fs::write(&replaced, &other[1..]).unwrap();
        }
        None
    });
    let said = s.open(1, "unprotect", &get);
    assert!(said.contains("changed meanwhile"), "{said}");

    for code in ["ExpiredToken", "AccessDenied"] {
        s.server.break_with(at("PUT", "partNumber=3", 9, Fault::Status(403, code)));
        let said = s.protect(1, &["a.bin", "-o", "s3://bucket/new.wlk"]);
        assert!(said.contains("access denied") && said.contains(code), "{said}");
        assert_eq!((s.server.get("new.wlk"), s.server.unfinished()), (None, 0));
    }
    s.server.repair();
    let said = s.open(1, "verify", &["--recursive", "s3://nowhere/new"]);
    assert!(said.contains("no such bucket"), "{said}");
    let mut wrong = s.protecting(&["a.bin", "-o", "s3://bucket/new.wlk"]);
    let ended = wrong.env("AWS_SECRET_ACCESS_KEY", "another").output().unwrap();
    assert_exit(&ended, 1);
    assert!(stderr(&ended).contains("access denied"), "{}", stderr(&ended));
    // Someone else is faster.
    let s = Stored::new();
    fs::write(s.place.path("a.bin"), pattern(LONG)).unwrap();
    let raced = s.server.path("raced.wlk");
    s.server.break_with(move |seen| {
        if seen.target.contains("partNumber=3") {
            fs::write(&raced, b"another's").unwrap();
        }
        None
    });
    let said = s.protect(1, &["a.bin", "-o", "s3://bucket/raced.wlk"]);
    assert!(said.contains("exists already"), "{said}");
    assert_eq!(s.server.get("raced.wlk").unwrap(), b"another's");
    assert_eq!(s.server.unfinished(), 0);
}

#[test]
fn a_signal_aborts_the_upload() {
    let s = Stored::new();
    fs::write(s.place.path("a.bin"), pattern(LONG)).unwrap();
    let (sender, seen_parts) = channel();
    s.server.break_with(move |seen| {
        seen.target.contains("partNumber").then(|| {
            let _ = sender.send(());
            Fault::Status(503, "SlowDown")
        })
    });
    let mut child = s.protecting(&["a.bin", "-o", "s3://bucket/a.wlk"]).spawn().unwrap();
    seen_parts.recv().unwrap();
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert_eq!((s.server.unfinished(), s.server.get("a.wlk")), (0, None));
}

#[test]
fn a_signal_while_an_upload_begins_leaves_none() {
    let s = Stored::new();
    fs::write(s.place.path("a.bin"), pattern(LONG)).unwrap();
    for spool in [&[][..], &["--spool", "spool"]] {
        for _ in 0..4 {
            let child = Arc::new(OnceLock::<Child>::new());
            let signalled = Arc::clone(&child);
            s.server.break_with(move |seen| {
                if seen.method == "POST" && seen.target.contains("uploads") {
                    let child = signalled.wait();
                    signal(child, "-INT");
                    // It is on its way to the end before it hears that the upload has begun.
                    wait_until("the signal", || !is_pending(child.id()));
                }
                None
            });
            let mut command = s.protecting(&["a.bin", "--out-dir", "s3://bucket"]);
            command.args(spool).stderr(Stdio::null());
            let _ = child.set(command.spawn().unwrap());
            assert!(!wait_for(child.get().unwrap()));
            s.server.repair();
            assert_eq!(s.server.get("a.bin.wlk"), None);
            // One with a spool goes on, and is completed.
            let left = s.server.unfinished();
            if !spool.is_empty() {
                let resumed = ["protect", "-i", "key.txt", "--resume", "a.bin"];
                let resumed =
                    s.wattlock(&resumed).args(["--out-dir", "s3://bucket"]).args(spool).output();
                assert_exit(&resumed.unwrap(), 0);
                fs::remove_file(s.server.path("a.bin.wlk")).unwrap();
            }
            assert_eq!(s.server.unfinished(), 0, "of {left}");
        }
    }
}

/// True while a signal was sent to a process that none of its threads has taken yet.
fn is_pending(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pending =
        status.lines().filter(|line| line.starts_with("ShdPnd:") || line.starts_with("SigPnd:"));
    pending.flat_map(|line| line.chars()).any(|digit| ('1'..='9').contains(&digit))
}

/// Kills the program when it makes its `n`-th request, before or after that is answered. True if it came to
/// that.
fn kill_at(s: &Stored, command: &mut Command, n: usize, after: bool) -> bool {
    let child = Arc::new(OnceLock::<Child>::new());
    let (killed, count) = (Arc::clone(&child), AtomicUsize::new(0));
    s.server.break_with(move |_| {
        let count = count.fetch_add(1, Ordering::SeqCst) + 1;
        let kill = || {
            let child = killed.wait();
            signal(child, "-KILL");
        };
        match (count == n, after) {
            (true, false) => {
                kill();
                Some(Fault::Cut)
            }
            // The next request may come before the answer to this one.
            (true, true) => {
                kill();
                None
            }
            _ => None,
        }
    });
    let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _ = child.set(started);
    // The server's closure holds it, too.
    let ended = wait_for(child.get().unwrap());
    s.server.repair();
    !ended
}

/// Waits until a child has ended; true if that was by itself.
fn wait_for(child: &Child) -> bool {
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    let (_, status) = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())
        .unwrap()
        .unwrap();
    status.exit_status() == Some(0)
}

#[test]
fn after_a_kill_there_is_no_object_or_all_of_it() {
    let s = Stored::new();
    let mut files = BTreeMap::from([("tree/long", pattern((9 << 20) + 3))]);
    for name in ["tree/a", "tree/b", "tree/c", "tree/d", "tree/e", "tree/f", "tree/g", "tree/h"] {
        files.insert(name, name.as_bytes().to_vec());
    }
    for (path, bytes) in &files {
        s.write(path, bytes);
    }
    let mut moments = 0;
    for (run, after) in [(0, false), (1, true), (2, false), (3, true)] {
        let out = format!("s3://bucket/{run}");
        let spool = ["--spool", "spool"];
        let spool = if run < 2 { &[][..] } else { &spool[..] };
        for n in 1.. {
            let args = ["-i", "key.txt", "--resume", "--recursive", "tree", "--out-dir", &out];
            let mut command = s.wattlock(&["protect"]);
            command.args(args).args(spool);
            if !kill_at(&s, &mut command, n, after) {
                break;
            }
            moments += 1;
            if s.server.keys().iter().any(|key| key.starts_with(&format!("{run}/"))) {
                s.open(0, "verify", &["--recursive", &out]);
            }
            // From the start again, for the next moment.
            if n % 2 == 0 {
                let _ = fs::remove_dir_all(s.server.path(&run.to_string()));
            }
        }
        let top = format!("s3://bucket/{run}");
        s.open(0, "unprotect", &["--recursive", &top, "--out-dir", "out"]);
        s.assert_tree(&format!("out/{run}"), &files);
    }
    assert!(moments >= 50, "{moments}");
    assert_eq!(fs::read_dir(s.place.path("spool")).unwrap().count(), 0);

    // What is left of killed uploads is listed, and removed when that is asked for.
    let listed = s.wattlock(&["doctor", "s3://bucket"]).output().unwrap();
    assert_exit(&listed, 0);
    assert!(stdout(&listed).contains("tree/long.wlk"), "{}", stdout(&listed));
    let kept = ["doctor", "s3://bucket", "--clean-uploads"];
    assert_exit(&s.wattlock(&kept).output().unwrap(), 0);
    assert!(s.server.unfinished() > 0, "younger than a day");
    let cleaned = s.wattlock(&["doctor", "s3://bucket", "--clean-uploads=0"]).output().unwrap();
    assert_exit(&cleaned, 0);
    assert!(stdout(&cleaned).contains("aborted"), "{}", stdout(&cleaned));
    assert_eq!(s.server.unfinished(), 0);
}

#[test]
fn a_spooled_upload_goes_on_with_the_same_bytes() {
    let s = Stored::new();
    fs::write(s.place.path("a.bin"), pattern(LONG)).unwrap();
    let args = [
        "protect",
        "-i",
        "key.txt",
        "--resume",
        "a.bin",
        "--out-dir",
        "s3://bucket",
        "--spool",
        "sp",
    ];
    let interrupted = |s: &Stored| {
        s.server.break_with(at("PUT", "partNumber=3", 99, Fault::Status(403, "AccessDenied")));
        assert_exit(&s.wattlock(&args).output().unwrap(), 1);
        s.server.repair();
        s.server.take_requests();
        let mut copies =
            fs::read_dir(s.place.path("sp")).unwrap().map(|entry| entry.unwrap().path());
        fs::read(copies.find(|path| path.extension().unwrap() == "sealed").unwrap()).unwrap()
    };
    let copy = interrupted(&s);
    assert_exit(&s.wattlock(&args).output().unwrap(), 0);
    let requests = s.server.take_requests();
    let parts = requests.iter().filter(|seen| seen.target.contains("partNumber")).count();
    assert_eq!(parts, 1, "only what was missing");
    assert!(s.server.get("a.bin.wlk").unwrap() == copy);
    assert_eq!(fs::read_dir(s.place.path("sp")).unwrap().count(), 0);

    // The store has forgotten the upload.
    fs::remove_file(s.server.path("a.bin.wlk")).unwrap();
    let copy = interrupted(&s);
    assert_exit(&s.wattlock(&["doctor", "s3://bucket", "--clean-uploads=0"]).output().unwrap(), 0);
    assert_exit(&s.wattlock(&args).output().unwrap(), 0);
    assert!(s.server.get("a.bin.wlk").unwrap() == copy);

    // The file has changed: it is sealed anew, under another key.
    fs::remove_file(s.server.path("a.bin.wlk")).unwrap();
    let copy = interrupted(&s);
    let changed = pattern(LONG - 1);
    fs::write(s.place.path("a.bin"), &changed).unwrap();
    assert_exit(&s.wattlock(&args).output().unwrap(), 0);
    let sent = s.server.get("a.bin.wlk").unwrap();
    assert!(sent[..400] != copy[..400]);
    s.open(0, "unprotect", &["s3://bucket/a.bin.wlk", "-o", "b.bin"]);
    assert!(fs::read(s.place.path("b.bin")).unwrap() == changed);
    assert_eq!(s.server.unfinished(), 0);
}

#[test]
fn an_original_goes_only_after_its_object_is_read_back() {
    let s = Stored::new();
    let bytes = pattern(LONG);
    let replace = ["--replace", "a.bin", "--out-dir", "s3://bucket"];
    fs::write(s.place.path("a.bin"), &bytes).unwrap();
    // The store damages what it keeps.
    let path = s.server.path("a.bin.wlk");
    let mut is_damaged = false;
    s.server.break_with(move |seen| {
        if seen.method == "GET" && path.exists() && !is_damaged {
            let mut damaged = fs::read(&path).unwrap();
            damaged[1_000_000] ^= 1;
            fs::write(&path, damaged).unwrap();
            is_damaged = true;
        }
        None
    });
    s.protect(3, &replace);
    assert!(s.place.path("a.bin").exists() && s.server.get("a.bin.wlk").is_none());
    s.server.repair();
    s.protect(0, &replace);
    assert!(!s.place.path("a.bin").exists());

    // The other way: the object goes, if it is still the same.
    s.open(0, "unprotect", &["--replace", "s3://bucket/a.bin.wlk", "--out-dir", "."]);
    assert!(fs::read(s.place.path("a.bin")).unwrap() == bytes);
    assert!(s.server.keys().is_empty(), "{:?}", s.server.keys());
    s.protect(0, &["a.bin", "-o", "s3://bucket/a.bin.wlk"]);
    fs::remove_file(s.place.path("a.bin")).unwrap();
    s.server.ignore_conditions();
    let said = s.open(2, "unprotect", &["--replace", "s3://bucket/a.bin.wlk", "--out-dir", "."]);
    assert!(said.contains("If-Match"), "{said}");
    assert_eq!(s.server.keys(), ["a.bin.wlk"]);
}
