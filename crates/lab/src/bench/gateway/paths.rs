//! The programs between senders and the sink.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use wait4::Wait4;

use crate::bench::child::Cost;
use crate::wattlock;

/// What is between senders and the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Nothing.
    Nothing,
    /// Two relays that only copy.
    Relays,
    /// A gateway that seals and one that opens.
    Gateways,
    /// The same with so many threads that read, and links between them.
    Readers(u16),
    /// Both ends of stunnel.
    Stunnel,
    /// Both ends of socat with OpenSSL.
    Socat,
    /// Two rsyslogd that forward lines, without cryptography.
    Rsyslog,
}

impl Between {
    pub const ALL: [Self; 8] = [
        Self::Nothing,
        Self::Relays,
        Self::Gateways,
        Self::Readers(2),
        Self::Readers(4),
        Self::Stunnel,
        Self::Socat,
        Self::Rsyslog,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "plain TCP",
            Self::Relays => "two relays",
            Self::Gateways => "wattlock",
            Self::Readers(2) => "wattlock, 2 readers",
            Self::Readers(_) => "wattlock, 4 readers",
            Self::Stunnel => "stunnel",
            Self::Socat => "socat",
            Self::Rsyslog => "rsyslog, plain",
        }
    }

    /// The program that has to be installed, and how it says its version.
    pub fn needs(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Self::Stunnel => Some(("stunnel4", &["-version"])),
            Self::Socat => Some(("socat", &["-V"])),
            Self::Rsyslog => Some(("rsyslogd", &["-v"])),
            _ => None,
        }
    }
}

/// Programs that are running, and where senders connect to them.
pub struct Programs {
    /// Where the program that was started last listens.
    pub entry: SocketAddr,
    children: Vec<Child>,
}

impl Programs {
    /// None yet.
    pub fn none() -> Self {
        Self::before((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Starts what is between senders and the sink at `sink`. The key and certificate are in `folder`.
    pub fn start(between: Between, sink: SocketAddr, folder: &Path) -> anyhow::Result<Self> {
        let mut programs = Self::before(sink);
        match between {
            Between::Nothing => {}
            Between::Relays => {
                for _ in 0..2 {
                    let mut command = Command::new(std::env::current_exe()?);
                    command.args(["bench", "stream", "--relay-to", &programs.entry.to_string()]);
                    programs.add(&mut command)?;
                }
            }
            Between::Gateways => programs.add_gateways(folder, 1)?,
            Between::Readers(readers) => programs.add_gateways(folder, readers)?,
            Between::Stunnel => {
                for is_client in [false, true] {
                    let port = free_port()?;
                    let settings = folder.join(format!("stunnel-{port}"));
                    let certificate = match is_client {
                        false => {
                            format!("cert = {0}/cert.pem\nkey = {0}/key.pem\n", folder.display())
                        }
                        true => "client = yes\n".into(),
                    };
                    let text = format!(
                        "foreground = yes\ndebug = err\npid =\nsocket = l:TCP_NODELAY=1\n\
                         socket = r:TCP_NODELAY=1\n[s]\naccept = 127.0.0.1:{port}\n\
                         connect = {}\n{certificate}",
                        programs.entry
                    );
                    fs::write(&settings, text)?;
                    programs.add_at(Command::new("stunnel4").arg(settings), port)?;
                }
            }
            Between::Socat => {
                for is_client in [false, true] {
                    let port = free_port()?;
                    let here = format!("{port},bind=127.0.0.1,fork,reuseaddr,nodelay,backlog=4096");
                    let (from, to) = match is_client {
                        false => (
                            format!(
                                "OPENSSL-LISTEN:{here},cert={0}/cert.pem,key={0}/key.pem,verify=0",
                                folder.display()
                            ),
                            format!("TCP:{},nodelay", programs.entry),
                        ),
                        true => (
                            format!("TCP-LISTEN:{here}"),
                            format!("OPENSSL:{},verify=0,nodelay", programs.entry),
                        ),
                    };
                    programs.add_at(Command::new("socat").args(["-b262144", &from, &to]), port)?;
                }
            }
            Between::Rsyslog => {
                for _ in 0..2 {
                    let port = free_port()?;
                    let settings = folder.join(format!("rsyslog-{port}"));
                    let text = format!(
                        "global(workDirectory=\"{folder}\" maxMessageSize=\"128k\")\n\
                         module(load=\"imptcp\")\n\
                         template(name=\"raw\" type=\"string\" string=\"%rawmsg%\\n\")\n\
                         input(type=\"imptcp\" address=\"127.0.0.1\" port=\"{port}\")\n\
                         main_queue(queue.size=\"100000\" queue.dequeueBatchSize=\"1000\")\n\
                         action(type=\"omfwd\" target=\"127.0.0.1\" port=\"{to}\" protocol=\"tcp\" \
                         template=\"raw\" action.resumeRetryCount=\"-1\")\n",
                        folder = folder.display(),
                        to = programs.entry.port(),
                    );
                    fs::write(&settings, text)?;
                    let mut command = Command::new("rsyslogd");
                    command.arg("-n").arg("-f").arg(&settings).arg("-i");
                    programs.add_at(command.arg(settings.with_extension("pid")), port)?;
                }
            }
        }
        Ok(programs)
    }

    fn before(entry: SocketAddr) -> Self {
        Self { entry, children: Vec::new() }
    }

    fn add_gateways(&mut self, folder: &Path, readers: u16) -> anyhow::Result<()> {
        let key = folder.join("key");
        for seals in [false, true] {
            let mut command = Command::new(wattlock::program()?);
            command.args(["stream", "--listen", "tcp:127.0.0.1:0", "--connect"]);
            command.arg(format!("tcp:{}", self.entry)).arg("--key-file").arg(&key);
            command.arg(if seals { "--framing=ndjson" } else { "--open" });
            command.arg("--readers").arg(readers.to_string());
            self.add(&mut command)?;
        }
        Ok(())
    }

    /// Starts a program that says where it listens.
    pub fn add(&mut self, command: &mut Command) -> anyhow::Result<()> {
        let mut child = spawn(command.stderr(Stdio::piped()))?;
        let mut lines = BufReader::new(child.stderr.take().context("it has no output")?).lines();
        let address = loop {
            let Some(line) = lines.next() else { bail!("{command:?} does not listen") };
            let line = line?;
            if let Some((_, address)) = line.split_once("listening at ") {
                break address.trim_start_matches("tcp:").to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        self.entry = address.parse().context("an address that is none")?;
        self.children.push(child);
        Ok(())
    }

    fn add_at(&mut self, command: &mut Command, port: u16) -> anyhow::Result<()> {
        self.children.push(spawn(command.stderr(Stdio::null()))?);
        self.entry = (Ipv4Addr::LOCALHOST, port).into();
        let started = Instant::now();
        // Listening is seen without a connection, which would be relayed.
        while !is_listening(port) {
            if started.elapsed() > Duration::from_secs(10) {
                bail!("{command:?} does not listen");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Kills the programs at once, and returns what they cost.
    pub fn kill(self) -> anyhow::Result<Cost> {
        self.end(Signal::KILL)
    }

    /// Ends the programs, senders' side first, and returns what they cost.
    pub fn stop(self) -> anyhow::Result<Cost> {
        self.end(Signal::TERM)
    }

    fn end(mut self, signal: Signal) -> anyhow::Result<Cost> {
        // What the system keeps of a child counts this program's memory, too, from which it was forked.
        let peak_rss_bytes = self.children.iter().map(peak_memory).sum();
        let mut cost = Cost { peak_rss_bytes, ..Cost::default() };
        for child in std::mem::take(&mut self.children).into_iter().rev() {
            kill_process(Pid::from_child(&child), signal)?;
            let used = child.wait4().context("cannot wait for a program")?.rusage;
            cost.cpu += used.utime + used.stime;
        }
        Ok(cost)
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The most memory that a program has had since it was started, in bytes.
fn peak_memory(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = kib.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

fn spawn(command: &mut Command) -> anyhow::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().with_context(|| format!("cannot start {command:?}"))
}

/// A port that no outgoing connection is given.
fn free_port() -> anyhow::Result<u16> {
    let first = 20_000 + (std::process::id() % 5000) as u16;
    let mut ports = first..first + 5000;
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    ports.find(is_free).context("no port is free")
}

fn is_listening(port: u16) -> bool {
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let wanted = format!("0100007F:{port:04X}");
    table.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1) == Some(&wanted.as_str()) && words.get(3) == Some(&"0A")
    })
}
