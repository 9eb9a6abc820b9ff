//! `wattlock-lab bench objects`: an object store on this machine, and rclone beside wattlock.

use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::json;
use wattlock_file::{NativeIdentity, RemoteOutput};
use wattlock_host::exit::Ended;
use wattlock_host::signals;
use wattlock_object::{Address, Client};
use wattlock_report::results::{Ratio, Results};

use super::child::{self, Cost};
use super::content::{random_file, same};
use super::files;
use super::lab::{Lab, Windows};
use super::rows::{Watched, add, watched};
use crate::args;
use crate::bench::publish;
use crate::wattlock;

/// `wattlock-lab bench objects`.
pub fn run(args: &args::BenchObjects) -> Ended {
    if let [file, address] = args.put.as_slice() {
        return put(file, address);
    }
    publish::can_publish(args.json.as_deref(), &args.meters)?;
    let directory = tempfile::Builder::new().prefix("wattlock-bench-").tempdir_in(&args.dir)?;
    signals::clean_up_and_remove(directory.path().to_owned())?;
    let bench = Bench::new(args, directory.path())?;
    let windows = if args.quick { Windows::QUICK } else { Windows::LONG };
    let mut lab = Lab::new(bench.results()?, &args.meters, windows)?;
    lab.run(&args.clocks, |lab| bench.run(lab))?;
    let mut results = lab.results;
    ratios(&mut results);
    publish::publish(&results, args.json.as_deref(), &args.meters, files::text)
}

/// Sends a file as it is, in a process of its own: what wattlock costs without encryption.
fn put(file: &Path, address: &Path) -> Ended {
    let len = file.metadata()?.len();
    let mut upload = Client::new()?.upload(&Address::parse(address)?, true, Some(len))?;
    io::copy(&mut io::BufReader::with_capacity(1 << 20, File::open(file)?), &mut upload)?;
    upload.complete()?;
    Ok(std::process::ExitCode::SUCCESS)
}

struct Bench<'a> {
    directory: &'a Path,
    rclone: PathBuf,
    server: Server,
    size: u64,
    files: usize,
    rounds: usize,
    recipient: String,
    /// rclone's form of a password.
    obscured: String,
}

/// The store, until this is dropped.
struct Server {
    program: PathBuf,
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const KEY: &str = "bench";
const SECRET: &str = "bench-secret";

impl Server {
    fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(program);
        command
            .args([&format!("--port=127.0.0.1:{port}"), "--quiet", "--keep-alive", "posix"])
            .arg(folder);
        command.env("ROOT_ACCESS_KEY", KEY).env("ROOT_SECRET_KEY", SECRET);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.with_context(|| {
            format!("cannot start {}; name it with --server", program.display())
        })?;
        let server = Self { program: program.to_owned(), child, port };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if started.elapsed() > Duration::from_secs(10) {
                bail!("{} does not listen", program.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Server {
    /// What the program says of itself, which takes more than a line.
    fn version(&self) -> String {
        let said = Command::new(&self.program).arg("--version").output();
        let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
        let words = said.unwrap_or_default();
        format!("versitygw {}", words.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl<'a> Bench<'a> {
    fn new(args: &args::BenchObjects, directory: &'a Path) -> anyhow::Result<Self> {
        let identity = NativeIdentity::generate();
        fs::write(directory.join("key"), identity.to_text().as_bytes())?;
        let data = directory.join("data");
        fs::create_dir(&data)?;
        let obscured = Command::new(&args.rclone).args(["obscure", "a password"]).output();
        let obscured =
            obscured.with_context(|| format!("cannot start {}", args.rclone.display()))?;
        Ok(Self {
            directory,
            rclone: args.rclone.clone(),
            server: Server::start(&args.server, &data)?,
            size: if args.quick { args.size.min(32 << 20) } else { args.size },
            files: if args.quick { args.files.min(50) } else { args.files },
            rounds: if args.quick { 2 } else { args.rounds },
            recipient: identity.recipient().text().unwrap_or_default().to_owned(),
            obscured: String::from_utf8_lossy(&obscured.stdout).trim().to_owned(),
        })
    }

    fn results(&self) -> anyhow::Result<Results> {
        let mut results = Results::new("objects");
        let version = |program: &Path, args: &[&str]| {
            let said = Command::new(program).args(args).output();
            let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
            said.ok().and_then(|said| Some(said.lines().next()?.trim().to_owned()))
        };
        let own = wattlock::program()?;
        for (name, program, args) in
            [("wattlock", &*own, ["--version"]), ("rclone crypt", &*self.rclone, ["version"])]
        {
            results.tools.insert(name.into(), version(program, &args).unwrap_or_default());
        }
        results.tools.insert("store".into(), self.server.version());
        results.settings = [
            ("size_bytes", json!(self.size)),
            ("files", json!(self.files)),
            ("file_size_bytes", json!(FILE_SIZE)),
            ("rounds", json!(self.rounds)),
            ("network", json!("HTTP on loopback; the store shares the CPUs")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        Ok(results)
    }

    /// Every command in turn, round after round.
    fn run(&self, lab: &mut Lab<'_>) -> anyhow::Result<()> {
        let (big, tree) = (self.path("big"), self.path("tree"));
        random_file(&big, self.size)?;
        fs::create_dir(&tree)?;
        for number in 0..self.files {
            random_file(&tree.join(format!("{number:05}")), FILE_SIZE)?;
        }
        child::run(self.rclone("mkdir").arg("s3:bucket"))?;
        let cases: [(&str, &str, Case); 9] = [
            (
                "wattlock",
                "put",
                Case::Wattlock(&[
                    "protect",
                    "-f",
                    "-r",
                    "RECIPIENT",
                    "big",
                    "-o",
                    "s3://bucket/own",
                ]),
            ),
            ("wattlock, not encrypted", "put", Case::Plain),
            (
                "rclone crypt",
                "put",
                Case::Rclone(&["copyto", "--ignore-times", "big", "crypt:big"]),
            ),
            (
                "wattlock",
                "get",
                Case::Wattlock(&["unprotect", "-f", "-i", "key", "s3://bucket/own", "-o", "back"]),
            ),
            ("rclone crypt", "get", Case::Rclone(&["copyto", "crypt:big", "back2"])),
            (
                "wattlock",
                "put many",
                Case::Wattlock(&[
                    "protect",
                    "-q",
                    "-r",
                    "RECIPIENT",
                    "--recursive",
                    "tree",
                    "--out-dir",
                    "s3://bucket/ROUND",
                ]),
            ),
            (
                "rclone crypt",
                "put many",
                Case::Rclone(&["copy", "--transfers=16", "tree", "crypt:ROUND"]),
            ),
            (
                "wattlock",
                "get many",
                Case::Wattlock(&[
                    "unprotect",
                    "-q",
                    "-i",
                    "key",
                    "--recursive",
                    "s3://bucket/ROUND",
                    "--out-dir",
                    "many",
                ]),
            ),
            (
                "wattlock",
                "get 100 kB",
                Case::Wattlock(&[
                    "unprotect",
                    "-i",
                    "key",
                    "-f",
                    "--range=RANGE",
                    "s3://bucket/own",
                    "-o",
                    "part",
                ]),
            ),
        ];
        let mut costs: Vec<Vec<Watched>> = cases.iter().map(|_| Vec::new()).collect();
        for round in 0..=self.rounds {
            for (index, (.., case)) in cases.iter().enumerate() {
                let mut command = self.command(case, round)?;
                let cost: Watched =
                    watched(lab, || -> anyhow::Result<Cost> { child::run(&mut command) })?;
                if round > 0 {
                    costs[index].push(cost);
                }
            }
            if round == 0 {
                self.check()?;
            }
            for made in ["back", "back2"] {
                fs::remove_file(self.path(made))?;
            }
            fs::remove_dir_all(self.path("many"))?;
            tell!("objects: round {round} of {}", self.rounds);
        }
        for ((tool, case, _), costs) in cases.iter().zip(costs) {
            let bytes = match *case {
                "put" | "get" => self.size,
                "get 100 kB" => RANGE,
                _ => FILE_SIZE * self.files as u64,
            };
            add(lab, tool, case, bytes, costs);
        }
        Ok(())
    }

    /// Fails unless what came back is what was sent.
    fn check(&self) -> anyhow::Result<()> {
        for made in ["back", "back2"] {
            if !same(&self.path("big"), &self.path(made))? {
                bail!("the object came back different in {made}");
            }
        }
        for number in 0..self.files {
            let name = format!("{number:05}");
            let back = self.path("many").join("0/tree").join(&name);
            if !same(&self.path("tree").join(&name), &back)? {
                bail!("{name} came back different");
            }
        }
        Ok(())
    }

    fn command(&self, case: &Case, round: usize) -> anyhow::Result<Command> {
        let mut command = match case {
            Case::Wattlock(args) => {
                let mut command = Command::new(wattlock::program()?);
                command.args(args.iter().map(|arg| self.word(arg, round)));
                command
            }
            Case::Plain => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["bench", "objects", "--put", "big", "s3://bucket/plain"]);
                command
            }
            Case::Rclone(args) => {
                let mut command = self.rclone("--quiet");
                command.args(args.iter().map(|arg| self.word(arg, round)));
                command
            }
        };
        command
            .current_dir(self.directory)
            .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.server.port))
            .envs([("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET)])
            .env("AWS_REGION", "us-east-1");
        Ok(command)
    }

    fn word(&self, arg: &str, round: usize) -> String {
        let start = self.size / 3;
        arg.replace("RECIPIENT", &self.recipient)
            .replace("ROUND", &round.to_string())
            .replace("RANGE", &format!("{start}..{}", start + RANGE))
    }

    fn rclone(&self, command: &str) -> Command {
        let mut rclone = Command::new(&self.rclone);
        rclone.args(["--config=", command]).env_remove("AWS_CA_BUNDLE").envs([
            ("RCLONE_CONFIG_S3_TYPE", "s3"),
            ("RCLONE_CONFIG_S3_PROVIDER", "Other"),
            ("RCLONE_CONFIG_S3_ACCESS_KEY_ID", KEY),
            ("RCLONE_CONFIG_S3_SECRET_ACCESS_KEY", SECRET),
            ("RCLONE_CONFIG_S3_REGION", "us-east-1"),
            ("RCLONE_CONFIG_S3_ENDPOINT", &format!("http://127.0.0.1:{}", self.server.port)),
            ("RCLONE_CONFIG_CRYPT_TYPE", "crypt"),
            ("RCLONE_CONFIG_CRYPT_REMOTE", "s3:bucket/rclone"),
            ("RCLONE_CONFIG_CRYPT_PASSWORD", &self.obscured),
        ]);
        rclone
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// What is run.
enum Case {
    Wattlock(&'static [&'static str]),
    /// This program, which sends a file without encrypting it.
    Plain,
    Rclone(&'static [&'static str]),
}

/// Bytes of each of many files.
const FILE_SIZE: u64 = 20_000;

/// Bytes of the range out of the middle.
const RANGE: u64 = 100_000;

fn ratios(results: &mut Results) {
    let wall = |tool: &str, case: &str| Some(results.row(tool, case)?.wall_ns.median as f64);
    let cpu = |tool: &str, case: &str| Some(results.row(tool, case)?.cpu_ns.median as f64);
    let (own, rclone, plain) = ("wattlock", "rclone crypt", "wattlock, not encrypted");
    let quotients = [
        ("put: CPU, wattlock / rclone crypt", cpu(own, "put"), cpu(rclone, "put"), 0.25),
        ("put: CPU, wattlock / not encrypted", cpu(own, "put"), cpu(plain, "put"), 1.15),
        ("get: CPU, wattlock / rclone crypt", cpu(own, "get"), cpu(rclone, "get"), 0.7),
        (
            "put many: wall, wattlock / rclone crypt",
            wall(own, "put many"),
            wall(rclone, "put many"),
            0.4,
        ),
        (
            "put many: CPU, wattlock / rclone crypt",
            cpu(own, "put many"),
            cpu(rclone, "put many"),
            0.3,
        ),
    ];
    let ratios = quotients.into_iter().filter_map(|(name, ours, theirs, limit)| {
        Some(Ratio::at_most(name.to_owned(), ours? / theirs?, limit))
    });
    results.ratios = ratios.collect();
}
