//! `wattlock provider` with programs that use what it prints: sshd in its sandbox, nginx with forked
//! workers, and the counters that `provider stats` finds.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use wattlock_testing::{free_port, has_program, skip, wait_until, wattlock_path};

use crate::support::{Place, assert_exit, is_root, stderr, stdout, wattlock};

/// The provider, which cargo builds into the folder of the tests.
pub fn module() -> Option<PathBuf> {
    let module = std::env::current_exe().unwrap().with_file_name("libwattlock_provider.so");
    if !module.is_file() {
        skip("provider", "libwattlock_provider.so was not built with the tests");
        return None;
    }
    Some(module)
}

/// The configuration that `provider config --statistics NAME` prints, as a file.
fn configuration(place: &Place, module: &Path, name: &str) -> PathBuf {
    let made = wattlock()
        .args(["provider", "config", "--statistics", name, "--provider"])
        .arg(module)
        .output()
        .unwrap();
    assert_exit(&made, 0);
    // AES-GCM too, on every CPU.
    let section = "[wattlock_provider]\n";
    let text = stdout(&made).replace(section, &format!("{section}gcm = 1\n"));
    place.write("d/openssl.cnf", text.as_bytes())
}

/// `provider stats NAME --json`.
fn stats(name: &str) -> Value {
    let ran = wattlock().args(["provider", "stats", name, "--json"]).output().unwrap();
    assert_exit(&ran, 0);
    serde_json::from_str(&stdout(&ran)).unwrap()
}

/// Processes of all services in a document, by their ids.
fn processes(document: &Value) -> Vec<&Value> {
    let services = document["services"].as_array().unwrap().iter();
    services.flat_map(|service| service["processes"].as_array().unwrap()).collect()
}

/// A server of this test's, ended on drop.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Every cipher of AES that OpenSSH has, and the counter of its path.
const SSH_CIPHERS: [(&str, &str); 8] = [
    ("aes128-ctr", "ctr"),
    ("aes192-ctr", "ctr"),
    ("aes256-ctr", "ctr"),
    ("aes128-gcm@openssh.com", "gcm-stream"),
    ("aes256-gcm@openssh.com", "gcm-stream"),
    ("aes128-cbc", "block"),
    ("aes192-cbc", "block"),
    ("aes256-cbc", "block"),
];

/// sshd on a read-only root. Its sandbox ends a process for any file that it opens or maps.
fn sshd(place: &Place, configuration: &Path) -> (Server, u16) {
    let ciphers: Vec<&str> = SSH_CIPHERS.iter().map(|(cipher, _)| *cipher).collect();
    for key in ["host", "user"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(place.path("d").join(key))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
    }
    let folder = place.path("d");
    let settings = format!(
        "ListenAddress 127.0.0.1\nHostKey {0}/host\nPidFile none\nStrictModes no\nUsePAM no\n\
         AuthorizedKeysFile {0}/user.pub\nPermitRootLogin yes\nCiphers {1}\n",
        folder.display(),
        ciphers.join(",")
    );
    let settings = place.write("d/sshd_config", settings.as_bytes());
    // A port may be taken between the look and sshd's own; then another is tried.
    for _ in 0..5 {
        let port = free_port();
        let mut process = Command::new("unshare")
            .args(["--mount", "sh", "-c", READ_ONLY, "sshd", "-D", "-e", "-p"])
            .args([&port.to_string(), "-f"])
            .arg(&settings)
            .env("OPENSSL_CONF", configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stderr.take().unwrap());
        let server = Server(process);
        let mut lines = said.lines().map_while(Result::ok);
        let mut before = Vec::new();
        if lines.by_ref().any(|line| {
            before.push(line);
            before.last().is_some_and(|line| line.contains("Server listening"))
        }) {
            // Reads on, or sshd would block.
            std::thread::spawn(move || lines.for_each(drop));
            return (server, port);
        }
        assert!(before.iter().any(|line| line.contains("in use")), "{before:?}");
    }
    panic!("no port is free");
}

/// Nothing of the machine can be written, but what sshd demands to be there.
const READ_ONLY: &str = "mount -t tmpfs tmpfs /run && mkdir /run/sshd && \
     mount -o remount,bind,ro / && exec /usr/sbin/\"$0\" \"$@\"";

#[test]
fn sshd_serves_every_aes_cipher_from_its_sandbox_on_a_read_only_root() {
    let Some(module) = module() else { return };
    if !["sshd", "ssh", "ssh-keygen", "unshare"].into_iter().all(has_program) {
        return;
    }
    if !is_root() {
        return skip("root", "sshd separates privileges as root only");
    }
    let place = Place::new();
    let name = format!("sshd-{}", std::process::id());
    let (_server, port) = sshd(&place, &configuration(&place, &module, &name));
    for (cipher, path) in SSH_CIPHERS {
        // What is run shows the counters of the sshd that runs it.
        let ran = Command::new("ssh")
            .args(["-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o"])
            .args(["StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o"])
            .args(["LogLevel=ERROR", "-c", cipher, "-p", &port.to_string(), "-i"])
            .arg(place.path("d/user"))
            .args(["root@127.0.0.1", env!("CARGO_BIN_EXE_wattlock")])
            .args(["provider", "stats", &name, "--json"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{cipher}: {}", stderr(&ran));
        let counted: Value = serde_json::from_str(&stdout(&ran)).unwrap();
        let services = counted["services"].as_array().unwrap();
        let bytes = |paths: &Value| paths[path]["bytes"].as_u64().unwrap_or(0);
        let both = services.iter().map(|service| bytes(&service["earlier"]["paths"]));
        let live = processes(&counted).into_iter().map(|one| bytes(&one["paths"]));
        assert!(both.chain(live).sum::<u64>() > 100, "{cipher}: {counted}");
    }
}

/// nginx with two workers, which the master has forked; stopped on drop.
struct Nginx {
    folder: PathBuf,
    port: u16,
    environment: PathBuf,
}

impl Nginx {
    fn start(place: &Place, configuration: PathBuf) -> Self {
        let (folder, port) = (place.path("d"), free_port());
        let certificate = wattlock_testing::certificate();
        fs::write(folder.join("page"), vec![7; PAGE]).unwrap();
        let text = format!(
            "worker_processes 2; pid {0}/pid; error_log {0}/error;\nevents {{}}\n\
             http {{ access_log off; client_body_temp_path {0}/1; proxy_temp_path {0}/2;\n\
             fastcgi_temp_path {0}/3; uwsgi_temp_path {0}/4; scgi_temp_path {0}/5;\n\
             server {{ listen 127.0.0.1:{port} ssl; root {0};\n\
             ssl_protocols TLSv1.2; ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384;\n\
             ssl_certificate {1}/cert.pem; ssl_certificate_key {1}/key.pem;\n\
             ssl_buffer_size 124k; output_buffers 1 124k; }} }}\n",
            folder.display(),
            certificate.display()
        );
        fs::write(folder.join("nginx.conf"), text).unwrap();
        let nginx = Self { folder, port, environment: configuration };
        // The command ends when its daemon listens.
        nginx.command(&[]);
        nginx
    }

    fn command(&self, arguments: &[&str]) {
        let path = std::env::var("PATH").unwrap() + ":/usr/sbin";
        let ran = Command::new("nginx")
            .arg("-c")
            .arg(self.folder.join("nginx.conf"))
            .arg("-e")
            .arg(self.folder.join("error"))
            .args(arguments)
            .env("PATH", path)
            .env("OPENSSL_CONF", &self.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(ran.success(), "{}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("error")).unwrap_or_default()
    }

    fn master(&self) -> u64 {
        fs::read_to_string(self.folder.join("pid")).unwrap().trim().parse().unwrap()
    }

    fn workers(&self) -> Vec<u64> {
        let master = self.master();
        let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children"));
        children.unwrap().split_whitespace().map(|one| one.parse().unwrap()).collect()
    }

    fn serves(&self) {
        let url = format!("https://127.0.0.1:{}/page", self.port);
        let got = Command::new("curl").args(["-sSfk", &url]).output().unwrap();
        assert!(got.status.success() && got.stdout.len() == PAGE, "{}", stderr(&got));
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if let Ok(master) = fs::read_to_string(self.folder.join("pid")) {
            let _ = Command::new("kill").arg(master.trim()).status();
            wait_until("nginx has ended", || !self.folder.join("pid").exists());
        }
    }
}

const PAGE: usize = 300_000;

/// Bytes of pages that processes of a service have sealed, those that run and all.
fn sealed(document: &Value) -> (u64, u64) {
    let bytes = |paths: &Value| -> u64 {
        let ways = ["gcm-record", "gcm-multiblock"];
        ways.iter().filter_map(|way| paths[way]["bytes"].as_u64()).sum()
    };
    let running = processes(document).into_iter().map(|one| bytes(&one["paths"])).sum();
    let services = document["services"].as_array().unwrap().iter();
    let earlier: u64 = services.map(|service| bytes(&service["earlier"]["paths"])).sum();
    (running, running + earlier)
}

#[test]
fn what_others_do_to_statistics_neither_ends_nginx_nor_hangs_stats() {
    let Some(module) = module() else { return };
    if !["nginx", "curl", "openssl", "mkfifo", "python3"].into_iter().all(has_program) {
        return;
    }
    let place = Place::new();
    // A folder, as configurations of 0.1 name it, with what made its `provider stats` hang or fail.
    let name = place.path("d").join("stats");
    fs::create_dir(&name).unwrap();
    let fifo = Command::new("mkfifo").arg(name.join("wattlock-1.stats")).status();
    assert!(fifo.unwrap().success());
    fs::write(name.join("wattlock-2.stats"), "wattlock-stats/3 and junk").unwrap();
    let before = crate::support::names(&name);
    let name = name.to_str().unwrap();
    let nginx = Nginx::start(&place, configuration(&place, &module, name));
    nginx.serves();
    assert_eq!(crate::support::names(Path::new(name)), before, "a file was written");

    // A table cannot be cut, even by a process that may open it.
    let mut tables = 0;
    for worker in nginx.workers() {
        for entry in fs::read_dir(format!("/proc/{worker}/fd")).unwrap() {
            let path = entry.unwrap().path();
            let target = fs::read_link(&path).unwrap_or_default();
            if target.to_string_lossy().starts_with("/memfd:wattlock:") {
                assert!(fs::File::create(&path).is_err(), "{} was cut", path.display());
                tables += 1;
            }
        }
    }
    assert!(tables > 0, "no worker has a table");

    // Another program's memory under such a name is skipped.
    let mut junk = Command::new("python3")
        .args(["-c", JUNK, name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 1];
    junk.stdout.take().unwrap().read_exact(&mut ready).unwrap();
    let ran = wattlock().args(["provider", "stats", name]).output().unwrap();
    assert_exit(&ran, 0);
    assert!(stderr(&ran).contains("it is not sealed"), "{}", stderr(&ran));
    assert!(stdout(&ran).contains(&format!("service {name}, OpenSSL ")), "{}", stdout(&ran));
    assert!(stdout(&ran).contains("writes of several records: on"), "{}", stdout(&ran));
    junk.stdin.take().unwrap().write_all(b"\n").unwrap();
    junk.wait().unwrap();

    nginx.serves();
    // A connection adds its last counts when nginx closes it.
    wait_until("both pages are counted", || sealed(&stats(name)).1 > 2 * PAGE as u64);
    let (running, all) = sealed(&stats(name));
    assert_eq!(running, all);
    assert!(!nginx.log().contains("exited on signal"), "{}", nginx.log());
}

/// A mapping of memory that is no table.
const JUNK: &str = "import os, sys, mmap\n\
     file = os.memfd_create('wattlock:' + sys.argv[1])\n\
     os.ftruncate(file, 4096)\n\
     kept = mmap.mmap(file, 4096)\n\
     sys.stdout.write('.'); sys.stdout.flush(); sys.stdin.readline()";

#[test]
fn ended_workers_are_not_shown_as_processes_and_their_counts_stay() {
    let Some(module) = module() else { return };
    if !["nginx", "curl", "openssl"].into_iter().all(has_program) {
        return;
    }
    let place = Place::new();
    let name = format!("nginx-{}", std::process::id());
    let nginx = Nginx::start(&place, configuration(&place, &module, &name));
    for reload in 0..3 {
        nginx.serves();
        // A connection adds its last counts when nginx closes it, which is after curl has its page.
        let least = (reload + 1) * PAGE as u64;
        wait_until("all pages are counted", || sealed(&stats(&name)).1 > least);
        let before = sealed(&stats(&name)).1;
        let old = nginx.workers();
        nginx.command(&["-s", "reload"]);
        wait_until("the old workers have ended", || {
            let new = nginx.workers();
            new.len() == 2 && old.iter().all(|one| !new.contains(one))
        });
        let document = stats(&name);
        // The end of the connection is sealed after curl has its page.
        let (running, all) = sealed(&document);
        assert!(running == 0 && (before..before + 100).contains(&all), "{before}: {document}");
        let ids: Vec<u64> =
            processes(&document).iter().map(|one| one["pid"].as_u64().unwrap()).collect();
        assert!(ids.iter().all(|id| !old.contains(id)), "{ids:?} of {old:?}");
    }
}

/// The head of a shared library.
const LIBRARY: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0";

#[test]
fn nothing_to_show_is_said_and_a_name_that_cannot_be_is_refused() {
    let none = wattlock().args(["provider", "stats", "/nowhere"]).output().unwrap();
    assert_exit(&none, 0);
    assert!(stderr(&none).contains("no running process of service /nowhere"), "{}", stderr(&none));
    assert_eq!(stats("/nowhere")["schema"], "wattlock-provider-stats/3");
    let place = Place::new();
    let module = place.write("d/provider.so", LIBRARY);
    let config = |name: &str| {
        let mut command = wattlock();
        command.args(["provider", "config", "--statistics", name, "--provider"]).arg(&module);
        command.output().unwrap()
    };
    for name in ["", "a\nb", &"n".repeat(201)] {
        let refused = config(name);
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains("--statistics takes a name"), "{}", stderr(&refused));
    }
    let said = stdout(&config("nginx"));
    assert!(said.contains("statistics = nginx\n"), "{said}");
    // Who gains, and who does not, is in the file that a service will have.
    for part in ["one service", "nginx", "Apache", "HAProxy", "stunnel", "s_server", "64 KiB"] {
        assert!(said.lines().any(|line| line.starts_with('#') && line.contains(part)), "{part}");
    }
}

/// A process that has loaded the provider by these libcryptos and waits until its input ends.
const TWO: &str = "\
import ctypes, os, sys
for path in sys.argv[2:]:
    crypto = ctypes.CDLL(path)
    crypto.OSSL_LIB_CTX_new.restype = ctypes.c_void_p
    library = ctypes.c_void_p(crypto.OSSL_LIB_CTX_new())
    assert crypto.OSSL_LIB_CTX_load_config(library, os.fsencode(sys.argv[1])) == 1
print('loaded', flush=True)
sys.stdin.read()
";

#[test]
fn stats_name_both_openssls_of_a_process() {
    let Some(module) = module() else { return };
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().map(|folder| folder.join("openssl-3.5/lib/libcrypto.so"));
    let Some(built) = built.into_iter().find(|file| file.is_file()) else {
        return skip("openssl-3.5", "`cargo xtask openssl 3.5` has not built it");
    };
    if !has_program("python3") || !has_program("openssl") {
        return;
    }
    let system = Command::new("openssl").arg("version").output().unwrap();
    let system = stdout(&system).split(' ').nth(1).unwrap().to_owned();
    let place = Place::new();
    let name = format!("two-{}", std::process::id());
    let configuration = configuration(&place, &module, &name);
    let mut python = Command::new("python3");
    python.args(["-c", TWO]).arg(configuration).arg("libcrypto.so.3").arg(built);
    let mut process = Server(python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut said = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "loaded\n");
    let ran = wattlock().args(["provider", "stats", &name]).output().unwrap();
    let text = stdout(&ran);
    assert!(text.starts_with(&format!("service {name}, OpenSSL 3.5.")), "{text}");
    assert!(text.lines().next().unwrap().ends_with(&format!(" and {system}")), "{text}");
    let line = format!("  writes of several records of OpenSSL {system}: on");
    assert!(text.lines().any(|found| found == line), "{text}");
    let service = &stats(&name)["services"][0];
    assert!(service["openssl"].as_str().unwrap().starts_with("3.5."), "{service}");
    assert_eq!(service["earlier_openssl"]["openssl"], system.as_str(), "{service}");
}

/// The counters of the check are a file of this process, which is not dumpable otherwise: OpenSSL in a child opens it.
#[test]
fn an_ordinary_user_can_check_the_provider() {
    let Some(module) = module() else { return };
    if !is_root() {
        return;
    }
    let place = Place::new();
    let copy = place.path("d/provider.so");
    fs::copy(module, &copy).unwrap();
    let ran = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(wattlock_path())
        .args(["provider", "check", "--provider"])
        .arg(&copy)
        .output()
        .unwrap();
    assert_exit(&ran, 0);
}

/// Node.js reads another section: `provider check` says so, and what helps.
#[test]
fn node_takes_the_provider_only_with_an_option() {
    let Some(module) = module() else { return };
    if !has_program("node") {
        return;
    }
    let checked =
        wattlock().args(["provider", "check", "--provider"]).arg(&module).output().unwrap();
    assert_exit(&checked, 0);
    assert!(stdout(&checked).contains("node --openssl-shared-config"), "{}", stdout(&checked));
    let place = Place::new();
    let name = format!("node-{}", std::process::id());
    let configuration = configuration(&place, &module, &name);
    let used = |options: &[&str]| {
        let mut node = Command::new("node");
        node.args(options).args(["-e", NODE]).env("OPENSSL_CONF", &configuration);
        let mut node = Server(node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        let mut said = String::new();
        BufReader::new(node.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "encrypted\n");
        !processes(&stats(&name)).is_empty()
    };
    assert_eq!((used(&[]), used(&["--openssl-shared-config"])), (false, true));
}

/// Encrypts, says so, and waits until its input ends.
const NODE: &str = "\
const crypto = require('crypto');
const cipher = crypto.createCipheriv('aes-256-ctr', Buffer.alloc(32), Buffer.alloc(16));
cipher.update(Buffer.alloc(1000));
console.log('encrypted');
process.stdin.resume();
";
