//! `wattlock stream -o FOLDER/`: segments that go on after a crash, open by time and source, and are lost with their
//! keys alone. It is long because it lists many things that may happen to a folder.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;

use serde_json::Value;
use wattlock_testing::{wait_for, wait_until};

use crate::support::stream::{Gateway, json_summary, sealed, segments, stream};
use crate::support::{Place, assert_exit, pattern, stderr, stdout, wattlock, with_input};

/// Seals `bytes` into the folder `logs`.
#[track_caller]
fn recorded(place: &Place, args: &[&str], bytes: &[u8]) -> Output {
    let mut command = stream(place);
    command.arg("-o").arg(folder(place)).args(["--framing", "ndjson"]).args(args);
    let output = with_input(&mut command, bytes);
    assert_exit(&output, 0);
    output
}

/// The folder `logs/`.
fn folder(place: &Place) -> PathBuf {
    place.path("logs/")
}

fn open(place: &Place, args: &[&str], path: &Path) -> Output {
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).args(args).arg(path);
    command.output().unwrap()
}

#[track_caller]
fn opened(place: &Place) -> Vec<u8> {
    let output = open(place, &[], &folder(place));
    assert_exit(&output, 0);
    output.stdout
}

fn lines(from: usize, to: usize) -> Vec<u8> {
    (from..to).flat_map(|line| format!("{{\"line\":{line}}}\n").into_bytes()).collect()
}

#[test]
fn what_is_recorded_opens_to_the_same_bytes_in_every_framing() {
    for (framing, bytes) in [
        ("raw", Vec::new()),
        ("raw", pattern(3 << 20)),
        ("ndjson", b"{\"a\":1}\n\n{\"b\":\"\xff\"}\nthe last without a newline".to_vec()),
        ("ndjson", b"many short lines\n".repeat(100_000)),
        ("length", b"\0\0\0\x05hello\0\0\0\0\0\0\0\x01x".to_vec()),
    ] {
        let place = Place::new();
        let mut command = stream(&place);
        command.arg("-o").arg(folder(&place)).args(["--framing", framing]);
        assert_exit(&with_input(&mut command, &bytes), 0);
        assert_eq!(opened(&place), bytes, "{framing}, {} bytes", bytes.len());
        for segment in segments(&folder(&place)) {
            let sealed = fs::read(segment).unwrap();
            let found = bytes.len() > 20 && sealed.windows(16).any(|window| window == &bytes[..16]);
            assert!(!found, "nothing is in clear");
        }
    }
}

#[test]
fn a_folder_goes_on_with_each_run_and_each_has_a_key_and_a_writer_of_its_own() {
    let place = Place::new();
    for run in 0..5 {
        recorded(&place, &["--rotate-size", "2K"], &lines(run * 1000, run * 1000 + 1000));
    }
    assert_eq!(opened(&place), lines(0, 5000));
    let paths = segments(&folder(&place));
    assert!(paths.len() >= 5);
    let writers: HashSet<Vec<u8>> =
        paths.iter().map(|path| fs::read(path).unwrap()[23..39].to_vec()).collect();
    assert_eq!(writers.len(), paths.len(), "no segment has the writer ID of another");
    assert_eq!(fs::read_dir(place.path("logs/keys")).unwrap().count(), 5);
    // Without a run that sealed something there is nothing to open.
    fs::create_dir(place.path("empty")).unwrap();
    assert_exit(&open(&place, &[], &place.path("empty")), 2);
}

#[test]
fn a_killed_writer_loses_nothing_that_it_had_written_and_the_next_run_accounts_for_it() {
    let place = Place::new();
    let args = ["--framing", "ndjson", "-o", folder(&place).to_str().unwrap()].map(str::to_owned);
    let args = args.each_ref().map(String::as_str);
    let (mut gateway, mut pipe) = Gateway::start_on_pipe(&place, &args);
    pipe.write_all(&lines(0, 3000)).unwrap();
    let read = || open(&place, &[], &folder(&place));
    wait_for(|| match gateway_has_written(&place, &lines(0, 3000)) {
        true => Ok(()),
        false => Err("the lines did not come".to_owned()),
    });
    let live = read();
    assert_exit(&live, 0);
    assert!(stderr(&live).contains("still being written"), "{}", stderr(&live));
    gateway.signal("-KILL");
    gateway.wait_for_exit();
    drop(pipe);

    let cut = read();
    assert_exit(&cut, 3);
    assert_eq!(cut.stdout, lines(0, 3000));
    assert!(stderr(&cut).contains("without an index"), "{}", stderr(&cut));
    // Bytes of a batch that was not written to its end.
    let first = segments(&folder(&place)).remove(0);
    let mut torn = fs::OpenOptions::new().append(true).open(&first).unwrap();
    torn.write_all(b"\0\0\x10\0torn").unwrap();
    drop(torn);

    // A run that seals nothing accounts for it, too.
    let socket = format!("unix:{}", place.path("in").display());
    let idle =
        Gateway::start(&place, &["--listen", &socket, "-o", folder(&place).to_str().unwrap()]);
    let accounted = read();
    assert_exit(&accounted, 0);
    assert_eq!(accounted.stdout, lines(0, 3000));
    assert_exit(&idle.stop(), 0);
    recorded(&place, &[], &lines(3000, 3010));
    let whole = read();
    assert_exit(&whole, 0);
    assert_eq!(whole.stdout, lines(0, 3010));
    assert!(stderr(&whole).contains("its writer was killed"), "{}", stderr(&whole));
    let before = fs::read(&first).unwrap();
    recorded(&place, &[], &lines(3010, 3020));
    assert_eq!(fs::read(&first).unwrap(), before, "it is recovered once");
    assert_exit(&verify(&place, "key.txt", &folder(&place)), 0);

    // What the next run found cannot be made less afterwards.
    let mark = before.len() - 16;
    let shorter = [&before[..200], &200_u64.to_be_bytes()[..], &before[mark + 8..]].concat();
    fs::write(&first, shorter).unwrap();
    assert_exit(&read(), 3);
}

fn gateway_has_written(place: &Place, bytes: &[u8]) -> bool {
    folder(place).exists() && open(place, &[], &folder(place)).stdout == bytes
}

fn verify(place: &Place, identity: &str, path: &Path) -> Output {
    wattlock().args(["verify", "-i"]).arg(place.path(identity)).arg(path).output().unwrap()
}

#[test]
fn a_key_is_replaced_once_it_is_old() {
    let place = Place::new();
    let socket = place.path("in.sock");
    let listen = format!("unix:{}", socket.display());
    let args = ["--key-age", "1", "--framing", "ndjson", "--listen", &listen, "-o"];
    let gateway = Gateway::start_with(stream(&place).args(args).arg(place.path("logs/")));
    let mut sender = UnixStream::connect(&socket).unwrap();
    let mut sent: Vec<u8> = Vec::new();
    // The key of the next segment is another, and a segment ends with the age of its key.
    wait_until("there are three keys", || {
        sender.write_all(b"line\n").unwrap();
        sent.extend(b"line\n");
        place.path("logs/keys/000003.key").exists()
    });
    drop(sender);
    assert_exit(&gateway.stop(), 0);
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg(place.path("logs"));
    let output = command.output().unwrap();
    assert_exit(&output, 0);
    assert!(output.stdout == sent);
}

#[test]
fn messages_are_found_by_time_and_source_without_reading_the_others() {
    let place = Place::new();
    let logs = folder(&place);
    let args = ["--listen", "tcp:127.0.0.1:0", "--framing", "ndjson", "-o", logs.to_str().unwrap()];
    let gateway = Gateway::start(&place, &args);
    let address = gateway.address();
    let address = address.strip_prefix("tcp:").unwrap();
    let send = |bytes: &[u8], all: u64| -> String {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(bytes).unwrap();
        let name = connection.local_addr().unwrap().to_string();
        drop(connection);
        gateway.wait_for("wattlock_stream_connections_open 0");
        gateway.wait_for(&format!("wattlock_stream_messages_total {all}"));
        name
    };
    let long = b"a line of a hundred bytes, or nearly so many, that makes the segment longer than one block is......\n";
    let first = send(b"the first\n", 1);
    let other = send(&long.repeat(80_000), 80_001);
    let middle = now_us();
    let last = send(b"the last\n", 80_002);
    assert_exit(&gateway.stop(), 0);

    let found = |args: &[&str]| {
        let output = open(&place, args, &logs);
        assert_exit(&output, 0);
        output.stdout
    };
    assert_eq!(found(&["--source", &first]), b"the first\n");
    assert_eq!(found(&["--source", &last]), b"the last\n");
    assert_eq!(found(&["--source", &other]).len(), long.len() * 80_000);
    assert_eq!(found(&["--source", "127.0.0.1"]).len(), long.len() * 80_000 + 19);
    assert_eq!(found(&["--source", "127.0.0"]), b"", "a name is no prefix of another");
    let seconds = format!("@{}", middle / 1_000_000 + 3600);
    assert_eq!(found(&["--from", &seconds]), b"");
    assert_eq!(found(&["--until", &seconds]).len(), long.len() * 80_000 + 19);
    assert_eq!(found(&["--until", "2020-01-01"]), b"");

    // Damage where nothing wanted is does no harm, since it is not read.
    let segment = segments(&logs).remove(0);
    let whole = fs::read(&segment).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&segment, &damaged).unwrap();
    assert_eq!(found(&["--source", &first]), b"the first\n");
    assert_eq!(found(&["--source", &last]), b"the last\n");
    assert_exit(&open(&place, &["--source", &other], &logs), 3);
    assert_exit(&open(&place, &[], &logs), 3);

    // An index that was changed finds nothing rather than less.
    let index = u64::from_be_bytes(whole[whole.len() - 16..whole.len() - 8].try_into().unwrap());
    let mut damaged = whole;
    damaged[index as usize + 60] ^= 1;
    fs::write(&segment, &damaged).unwrap();
    assert_exit(&open(&place, &["--source", &first], &logs), 3);
}

fn now_us() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_micros() as u64
}

#[test]
fn a_tenant_is_shredded_with_its_keys_and_no_other_is() {
    let place = Place::new();
    for tenant in ["acme", "globex"] {
        recorded(&place, &["--tenant", tenant], format!("a secret of {tenant}\n").as_bytes());
        recorded(&place, &["--tenant", tenant], b"more\n");
    }
    let of = |tenant: &str| folder(&place).join(tenant);
    assert_eq!(open(&place, &[], &of("acme")).stdout, b"a secret of acme\nmore\n");
    // The key of another tenant opens nothing here.
    let moved = fs::read(of("globex").join("keys/000001.key")).unwrap();
    let own = fs::read(of("acme").join("keys/000001.key")).unwrap();
    fs::write(of("acme").join("keys/000001.key"), moved).unwrap();
    let other = open(&place, &[], &of("acme"));
    assert_exit(&other, 3);
    assert_eq!(other.stdout, b"more\n");
    fs::write(of("acme").join("keys/000001.key"), own).unwrap();

    fs::remove_file(of("acme").join("keys/000001.key")).unwrap();
    let rest = open(&place, &[], &of("acme"));
    assert_exit(&rest, 3);
    assert_eq!(rest.stdout, b"more\n");
    assert!(stderr(&rest).contains("the key of epoch 1 is missing"), "{}", stderr(&rest));
    let inspected = stdout(&wattlock().arg("inspect").arg(of("acme")).output().unwrap());
    assert!(inspected.contains("without key"), "{inspected}");

    fs::remove_dir_all(of("acme").join("keys")).unwrap();
    let nothing = open(&place, &[], &of("acme"));
    assert_exit(&nothing, 3);
    assert!(nothing.stdout.is_empty());
    assert_eq!(open(&place, &[], &of("globex")).stdout, b"a secret of globex\nmore\n");

    // A new key does not take the number of one that is gone.
    recorded(&place, &["--tenant", "acme"], b"after\n");
    let after = open(&place, &[], &of("acme"));
    assert_eq!(after.stdout, b"after\n");
    assert!(of("acme").join("keys/000003.key").exists());
    assert_exit(&after, 3);
}

#[test]
fn a_key_file_opens_what_it_recorded_and_another_does_not() {
    let place = Place::new();
    let key = place.write("key", &[7; 32]);
    let other = place.write("other", &[8; 32]);
    let mut command = wattlock();
    command.args(["stream", "--key-file"]).arg(&key).arg("-o").arg(folder(&place));
    assert_exit(&with_input(&mut command, b"a secret"), 0);
    let open = |key: &Path| {
        let mut command = wattlock();
        command.args(["stream", "--open", "--key-file"]).arg(key).arg(folder(&place));
        command.output().unwrap()
    };
    assert_eq!(open(&key).stdout, b"a secret");
    let refused = open(&other);
    assert_exit(&refused, 3);
    assert!(refused.stdout.is_empty());
    let refused = self::open(&place, &[], &folder(&place));
    assert_exit(&refused, 3);
    assert!(stderr(&refused).contains("--key-file"), "{}", stderr(&refused));
    let refused = verify(&place, "key.txt", &folder(&place));
    assert_exit(&refused, 3);
    fs::remove_file(place.path("logs/keys/000001.salt")).unwrap();
    assert_exit(&open(&key), 3);
}

#[test]
fn keys_are_replaced_by_bytes_and_by_count() {
    let place = Place::new();
    let numbers = |folder: &Path| -> Vec<u32> {
        let epoch = |path: &PathBuf| fs::read(path).unwrap()[19..23].try_into().unwrap();
        segments(folder).iter().map(|path| u32::from_be_bytes(epoch(path))).collect()
    };
    // A run of few records: a long line each, so that they are not sealed together.
    let long: Vec<u8> = (0..12).flat_map(|_| [&[b'x'; 70_000][..], b"\n"].concat()).collect();
    recorded(&place, &["--tenant", "by-count", "--key-records", "5"], &long);
    let by_count = numbers(&folder(&place).join("by-count"));
    assert!(by_count.len() >= 3 && by_count.is_sorted(), "{by_count:?}");
    assert!(by_count.windows(2).all(|pair| pair[0] != pair[1]), "{by_count:?}");
    recorded(&place, &["--tenant", "by-bytes", "--key-bytes", "200K"], &long);
    let by_bytes = numbers(&folder(&place).join("by-bytes"));
    assert!(by_bytes.len() >= 3 && by_bytes.windows(2).all(|pair| pair[0] != pair[1]));
    for tenant in ["by-count", "by-bytes"] {
        let output = open(&place, &[], &folder(&place).join(tenant));
        assert_exit(&output, 0);
        assert_eq!(output.stdout, long);
    }
    for (option, value) in [("--key-records", "5"), ("--tenant", "acme"), ("--key-age", "9")] {
        let file = place.path("file.wls");
        let mut command = stream(&place);
        command.args([option, value, "-o"]).arg(file);
        assert_exit(&with_input(&mut command, b""), 2);
    }
}

#[test]
fn segments_that_are_missing_copied_or_of_another_folder_are_found() {
    let place = Place::new();
    recorded(&place, &["--rotate-size", "100K"], &lines(0, 40_000));
    let logs = folder(&place);
    let paths = segments(&logs);
    assert!(paths.len() >= 4, "{paths:?}");
    let second = fs::read(&paths[1]).unwrap();
    let third = fs::read(&paths[2]).unwrap();
    // The oldest may be removed.
    let first = fs::read(&paths[0]).unwrap();
    fs::remove_file(&paths[0]).unwrap();
    assert_exit(&open(&place, &[], &logs), 0);
    fs::write(&paths[0], &first).unwrap();

    fs::remove_file(&paths[1]).unwrap();
    let missing = open(&place, &[], &logs);
    assert_exit(&missing, 3);
    assert!(stderr(&missing).contains("1 segment is missing before it"), "{}", stderr(&missing));
    assert_exit(&verify(&place, "key.txt", &logs), 3);
    // Two that changed places are as good as before, but for the order of messages.
    fs::write(&paths[1], &third).unwrap();
    fs::write(&paths[2], &second).unwrap();
    let swapped = open(&place, &[], &logs);
    assert_exit(&swapped, 0);
    // The same twice is not released twice.
    fs::write(&paths[2], &third).unwrap();
    let copied = open(&place, &[], &logs);
    assert_exit(&copied, 3);
    assert!(stderr(&copied).contains("copy"), "{}", stderr(&copied));
    // A truncated segment is cut, whatever its last bytes say.
    fs::write(&paths[1], &second[..second.len() / 2]).unwrap();
    fs::write(&paths[2], &third).unwrap();
    assert_exit(&open(&place, &[], &logs), 3);
    let tail = &second[second.len() - 16..];
    fs::write(&paths[1], [&second[..second.len() / 2], tail].concat()).unwrap();
    assert_exit(&open(&place, &[], &logs), 3);
}

#[test]
fn two_writers_in_one_folder_do_not_disturb_each_other() {
    let place = Place::new();
    let of = |writer: usize| -> Vec<u8> {
        (0..2000).flat_map(|line| format!("writer {writer} line {line}\n").into_bytes()).collect()
    };
    thread::scope(|scope| {
        for writer in 0..4 {
            let place = &place;
            scope.spawn(move || recorded(place, &["--rotate-size", "10K"], &of(writer)));
        }
    });
    let opened = String::from_utf8(opened(&place)).unwrap();
    for writer in 0..4 {
        let start = format!("writer {writer} ");
        let lines = opened.split_inclusive('\n').filter(|line| line.starts_with(&start));
        assert_eq!(lines.collect::<String>().as_bytes(), of(writer));
    }
}

#[test]
fn streams_of_both_versions_are_verified_inspected_and_rekeyed() {
    let place = Place::new();
    let other = place.keygen("other.txt");
    recorded(&place, &["--rotate-size", "20K"], &lines(0, 2000));
    recorded(&place, &[], &lines(2000, 2010));
    let logs = folder(&place);
    let v1 = place.write("one.wls", &sealed(&place, &["--framing", "ndjson"], &lines(0, 2000)));
    let first = segments(&logs).remove(0);
    let inspected = |path: &Path| -> Value {
        let output = wattlock().args(["inspect", "--json"]).arg(path).output().unwrap();
        assert_exit(&output, 0);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()[0].clone()
    };
    for (path, version) in [(&v1, 1), (&first, 2), (&logs, 2)] {
        assert_exit(&verify(&place, "key.txt", path), 0);
        assert_exit(&verify(&place, "other.txt", path), 3);
        let found = inspected(path);
        assert_eq!(
            (&found["version"], &found["recipients"][0]),
            (&version.into(), &"X25519".into())
        );
    }
    assert_eq!(inspected(&logs)["epochs"], serde_json::json!([1, 2]));
    assert_eq!(inspected(&first)["end"], "complete");

    let rekey = |path: &Path, args: &[&str]| {
        let mut command = wattlock();
        command.args(["rekey", "-r", &other, "-i"]).arg(place.path("key.txt")).args(args);
        command.arg(path).output().unwrap()
    };
    // One segment has the key of its epoch, and so have its neighbours.
    assert_exit(&rekey(&first, &[]), 0);
    assert_exit(&verify(&place, "other.txt", &first), 0);
    assert_exit(&verify(&place, "key.txt", &logs), 3);
    assert_exit(&rekey(&logs, &["--reseal"]), 2);
    // A key that does not open keeps no other from being rekeyed, and is named.
    let again = rekey(&logs, &[]);
    assert_exit(&again, 3);
    let said = stderr(&again);
    assert!(said.contains("000001.key") && said.contains("1 other key file was rekeyed"), "{said}");
    assert_exit(&verify(&place, "other.txt", &logs), 0);
    assert_exit(&verify(&place, "key.txt", &logs), 3);

    let before = fs::read(&v1).unwrap();
    assert_exit(&rekey(&v1, &[]), 0);
    let after = fs::read(&v1).unwrap();
    assert_eq!(after.len(), before.len());
    assert_exit(&verify(&place, "key.txt", &v1), 3);
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("other.txt")).arg(&v1);
    assert_eq!(command.output().unwrap().stdout, lines(0, 2000));
    // A stream that does not open stays as it is.
    let mut damaged = before;
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&v1, &damaged).unwrap();
    assert_exit(&rekey(&v1, &[]), 3);
    assert_eq!(fs::read(&v1).unwrap(), damaged);
    assert_exit(&verify(&place, "key.txt", &v1), 3);
}

#[test]
fn parts_of_a_stream_still_follow_each_other_after_each_was_rekeyed() {
    let place = Place::new();
    let other = place.keygen("other.txt");
    let file = place.path("log.wls");
    let args = ["--framing", "ndjson", "--rotate-size", "100K", "-o", file.to_str().unwrap()];
    let output = with_input(stream(&place).args(args), &lines(0, 40_000));
    assert_exit(&output, 0);
    let mut parts: Vec<PathBuf> =
        (1..=4).map(|part| place.path(format!("log.wls.00000{part}"))).collect();
    parts.retain(|part| part.exists());
    assert!(parts.len() >= 3);
    for part in &parts {
        let mut command = wattlock();
        command.args(["rekey", "-r", &other, "-i"]).arg(place.path("key.txt")).arg(part);
        assert_exit(&command.output().unwrap(), 0);
    }
    let all = |parts: &[PathBuf]| {
        parts.iter().flat_map(|part| fs::read(part).unwrap()).collect::<Vec<_>>()
    };
    let open = |bytes: &[u8]| {
        let mut command = wattlock();
        command.args(["stream", "--open", "-i"]).arg(place.path("other.txt"));
        with_input(&mut command, bytes)
    };
    let whole = open(&all(&parts));
    assert_exit(&whole, 0);
    assert!(lines(0, 40_000).starts_with(&whole.stdout) && whole.stdout.len() > 300_000);
    parts.remove(1);
    assert_exit(&open(&all(&parts)), 3);
}

#[test]
fn files_of_version_1_open_one_by_one_by_their_names() {
    let place = Place::new();
    let first = sealed(&place, &["--framing", "ndjson"], b"one\n");
    let cut = sealed(&place, &["--framing", "ndjson"], b"two\n");
    let first = place.write("1.wls", &first);
    let cut = place.write("2.wls", &cut[..cut.len() - 5]);
    let last = place.write("3.wls", &sealed(&place, &["--framing", "ndjson"], b"three\n"));
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).args([&first, &cut, &last]);
    let output = command.output().unwrap();
    assert_exit(&output, 3);
    assert_eq!(output.stdout, b"one\ntwo\nthree\n");
    let refused = open(&place, &["--source", "x"], &first);
    assert_exit(&refused, 2);
    let refused = open(&place, &["-o", first.to_str().unwrap(), "--force"], &first);
    assert_exit(&refused, 2);
    recorded(&place, &[], b"four\n");
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg(&first);
    assert_exit(&command.arg(segments(&folder(&place)).remove(0)).output().unwrap(), 2);
}

#[test]
fn wrong_options_of_a_folder_are_refused() {
    let place = Place::new();
    for args in [
        &["--force"][..],
        &["--max-message", "100M", "--window", "200M"],
        &["--tenant", "../up"],
        &["--tenant", ".hidden"],
        &["--tenant", "keys"],
        &["--tenant", ""],
        &["--key-age", "0"],
        &["--key-records", "4294967296"],
    ] {
        let mut command = stream(&place);
        command.arg("-o").arg(folder(&place)).args(args);
        assert_exit(&with_input(&mut command, b""), 2);
        assert!(!folder(&place).exists(), "{args:?}");
    }
    for args in [&["--from", "yesterday", "x"][..], &["--source", "a"], &["--from", "@1"]] {
        let mut command = wattlock();
        command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).args(args);
        assert_exit(&command.output().unwrap(), 2);
    }
}

#[test]
fn a_summary_counts_what_was_opened() {
    let place = Place::new();
    recorded(&place, &[], &lines(0, 10));
    let summary = json_summary(&open(&place, &["--json"], &folder(&place)));
    assert_eq!(summary["segments"], 1);
    assert_eq!(summary["out_bytes"], lines(0, 10).len());
}

#[test]
fn a_segment_in_the_middle_of_a_run_that_was_cut_is_not_excused_by_a_later_run() {
    let place = Place::new();
    recorded(&place, &["--rotate-size", "100K"], &lines(0, 40_000));
    let second = segments(&folder(&place)).remove(1);
    let whole = fs::read(&second).unwrap();
    fs::write(&second, &whole[..whole.len() / 2]).unwrap();
    recorded(&place, &[], b"a later run\n");
    assert_exit(&open(&place, &[], &folder(&place)), 3);
    // With its first records, too: a writer that was killed in a segment made none after it.
    let first = segments(&folder(&place)).remove(0);
    fs::write(&second, &whole).unwrap();
    let whole = fs::read(&first).unwrap();
    fs::write(&first, &whole[..whole.len() - 16]).unwrap();
    recorded(&place, &[], b"another run\n");
    assert_exit(&open(&place, &[], &folder(&place)), 0);
}

#[test]
fn an_output_in_the_folder_that_is_opened_is_refused() {
    let place = Place::new();
    recorded(&place, &[], &lines(0, 10));
    let before = fs::read(place.path("logs/keys/000001.key")).unwrap();
    for output in ["logs/000001.wls", "logs/keys/000001.key", "logs/000009.wls"] {
        let output = place.path(output);
        let refused = open(&place, &["-f", "-o", output.to_str().unwrap()], &folder(&place));
        assert_exit(&refused, 2);
    }
    assert_eq!(fs::read(place.path("logs/keys/000001.key")).unwrap(), before);
    assert_eq!(opened(&place), lines(0, 10));
}

#[test]
fn a_start_that_fails_leaves_a_folder_that_opens() {
    let place = Place::new();
    let logs = folder(&place);
    let (mut gateway, mut pipe) =
        Gateway::start_on_pipe(&place, &["--framing", "ndjson", "-o", logs.to_str().unwrap()]);
    pipe.write_all(b"a line\n").unwrap();
    wait_for(|| match gateway_has_written(&place, b"a line\n") {
        true => Ok(()),
        false => Err("the line did not come".to_owned()),
    });
    gateway.signal("-KILL");
    gateway.wait_for_exit();
    let mut command = stream(&place);
    let missing = format!("unix:{}", place.path("no/such/socket").display());
    command.args(["--listen", &missing, "-o"]).arg(&logs);
    assert_exit(&command.output().unwrap(), 1);
    assert_eq!(opened(&place), b"a line\n");
}

#[test]
fn what_is_no_segment_and_keys_of_two_kinds_are_refused() {
    let place = Place::new();
    let key = place.write("key", &[7; 32]);
    recorded(&place, &[], b"a line\n");
    let mut command = wattlock();
    command.args(["stream", "--key-file"]).arg(&key).arg("-o").arg(folder(&place));
    let mixed = with_input(&mut command, b"another\n");
    assert_exit(&mixed, 1);
    assert!(stderr(&mixed).contains("made for recipients"), "{}", stderr(&mixed));
    fs::write(folder(&place).join("000002.wls"), b"junk").unwrap();
    assert_exit(&open(&place, &[], &folder(&place)), 3);
    // No number is given twice, although no segment is left.
    for path in segments(&folder(&place)) {
        fs::remove_file(path).unwrap();
    }
    recorded(&place, &[], b"a line\n");
    assert_eq!(segments(&folder(&place)), [folder(&place).join("000002.wls")]);
}
