//! A place for programs that use OpenSSL with nothing but an `OPENSSL_CONF`, and pages for them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;
use wattlock_provider::configuration::Configuration;
use wattlock_provider::statistics;
use wattlock_testing::{certificate, wait_until};

use super::{Numbers, module};

/// Bytes of each page; the page has that name.
const PAGES: [usize; 3] = [1, 20_000, 1_000_000];
/// What curl is told, for each version of TLS.
pub const VERSIONS: [&[&str]; 2] = [&["--tls-max", "1.2"], &["--tlsv1.3"]];

/// A folder with pages, a certificate and a configuration, readable for every user.
pub struct Place {
    pub folder: TempDir,
    /// The setting `statistics`.
    name: String,
}

impl Place {
    /// `None`, and a line that says so, where a program is missing.
    pub fn new(programs: &[&str]) -> Option<Self> {
        if !programs.iter().all(|program| has(program)) {
            return None;
        }
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("servers-{}-{number}", std::process::id());
        let place = Self { folder: TempDir::new().unwrap(), name };
        for folder in ["pages", "tmp"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        let mut numbers = Numbers(3);
        for len in PAGES {
            fs::write(place.path("pages").join(len.to_string()), numbers.bytes(len)).unwrap();
        }
        let made = certificate();
        let key = fs::read(made.join("key.pem")).unwrap();
        let certificate = fs::read(made.join("cert.pem")).unwrap();
        fs::write(place.path("both.pem"), [&certificate[..], &key].concat()).unwrap();
        fs::write(place.path("key.pem"), key).unwrap();
        fs::write(place.path("cert.pem"), certificate).unwrap();
        let (module, statistics) = (module(), Some(&*place.name));
        let settings = &[("gcm", "1".to_owned())];
        let configuration = Configuration { module: &module, statistics, settings, system: None };
        fs::write(place.path("wattlock.cnf"), configuration.text().unwrap()).unwrap();
        for name in ["", "pages"] {
            fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::set_permissions(place.path("tmp"), fs::Permissions::from_mode(0o777)).unwrap();
        Some(place)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A program with the provider.
    pub fn command(&self, program: &str) -> Command {
        let mut command = plain(program);
        command.env("OPENSSL_CONF", self.path("wattlock.cnf"));
        command
    }

    /// Writes a configuration, in which `@` is the folder and `PORT` the port.
    pub fn settings(&self, name: &str, port: u16, text: &str) -> PathBuf {
        let text = text.replace('@', self.folder.path().to_str().unwrap());
        fs::write(self.path(name), text.replace("PORT", &port.to_string())).unwrap();
        self.path(name)
    }

    /// Bytes that each process of a program that runs has counted; process 0 are those that have ended.
    pub fn counted(&self) -> BTreeMap<u64, u64> {
        let services = statistics::services().unwrap().services;
        let own = services.iter().filter(|service| service.name == self.name);
        let rows = own.flat_map(|service| service.processes.iter().chain([&service.earlier]));
        rows.map(|row| (row.process, row.sum().bytes)).collect()
    }

    /// The bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.counted().values().sum()
    }

    /// Fetches all pages with each version of TLS and compares them; each in a connection of its own, and then in one.
    pub fn fetch_all(&self, port: u16) {
        for version in VERSIONS {
            for page in PAGES {
                self.fetch(port, &[page], version);
            }
            self.fetch(port, &PAGES, version);
        }
    }

    pub fn fetch(&self, port: u16, pages: &[usize], version: &[&str]) {
        let mut curl = plain("curl");
        curl.args(["--silent", "--show-error", "--fail", "--max-time", "60", "--cacert"]);
        curl.arg(self.path("cert.pem")).args(version);
        curl.args(pages.iter().map(|page| format!("https://localhost:{port}/{page}")));
        let got = curl.output().unwrap();
        let expected = pages.iter().map(|page| fs::read(self.path(&format!("pages/{page}"))));
        let expected: Vec<u8> = expected.flat_map(Result::unwrap).collect();
        let said = String::from_utf8_lossy(&got.stderr);
        assert!(got.status.success(), "{version:?}, {pages:?}: {said}");
        assert!(got.stdout == expected, "{version:?}: {pages:?} are not what they were");
    }

    /// The pages that [`Place::fetch_all`] gets.
    pub fn fetched() -> u64 {
        VERSIONS.len() as u64 * 2 * PAGES.iter().sum::<usize>() as u64
    }

    /// Fetches all pages, and sees that the server sealed them here.
    pub fn serves(&self, port: u16) {
        let before = self.counted();
        self.fetch_all(port);
        // A connection adds its last counts when the server closes it.
        wait_until("the provider has sealed all pages", || {
            let added = |(process, bytes): (u64, u64)| {
                bytes.saturating_sub(*before.get(&process).unwrap_or(&0))
            };
            self.counted().into_iter().map(added).sum::<u64>() >= Self::fetched()
        });
    }

    /// A client that goes away in the middle of a page costs no other its page.
    pub fn serves_after_an_aborted_client(&self, port: u16) {
        let mut aborted = plain("curl")
            .args(["--silent", "--insecure", "--limit-rate", "1000"])
            .arg(format!("https://localhost:{port}/1000000"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut byte = [0];
        std::io::Read::read_exact(aborted.stdout.as_mut().unwrap(), &mut byte).unwrap();
        aborted.kill().unwrap();
        aborted.wait().unwrap();
        self.serves(port);
    }
}

/// A program without the provider.
pub fn plain(program: &str) -> Command {
    let mut command = Command::new(found(program).unwrap_or_else(|| program.into()));
    command.env_remove("OPENSSL_CONF").env_remove("OPENSSL_MODULES");
    command
}

fn has(program: &str) -> bool {
    let has = found(program).is_some();
    if !has {
        wattlock_testing::skip(program, format_args!("{program} is not installed"));
    }
    has
}

pub fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin".into(), "/sbin".into()]);
    let postgres = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(postgres.map(|version| version.path().join("bin")));
    folders.into_iter().map(|folder| folder.join(program)).find(|at| at.is_file())
}

/// Serves the pages without TLS, for programs that only add it.
pub fn serve_plainly(pages: PathBuf) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let pages = pages.clone();
            std::thread::spawn(move || answer(connection, &pages));
        }
    });
    port
}

/// Answers the requests of one connection, as far as they come; an error is the client's.
fn answer(connection: TcpStream, pages: &Path) -> std::io::Result<()> {
    let mut requests = BufReader::new(connection.try_clone()?);
    let mut connection = connection;
    loop {
        let mut request = String::new();
        if requests.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut line = String::new();
        while requests.read_line(&mut line)? > 2 {
            line.clear();
        }
        let page = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
        let page = fs::read(pages.join(page)).unwrap_or_default();
        write!(connection, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len())?;
        connection.write_all(&page)?;
    }
}

pub fn is_root() -> bool {
    // SAFETY: it may be called at any time.
    unsafe { libc::geteuid() == 0 }
}
