//! A network that is cut under load and comes back: all goes on by itself, and nothing acknowledged is lost. A peer that never
//! comes back is noticed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use wattlock_testing::{wait_for, wait_until};

use crate::following::wait_for_segments;
use crate::stream_resets::{doubles, lines_in};
use crate::support::network::OwnNetwork;
use crate::support::senders::{Numbered, SENDER_WINDOW, send_all_to};
use crate::support::stream::{segments, stream};
use crate::support::{Place, wattlock};

/// A program whose messages go to a file.
struct Program {
    child: Child,
    said: PathBuf,
}

impl Program {
    fn start(place: &Place, name: &str, command: &mut Command) -> Self {
        let said = place.path(format!("{name}.said"));
        let file = fs::File::create(&said).unwrap();
        let out = fs::File::create(place.path(format!("{name}.out"))).unwrap();
        let child = command.stdin(Stdio::null()).stdout(out).stderr(file).spawn().unwrap();
        Self { child, said }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    /// Waits until it has said this so many times.
    #[track_caller]
    fn wait_until_said(&self, what: &str, times: usize) {
        wait_for(|| match self.said().matches(what).count() {
            count if count >= times => Ok(()),
            _ => Err(format!("it did not say {what:?} {times} times: {}", self.said())),
        });
    }

    /// Where it listens, once it does.
    fn address(&self) -> String {
        self.wait_until_said("listening at ", 1);
        let said = self.said();
        let (_, address) = said.split_once("listening at tcp:").unwrap();
        address.split_whitespace().next().unwrap().to_owned()
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Ends it, and returns its summary.
    #[track_caller]
    fn stop(mut self) -> serde_json::Value {
        self.signal("-TERM");
        let ended = self.child.wait().unwrap();
        let said = self.said();
        assert!(ended.success(), "{ended}: {said}");
        let summary = said.lines().rfind(|line| line.starts_with('{')).unwrap();
        serde_json::from_str(summary).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const LISTEN: &str = "tcp:127.0.0.1:0";

/// A gateway of numbered messages.
fn gateway(place: &Place, name: &str, more: &[&str]) -> Program {
    let mut command = stream(place);
    command.args(["--framing", "numbered", "--listen", LISTEN, "--sync", "batch", "--json"]);
    command.args(["--rotate-size", "100K", "-o"]).arg(place.path(format!("{name}/"))).args(more);
    Program::start(place, name, &mut command)
}

fn store(place: &Place) -> Program {
    let mut command = wattlock();
    command.args(["stream", "--store", "--json", "--listen", LISTEN, "-o"]);
    Program::start(place, "copies", command.arg(place.path("copies")))
}

/// Delivers the folder `logs` to an address.
fn follower(place: &Place, to: &str, acknowledged: &str, position: &str) -> Program {
    let mut command = wattlock();
    command.args(["stream", "--open", "--follow", "--json", "-i"]).arg(place.path("key.txt"));
    command.args(["--connect", &format!("tcp:{to}"), "--acknowledged", acknowledged]);
    command.arg("--position").arg(place.path(position)).arg(place.path("logs"));
    Program::start(place, position, &mut command)
}

/// Cuts the network while senders, a gateway, a store, a follower and a receiver are at work: `short` times until some of them
/// get no answers, and `long` times until all that wait for answers have given up.
fn cut(network: &OwnNetwork, (short, long): (u64, u64), lines: u64) {
    const SENDERS: u64 = 3;
    let place = Place::new();
    let (store, there) = (store(&place), gateway(&place, "there", &[]));
    let forward = format!("tcp:{}", store.address());
    let here = gateway(&place, "logs", &["--forward", &forward, "--drain", "100"]);
    let (entry, exit) = (here.address(), there.address());
    let follower = follower(&place, &exit, "numbered", "position");
    let acknowledged = AtomicU64::new(0);
    let broken: u64 = thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (entry, acknowledged) = (&entry, &acknowledged);
                let name = format!("sender {sender}");
                scope.spawn(move || send_all_to::<Numbered>(entry, &name, lines, acknowledged))
            })
            .collect();
        for cut in 1..=short + long {
            let enough = cut * SENDERS * lines / (short + long + 1);
            wait_until("a part is acknowledged", || acknowledged.load(Ordering::SeqCst) >= enough);
            network.cut();
            wait_until("some get no answer", || network.unanswered() > 0);
            if cut > short {
                let times = (cut - short) as usize;
                here.wait_until_said("cannot forward to", times);
                follower.wait_until_said("cannot write to", times);
            }
            network.mend();
        }
        senders.into_iter().map(|sender| sender.join().unwrap()).sum()
    });
    here.stop();
    wait_for_segments(&place, segments(&place.path("logs")).len());
    let failures = follower.stop()["peer_failures"].as_u64().unwrap();
    there.stop();
    store.stop();
    let doubled = |folder: &Path| doubles(&lines_in(&place, folder), SENDERS, lines);
    let own = doubled(&place.path("logs"));
    let copies = fs::read_dir(place.path("copies")).unwrap().next().unwrap().unwrap().path();
    let delivered = doubled(&place.path("there"));
    println!(
        "{short} short and {long} long cuts: none lost; {broken} connections of senders and {failures} of the \
         follower broke; {own} doubled by senders, {} by the follower",
        delivered - own
    );
    assert!(own <= broken * SENDER_WINDOW as u64, "{own} doubled by senders");
    assert_eq!(doubled(&copies), own, "forwarding doubles nothing");
    assert!(delivered - own <= failures * 1000, "{delivered}");
}

#[test]
fn nothing_acknowledged_is_lost_when_the_network_is_cut_for_a_moment() {
    const TEST: &str =
        "network_cuts::nothing_acknowledged_is_lost_when_the_network_is_cut_for_a_moment";
    let Some(network) = OwnNetwork::enter(TEST) else { return };
    cut(&network, (4, 0), 3000);
}

#[test]
#[ignore = "takes minutes; `make test-all` runs it"]
fn soak_of_network_cuts() {
    let Some(network) = OwnNetwork::enter("network_cuts::soak_of_network_cuts") else { return };
    cut(&network, (40, 2), 40_000);
}
