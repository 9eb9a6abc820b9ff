//! A machine made of files, and processes that hold leases on it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use wattlock_energy::{Lease, Root, Setting, guardian as guard};
use wattlock_testing::wait_until;

pub const MAX_0: &str = "cpufreq/policy0/scaling_max_freq";
pub const MAX_1: &str = "cpufreq/policy1/scaling_max_freq";

/// Two policies, of 3 and 2 GHz.
pub struct Machine(tempfile::TempDir);

impl Machine {
    pub fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for (policy, max) in [(0, 3_000_000), (1, 2_000_000)] {
            fs::create_dir_all(machine.file(policy, "")).unwrap();
            fs::write(machine.file(policy, "scaling_max_freq"), format!("{max}\n")).unwrap();
        }
        machine.boot("first");
        machine
    }

    pub fn boot(&self, id: &str) {
        let directory = self.0.path().join("proc/sys/kernel/random");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("boot_id"), format!("{id}\n")).unwrap();
    }

    pub fn root(&self) -> Root {
        Root::new(self.0.path())
    }

    pub fn file(&self, policy: u32, name: &str) -> PathBuf {
        let directory = self.0.path().join("sys/devices/system/cpu/cpufreq");
        directory.join(format!("policy{policy}")).join(name)
    }

    pub fn journal(&self) -> PathBuf {
        self.0.path().join("run/wattlock/journal.json")
    }

    pub fn clock(&self, policy: u32) -> u32 {
        // A file that is being written is empty for a moment.
        let text = fs::read_to_string(self.file(policy, "scaling_max_freq")).unwrap();
        text.trim().parse().unwrap_or(0)
    }

    pub fn clocks(&self) -> (u32, u32) {
        (self.clock(0), self.clock(1))
    }

    pub fn eventually_restored(&self) {
        let restored = || self.clocks() == (3_000_000, 2_000_000) && !self.journal().exists();
        wait_until("all is restored", restored);
    }

    /// Leaves it with a journal that no guardian replays.
    pub fn kill_with_guardian(&self) {
        let mut holder = Holder::start(self);
        send(holder.guardian, Signal::KILL);
        wait_until("the guardian is dead", || !runs(holder.guardian));
        send(holder.pid(), Signal::KILL);
        holder.end();
        assert_eq!(self.clocks(), (1_000_000, 1_200_000));
        assert!(self.journal().exists());
    }
}

/// A process that has leased both clocks.
pub struct Holder {
    child: Child,
    said: Receiver<String>,
    stderr: Receiver<String>,
    pub guardian: u32,
}

impl Holder {
    /// Starts it, and waits until it has set 1 and 1.2 GHz.
    pub fn start(machine: &Machine) -> Self {
        let mut command = role("holder", &machine.root());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().unwrap();
        let (stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (say, said) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some((_, word)) = line.split_once(SAID) {
                    say.send(word.to_owned()).ok();
                }
            }
        });
        let (report, reported) = mpsc::channel();
        thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).ok();
            report.send(text).ok();
        });
        let mut holder = Self { child, said, stderr: reported, guardian: 0 };
        holder.guardian = holder.hear().parse().unwrap();
        holder
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn order(&mut self, command: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{command}").unwrap();
    }

    pub fn hear(&self) -> String {
        self.said.recv_timeout(DEADLINE).expect("the holder says something")
    }

    pub fn send_to_group(&self, signal: Signal) {
        kill_process_group(number(self.pid()), signal).unwrap();
    }

    /// Waits for its end, and the guardian's: what they have said on standard error.
    pub fn end(&mut self) -> String {
        let ended = || self.child.try_wait().unwrap().is_some();
        wait_until("the holder ends", ended);
        self.stderr.recv_timeout(DEADLINE).expect("the holder and its guardian end")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The program that guards a lease.
pub fn guardian(root: &Root) -> Command {
    role("guardian", root)
}

pub fn send(process: u32, signal: Signal) {
    kill_process(number(process), signal).unwrap();
}

/// True unless it is dead, or has only not been waited for.
pub fn runs(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Its first thread may be dead before the others, and then it cannot be waited for yet.
    let threads = fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
    let alive = |(_, state): (&str, &str)| !state.starts_with(['Z', 'X']);
    threads > 1 || stat.rsplit_once(") ").is_some_and(alive)
}

/// What a process does that a test started; nothing in one that none has.
pub fn process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let root = Root::new(std::env::var(MACHINE).unwrap());
    if role == "guardian" {
        let text = guard::watch(&root).map_or_else(|error| error.to_string(), |it| it.to_string());
        for line in text.lines().filter(|line| *line != "nothing to restore") {
            eprintln!("guardian: {line}");
        }
        return;
    }
    // They may be ignored where the tests run in the background.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP].map(Signal::as_raw) {
        let always = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_shutdown(signal, 1, always).unwrap();
    }
    let mut lease = Lease::acquire(&root, guardian(&root)).unwrap();
    lease.set(MAX_0, &1_000_000.into()).unwrap();
    lease.set(MAX_1, &1_200_000.into()).unwrap();
    say(lease.guardian_pid().unwrap());
    obey(lease);
}

fn obey(mut lease: Lease) {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["drop"] => return,
            ["exit"] => std::process::exit(0),
            ["panic"] => panic!("as the test wants"),
            ["restore"] => {
                lease.restore().unwrap().to_string().lines().for_each(say);
                return;
            }
            ["spin"] => {
                say("spinning");
                for clock in (1_000_000..).step_by(1_000).take(1_900).cycle() {
                    lease.set(MAX_0, &clock.into()).unwrap();
                    lease.set(MAX_1, &clock.into()).unwrap();
                }
            }
            ["child"] => {
                let mut sleep = Command::new("sleep");
                sleep.arg("60").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                say(sleep.spawn().unwrap().id());
            }
            ["set", id, word] => {
                let done = lease.set(id, &Setting::new(word).unwrap());
                say(done.map_or_else(|error| error.to_string(), |_| "set".into()));
            }
            _ => panic!("unknown order {line:?}"),
        }
    }
}

fn say(what: impl std::fmt::Display) {
    // The test harness has begun a line.
    println!("\n{SAID}{what}");
}

fn role(role: &str, root: &Root) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["lease::process_of_a_test", "--exact", "--ignored", "--nocapture"]);
    command.env(ROLE, role).env(MACHINE, root.as_path());
    command
}

fn number(process: u32) -> Pid {
    Pid::from_raw(process.try_into().unwrap()).unwrap()
}

const SAID: &str = "said: ";
const ROLE: &str = "WATTLOCK_TEST_ROLE";
const MACHINE: &str = "WATTLOCK_TEST_MACHINE";
const DEADLINE: Duration = Duration::from_secs(60);
