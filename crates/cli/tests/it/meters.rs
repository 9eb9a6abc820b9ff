//! What `wattlock measure` makes of meters that are parts, shares, dead or silent.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{assert_exit, stderr, stdout, wattlock, with_input};
use wattlock_testing::served_files::{Mounted, Tree};

/// A machine made of files.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Writes a file, with its folders.
    fn with(self, path: &str, text: &str) -> Self {
        let file = self.file(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{text}\n")).unwrap();
        self
    }

    fn zone(self, zone: &str, name: &str, uj: &str) -> Self {
        let zone = format!("{POWERCAP}/{zone}");
        self.with(&format!("{zone}/name"), name)
            .with(&format!("{zone}/max_energy_range_uj"), "262143328850")
            .with(&format!("{zone}/energy_uj"), uj)
    }

    /// One that a hypervisor runs.
    fn guest(self) -> Self {
        self.with("proc/cpuinfo", "flags\t\t: fpu hypervisor aes")
    }

    fn measure(&self, args: &[&str]) -> Command {
        let mut command = wattlock();
        command.arg("measure").args(args).env("WATTLOCK_ROOT", self.0.path());
        command
    }

    /// The sum of a run that adds a joule to the counter of `zone`.
    fn one_joule(&self, zone: &Path) -> (Value, Output) {
        let file = zone.join("energy_uj");
        let file = file.display();
        let work = format!("read v < {file}; echo $((v + 1000000)) > {file}");
        let ran = self.measure(&["--json", "--", "sh", "-c", &work]).output().unwrap();
        assert_exit(&ran, 0);
        (sum(&ran), ran)
    }
}

fn sum(ran: &Output) -> Value {
    let report: Value = serde_json::from_str(stderr(ran).lines().last().unwrap()).unwrap();
    report["runs"][0]["sum"].clone()
}

const POWERCAP: &str = "sys/class/powercap";

#[test]
fn a_meter_of_power_is_no_counter_and_named_apart_from_the_time() {
    let machine = Machine::new();
    let meter = ["--meter", "while :; do echo 5 W; sleep 0.05; done"];
    let measure = |args: &[&str]| machine.measure(&[&meter[..], args].concat()).output().unwrap();
    let refused = measure(&["--require", "measured", "--", "touch", "ran"]);
    assert_exit(&refused, 4);
    let said = stderr(&refused);
    assert!(said.contains("the meter reports power (class integrated)"), "{said}");
    assert!(said.contains("the command was not run"), "{said}");
    let measured = measure(&["--", "sleep", "0.3"]);
    assert_exit(&measured, 0);
    let said = stderr(&measured);
    let rows = |name: &str| said.lines().filter(|line| line.trim().starts_with(name)).count();
    assert_eq!([rows("wall socket "), rows("wall time "), rows("wall  ")], [1, 1, 0], "{said}");
}

#[test]
fn a_url_of_another_scheme_is_refused_and_not_run() {
    let machine = Machine::new();
    for (meter, why) in
        [("ftp://plug/", "ftp:// is not supported"), ("https://plug/", "https is not supported")]
    {
        let refused = machine.measure(&["--meter", meter, "--", "true"]).output().unwrap();
        assert_exit(&refused, 4);
        let said = stderr(&refused);
        assert!(said.contains(why), "{said}");
        assert!(said.contains("use a command: --meter 'curl -sS --max-time 2 URL'"), "{said}");
    }
}

#[test]
fn of_graces_eight_meters_the_modules_are_the_machine() {
    let mut machine = Machine::new();
    let kinds = [("SysIO", 30), ("CPU", 170), ("Grace", 250), ("Module", 900)];
    for (index, (kind, watts)) in kinds.iter().enumerate() {
        for socket in 0..2 {
            let device = format!("sys/class/hwmon/hwmon{}", index * 2 + socket);
            machine = machine
                .with(&format!("{device}/name"), "power_meter")
                .with(&format!("{device}/power1_average"), &format!("{watts}000000"))
                .with(
                    &format!("{device}/power1_oem_info"),
                    &format!("{kind} Power Socket {socket}"),
                );
        }
    }
    let ran = machine.measure(&["--json", "--", "true"]).output().unwrap();
    assert_exit(&ran, 0);
    let report: Value = serde_json::from_str(stderr(&ran).lines().last().unwrap()).unwrap();
    let covers = &report["runs"][0]["sum"]["covers"];
    let modules = [0, 1].map(|socket| format!("power_meter Module Power Socket {socket}"));
    assert_eq!(covers.as_array().unwrap(), &modules.map(Value::from), "{report}");
}

#[test]
fn a_psys_below_its_packages_gives_way_to_them() {
    let machine = Machine::new()
        .zone("intel-rapl:0", "package-0", "0")
        .zone("intel-rapl:0:0", "dram", "0")
        .zone("intel-rapl:1", "psys", "0");
    let set = |zone: &str, uj: u64| {
        let file = machine.file(&format!("{POWERCAP}/{zone}/energy_uj"));
        format!("echo {uj} > {}; ", file.display())
    };
    // Packages of 130 J, and a psys of 24 J.
    let work = "sleep 0.3; ".to_owned()
        + &set("intel-rapl:0", 130_000_000)
        + &set("intel-rapl:0:0", 1_000_000)
        + &set("intel-rapl:1", 24_000_000);
    let ran = machine.measure(&["--json", "--", "sh", "-c", &work]).output().unwrap();
    assert_exit(&ran, 0);
    let report: Value = serde_json::from_str(stderr(&ran).lines().last().unwrap()).unwrap();
    let sum = sum(&ran);
    assert_eq!(sum["energy_uj"]["best"], 131_000_000, "{sum}");
    assert_eq!(sum["covers"], serde_json::json!(["dram of package-0", "package-0"]));
    assert!(sum["caveats"].as_array().unwrap().contains(&"part-exceeds-whole".into()), "{sum}");
    assert_eq!(report["runs"][0]["domains"]["psys"]["class"], "unavailable");
    let advice = report["advice"]["part-exceeds-whole"].as_str().unwrap();
    assert!(advice.contains("read less than a component"), "{advice}");
}

#[test]
fn a_jump_above_the_limits_of_a_zone_is_no_energy() {
    let zone = format!("{POWERCAP}/intel-rapl:0");
    let laptop = || {
        Machine::new()
            .zone("intel-rapl:0", "package-0", "0")
            .with(&format!("{zone}/constraint_0_power_limit_uw"), "15000000")
            .with(&format!("{zone}/constraint_0_max_power_uw"), "15000000")
    };
    for (uj, class) in [(500_000_000, "unavailable"), (1_000_000, "measured")] {
        let machine = laptop();
        let file = machine.file(&format!("{zone}/energy_uj"));
        let work = format!("sleep 0.2; echo {uj} > {}", file.display());
        let ran = machine.measure(&["--json", "--", "sh", "-c", &work]).output().unwrap();
        assert_exit(&ran, 0);
        let sum = sum(&ran);
        assert_eq!(sum["class"], class, "{sum}");
        let implausible = sum["caveats"].as_array().unwrap().contains(&"implausible".into());
        assert_eq!(implausible, class == "unavailable", "{sum}");
    }
}

#[test]
fn a_dead_domain_leaves_the_joules_of_the_others() {
    let machine = Machine::new().zone("intel-rapl:0", "package-0", "5").zone(
        "intel-rapl:0:0",
        "dram",
        "garbage",
    );
    let (sum, _) = machine.one_joule(&machine.file(&format!("{POWERCAP}/intel-rapl:0")));
    assert_eq!(sum["energy_uj"]["best"], 1_000_000, "{sum}");
    assert_eq!((&sum["class"], &sum["covers"][0]), (&"measured".into(), &"package-0".into()));
    assert_eq!(sum["missing"][0], "dram of package-0");
    assert!(sum["caveats"].as_array().unwrap().contains(&"domain-missing".into()));
    // It is a part, and not what was asked for.
    let required = machine.measure(&["--require", "measured", "--", "true"]).output().unwrap();
    assert_eq!(required.status.code(), Some(4));
    let file = machine.file(&format!("{POWERCAP}/intel-rapl:0/energy_uj"));
    let work = format!("echo 2000005 > {}", file.display());
    let text = machine.measure(&["--", "sh", "-c", &work]).output().unwrap();
    let said = stderr(&text);
    let missing = |line: &str| line.contains("  missing ") && line.ends_with(" dram of package-0");
    assert!(said.lines().any(missing), "{said}");
}

#[test]
fn a_zone_in_a_guest_is_a_share() {
    let zone = format!("{POWERCAP}/intel-rapl:0");
    let machine = Machine::new().zone("intel-rapl:0", "package-0", "5").guest();
    let (sum, ran) = machine.one_joule(&machine.file(&zone));
    assert_eq!(sum["class"], "attributed", "{sum}");
    assert_eq!(sum["energy_uj"]["best"], 1_000_000);
    assert!(sum["caveats"].as_array().unwrap().contains(&"guest-share".into()));
    // A new value each second says little of a run of milliseconds.
    assert!(sum["energy_uj"]["hi"].as_u64().unwrap() >= 3_000_000, "{}", stderr(&ran));
    let required = machine.measure(&["--require", "measured", "--", "true"]).output().unwrap();
    assert_eq!(required.status.code(), Some(4));
}

#[test]
fn scaphandres_folder_is_a_share() {
    for folder in [POWERCAP, "var/scaphandre"] {
        let machine = Machine::new().with(&format!("{folder}/intel-rapl:0/energy_uj"), "7");
        // It makes one for which it has nothing.
        fs::create_dir_all(machine.file(&format!("{folder}/intel-rapl:0:0"))).unwrap();
        let (sum, _) = machine.one_joule(&machine.file(&format!("{folder}/intel-rapl:0")));
        assert_eq!(
            (&sum["class"], &sum["energy_uj"]["best"]),
            (&"attributed".into(), &1_000_000.into())
        );
        assert_eq!(sum["covers"][0], "guest's share (intel-rapl:0)");
        assert!(sum.get("missing").is_none(), "{sum}");
    }
}

/// QEMU's counter: a new value each second. It is this machine's in a mount namespace of its own,
/// because only there a meter is watched before it is believed.
#[test]
fn a_counter_that_moves_once_a_second_is_believed_in_a_guest() {
    let machine = Machine::new().zone("intel-rapl:0", "package-0", "100000000005").guest();
    let can_mount = Command::new("unshare").args(["-m", "true"]).output();
    if !can_mount.is_ok_and(|ran| ran.status.success()) {
        wattlock_testing::skip("unshare", "this process may not mount");
        return;
    }
    let counter = machine.file(&format!("{POWERCAP}/intel-rapl:0/energy_uj"));
    let file = fs::OpenOptions::new().write(true).open(counter).unwrap();
    let mut uj = 100_000_000_005_u64;
    let _counts = Ticking::start(Duration::from_secs(1), move || {
        uj += 20_000_000;
        file.write_all_at(uj.to_string().as_bytes(), 0).unwrap();
    });
    let run = |cpuinfo: &str| {
        let mounted = "mount --bind \"$1/sys\" /sys && \
                       if test -n \"$2\"; then mount --bind \"$1/$2\" /proc/cpuinfo; fi && \
                       exec \"$3\" measure --json -- sleep 1.2";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", mounted, "sh"]).arg(machine.0.path()).arg(cpuinfo);
        command.arg(env!("CARGO_BIN_EXE_wattlock")).stdin(Stdio::null()).output().unwrap()
    };
    let ran = run("proc/cpuinfo");
    assert_exit(&ran, 0);
    let sum = sum(&ran);
    assert_eq!(sum["class"], "attributed", "{}", stderr(&ran));
    assert_eq!(sum["energy_uj"]["best"].as_u64().unwrap() % 20_000_000, 0, "{sum}");
}

/// Does something again and again until it is dropped.
struct Ticking(Option<mpsc::Sender<()>>, Option<JoinHandle<()>>);

impl Ticking {
    fn start(period: Duration, mut act: impl FnMut() + Send + 'static) -> Self {
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            while stopped.recv_timeout(period) == Err(mpsc::RecvTimeoutError::Timeout) {
                act();
            }
        };
        Self(Some(stop), Some(thread::spawn(run)))
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0 = None;
        self.1.take().unwrap().join().unwrap();
    }
}

/// A zone whose counter blocks on request, as a driver's call may.
#[derive(Default)]
struct Blocking {
    blocks: AtomicBool,
    blocked: AtomicBool,
}

impl Tree for Blocking {
    fn files(&self) -> Vec<String> {
        ["name", "max_energy_range_uj", "energy_uj"].map(|n| format!("intel-rapl:0/{n}")).into()
    }

    fn read(&self, path: &str) -> Option<String> {
        match path {
            "intel-rapl:0/name" => Some("package-0\n".into()),
            "intel-rapl:0/energy_uj" if self.blocks.load(Ordering::SeqCst) => {
                self.blocked.store(true, Ordering::SeqCst);
                None
            }
            "intel-rapl:0/energy_uj" => Some("5\n".into()),
            _ => Some("262143328850\n".into()),
        }
    }

    fn write(&self, _: &str, _: &str) -> Result<(), Errno> {
        Err(Errno::ACCESS)
    }
}

/// A machine with a counter that blocks, and `measure` with a command that runs until it is asked
/// to end.
struct Blocked {
    tree: Arc<Blocking>,
    child: Child,
    _mounted: Mounted,
    _machine: Machine,
}

impl Blocked {
    /// `None` where it cannot be mounted.
    fn new() -> Option<Self> {
        let machine = Machine::new();
        let powercap = machine.file(POWERCAP);
        fs::create_dir_all(&powercap).unwrap();
        let tree = Arc::<Blocking>::default();
        let mounted = Mounted::new(&powercap, Arc::clone(&tree) as Arc<dyn Tree>)?;
        let mut command = machine.measure(&["--", "sh", "-c", "echo runs; read end; exit 7"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "runs\n");
        Some(Self { tree, child, _mounted: mounted, _machine: machine })
    }

    /// Ends the command, and waits until the meter blocks.
    fn end_the_command(&mut self) {
        self.tree.blocks.store(true, Ordering::SeqCst);
        self.child.stdin.take().unwrap().write_all(b"\n").unwrap();
        eventually(|| self.tree.blocked.load(Ordering::SeqCst));
    }

    fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

fn eventually(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline);
        thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn a_meter_that_blocks_does_not_hold_the_report_back() {
    let Some(mut blocked) = Blocked::new() else { return };
    blocked.end_the_command();
    let (code, said) = blocked.ended();
    assert_eq!(code, Some(7), "{said}");
    assert!(said.contains("a meter did not answer in time"), "{said}");
}

#[test]
fn signals_are_obeyed_while_a_meter_blocks() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let Some(mut blocked) = Blocked::new() else { return };
        blocked.end_the_command();
        let asked = Instant::now();
        kill_process(Pid::from_child(&blocked.child), signal).unwrap();
        let (code, said) = blocked.ended();
        assert_eq!(code, Some(7), "{signal:?}: {said}");
        assert!(said.contains("a meter did not answer in time"), "{said}");
        assert!(asked.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn signals_for_the_command_reach_it() {
    let machine = Machine::new();
    for signal in [Signal::USR1, Signal::USR2, Signal::ALARM] {
        let name = match signal {
            Signal::USR1 => "USR1",
            Signal::USR2 => "USR2",
            _ => "ALRM",
        };
        // It ends by the signal alone.
        let work = format!("sleep 600 & trap \"kill $!; exit 5\" {name}; echo ready; wait");
        let mut command = machine.measure(&["--", "sh", "-c", &work]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let stdin = child.stdin.take();
        let ran = child.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(ran.status.code(), Some(5), "{name}: {}", stderr(&ran));
        assert!(stderr(&ran).contains("(model, not measured)"));
    }
}

#[test]
fn repetitions_refuse_an_input_that_only_the_first_could_read() {
    let machine = Machine::new().with("input", "one\ntwo");
    let repeat = || machine.measure(&["--repeat=2", "--", "cat"]);
    let refused = with_input(&mut repeat(), b"one\n");
    assert_eq!((refused.status.code(), &*stdout(&refused)), (Some(2), ""));
    let said = stderr(&refused);
    assert!(said.contains("a pipe or a socket") && said.contains("</dev/null"), "{said}");
    let input = || fs::File::open(machine.file("input")).unwrap();
    let refused = repeat().stdin(input()).output().unwrap();
    assert_eq!((refused.status.code(), &*stdout(&refused)), (Some(2), ""));
    assert!(stderr(&refused).contains("a file"), "{}", stderr(&refused));
    // What is empty for the first is so for all, and one run may read what it likes.
    assert_exit(&repeat().output().unwrap(), 0);
    assert_exit(&repeat().stdin(fs::File::open("/dev/null").unwrap()).output().unwrap(), 0);
    let mut closed = repeat();
    let (read, write) = std::io::pipe().unwrap();
    drop(write);
    assert_exit(&closed.stdin(read).output().unwrap(), 0);
    let once = machine.measure(&["--", "cat"]).stdin(input()).output().unwrap();
    assert_eq!((once.status.code(), &*stdout(&once)), (Some(0), "one\ntwo\n"));
}

#[test]
fn a_streams_joules_outlive_a_bad_reading() {
    let machine = Machine::new().zone("intel-rapl:0", "package-0", "100000000005");
    let key = machine.file("key");
    fs::write(&key, [7; 32]).unwrap();
    let mut command = wattlock();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    command.args(["stream", "--metrics", &address, "--key-file"]).arg(&key);
    command.env("WATTLOCK_ROOT", machine.0.path());
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let counter = machine.file(&format!("{POWERCAP}/intel-rapl:0/energy_uj"));
    let file = fs::OpenOptions::new().write(true).open(&counter).unwrap();
    let bad = Arc::new(AtomicBool::new(false));
    let is_bad = Arc::clone(&bad);
    let mut uj = 100_000_000_005_u64;
    let counts = Ticking::start(Duration::from_millis(10), move || {
        uj += 200_000;
        let text = if is_bad.load(Ordering::SeqCst) { "x".repeat(12) } else { uj.to_string() };
        file.write_all_at(text.as_bytes(), 0).unwrap();
    });
    let joules = || metric(&address, "wattlock_measured_stream_energy_joules_total{} ");
    let lost = || metric(&address, "wattlock_stream_energy_uncounted_seconds_total{} ");
    eventually(|| joules().is_some_and(|joules| joules > 0.0));
    bad.store(true, Ordering::SeqCst);
    eventually(|| lost().is_some_and(|seconds| seconds > 0.0));
    bad.store(false, Ordering::SeqCst);
    let before = joules().unwrap();
    eventually(|| joules().is_some_and(|joules| joules > before));
    drop(counts);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// The value of a metric.
fn metric(address: &str, name: &str) -> Option<f64> {
    // It may not listen yet.
    let mut peer = TcpStream::connect(address).ok()?;
    peer.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    peer.read_to_string(&mut text).unwrap();
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse().ok()
}
