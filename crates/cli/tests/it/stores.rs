//! Objects in stores as inputs and outputs: `s3://…`, against a server in this process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use wattlock_testing_store::{Fault, KEY, SECRET};

use crate::support::stores::{LONG, Stored};
use crate::support::{assert_exit, pattern, stderr, stdout, with_input};

#[test]
fn a_file_goes_to_a_store_and_back() {
    let s = Stored::new();
    for (len, parts) in [(0, 0), (20_000, 0), (LONG, 3)] {
        let bytes = pattern(len);
        fs::write(s.place.path("a.bin"), &bytes).unwrap();
        fs::set_permissions(s.place.path("a.bin"), fs::Permissions::from_mode(0o640)).unwrap();
        s.protect(0, &["-f", "a.bin", "-o", "s3://bucket/x/a.wlk"]);
        let sent = s.server.take_requests();
        let sent = sent.iter().filter(|seen| seen.target.contains("partNumber")).count();
        assert_eq!(sent, parts, "{len}");
        assert_eq!(s.server.unfinished(), 0);

        s.open(0, "unprotect", &["-f", "s3://bucket/x/a.wlk", "-o", "b.bin"]);
        assert!(fs::read(s.place.path("b.bin")).unwrap() == bytes, "{len}");
        let mode = fs::metadata(s.place.path("b.bin")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        s.open(0, "verify", &["s3://bucket/x/a.wlk"]);
        let shown = s.open(0, "inspect", &["s3://bucket/x/a.wlk"]);
        assert!(shown.contains(&format!("{len} bytes")) && shown.contains("a.bin"), "{shown}");
    }
    // What is in the store is a container like any other.
    fs::write(s.place.path("copy.wlk"), s.server.get("x/a.wlk").unwrap()).unwrap();
    s.open(0, "verify", &["copy.wlk"]);
}

#[test]
fn formats_pipes_and_objects_go_either_way() {
    let s = Stored::new();
    let bytes = pattern(LONG);
    for (options, name) in [(&["--format", "age"][..], "a.age"), (&["--format=age", "-a"], "b.age")]
    {
        let address = format!("s3://bucket/{name}");
        let mut command = s.protecting(options);
        let made = with_input(command.args(["-", "-o", &address]), &bytes);
        assert_exit(&made, 0);
        let opened =
            s.wattlock(&["unprotect", "-i", "key.txt", &address, "-o", "-"]).output().unwrap();
        assert!(opened.stdout == bytes, "{name}");
    }
    // From a store to a store.
    s.server.put("plain.bin", &bytes);
    s.protect(0, &["s3://bucket/plain.bin"]);
    s.open(2, "unprotect", &["s3://bucket/plain.bin.wlk"]);
    s.open(0, "unprotect", &["s3://bucket/plain.bin.wlk", "-o", "s3://bucket/again.bin"]);
    assert!(s.server.get("again.bin").unwrap() == bytes);
    s.open(0, "unprotect", &["s3://bucket/plain.bin.wlk", "--out-dir", "s3://bucket/out"]);
    assert!(s.server.get("out/plain.bin").unwrap() == bytes);
    // An address of a file is a path.
    let file = format!("file://{}/c.bin", s.place.path("").display());
    s.open(0, "unprotect", &["s3://bucket/plain.bin.wlk", "-o", &file]);
    assert!(fs::read(s.place.path("c.bin")).unwrap() == bytes);
}

#[test]
fn a_tree_goes_to_a_store_and_back() {
    let s = Stored::new();
    let mut files = s.tree();
    let args = ["--recursive", "tree", "--out-dir", "s3://bucket/backup"];
    let excluding = [&args[..], &["--exclude", "*.tmp"]].concat();
    s.protect(0, &[&excluding[..], &["--dry-run"]].concat());
    assert!(s.server.keys().is_empty());
    s.protect(0, &excluding);
    files.remove("tree/in/x.tmp");
    let keys: Vec<_> = files.keys().map(|path| format!("backup/{path}.wlk")).collect();
    assert_eq!(s.server.keys(), keys);
    s.open(0, "unprotect", &["--recursive", "s3://bucket/backup", "--out-dir", "out"]);
    s.assert_tree("out/backup", &files);
    s.open(0, "verify", &["--recursive", "s3://bucket/backup"]);

    // Nothing is overwritten, and what is right is kept.
    let former = s.server.get("backup/tree/a.txt.wlk").unwrap();
    let said = s.protect(1, &args);
    assert!(said.contains("backup/tree/a.txt.wlk exists already"), "{said}");
    assert_eq!(s.server.get("backup/tree/a.txt.wlk").unwrap(), former);
    s.server.take_requests();
    s.protect(0, &[&args[..], &["--resume", "-i", "key.txt"]].concat());
    let requests = s.server.take_requests();
    let put: Vec<_> = requests.iter().filter(|seen| seen.method == "PUT").collect();
    assert!(put.is_empty() || put.len() == 1 && put[0].target.contains("x.tmp"), "{put:?}");
    fs::write(s.place.path("tree/a.txt"), b"b").unwrap();
    s.protect(1, &[&args[..], &["--resume", "-i", "key.txt"]].concat());
    s.protect(0, &[&args[..], &["--resume", "-i", "key.txt", "-f"]].concat());
    s.open(0, "unprotect", &["s3://bucket/backup/tree/a.txt.wlk", "-o", "a.txt"]);
    assert_eq!(fs::read(s.place.path("a.txt")).unwrap(), b"b");
}

#[test]
fn a_range_takes_two_requests_and_little_more_than_its_bytes() {
    let s = Stored::new();
    let bytes = pattern(LONG);
    fs::write(s.place.path("a.bin"), &bytes).unwrap();
    s.protect(0, &["a.bin", "-o", "s3://bucket/a.wlk"]);
    s.server.take_requests();
    let range = ["--range", "10000000..10100000", "s3://bucket/a.wlk", "-o", "part"];
    s.open(0, "unprotect", &range);
    assert!(fs::read(s.place.path("part")).unwrap() == bytes[10_000_000..10_100_000]);
    let requests = s.server.take_requests();
    let fetched: u64 = requests.iter().map(|seen| seen.answered).sum();
    assert!(requests.len() <= 3 && fetched <= 160_000, "{fetched} in {requests:?}");
    assert_eq!(requests[0].range.as_deref(), Some("bytes=0-4095"));
}

#[test]
fn hidden_names_show_nothing_and_come_back() {
    let s = Stored::new();
    let files = s.tree();
    let out = ["--hide-names", "--recursive", "tree", "--out-dir", "s3://bucket/h"];
    s.protect(0, &out);
    let keys = s.server.keys();
    assert_eq!(keys.len(), files.len() + 1);
    for key in &keys {
        let plain = ["tree", "txt", "empty", "tmp"].iter().any(|part| key.contains(part));
        assert!(!plain && key.ends_with(".wlk"), "{key}");
    }
    s.open(
        0,
        "unprotect",
        &["--recursive", "s3://bucket/h", "--out-dir", "out", "--exclude=*.tmp"],
    );
    let mut wanted = files.clone();
    wanted.remove("tree/in/x.tmp");
    s.assert_tree("out/h", &wanted);
    assert!(!s.place.path("out/h/tree/in/x.tmp").exists());

    // To extend it, its key is needed; names that are not hidden do not go together with it.
    s.write("tree/new", b"new");
    let said = s.protect(2, &out);
    assert!(said.contains("identity"), "{said}");
    s.protect(2, &["--recursive", "tree", "--out-dir", "s3://bucket/h"]);
    let added = s.wattlock(&["protect", "-i", "key.txt", "--resume"]).args(out).output().unwrap();
    assert_exit(&added, 0);
    assert_eq!(s.server.keys().len(), keys.len() + 1);
    s.place.keygen("other.txt");
    let other = ["unprotect", "-i", "other.txt", "--recursive", "s3://bucket/h", "--out-dir", "no"];
    assert_exit(&s.wattlock(&other).output().unwrap(), 3);
    s.protect(0, &["tree/a.txt", "--out-dir", "s3://bucket/plain"]);
    s.protect(2, &["--hide-names", "tree/new", "--out-dir", "s3://bucket/plain"]);
    s.protect(2, &["--hide-names", "tree/new", "--out-dir", "here"]);
}

#[test]
fn the_sooner_names_key_is_used_and_its_origin_said() {
    let s = Stored::new();
    let files = s.tree();
    let out = ["--hide-names", "--recursive", "tree", "--out-dir", "s3://bucket/h"];
    let key = ["protect", "-i", "key.txt", "--resume"];
    let made = s.wattlock(&key).args(out).output().unwrap();
    assert_exit(&made, 0);
    assert!(!stderr(&made).contains("warning"), "{}", stderr(&made));
    let (name, sooner) = ("h/.wattlock-names.wlk", s.server.get("h/.wattlock-names.wlk").unwrap());
    for own in [&key[..], &["protect", "-r", &s.place.recipient]] {
        fs::remove_dir_all(s.server.path("h")).unwrap();
        // Another run makes its names file between this one's look and its own.
        let (path, theirs) = (s.server.path(name), sooner.clone());
        s.server.break_with(move |seen| {
            if seen.method == "PUT" && seen.target.contains("wattlock-names") {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, &theirs).unwrap();
            }
            None
        });
        let ended = s.wattlock(own).args(out).output().unwrap();
        s.server.repair();
        let said = stderr(&ended);
        assert!(s.server.get(name).unwrap() == sooner);
        if own == key {
            assert_exit(&ended, 0);
            assert!(said.contains("existed before this run") && said.contains(name), "{said}");
            s.open(0, "unprotect", &["--recursive", "s3://bucket/h", "--out-dir", "out"]);
            s.assert_tree("out/h", &files);
        } else {
            assert_exit(&ended, 2);
            assert!(said.contains("give an identity"), "{said}");
        }
    }
}

#[test]
fn credentials_come_from_the_files_of_aws() {
    let s = Stored::new();
    s.place.write(
        Path::new("credentials"),
        format!("[work]\naws_access_key_id = {}\naws_secret_access_key = {SECRET}\n", KEY)
            .as_bytes(),
    );
    let config =
        format!("[profile work]\nregion = us-east-1\nendpoint_url = {}\n", s.server.endpoint());
    s.place.write(Path::new("config"), config.as_bytes());
    fs::write(s.place.path("a"), b"a").unwrap();
    let run = |profile: &str| {
        let mut command = s.protecting(&["-f", "a", "-o", "s3://bucket/a.wlk"]);
        for variable in
            ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL"]
        {
            command.env_remove(variable);
        }
        command.env("AWS_PROFILE", profile).env("AWS_CONFIG_FILE", "config");
        command.env("AWS_SHARED_CREDENTIALS_FILE", "credentials").output().unwrap()
    };
    assert_exit(&run("work"), 0);
    // The endpoint of a section of services.
    let services = |name: &str| {
        let text = format!(
            "[profile work]\nregion = us-east-1\nservices = mine\n\
             [services {name}]\nsts =\n  endpoint_url = http://127.0.0.1:1\n\
             s3 =\n  endpoint_url = {}\n",
            s.server.endpoint()
        );
        s.place.write(Path::new("config"), text.as_bytes());
        run("work")
    };
    assert_exit(&services("mine"), 0);
    let missing = services("other");
    assert_exit(&missing, 1);
    assert!(stderr(&missing).contains("no section [services mine]"), "{}", stderr(&missing));
    let missing = run("play");
    assert_exit(&missing, 1);
    assert!(stderr(&missing).contains("AWS profile play"), "{}", stderr(&missing));
}

#[test]
fn a_key_without_an_address_fails_alone() {
    let s = Stored::new();
    let files = s.tree();
    s.protect(0, &["--recursive", "tree", "--out-dir", "s3://bucket/t"]);
    let foreign = Fault::Rewrite(|answer| {
        const DATE: &[u8] = b"<LastModified>2026-01-01T00:00:00Z</LastModified>";
        let entry = |key: &[u8]| {
            [b"<Contents><Key>t/", key, b"</Key><Size>1</Size>", DATE, b"</Contents>"].concat()
        };
        let keys: [&[u8]; 4] = [b"x//y.wlk", b"a/../b.wlk", b"c&#x1b;[31m.wlk", b"d\xff.wlk"];
        let text = answer.body_mut();
        let at = text.windows(10).position(|window| window == b"<Contents>").unwrap();
        text.splice(at..at, keys.map(entry).concat());
    });
    s.server.break_with(move |seen| seen.target.contains("list-type=2").then_some(foreign));
    for (command, out) in [("verify", &[][..]), ("unprotect", &["--out-dir", "out"])] {
        let said = s.open(1, command, &[&["--recursive", "s3://bucket/t"], out].concat());
        for (name, why) in [
            ("s3://bucket/t/x//y.wlk", "empty part"),
            ("s3://bucket/t/a/../b.wlk", ". or .."),
            ("s3://bucket/t/c\\u{1b}[31m.wlk", "control character"),
            ("s3://bucket/t/d\\xff.wlk", "not UTF-8"),
        ] {
            let lines = said.lines().filter(|line| line.contains(name) && line.contains(why));
            assert_eq!(lines.count(), 1, "{name}: {said}");
        }
        assert!(!said.contains('\u{1b}'), "{said}");
    }
    s.assert_tree("out/t", &files);
    let excluded = ["--exclude=x", "--exclude=b.wlk", "--exclude=c*", "--exclude=d*"];
    s.open(
        0,
        "unprotect",
        &[&["-f", "--recursive", "s3://bucket/t", "--out-dir=out"], &excluded[..]].concat(),
    );
    // They are in the way of nothing else.
    s.write("tree/new", b"new");
    s.protect(2, &["--hide-names", "--recursive", "tree", "--out-dir", "s3://bucket/t"]);
    let resumed = ["protect", "-i", "key.txt", "--resume", "--recursive", "tree", "--out-dir"];
    assert_exit(&s.wattlock(&resumed).arg("s3://bucket/t").output().unwrap(), 0);
}

#[test]
fn credentials_go_without_tls_to_this_machine_only() {
    let s = Stored::new();
    fs::write(s.place.path("a"), b"a").unwrap();
    for (endpoint, why) in [
        ("http://127.evil.example", "does not use TLS"),
        ("http://localhost.evil.example:80", "does not use TLS"),
        ("http://127.0.0.1@evil.example", "holds a user"),
        ("http://127.0.0.1:9000@evil.example", "holds a user"),
        ("127.0.0.1:9000", "no address"),
    ] {
        let mut command = s.protecting(&["a", "-o", "s3://bucket/a.wlk"]);
        let ended = command.env("AWS_ENDPOINT_URL", endpoint).output().unwrap();
        assert_exit(&ended, 1);
        assert!(stderr(&ended).contains(why), "{endpoint}: {}", stderr(&ended));
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let s = Stored::new();
    fs::write(s.place.path("a"), b"a").unwrap();
    for (args, said) in [
        (&["a", "-o", "ftp://host/a"][..], "unknown scheme"),
        (&["a", "-o", "s3://bucket/../a"], "invalid address"),
        (&["a", "-o", "s3://bucket"], "this is a bucket"),
        (&["s3://bucket", "-o", "x"], "this is a bucket"),
        (&["a", "-o", "https://127.0.0.1:1/a"], "read-only"),
        (&["a", "--out-dir", "s3://bucket", "--sign", "key"], "--sign does not support"),
        (&["a", "--out-dir", "x", "--spool", "sp"], "--spool requires"),
    ] {
        let ended = s.protecting(args).output().unwrap();
        assert!(!ended.status.success() && stderr(&ended).contains(said), "{}", stderr(&ended));
    }
    s.server.put("a.wlk", b"no container");
    s.open(3, "unprotect", &["s3://bucket/a.wlk", "-o", "x"]);
    s.open(2, "verify", &["--signer", "signers", "s3://bucket/a.wlk"]);
    let rekey =
        s.wattlock(&["rekey", "-i", "key.txt", "-r", &s.place.recipient, "s3://bucket/a.wlk"]);
    let mut rekey = rekey;
    assert_exit(&rekey.output().unwrap(), 2);
}

#[test]
fn a_server_without_ranges_is_read_as_a_whole() {
    let Some(()) = crate::support::installed("python3").then_some(()) else { return };
    let s = Stored::new();
    fs::write(s.place.path("a"), pattern(100_000)).unwrap();
    s.protect(0, &["a"]);
    let mut python = Command::new("python3")
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
        .current_dir(s.place.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut started = [0; 64];
    let len = python.stdout.as_mut().unwrap().read(&mut started).unwrap();
    let line = String::from_utf8_lossy(&started[..len]).into_owned();
    let port = line.split("port ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let address = format!("http://127.0.0.1:{port}/a.wlk");
    s.open(0, "unprotect", &[&address, "-o", "b"]);
    assert!(fs::read(s.place.path("b")).unwrap() == pattern(100_000));
    let _ = python.kill();
    let _ = python.wait();
}

/// A tree and a long object, in all the ways that every kind of store has.
fn files_go_there_and_back(s: &Stored, scheme: &str) {
    let address = |key: &str| format!("{scheme}://bucket/{key}");
    let files = s.tree();
    s.write("tree/long", &pattern(LONG));
    let out = ["--recursive", "tree", "--out-dir", &address("t")];
    s.protect(0, &out);
    s.protect(1, &out);
    s.open(0, "verify", &["--recursive", &address("t")]);
    let resumed = s.wattlock(&["protect", "-i", "key.txt", "--resume"]).args(out).output().unwrap();
    assert_exit(&resumed, 0);
    s.protect(1, &["tree/long", "-o", &address("t/tree/long.wlk")]);
    s.protect(0, &["-f", "tree/long", "-o", &address("t/tree/long.wlk")]);
    s.open(0, "unprotect", &["--recursive", &address("t"), "--out-dir", "out"]);
    s.assert_tree("out/t", &files);
    assert!(fs::read(s.place.path("out/t/tree/long")).unwrap() == pattern(LONG));
    s.open(0, "unprotect", &["--range=5M..6M", &address("t/tree/long.wlk"), "-o", "part"]);
    assert!(fs::read(s.place.path("part")).unwrap() == pattern(LONG)[5 << 20..6 << 20]);
    s.protect(0, &["--hide-names", "--recursive", "tree", "--out-dir", &address("h")]);
    s.open(0, "unprotect", &["--recursive", &address("h"), "--out-dir", "out"]);
    s.assert_tree("out/h", &files);
}

/// What only S3 has is refused, and nothing is lost.
fn files_stay_where_only_s3_would_remove_them(s: &Stored, scheme: &str) {
    let address = |key: &str| format!("{scheme}://bucket/{key}");
    let said = s.open(2, "unprotect", &["--replace", &address("t/tree/long.wlk"), "-o", "gone"]);
    assert!(said.contains("conditional deletes"), "{said}");
    s.open(0, "verify", &[&address("t/tree/long.wlk")]);
    let listed = s.wattlock(&["doctor", &address("")]).output().unwrap();
    assert_exit(&listed, 1);
    assert!(stderr(&listed).contains("only S3 lists unfinished uploads"), "{}", stderr(&listed));
    // A file of this machine can go.
    s.protect(0, &["--replace", "tree/long", "--out-dir", &address("r")]);
    assert!(!s.place.path("tree/long").exists());
}

/// The requests of Google's interface, answered by a server for S3. Google's own was never asked.
#[test]
fn files_go_to_google_and_back() {
    let mut s = Stored::new();
    s.use_google();
    files_go_there_and_back(&s, "gs");
    files_stay_where_only_s3_would_remove_them(&s, "gs");
    let seen = s.server.take_requests();
    assert!(seen.iter().all(|seen| seen.headers.contains("Bearer")));
    assert!(seen.iter().any(|seen| seen.headers.contains("x-goog-if-generation-match")));
    // With another token.
    let mut command = s.protecting(&["tree/a.txt", "-o", "gs://bucket/x.wlk"]);
    let refused = command.env("GOOGLE_BEARER_TOKEN", "a-wrong-token").output().unwrap();
    assert_exit(&refused, 1);
    assert!(stderr(&refused).contains("check the credentials"), "{}", stderr(&refused));
    assert!(!stderr(&refused).contains("a-wrong-token"));
}

#[test]
#[ignore = "needs azurite: make test-all"]
fn soak_of_azures_emulator() {
    if !crate::support::installed("azurite-blob") {
        return;
    }
    let mut s = Stored::new();
    let _server = s.use_azurite();
    files_go_there_and_back(&s, "az");
    files_stay_where_only_s3_would_remove_them(&s, "az");
    let said = s.protect(1, &["tree/a.txt", "-o", "az://other/a.wlk"]);
    assert!(said.contains("there is no such container"), "{said}");
}

/// Another server than that of the other tests, by other people.
#[test]
#[ignore = "needs versitygw: make test-all"]
fn soak_of_another_store() {
    if !crate::support::installed("versitygw") {
        return;
    }
    let mut s = Stored::new();
    let _server = s.use_versitygw();
    files_go_there_and_back(&s, "s3");
    let listed = s.wattlock(&["doctor", "s3://bucket"]).output().unwrap();
    assert!(stdout(&listed).contains("no unfinished uploads"), "{}", stderr(&listed));
    s.protect(0, &["--replace", "tree/long", "--out-dir", "s3://bucket/r"]);
    assert!(!s.place.path("tree/long").exists());
    let back = ["--replace", "s3://bucket/r/long.wlk", "--out-dir", "back"];
    let ended = s.wattlock(&["unprotect", "-i", "key.txt"]).args(back).output().unwrap();
    // Whether it removes by version is its own affair.
    assert!([Some(0), Some(2)].contains(&ended.status.code()), "{}", stderr(&ended));
}
