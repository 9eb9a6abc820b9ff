//! Processes that are killed in the middle of transactions.

use std::fs::File;
use std::process::{Child, Stdio};

use wattlock_testing::{assert_exit, exits_within, signal, wait_until, wattlock};

use crate::cluster::Cluster;
use crate::setting::{Running, Setting, field, numbers, to_the_end};

/// Records of the soak, and how often a process is killed.
const RECORDS: usize = 1_000_000;
const KILLS: usize = 20;
const PARTITIONS: i32 = 6;

fn assert_no_nonce_comes_twice(cluster: &Cluster) {
    let mut nonces = std::collections::HashSet::new();
    cluster.read("sealed", "read_uncommitted", |record| {
        use rdkafka::Message;
        let head: [u8; 29] = *record.payload().unwrap().first_chunk().unwrap();
        assert!(nonces.insert(head), "a nonce was used twice");
    });
}

#[test]
fn soak_of_twenty_kills_loses_and_doubles_nothing() {
    let Some(setting) = Setting::new() else { return };
    let cluster = &setting.cluster;
    for topic in ["plain", "sealed", "opened"] {
        cluster.create(topic, PARTITIONS, &[]);
    }
    cluster.produce("plain", numbers(0..RECORDS, PARTITIONS));
    let start = |name: &str| -> Child {
        let log = setting.place.path(name);
        let log = File::options().create(true).append(true).open(log).unwrap();
        let mut sealing = setting.sealing("plain", "sealed");
        sealing.args(["--id", name]).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    };
    let said = |name: &str| std::fs::read_to_string(setting.place.path(name)).unwrap();
    let names = ["one", "two", "three"];
    let mut processes: Vec<Child> = names[..2].iter().map(|name| start(name)).collect();
    for kill in 0..KILLS {
        let part = ((kill + 1) * RECORDS / (KILLS + 2)) as i64;
        wait_until("more records are written", || {
            for (process, name) in processes.iter_mut().zip(names) {
                assert!(process.try_wait().unwrap().is_none(), "{name}: {}", said(name));
            }
            cluster.ends("sealed").iter().sum::<i64>() >= part
        });
        if kill == KILLS / 2 {
            // One more gets partitions of the others, and is not killed.
            processes.push(start(names[2]));
        }
        let next = kill % 2;
        processes[next].kill().unwrap();
        processes[next].wait().unwrap();
        processes[next] = start(names[next]);
    }
    cluster.wait_for_no_lag("wattlock.sealed", "plain");
    for (process, name) in processes.iter_mut().zip(names) {
        signal(process, "-TERM");
        let status = exits_within(process, std::time::Duration::from_secs(60));
        assert_eq!(status.and_then(|status| status.code()), Some(0), "{name}: {}", said(name));
    }
    for name in names {
        println!("{name}: {}", said(name).trim_end().replace('\n', "; "));
    }
    cluster.tally("sealed", "read_uncommitted", RECORDS);
    assert_eq!(cluster.tally("sealed", "read_committed", RECORDS), (0, 0));
    let summary = to_the_end(&mut setting.opening("sealed", "opened"));
    assert_eq!(field(&summary, "records"), RECORDS as u64, "{summary}");
    assert_eq!(cluster.tally("opened", "read_committed", RECORDS), (0, 0));
    // No writer has used a counter twice, not even in transactions that were aborted.
    assert_no_nonce_comes_twice(cluster);
    cluster.delete(&["plain", "sealed", "opened"]);
}

#[test]
fn a_broker_that_is_killed_is_waited_for() {
    let Some(mut setting) = Setting::new() else { return };
    for topic in ["plain", "sealed"] {
        setting.cluster.create(topic, 2, &[]);
    }
    let count = 200_000;
    let part = |from: usize| numbers(from..from + count, 2);
    setting.cluster.produce("plain", part(0));
    let mut sealing = setting.sealing("plain", "sealed");
    let running = sealing.stderr(Stdio::piped()).spawn().unwrap();
    let reaches = |setting: &Setting, records: usize| {
        wait_until("the records are sealed", || {
            setting.cluster.ends("sealed").iter().sum::<i64>() as usize >= records
        });
    };
    reaches(&setting, count / 4);
    setting.cluster.kill(0);
    setting.cluster.restart(0);
    setting.cluster.produce("plain", part(count));
    setting.cluster.wait_for_no_lag("wattlock.sealed", "plain");
    assert_eq!(setting.cluster.tally("sealed", "read_committed", 2 * count), (0, 0));
    setting.cluster.kill(0);
    signal(&running, "-TERM");
    let ended = running.wait_with_output().unwrap();
    assert_exit(&ended, 0);
}

#[test]
fn each_of_three_brokers_is_killed_and_nothing_is_lost_or_doubled() {
    let Some(cluster) = Cluster::of_three() else { return };
    let mut setting = Setting::with(cluster);
    for topic in ["plain", "sealed", "opened"] {
        setting.cluster.create(topic, PARTITIONS, &[]);
    }
    let start = |name| Running::start(setting.sealing("plain", "sealed").args(["--id", name]));
    let processes = ["one", "two"].map(start);
    let (before, during) = (100_000, 20_000);
    let mut produced = 0;
    for broker in 0..3 {
        let cluster = &mut setting.cluster;
        cluster.produce("plain", numbers(produced..produced + before, PARTITIONS));
        wait_until("some of them are sealed", || {
            cluster.ends("sealed").iter().sum::<i64>() as usize >= produced + during
        });
        produced += before;
        cluster.kill(broker);
        // Two are enough to go on.
        cluster.produce("plain", numbers(produced..produced + during, PARTITIONS));
        produced += during;
        cluster.wait_for_no_lag("wattlock.sealed", "plain");
        cluster.restart(broker);
        cluster.wait_until_replicated();
    }
    for process in processes {
        println!("{}", process.stop());
    }
    let cluster = &setting.cluster;
    cluster.tally("sealed", "read_uncommitted", produced);
    assert_eq!(cluster.tally("sealed", "read_committed", produced), (0, 0));
    to_the_end(&mut setting.opening("sealed", "opened"));
    assert_eq!(cluster.tally("opened", "read_committed", produced), (0, 0));
    assert_no_nonce_comes_twice(cluster);
}

#[test]
fn kills_between_two_clusters_lose_nothing() {
    let Some(mut setting) = Setting::new() else { return };
    let Some(mut other) = Cluster::start() else { return };
    let (records, kills) = (200_000, 10);
    setting.cluster.create("plain", 2, &[]);
    other.create("sealed", 2, &[]);
    setting.cluster.create("opened", 2, &[]);
    setting.cluster.produce("plain", numbers(0..records, 2));
    let [plain, opened] = ["plain", "opened"].map(|topic| setting.cluster.address(topic));
    let sealed = other.address("sealed");
    let key = setting.place.path("key.txt");
    let sealing = || {
        let mut command = wattlock();
        command.args(["kafka", "--from", &plain, "--to", &sealed, "-r", &setting.recipient]);
        Running::start(&mut command)
    };
    let opening = || {
        let mut command = wattlock();
        command.args(["kafka", "--open", "--from", &sealed, "--to", &opened, "-i"]).arg(&key);
        Running::start(&mut command)
    };
    let mut process = sealing();
    for kill in 1..=kills {
        wait_until("more are sealed", || {
            other.ends("sealed").iter().sum::<i64>() as usize >= kill * records / (kills + 2)
        });
        if kill == kills / 2 {
            // The brokers are killed, too.
            for cluster in [&mut other, &mut setting.cluster] {
                cluster.kill(0);
                cluster.restart(0);
            }
        }
        process.kill();
        process = sealing();
    }
    setting.cluster.wait_for_no_lag("wattlock.sealed", "plain");
    process.kill();
    let (missing, _) = other.tally("sealed", "read_committed", records);
    assert_eq!(missing, 0);
    assert_no_nonce_comes_twice(&other);
    // The way back.
    let mut process = opening();
    for kill in 1..=kills {
        wait_until("more are opened", || {
            setting.cluster.ends("opened").iter().sum::<i64>() as usize
                >= kill * records / (kills + 2)
        });
        process.kill();
        process = opening();
    }
    other.wait_for_no_lag("wattlock.opened", "sealed");
    process.kill();
    let (missing, _) = setting.cluster.tally("opened", "read_committed", records);
    assert_eq!(missing, 0);
}
