//! A place to serve pages from by TLS, with the provider on one side or both.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use wattlock_provider::statistics::{self, Counts, SharedTable, Statistics};
use wattlock_testing::{certificate, exits_within, free_port, wait_for};

use super::installation::OpenSsl;
use super::{Modules, Numbers};

/// A folder with a certificate, pages, and what counts.
pub struct Site {
    modules: Modules,
    folder: tempfile::TempDir,
    table: SharedTable,
}

/// A page of that many bytes has that name.
pub const PAGES: [usize; 7] = [0, 1, 1000, 16_385, 65_536, 130_000, 2 << 20];

/// What keeps curl to TLS 1.2.
pub const TLS_1_2: &[&str] = &["--tls-max", "1.2"];

impl Site {
    /// `None`, and a line that says so, where a program is missing.
    pub fn new(openssl: OpenSsl) -> Option<Self> {
        Self::with_settings(openssl, "")
    }

    /// With more settings of the provider.
    pub fn with_settings(openssl: OpenSsl, settings: &str) -> Option<Self> {
        let here = ["nginx", "curl", "openssl"].iter().all(|program| openssl.has(program));
        here.then(|| Self::furnished(openssl, settings))
    }

    fn furnished(openssl: OpenSsl, settings: &str) -> Self {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path();
        for name in ["pages", "tmp"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        let mut numbers = Numbers(7);
        for len in PAGES {
            fs::write(path.join("pages").join(len.to_string()), numbers.bytes(len)).unwrap();
        }
        let made = certificate();
        for name in ["key.pem", "cert.pem"] {
            fs::copy(made.join(name), path.join(name)).unwrap();
        }
        let table = SharedTable::new().unwrap();
        let settings = format!("statistics = {}\n{settings}", table.setting());
        Self { modules: Modules::new(openssl, &settings), folder, table }
    }

    /// Makes the files readable for the workers of a server that root started, which run as another
    /// user.
    pub fn let_others_in(&self) {
        for name in ["", "pages"] {
            fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Where the module and its configuration are.
    pub fn modules_path(&self) -> &Path {
        self.modules.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What each process counted.
    pub fn processes(&self) -> Vec<Statistics> {
        self.table.read().unwrap()
    }

    /// The setting `statistics` with which processes count here.
    pub fn statistics(&self) -> String {
        self.table.setting()
    }

    /// What all processes together counted.
    pub fn counted(&self, path: statistics::Path) -> Counts {
        self.processes().iter().map(|one| one.counts(path)).fold(Counts::default(), |sum, one| {
            Counts {
                calls: sum.calls + one.calls,
                records: sum.records + one.records,
                bytes: sum.bytes + one.bytes,
            }
        })
    }

    /// A program, with the provider or without.
    pub fn command(&self, program: &str, with: bool) -> Command {
        if with { self.modules.command(program) } else { self.modules.openssl().command(program) }
    }

    /// nginx in the foreground, as one process; ended on drop.
    pub fn nginx(&self, with: bool, ciphers: &str) -> Server {
        self.nginx_with(with, "master_process off;", ciphers)
    }

    pub fn nginx_with(&self, with: bool, processes: &str, ciphers: &str) -> Server {
        let port = free_port();
        let config = format!(
            "daemon off; {processes} pid {0}/tmp/pid; error_log {0}/tmp/error;\n\
             events {{}}\n\
             http {{ access_log off; client_body_temp_path {0}/tmp/1; proxy_temp_path {0}/tmp/2;\n\
             fastcgi_temp_path {0}/tmp/3; uwsgi_temp_path {0}/tmp/4; scgi_temp_path {0}/tmp/5;\n\
             server {{ listen 127.0.0.1:{port} ssl; root {0}/pages; {ciphers}\n\
             ssl_certificate {0}/cert.pem; ssl_certificate_key {0}/key.pem;\n\
             ssl_buffer_size 124k; output_buffers 1 124k; }} }}\n",
            self.folder.path().display()
        );
        let file = self.path(&format!("nginx-{port}.conf"));
        fs::write(&file, config).unwrap();
        let mut command = self.command("nginx", with);
        command.arg("-c").arg(&file).arg("-p").arg(self.folder.path());
        command.arg("-e").arg(self.path("tmp/error"));
        Server::start(command, port, &self.path("tmp/error"))
    }

    /// Whether a page arrives as it is.
    pub fn can_fetch(&self, server: &Server, page: usize, arguments: &[&str]) -> bool {
        let got = self.get(server, false, page, arguments);
        let expected = fs::read(self.path("pages").join(page.to_string())).unwrap();
        got.status.success() && got.stdout == expected
    }

    fn get(&self, server: &Server, with: bool, page: usize, arguments: &[&str]) -> Output {
        let url = format!("https://localhost:{}/{page}", server.port);
        self.command("curl", with)
            .args(["--silent", "--show-error", "--fail", "--max-time", "60", "--cacert"])
            .arg(self.path("cert.pem"))
            .args(arguments)
            .arg(url)
            .output()
            .unwrap()
    }

    /// Fetches a page and compares it.
    pub fn fetch(&self, server: &Server, with: bool, page: usize, arguments: &[&str]) {
        let got = self.get(server, with, page, arguments);
        assert!(got.status.success(), "{page}: {}", String::from_utf8_lossy(&got.stderr));
        let expected = fs::read(self.path("pages").join(page.to_string())).unwrap();
        assert!(got.stdout == expected, "page {page} is not what it was: {arguments:?}");
    }
}

/// A program that listens.
pub struct Server {
    pub process: Child,
    pub port: u16,
}

impl Server {
    pub fn start(mut command: Command, port: u16, log: &Path) -> Self {
        let process =
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("it was found");
        let mut server = Self { process, port };
        wait_for(|| {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(());
            }
            let log = fs::read_to_string(log).unwrap_or_default();
            let ended = server.process.try_wait().unwrap();
            assert!(ended.is_none(), "the server ended: {log}");
            Err(format!("the server does not listen: {log}"))
        });
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A signal that nginx's master passes on to its workers.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        if exits_within(&mut self.process, Duration::from_secs(20)).is_none() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}
