//! Servers of the bench's own: one worker, one suite, on loopback.

use std::ffi::OsString;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use wattlock_report::results::Results;

use super::guarded::{self, Guarded};
use crate::args::Suite;

/// What all servers share.
pub struct Place {
    /// Private to the bench, but for its parts that a server's worker reads.
    pub directory: PathBuf,
    pub nginx: PathBuf,
    /// Those of other releases of OpenSSL.
    pub others: Vec<PathBuf>,
    /// Go's compiler.
    pub go: Option<PathBuf>,
    /// The CPU of the servers.
    pub cpu: usize,
}

/// Which OpenSSL nginx has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The system's.
    Installed,
    /// Another that was asked for, by its place in the list.
    Other(usize),
}

impl Release {
    /// The version of another OpenSSL.
    pub fn version(self, results: &Results) -> Option<&str> {
        let Self::Other(index) = self else { return None };
        let versions = results.settings.get(OTHER_VERSIONS).and_then(|all| all.get(index));
        Some(versions.and_then(|version| version.as_str()).unwrap_or("other"))
    }
}

/// What makes one server different from another.
pub struct Setup<'a> {
    /// For its directory: letters and digits.
    pub name: String,
    pub program: Program,
    pub suite: Suite,
    /// Buffers so large that libssl hands over eight records at once.
    pub large_buffers: bool,
    /// Variables added to the environment of this program.
    pub environment: &'a [(&'static str, String)],
}

/// What serves.
pub enum Program {
    /// nginx, which reads a configuration, and forks its worker.
    Nginx(PathBuf),
    /// A process that takes a directory, a port and a suite after these.
    Alone(Vec<OsString>),
}

/// A server that answers.
pub struct Server {
    pub port: u16,
    /// The number of the process that does the work.
    pub worker: u32,
    _process: Guarded,
}

impl Place {
    /// Makes the certificate and the pages.
    ///
    /// # Errors
    /// That they cannot be made.
    pub fn furnish(&self, sizes: &[u64]) -> anyhow::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&self.directory, fs::Permissions::from_mode(0o755))?;
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-keyout", "key.pem", "-out", "cert.pem"])
            .current_dir(&self.directory)
            .output()
            .context("cannot run openssl")?;
        if !made.status.success() {
            bail!("openssl req failed: {}", String::from_utf8_lossy(&made.stderr).trim());
        }
        fs::write(self.clients_settings(), CLIENTS)?;
        let pages = self.directory.join("pages");
        fs::create_dir(&pages)?;
        for size in sizes {
            crate::bench::content::random_file(&pages.join(size.to_string()), *size)?;
        }
        Ok(())
    }

    /// The nginx of that OpenSSL.
    pub fn nginx(&self, release: Release) -> Option<&Path> {
        match release {
            Release::Installed => Some(&self.nginx),
            Release::Other(index) => self.others.get(index).map(PathBuf::as_path),
        }
    }

    /// The server on rustls: this program.
    ///
    /// # Errors
    /// That this program has no file.
    pub fn rustls(&self) -> anyhow::Result<Vec<OsString>> {
        Ok(vec![std::env::current_exe()?.into(), "serve-rustls".into()])
    }

    /// The server in Go, compiled once.
    ///
    /// # Errors
    /// That Go is not installed, or what its compiler says.
    pub fn go(&self) -> anyhow::Result<Vec<OsString>> {
        let go = self.go.as_deref().context("go is not installed")?;
        let program = self.directory.join("serve-go");
        if !program.is_file() {
            let source = self.directory.join("serve.go");
            fs::write(&source, include_str!("serve.go"))?;
            let built = Command::new(go)
                .args(["build", "-o"])
                .args([&program, &source])
                .current_dir(&self.directory)
                .output()
                .context("cannot start go")?;
            if !built.status.success() {
                bail!("go build: {}", String::from_utf8_lossy(&built.stderr).trim());
            }
        }
        Ok(vec![program.into()])
    }

    /// What Go's compiler says of itself.
    pub fn go_version(&self) -> String {
        let said = self.go.as_ref().and_then(|go| Command::new(go).arg("version").output().ok());
        let said = said.map(|said| said.stdout).unwrap_or_default();
        String::from_utf8_lossy(&said).trim().to_owned()
    }

    /// The settings of the clients' OpenSSL.
    pub fn clients_settings(&self) -> PathBuf {
        self.directory.join("clients.cnf")
    }

    /// The certificate, which signs itself.
    pub fn certificate(&self) -> PathBuf {
        self.directory.join("cert.pem")
    }

    /// The page of that many bytes.
    pub fn page(&self, size: u64) -> PathBuf {
        self.directory.join("pages").join(size.to_string())
    }

    /// Starts a server, and waits until it answers.
    ///
    /// # Errors
    /// What the server says.
    pub fn serve(&self, setup: &Setup<'_>) -> anyhow::Result<Server> {
        let mut last = None;
        // Another process may take the free port.
        for _ in 0..5 {
            match self.serve_once(setup) {
                Err(error) if format!("{error:#}").contains("in use") => last = Some(error),
                other => return other,
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("no port is free")))
    }

    fn serve_once(&self, setup: &Setup<'_>) -> anyhow::Result<Server> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let home = self.directory.join(&setup.name);
        let _ = fs::remove_dir_all(&home);
        fs::create_dir(&home)?;
        let mut command = match &setup.program {
            Program::Nginx(nginx) => {
                fs::write(home.join("nginx.conf"), configuration(setup, port))?;
                let mut command = guarded::command(self.cpu, nginx);
                command.arg("-p").arg(&home).args(["-c", "nginx.conf", "-e", "said"]);
                command
            }
            Program::Alone(start) => {
                let mut command = guarded::command(self.cpu, Path::new(&start[0]));
                command.args(&start[1..]).arg(&self.directory).arg(port.to_string());
                command.arg(setup.suite.openssl_name());
                command
            }
        };
        command.envs(setup.environment.iter().map(|(name, value)| (name, value)));
        let said = home.join("said");
        let mut process = Guarded::start(command, &said)?;
        let started = Instant::now();
        loop {
            let ended = process.has_ended();
            if ended || started.elapsed() > PATIENCE {
                let text = fs::read_to_string(&said).unwrap_or_default();
                bail!("the server does not answer: {}", text.trim());
            }
            // The worker first: otherwise, another server could answer on this port.
            let worker = match &setup.program {
                Program::Nginx(_) => {
                    let master = child_named(process.shell(), "nginx");
                    master.and_then(|master| child_named(master, "nginx"))
                }
                Program::Alone(start) => {
                    let name = Path::new(&start[0]).file_name().and_then(|name| name.to_str());
                    child_named(process.shell(), name.unwrap_or_default())
                }
            };
            if let Some(worker) = worker.filter(|_| TcpStream::connect(("127.0.0.1", port)).is_ok())
            {
                return Ok(Server { port, worker, _process: process });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Server {
    /// CPU time of the worker's threads so far, in nanoseconds where the kernel reports them.
    ///
    /// # Errors
    /// That it is gone.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        if let Some(time) = scheduled(self.worker) {
            return Ok(time);
        }
        let stat = Stat::read(self.worker).context("the server is gone")?;
        Ok(Duration::from_millis(stat.ticks * TICK_MS))
    }
}

/// What the scheduler counted for all threads of a process, `/proc/PID/task/TID/schedstat`.
fn scheduled(pid: u32) -> Option<Duration> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let times = threads.map(|thread| {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    times.sum::<Option<u64>>().map(Duration::from_nanos)
}

/// What is wanted of `/proc/PID/stat`.
struct Stat {
    name: String,
    parent: u32,
    /// User and system time, in ticks.
    ticks: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `PID (NAME) STATE PPID …`: the name may hold anything, brackets as well.
    fn parse(text: &str) -> Option<Self> {
        let (before, after) = text.rsplit_once(") ")?;
        let name = before.split_once(" (")?.1.to_owned();
        let fields: Vec<&str> = after.split(' ').collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let parent = u32::try_from(number(1)?).ok()?;
        Some(Self { name, parent, ticks: number(11)? + number(12)? })
    }
}

/// A child of a process, by its name.
fn child_named(parent: u32, name: &str) -> Option<u32> {
    let pids = fs::read_dir("/proc")
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.into_iter()
        .find(|pid| Stat::read(*pid).is_some_and(|stat| stat.parent == parent && stat.name == name))
}

/// One worker, one suite, no log, files kept open. Paths are relative to the server's directory.
fn configuration(setup: &Setup<'_>, port: u16) -> String {
    let name = setup.suite.openssl_name();
    let suite = match setup.suite {
        Suite::Tls13 => format!("ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites {name};"),
        _ => format!(
            "ssl_protocols TLSv1.2; ssl_ciphers {name}; ssl_conf_command Options -EncryptThenMac;"
        ),
    };
    let buffers =
        if setup.large_buffers { "ssl_buffer_size 124k; output_buffers 1 124k;" } else { "" };
    // A worker does not need root's rights; who is not root cannot give them away.
    let user = if rustix::process::geteuid().is_root() {
        format!("user nobody {};", group())
    } else {
        String::new()
    };
    // nginx takes its environment from a worker, and PoCL needs this much of it.
    let kept = if setup.environment.iter().any(|(name, _)| *name == KERNELS) {
        format!("env PATH;\nenv {KERNELS};\n")
    } else {
        String::new()
    };
    format!(
        "daemon off;\nworker_processes 1;\npid pid;\nerror_log said;\n{user}\n{kept}\
         events {{ worker_connections 256; }}\n\
         http {{\n\
         access_log off;\n\
         keepalive_requests 1000000000;\nkeepalive_timeout 600s;\n\
         open_file_cache max=64 inactive=600s;\nopen_file_cache_valid 600s;\n\
         client_body_temp_path t1;\nproxy_temp_path t2;\nfastcgi_temp_path t3;\n\
         uwsgi_temp_path t4;\nscgi_temp_path t5;\n\
         server {{\n\
         listen 127.0.0.1:{port} ssl;\n\
         ssl_certificate ../cert.pem;\nssl_certificate_key ../key.pem;\n\
         {suite}\n{buffers}\nroot ../pages;\n}}\n}}\n"
    )
}

/// The group of the user `nobody`, whose name differs between distributions.
fn group() -> &'static str {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    if groups.lines().any(|line| line.starts_with("nogroup:")) { "nogroup" } else { "nobody" }
}

impl Suite {
    /// OpenSSL's name.
    pub fn openssl_name(self) -> &'static str {
        match self {
            Self::CbcSha384 => "ECDHE-RSA-AES256-SHA384",
            Self::CbcSha256 => "ECDHE-RSA-AES128-SHA256",
            Self::Gcm => "ECDHE-RSA-AES256-GCM-SHA384",
            Self::Tls13 => "TLS_AES_256_GCM_SHA384",
        }
    }
}

/// What the kernel counts times in, `time(7)`: a hundredth of a second wherever nginx is packaged.
const TICK_MS: u64 = 10;

/// The setting that has the versions of other OpenSSLs.
pub const OTHER_VERSIONS: &str = "openssl_others";

/// Where PoCL keeps what it has compiled.
pub const KERNELS: &str = "POCL_CACHE_DIR";

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(20);

/// Suites of TLS 1.3 that clients offer: servers in Go choose among them, and would not choose this one.
const CLIENTS: &str = "\
openssl_conf = clients
[clients]
ssl_conf = suites
[suites]
system_default = suite
[suite]
Ciphersuites = TLS_AES_256_GCM_SHA384
";

/// The versions of nginx and of its OpenSSL, as `nginx -V` prints them.
pub fn version(nginx: &Path) -> String {
    let output = Command::new(nginx).arg("-V").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    let text = text.unwrap_or_default();
    let of =
        |start: &str| text.lines().find_map(|line| line.strip_prefix(start)).map(str::to_owned);
    let version = of("nginx version: ").unwrap_or_else(|| "nginx, unknown".into());
    let built = of("built with ").unwrap_or_default();
    // "OpenSSL 3.0.22 … (running with OpenSSL 3.0.19 …)" where both are not the same.
    match built.split_once("(running with ") {
        Some((_, running)) => format!("{version}, {}", running.trim_end_matches(')')),
        None => format!("{version}, {built}"),
    }
}

/// The OpenSSL version number in the text of [`version`], such as "4.0.3".
pub fn openssl_of(version: &str) -> Option<&str> {
    version.split_once(", OpenSSL ")?.1.split(' ').next().filter(|number| !number.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_had_a_cpu() {
        let Some(before) = scheduled(std::process::id()) else {
            println!("skipped: this kernel has no schedstat");
            return;
        };
        assert!(before > Duration::ZERO);
        assert_eq!(scheduled(u32::MAX), None);
    }

    #[test]
    fn the_number_of_openssl_is_read() {
        assert_eq!(openssl_of("nginx/1.28.3, OpenSSL 4.0.3 29 Sep 2026"), Some("4.0.3"));
        assert_eq!(openssl_of("nginx/1.28.3, BoringSSL"), None);
        assert_eq!(openssl_of("nginx, unknown, "), None);
    }

    #[test]
    fn times_are_read_for_any_process_name() {
        let text = "27615 (a) (b) S 27613 27611 27611 0 -1 4194624 267 0 1 0 150 25 0 0 20 0 1 0";
        let stat = Stat::parse(text);
        let found = stat.map(|stat| (stat.name, stat.parent, stat.ticks));
        assert_eq!(found, Some(("a) (b".to_owned(), 27613, 175)));
        assert!(Stat::parse("27615 (nginx) S").is_none());
    }
}
