//! What is sealed comes out again; keys are rotated; a signal ends the program.

use std::collections::BTreeSet;
use std::process::Stdio;

use wattlock_testing::{assert_exit, signal, stderr, wait_until};

use crate::cluster::Record;
use crate::setting::{Running, Setting, assert_refused, field, numbers, record, to_the_end};

/// Records of every form.
fn forms() -> Vec<Record> {
    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    let header = |name: &str, value: Option<&str>| (name.to_owned(), value.and_then(bytes));
    let time = 1_700_000_000_000;
    vec![
        Record { headers: vec![header("a", Some("1")), header("a", None)], ..record("k", "value") },
        Record { key: None, ..record("", "no key") },
        record("", "an empty key"),
        record("k", ""),
        Record { value: None, ..record("k", "") },
        Record { key: Some(vec![0xff, 0, 0xfe]), ..record("", "a key that is no text") },
        Record { key: Some(vec![0, 0, 0, 7]), ..record("", "a number") },
        Record { key: bytes("\u{0}00000007"), ..record("", "as a number is written") },
        Record { value: Some(vec![7; 900_000]), ..record("large", "") },
    ]
    .into_iter()
    .cycle()
    .take(27)
    .enumerate()
    .map(|(at, record)| Record { partition: at as i32 / 9, timestamp: time + at as i64, ..record })
    .collect()
}

#[test]
fn records_of_every_form_come_back() {
    let Some(setting) = Setting::new() else { return };
    let cluster = &setting.cluster;
    for topic in ["plain", "sealed", "opened"] {
        cluster.create(topic, 3, &[]);
    }
    cluster.produce("plain", forms());
    let summary = to_the_end(&mut setting.sealing("plain", "sealed"));
    assert_eq!((field(&summary, "records"), field(&summary, "tombstones")), (27, 3), "{summary}");
    assert_eq!(field(&summary, "keys_made"), 1, "{summary}");
    let (plain, sealed) = (cluster.records("plain"), cluster.records("sealed"));
    assert_eq!(sealed.len(), 27);
    for (plain, sealed) in plain.iter().zip(&sealed) {
        assert_eq!(
            Record { value: None, ..plain.clone() },
            Record { value: None, ..sealed.clone() }
        );
        let overhead = plain.value.as_ref().map(|value| value.len() + 45);
        assert_eq!(sealed.value.as_ref().map(Vec::len), overhead);
    }
    let summary = to_the_end(&mut setting.opening("sealed", "opened"));
    assert_eq!(field(&summary, "records"), 27, "{summary}");
    assert_eq!(cluster.records("opened"), plain);
    // All is done: another run finds nothing.
    let summary = to_the_end(&mut setting.sealing("plain", "sealed"));
    assert_eq!(field(&summary, "records"), 0, "{summary}");
}

#[test]
fn a_shared_key_and_fewer_partitions_do_too() {
    let Some(setting) = Setting::new() else { return };
    let cluster = &setting.cluster;
    for (topic, partitions) in [("plain", 3), ("sealed", 2), ("opened", 1)] {
        cluster.create(topic, partitions, &[]);
    }
    cluster.produce("plain", forms());
    let key = setting.place.write("shared", &[7; 32]);
    let with_key = ["--key-file", key.to_str().unwrap(), "--tenant", "acme", "--keys", "keys"];
    to_the_end(setting.mirror("plain", "sealed").args(with_key));
    to_the_end(setting.mirror("sealed", "opened").arg("--open").args(with_key));
    let sorted = |topic| {
        let mut records = cluster.records(topic);
        records.iter_mut().for_each(|record| record.partition = 0);
        records.sort();
        records
    };
    assert_eq!(sorted("opened"), sorted("plain"));
    // Each key is in one partition.
    let mut places: Vec<_> =
        cluster.records("sealed").into_iter().map(|r| (r.key, r.partition)).collect();
    places.retain(|(key, _)| key.as_ref().is_some_and(|key| !key.is_empty()));
    places.sort();
    places.dedup();
    let mut keys: Vec<_> = places.iter().map(|(key, _)| key).collect();
    keys.dedup();
    assert_eq!(keys.len(), places.len(), "{places:?}");
}

#[test]
fn keys_are_rotated() {
    let Some(setting) = Setting::new() else { return };
    let cluster = &setting.cluster;
    for topic in ["plain", "sealed", "opened"] {
        cluster.create(topic, 1, &[]);
    }
    cluster.produce("plain", (0..25).map(|n| record(&n.to_string(), "0123456789")));
    let summary = to_the_end(setting.sealing("plain", "sealed").args(["--key-records", "10"]));
    assert_eq!(field(&summary, "keys_made"), 3, "{summary}");
    cluster.produce("plain", (0..6).map(|n| record(&n.to_string(), "0123456789")));
    let summary = to_the_end(setting.sealing("plain", "sealed").args(["--key-bytes", "20"]));
    assert_eq!(field(&summary, "keys_made"), 3, "{summary}");
    assert_eq!(cluster.records("sealed.keys").len(), 6);
    let summary = to_the_end(&mut setting.opening("sealed", "opened"));
    assert_eq!(field(&summary, "records"), 31, "{summary}");
}

#[test]
fn keys_are_rotated_by_their_age() {
    let Some(setting) = Setting::new() else { return };
    let cluster = &setting.cluster;
    for topic in ["plain", "sealed", "opened"] {
        cluster.create(topic, 1, &[]);
    }
    let sealing = Running::start(setting.sealing("plain", "sealed").args(["--key-age", "1"]));
    let mut produced = 0;
    // Without new records there is no new key.
    wait_until("there are three keys", || {
        cluster.produce("plain", numbers(produced..produced + 1, 1));
        produced += 1;
        cluster.wait_for_no_lag("wattlock.sealed", "plain");
        cluster.records("sealed.keys").len() >= 3
    });
    let summary = sealing.stop();
    let keys: BTreeSet<_> = cluster.records("sealed.keys").into_iter().map(|r| r.key).collect();
    assert_eq!(field(&summary, "keys_made"), keys.len() as u64, "{summary}");
    println!("{produced} records under {} keys", keys.len());
    let writer_of = |record: Record| {
        let id = &record.value.unwrap()[5..21];
        Some(id.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes())
    };
    let used: BTreeSet<_> = cluster.records("sealed").into_iter().map(writer_of).collect();
    assert_eq!(used, keys);
    to_the_end(&mut setting.opening("sealed", "opened"));
    assert_eq!(cluster.tally("opened", "read_committed", produced), (0, 0));
}

#[test]
fn a_passphrase_seals_and_opens() {
    let Some(setting) = Setting::new() else { return };
    let cluster = &setting.cluster;
    for topic in ["plain", "sealed", "opened"] {
        cluster.create(topic, 1, &[]);
    }
    cluster.produce("plain", numbers(0..100, 1));
    let words = setting.place.write("words", b"four words for it\n");
    let mut sealing = setting.mirror("plain", "sealed");
    to_the_end(sealing.arg("--passphrase-file").arg(words).args(["--work-factor", "10"]));
    let opening = |words: &str| {
        let mut opening = setting.mirror("sealed", "opened");
        opening.args(["--open", "--passphrase-env", "WORDS"]).env("WORDS", words);
        opening
    };
    let refused = opening("other words").arg("--until-end").output().unwrap();
    assert_refused(&refused, "sealed, partition 0, offset 0", "cannot be used: ");
    let keyed = setting.opening("sealed", "opened").arg("--until-end").output().unwrap();
    assert_refused(&keyed, "sealed, partition 0, offset 0", "cannot be used: ");
    assert_eq!(cluster.records("opened"), []);
    to_the_end(&mut opening("four words for it"));
    assert_eq!(cluster.tally("opened", "read_committed", 100), (0, 0));
}

#[test]
fn a_signal_ends_it_after_the_transaction() {
    let Some(setting) = Setting::new() else { return };
    let cluster = &setting.cluster;
    for topic in ["plain", "sealed"] {
        cluster.create(topic, 2, &[]);
    }
    for (name, total) in [("-TERM", 20_000), ("-INT", 40_000)] {
        cluster.produce(
            "plain",
            (0..20_000).map(|n| Record { partition: n % 2, ..record(&n.to_string(), "value") }),
        );
        let running = setting.sealing("plain", "sealed").stderr(Stdio::piped()).spawn().unwrap();
        wait_until("all is committed", || {
            let committed = cluster.committed("wattlock.sealed", "plain");
            committed.into_iter().map(Option::unwrap_or_default).sum::<i64>() == total
        });
        signal(&running, name);
        let ended = running.wait_with_output().unwrap();
        assert_exit(&ended, 0);
        assert!(stderr(&ended).contains("sealed 20000 records"), "{}", stderr(&ended));
        assert_eq!(cluster.records("sealed").len() as i64, total);
    }
}

#[test]
fn two_clusters_have_every_record_at_least_once() {
    let Some(setting) = Setting::new() else { return };
    let Some(other) = crate::cluster::Cluster::start() else { return };
    let cluster = &setting.cluster;
    cluster.create("plain", 2, &[]);
    other.create("sealed", 2, &[]);
    other.create("opened", 2, &[]);
    cluster.produce(
        "plain",
        (0..5000).map(|n| Record { partition: n % 2, ..record(&n.to_string(), "v") }),
    );
    let mut sealing = wattlock_testing::wattlock();
    sealing.args(["kafka", "--from", &cluster.address("plain"), "--to", &other.address("sealed")]);
    let summary = to_the_end(sealing.args(["-r", &setting.recipient]));
    assert!(summary.contains("\"exactly_once\": false"), "{summary}");
    assert_eq!(field(&summary, "records"), 5000);
    let mut opening = wattlock_testing::wattlock();
    opening.args(["kafka", "--open", "--from", &other.address("sealed")]);
    opening.args(["--to", &other.address("opened"), "-i"]).arg(setting.place.path("key.txt"));
    to_the_end(&mut opening);
    let without_time = |records: Vec<Record>| -> Vec<Record> {
        records.into_iter().map(|record| Record { timestamp: 0, ..record }).collect()
    };
    assert_eq!(without_time(other.records("opened")), without_time(cluster.records("plain")));
}
