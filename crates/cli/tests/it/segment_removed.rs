//! Segments that are removed or moved while they are written: nothing is acknowledged that is not there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use wattlock_testing::wait_until;

use crate::support::senders::{Numbered, Sender};
use crate::support::stream::{Gateway, segments, stream};
use crate::support::{Place, assert_exit, stderr};

fn remove(place: &Place) {
    fs::remove_file(place.path("logs/000001.wls")).unwrap();
}

fn move_folder(place: &Place) {
    fs::rename(place.path("logs"), place.path("elsewhere")).unwrap();
}

fn make_folder_anew(place: &Place) {
    move_folder(place);
    fs::create_dir(place.path("logs")).unwrap();
    fs::write(place.path("logs/000001.wls"), b"another file").unwrap();
}

#[test]
fn what_is_removed_or_moved_is_not_acknowledged() {
    for (sync, happens) in [
        ("batch", remove as fn(&Place)),
        ("batch", move_folder),
        ("10", make_folder_anew),
        ("never", remove),
    ] {
        let place = Place::new();
        let listen = format!("unix:{}", place.path("in.sock").display());
        let mut command = stream(&place);
        command.args(["--framing", "numbered", "--sync", sync, "--listen", &listen, "-o"]);
        let gateway = Gateway::start_with(command.arg(place.path("logs/")));
        let mut sender = UnixStream::connect(place.path("in.sock")).unwrap();
        sender.write_all(&Numbered::message(1, "first")).unwrap();
        let mut answer = [0; 8];
        sender.read_exact(&mut answer).unwrap();
        happens(&place);
        sender.write_all(&Numbered::message(2, "second")).unwrap();
        let mut rest = Vec::new();
        // It is closed without a word.
        let _ = sender.read_to_end(&mut rest);
        assert_eq!(rest, b"", "--sync {sync}: what is gone was acknowledged");
        // The next message finds out, or the end.
        if let Ok(mut sender) = UnixStream::connect(place.path("in.sock")) {
            let _ = sender.write_all(&Numbered::message(1, "third"));
            let _ = sender.read_to_end(&mut rest);
            assert_eq!(rest, b"", "--sync {sync}");
        }
        let output = gateway.end();
        assert_exit(&output, 1);
        assert!(stderr(&output).contains("it was removed or moved"), "{}", stderr(&output));
    }
}

#[test]
fn a_segment_that_is_removed_without_acknowledgements_is_found_at_its_end() {
    let place = Place::new();
    let logs = place.path("logs/");
    let (gateway, mut pipe) =
        Gateway::start_on_pipe(&place, &["--framing", "ndjson", "-o", logs.to_str().unwrap()]);
    pipe.write_all(b"a line\n").unwrap();
    wait_until("the line is written", || {
        logs.exists()
            && segments(&logs)
                .first()
                .is_some_and(|segment| segment.metadata().unwrap().len() > 100)
    });
    remove(&place);
    drop(pipe);
    let output = gateway.end();
    assert_exit(&output, 1);
    assert!(stderr(&output).contains("it was removed or moved"), "{}", stderr(&output));
}
