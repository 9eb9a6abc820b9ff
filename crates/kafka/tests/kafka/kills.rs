//! Processes that are killed in the middle of transactions.

use std::fs::File;
use std::process::{Child, Stdio};

use wattlock_testing::{exits_within, signal, wait_until};

use crate::broker::Record;
use crate::setting::{Setting, field, record, to_the_end};

/// Records of the soak, and how often a process is killed.
const RECORDS: usize = 1_000_000;
const KILLS: usize = 20;
const PARTITIONS: i32 = 6;

#[test]
fn soak_of_twenty_kills_loses_and_doubles_nothing() {
    let Some(setting) = Setting::new() else { return };
    let broker = &setting.broker;
    for topic in ["plain", "sealed", "opened"] {
        broker.create(topic, PARTITIONS, &[]);
    }
    broker.produce(
        "plain",
        (0..RECORDS).map(|n| {
            let number = n.to_string();
            Record { partition: n as i32 % PARTITIONS, ..record(&number, &number) }
        }),
    );
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
            broker.ends("sealed").iter().sum::<i64>() >= part
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
    let ends = broker.ends("plain");
    wait_until("the lag is 0", || {
        let committed = broker.committed("wattlock.sealed", "plain");
        committed.iter().zip(&ends).all(|(committed, end)| *committed == Some(*end))
    });
    for (process, name) in processes.iter_mut().zip(names) {
        signal(process, "-TERM");
        let status = exits_within(process, std::time::Duration::from_secs(60));
        assert_eq!(status.and_then(|status| status.code()), Some(0), "{name}: {}", said(name));
    }
    for name in names {
        println!("{name}: {}", said(name).trim_end().replace('\n', "; "));
    }
    let count = |topic: &str, isolation: &str| {
        let mut times = vec![0_u8; RECORDS];
        broker.read(topic, isolation, |record| {
            use rdkafka::Message;
            let number: usize =
                std::str::from_utf8(record.key().unwrap()).unwrap().parse().unwrap();
            if topic == "opened" {
                assert_eq!(record.payload(), record.key());
            }
            times[number] += 1;
        });
        let missing = times.iter().filter(|times| **times == 0).count();
        let double = times.iter().filter(|times| **times > 1).count();
        println!("{topic}, {isolation}: {missing} missing, {double} double");
        (missing, double)
    };
    count("sealed", "read_uncommitted");
    assert_eq!(count("sealed", "read_committed"), (0, 0));
    let summary = to_the_end(&mut setting.opening("sealed", "opened"));
    assert_eq!(field(&summary, "records"), RECORDS as u64, "{summary}");
    assert_eq!(count("opened", "read_committed"), (0, 0));
    // No writer has used a counter twice, not even in transactions that were aborted.
    let mut nonces = std::collections::HashSet::new();
    broker.read("sealed", "read_uncommitted", |record| {
        use rdkafka::Message;
        let head: [u8; 29] = *record.payload().unwrap().first_chunk().unwrap();
        assert!(nonces.insert(head), "a nonce was used twice");
    });
    broker.delete(&["plain", "sealed", "opened"]);
}

#[test]
fn a_broker_that_is_killed_is_waited_for() {
    let Some(mut setting) = Setting::new() else { return };
    for topic in ["plain", "sealed"] {
        setting.broker.create(topic, 2, &[]);
    }
    let count = 200_000;
    let part = |from: usize| {
        (from..from + count).map(|n| {
            let number = n.to_string();
            Record { partition: n as i32 % 2, ..record(&number, &number) }
        })
    };
    setting.broker.produce("plain", part(0));
    let mut sealing = setting.sealing("plain", "sealed");
    let running = sealing.stderr(Stdio::piped()).spawn().unwrap();
    let reaches = |setting: &Setting, records: usize| {
        wait_until("the records are sealed", || {
            setting.broker.ends("sealed").iter().sum::<i64>() as usize >= records
        });
    };
    reaches(&setting, count / 4);
    setting.broker.kill();
    setting.broker.restart();
    setting.broker.produce("plain", part(count));
    wait_until("all is committed", || {
        let committed = setting.broker.committed("wattlock.sealed", "plain");
        committed.iter().all(|offset| *offset == Some(count as i64))
    });
    let mut times = vec![0_u8; 2 * count];
    for record in setting.broker.records("sealed") {
        let number: usize = std::str::from_utf8(&record.key.unwrap()).unwrap().parse().unwrap();
        times[number] += 1;
    }
    assert!(times.iter().all(|times| *times == 1));
    setting.broker.kill();
    signal(&running, "-TERM");
    let ended = running.wait_with_output().unwrap();
    wattlock_testing::assert_exit(&ended, 0);
}
