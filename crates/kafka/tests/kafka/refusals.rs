//! What is not authentic, or has no key, is refused, and nothing of its transaction is committed.

use std::process::Command;

use wattlock_testing::{assert_exit, stderr, stdout, wait_until, wattlock};

use crate::cluster::Record;
use crate::setting::{Running, Setting, assert_refused, field, numbers, record, to_the_end};

impl Setting {
    /// Seals three records of the tenant acme into a new topic.
    fn sealed(&self, topic: &str) -> Vec<Record> {
        self.cluster.create(topic, 1, &[]);
        to_the_end(self.sealing("plain", topic).args(["--tenant", "acme"]));
        let records = self.cluster.records(topic);
        assert_eq!(records.len(), 3);
        records
    }

    /// Opens a topic that is refused at `place`, and looks that nothing was committed.
    #[track_caller]
    fn refuses(&self, topic: &str, more: &[&str], place: &str, why: &str) {
        let group = format!("opening-{topic}-{}", more.join("-").replace('/', "-"));
        let mut opening = self.opening(topic, "opened");
        opening.args(["--until-end", "--group", &group]).args(more);
        assert_refused(&opening.output().unwrap(), place, why);
        assert_eq!(self.cluster.committed(&group, topic), [None]);
        assert_eq!(self.cluster.records("opened"), []);
    }
}

const ACME: [&str; 2] = ["--tenant", "acme"];

fn setting() -> Option<Setting> {
    let setting = Setting::new()?;
    setting.cluster.create("plain", 1, &[]);
    setting.cluster.create("opened", 1, &[]);
    setting.cluster.produce("plain", ["a", "b", "c"].map(|key| record(key, "value")));
    Some(setting)
}

#[test]
fn a_record_that_was_changed_or_moved_is_refused() {
    let Some(setting) = setting() else { return };
    let cluster = &setting.cluster;
    let unauthentic = "the record is not authentic";
    let changes: [(&str, fn(&mut Record), &str); 6] = [
        ("bit", |record| record.value.as_mut().unwrap()[35] ^= 1, unauthentic),
        ("key", |record| record.key = Some(b"b".to_vec()), unauthentic),
        ("no-key", |record| record.key = None, unauthentic),
        ("cut", |record| record.value.as_mut().unwrap().truncate(44), "cut short"),
        ("version", |record| record.value.as_mut().unwrap()[0] = 2, "unknown version"),
        ("writer", |record| record.value.as_mut().unwrap()[5] ^= 1, "has no key for the writer"),
    ];
    for (topic, change, why) in changes {
        let mut first = setting.sealed(topic).remove(0);
        change(&mut first);
        cluster.produce(topic, [first]);
        // The marks of transactions have offsets, too.
        let place = format!("{topic}, partition 0, offset {}:", cluster.ends(topic)[0] - 1);
        setting.refuses(topic, &ACME, &place, why);
    }
    let sealed = setting.sealed("sealed");
    setting.refuses("sealed", &[], "sealed, partition 0, offset 0", unauthentic);
    let other = ["--tenant", "other"];
    setting.refuses("sealed", &other, "sealed, partition 0, offset 0", unauthentic);
    cluster.create("moved", 1, &[]);
    cluster.produce("moved", sealed);
    let keys = [&ACME[..], &["--keys", "sealed.keys"]].concat();
    setting.refuses("moved", &keys, "moved, partition 0, offset 0", unauthentic);
    // As it is, it opens.
    to_the_end(setting.opening("sealed", "opened").args(ACME));
    assert_eq!(cluster.records("opened").len(), 3);
}

#[test]
fn a_key_that_is_missing_or_shredded_is_refused() {
    let Some(setting) = setting() else { return };
    let cluster = &setting.cluster;
    setting.sealed("sealed");
    cluster.create("no.keys", 1, &[("cleanup.policy", "compact")]);
    let place = "sealed, partition 0, offset 0";
    let keys = [&ACME[..], &["--keys", "no.keys"]].concat();
    setting.refuses("sealed", &keys, place, "the topic no.keys has no key for the writer");
    // A key of somebody else, and one of another kind.
    let stranger = setting.place.path("stranger.txt");
    assert_exit(&wattlock().args(["keygen", "-o"]).arg(&stranger).output().unwrap(), 0);
    let open = |more: &[&str]| {
        let mut opening = setting.mirror("sealed", "opened");
        opening.args(["--open", "--until-end"]).args(ACME).args(more).output().unwrap()
    };
    let refused = open(&["-i", stranger.to_str().unwrap()]);
    assert_refused(&refused, place, "cannot be used: ");
    let shared = setting.place.write("shared", &[7; 32]);
    let refused = open(&["--key-file", shared.to_str().unwrap()]);
    assert_refused(&refused, place, "open it with -i or -p");
    // Shredded.
    let keys = cluster.records("sealed.keys");
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0].headers, [("tenant".to_owned(), Some(b"acme".to_vec()))]);
    let tombstone = Record { value: None, headers: Vec::new(), timestamp: 0, ..keys[0].clone() };
    cluster.produce("sealed.keys", [tombstone]);
    setting.refuses("sealed", &ACME, place, "was removed from the topic sealed.keys");
    // The next start makes a new key.
    cluster.produce("plain", [record("d", "value")]);
    to_the_end(setting.sealing("plain", "sealed").args(ACME));
    assert_eq!(cluster.records("sealed.keys").len(), 3);
}

#[test]
fn a_shared_key_that_is_another_is_refused() {
    let Some(setting) = setting() else { return };
    let cluster = &setting.cluster;
    cluster.create("sealed", 1, &[]);
    let [right, wrong] = [7, 8].map(|n| setting.place.write(format!("shared-{n}"), &[n; 32]));
    to_the_end(setting.mirror("plain", "sealed").arg("--key-file").arg(&right));
    let open = |key: &std::path::Path| {
        let mut opening = setting.mirror("sealed", "opened");
        opening.args(["--open", "--until-end", "--key-file"]).arg(key).output().unwrap()
    };
    let place = "sealed, partition 0, offset 0";
    assert_refused(&open(&wrong), place, "the record is not authentic");
    setting.refuses("sealed", &[], place, "it was sealed with --key-file");
    assert_exit(&open(&right), 0);
    assert_eq!(cluster.records("opened"), cluster.records("plain"));
}

#[test]
fn a_refused_record_ends_a_running_process_until_it_is_skipped() {
    let Some(setting) = Setting::new() else { return };
    let cluster = &setting.cluster;
    for topic in ["plain", "sealed", "opened"] {
        cluster.create(topic, 1, &[]);
    }
    cluster.produce("plain", numbers(0..1000, 1));
    to_the_end(&mut setting.sealing("plain", "sealed"));
    // The group forgets a process that has ended after this time, and is moved only then.
    let config = setting.place.write("config", b"session.timeout.ms=6000\n");
    let opening = || {
        let mut opening = setting.opening("sealed", "opened");
        opening.arg("--config").arg(&config);
        opening
    };
    let process = Running::start(&mut opening());
    let is_open = || cluster.records("opened").len() == 1000;
    wait_until("the records are opened", is_open);
    // A producer that does not know that the topic is sealed.
    cluster
        .produce("sealed", [record("1000", "a value that is not sealed, and long enough to be")]);
    let end = cluster.ends("sealed")[0];
    let place = format!("sealed, partition 0, offset {}:", end - 1);
    let said = process.ends_with(3);
    assert!(said.contains(&place) && said.contains("unknown version"), "{said}");
    assert_eq!(field(&said, "records"), 1000, "{said}");
    // What comes behind it waits.
    cluster.produce("plain", numbers(1000..2000, 1));
    to_the_end(&mut setting.sealing("plain", "sealed"));
    let again = opening().arg("--until-end").output().unwrap();
    assert_refused(&again, &place, "unknown version");
    assert_eq!(cluster.records("opened").len(), 1000);
    cluster.move_group("wattlock.opened", "sealed:0", end);
    to_the_end(&mut opening());
    assert_eq!(cluster.tally("opened", "read_committed", 2000), (0, 0));
}

#[test]
fn what_cannot_work_is_said_before_anything_is_sealed() {
    let Some(setting) = setting() else { return };
    let cluster = &setting.cluster;
    cluster.create("sealed", 1, &[]);
    cluster.create("lossy.keys", 1, &[("cleanup.policy", "delete")]);
    cluster.create("lossy-too.keys", 1, &[("cleanup.policy", "compact,delete")]);
    let fails = |command: &mut Command, code: i32, why: &str| {
        let output = command.arg("--until-end").output().unwrap();
        assert_exit(&output, code);
        let said = stderr(&output);
        assert!(said.contains(why), "{said}");
        assert_eq!(stdout(&output), "");
    };
    let sealing = || setting.sealing("plain", "sealed");
    fails(sealing().args(["--keys", "lossy.keys"]), 1, "set cleanup.policy=compact");
    fails(sealing().args(["--keys", "lossy-too.keys"]), 1, "set cleanup.policy=compact");
    fails(sealing().args(["--keys", "sealed"]), 2, "--keys has to be a topic of its own");
    fails(&mut setting.sealing("plain", "plain"), 2, "are the same topic");
    fails(&mut setting.sealing("plain", "missing"), 1, "the topic missing does not exist");
    fails(&mut setting.sealing("missing", "sealed"), 1, "the topic missing does not exist");
    fails(
        &mut setting.opening("plain", "opened"),
        1,
        "the topic of keys plain.keys does not exist",
    );
    let file = |text: &str| setting.place.write("settings", text.as_bytes());
    let with = |text: &str| {
        let mut command = sealing();
        command.arg("--config").arg(file(text));
        command
    };
    fails(&mut with("acks=1\n"), 2, "the setting acks cannot be changed");
    fails(&mut with("no.such.setting=hidden\n"), 2, "the setting no.such.setting is unknown");
    fails(&mut with("# TLS\n\nhidden\n"), 2, "line 3: expected NAME=VALUE");
    assert_eq!(cluster.records("sealed"), []);
    to_the_end(&mut with("# Small batches.\nbatch.num.messages = 10\n"));
    assert_eq!(cluster.records("sealed").len(), 3);
}

#[test]
fn a_second_process_of_the_same_name_ends_the_first() {
    let Some(setting) = setting() else { return };
    setting.cluster.create("sealed", 1, &[]);
    let start = || {
        let mut sealing = setting.sealing("plain", "sealed");
        sealing.stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let is_done = |count| {
        wait_until("the records are sealed", || setting.cluster.records("sealed").len() == count);
    };
    let mut first = start();
    wait_until("the records are sealed", || {
        assert_eq!(
            first.try_wait().unwrap(),
            None,
            "{:?}",
            std::io::read_to_string(first.stderr.as_mut().unwrap())
        );
        setting.cluster.records("sealed").len() == 3
    });
    let second = start();
    let fenced = first.wait_with_output().unwrap();
    assert_exit(&fenced, 1);
    assert!(
        stderr(&fenced).contains("give each process an --id of its own"),
        "{}",
        stderr(&fenced)
    );
    setting.cluster.produce("plain", [record("d", "value")]);
    is_done(4);
    wattlock_testing::signal(&second, "-TERM");
    assert_exit(&second.wait_with_output().unwrap(), 0);
}
