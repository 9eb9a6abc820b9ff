//! Segments whose writer was killed and that were damaged since: a later run must not take damage for what a crash tore.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use wattlock_testing::{exits_within, wait_until};

use crate::support::senders::{Numbered, Sender};
use crate::support::stream::{Gateway, PATIENCE, segments, stream};
use crate::support::{Place, assert_exit, stderr, wattlock};

const MESSAGES: u64 = 100;

fn logs(place: &Place) -> PathBuf {
    place.path("logs/")
}

/// A gateway that acknowledges messages, with more options.
fn gateway(place: &Place, more: &[&str]) -> Gateway {
    let listen = format!("unix:{}", place.path("in.sock").display());
    let mut command = stream(place);
    command.args(["--framing", "numbered", "--listen", &listen, "-o"]).arg(logs(place));
    Gateway::start_with(command.args(more))
}

/// Sends messages one by one, each of which is acknowledged before the next. Returns the connection.
fn send(place: &Place) -> UnixStream {
    let mut sender = UnixStream::connect(place.path("in.sock")).unwrap();
    for number in 1..=MESSAGES {
        sender.write_all(&Numbered::message(number, &format!("message {number}"))).unwrap();
        let mut answer = [0; 8];
        sender.read_exact(&mut answer).unwrap();
        assert_eq!(u64::from_be_bytes(answer), number);
    }
    sender
}

/// A folder whose only segment has messages that were acknowledged; its writer was killed. Returns the segment.
fn killed(place: &Place, more: &[&str]) -> PathBuf {
    let mut gateway = gateway(place, more);
    // The last batch is that of the last message, and not the end of its sender.
    let _sender = send(place);
    gateway.signal("-KILL");
    gateway.wait_for_exit();
    segments(&logs(place)).remove(0)
}

/// Flips a bit at a tenth of a file.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let place = bytes.len() / 10;
    bytes[place] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn open(place: &Place, args: &[&str], folder: &Path) -> Output {
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).args(args).arg(folder);
    command.output().unwrap()
}

/// How many messages came out.
fn count(output: &Output) -> u64 {
    let text = String::from_utf8_lossy(&output.stdout);
    (1..=MESSAGES).filter(|number| text.contains(&format!("message {number}\n"))).count() as u64
}

#[test]
fn damage_stays_damage_when_a_later_run_looks() {
    let place = Place::new();
    let segment = killed(&place, &[]);
    damage(&segment);
    let before = fs::read(&segment).unwrap();
    assert_exit(&open(&place, &[], &logs(&place)), 3);
    for _ in 0..2 {
        let later = gateway(&place, &[]).stop();
        assert_exit(&later, 0);
        assert!(stderr(&later).contains("which is damaged at byte"), "{}", stderr(&later));
        assert!(fs::read(&segment).unwrap() == before, "it is kept as it is");
        let opened = open(&place, &[], &logs(&place));
        assert_exit(&opened, 3);
        assert!(stderr(&opened).contains("the segment is damaged at byte"), "{}", stderr(&opened));
        let mut verify = wattlock();
        verify.args(["verify", "-i"]).arg(place.path("key.txt")).arg(logs(&place));
        assert_exit(&verify.output().unwrap(), 3);
    }
    // A delivery does not pass over it.
    let mut follow = wattlock();
    follow.args(["stream", "--open", "--follow", "-i"]).arg(place.path("key.txt"));
    follow.arg(logs(&place)).stdout(Stdio::null()).stderr(Stdio::null());
    let mut following = follow.spawn().unwrap();
    let followed = exits_within(&mut following, PATIENCE).expect("it does not wait for more");
    assert_eq!(followed.code(), Some(3));

    // All but the batch that is damaged can be had.
    let salvaged = open(&place, &["--from", "1970-01-01"], &logs(&place));
    assert_exit(&salvaged, 3);
    assert_eq!(count(&salvaged), MESSAGES - 1, "{}", stderr(&salvaged));
    // So it is where the first batch is damaged, which says what the segment is.
    let mut bytes = before;
    bytes[100] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let salvaged = open(&place, &["--from", "1970-01-01"], &logs(&place));
    assert_exit(&salvaged, 3);
    assert!(count(&salvaged) >= MESSAGES - 2, "{}", stderr(&salvaged));
}

#[test]
fn what_a_crash_tore_is_no_damage() {
    let place = Place::new();
    let segment = killed(&place, &[]);
    let whole = fs::read(&segment).unwrap();
    // The last batch came in part, or with zeros in place of its end.
    for torn in [whole[..whole.len() - 5].to_vec(), [&whole[..whole.len() - 30], &[0; 30]].concat()]
    {
        fs::write(&segment, torn).unwrap();
        let later = gateway(&place, &[]).stop();
        assert_exit(&later, 0);
        let opened = open(&place, &[], &logs(&place));
        assert_exit(&opened, 0);
        assert_eq!(count(&opened), MESSAGES - 1);
    }
}

#[test]
fn a_store_that_has_what_is_damaged_gets_the_rest() {
    let place = Place::new();
    let store = || {
        let mut command = wattlock();
        let listen = format!("unix:{}", place.path("store.sock").display());
        command.args(["stream", "--store", "--listen", &listen, "-o"]);
        Gateway::start_with(command.arg(place.path("copies")))
    };
    let to = format!("unix:{}", place.path("store.sock").display());
    let near = store();
    let segment = killed(&place, &["--forward", &to]);
    let copy = || fs::read_dir(place.path("copies")).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&segment).unwrap();
    wait_until("the store has it", || {
        let copies = segments(&copy());
        copies.first().is_some_and(|first| fs::read(first).unwrap().len() > whole.len() / 2)
    });
    assert_exit(&near.stop(), 0);
    damage(&segment);
    let near = store();
    assert_exit(&gateway(&place, &["--forward", &to]).stop(), 0);
    assert!(
        fs::read(&segments(&copy())[0]).unwrap() == whole,
        "the store has what was damaged here"
    );
    let opened = open(&place, &[], &copy());
    assert_exit(&opened, 3);
    assert_eq!(count(&opened), MESSAGES);
    assert_exit(&near.stop(), 0);
}
