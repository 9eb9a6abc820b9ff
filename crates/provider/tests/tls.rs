//! TLS by programs, with the provider on one side or both; nginx and `openssl` are those of the
//! OpenSSL under test, and curl has the system's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::installation::{OpenSsl, on_every_openssl};
use support::{Modules, Numbers};
use wattlock_engine::Lane;
use wattlock_provider::statistics::{self, Counts, Event, Statistics};

/// A folder with a certificate, pages, and what counts.
struct Site {
    modules: Modules,
    folder: tempfile::TempDir,
}

/// A page of that many bytes has that name.
const PAGES: [usize; 7] = [0, 1, 1000, 16_385, 65_536, 130_000, 2 << 20];

impl Site {
    fn new(openssl: OpenSsl) -> Self {
        Self::with_settings(openssl, "")
    }

    /// With more settings of the provider.
    fn with_settings(openssl: OpenSsl, settings: &str) -> Self {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path();
        for name in ["pages", "stats", "tmp"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        let mut numbers = Numbers(7);
        for len in PAGES {
            fs::write(path.join("pages").join(len.to_string()), numbers.bytes(len)).unwrap();
        }
        let made = openssl
            .command("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"])
            .current_dir(path)
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        let settings = format!("statistics = {}\n{settings}", path.join("stats").display());
        Self { modules: Modules::new(openssl, &settings), folder }
    }

    /// The workers of a server that was started by root are somebody else.
    fn let_others_in(&self) {
        for name in ["", "pages", "stats"] {
            let mode = if name == "stats" { 0o777 } else { 0o755 };
            fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What all processes together counted.
    fn counted(&self, path: statistics::Path) -> Counts {
        let all = Statistics::read_folder(&self.path("stats")).unwrap();
        all.iter().map(|one| one.counts(path)).fold(Counts::default(), |sum, one| Counts {
            calls: sum.calls + one.calls,
            records: sum.records + one.records,
            bytes: sum.bytes + one.bytes,
        })
    }

    /// A program, with the provider or without.
    fn command(&self, program: &str, with: bool) -> Command {
        if with { self.modules.command(program) } else { self.modules.openssl().command(program) }
    }

    /// nginx in the foreground, as one process; ended on drop.
    fn nginx(&self, with: bool, ciphers: &str) -> Server {
        self.nginx_with(with, "master_process off;", ciphers)
    }

    fn nginx_with(&self, with: bool, processes: &str, ciphers: &str) -> Server {
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

    /// Fetches a page and compares it.
    fn fetch(&self, server: &Server, with: bool, page: usize, arguments: &[&str]) {
        let url = format!("https://localhost:{}/{page}", server.port);
        let got = self
            .command("curl", with)
            .args(["--silent", "--show-error", "--fail", "--max-time", "60", "--cacert"])
            .arg(self.path("cert.pem"))
            .args(arguments)
            .arg(url)
            .output()
            .unwrap();
        assert!(got.status.success(), "{page}: {}", String::from_utf8_lossy(&got.stderr));
        let expected = fs::read(self.path("pages").join(page.to_string())).unwrap();
        assert!(got.stdout == expected, "page {page} is not what it was: {arguments:?}");
    }
}

/// A program that listens.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(mut command: Command, port: u16, log: &Path) -> Self {
        let process =
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("it was found");
        let mut server = Self { process, port };
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.process.try_wait().unwrap();
            let log = || fs::read_to_string(log).unwrap_or_default();
            assert!(ended.is_none(), "the server ended: {}", log());
            assert!(Instant::now() < deadline, "the server does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A signal that nginx's master passes on to its workers.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let deadline = Instant::now() + Duration::from_secs(20);
        while matches!(self.process.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.process.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn programs_are_here(openssl: OpenSsl) -> bool {
    ["nginx", "curl", "openssl"].iter().all(|program| openssl.has(program))
}

const TLS_1_2: &[&str] = &["--tls-max", "1.2"];

fn nginx_seals_a_large_page_as_many_records_at_once(openssl: OpenSsl) {
    if !programs_are_here(openssl) {
        return;
    }
    let site = Site::new(openssl);
    for suite in ["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"] {
        large_pages(&site, suite, statistics::Path::GcmMultiblock);
    }
    for suite in
        ["ECDHE-RSA-AES128-SHA256", "AES256-SHA256", "ECDHE-RSA-AES256-SHA", "ECDHE-RSA-AES128-SHA"]
    {
        large_pages(&site, suite, statistics::Path::CompositeMultiblock);
    }
    assert!(site.counted(statistics::Path::GcmRecord).calls > 0, "no single record");
    assert!(site.counted(statistics::Path::CompositeRecord).calls > 0, "no single record");
    assert_eq!(site.counted(statistics::Path::MultiblockRefused).calls, 0);
}

fn in_paper_mode_the_suite_of_the_paper_goes_the_same_way(openssl: OpenSsl) {
    if !programs_are_here(openssl) {
        return;
    }
    let site = Site::with_settings(openssl, "paper_mode = 1");
    large_pages(&site, "ECDHE-RSA-AES256-SHA384", statistics::Path::CompositeMultiblock);
    assert_eq!(site.counted(statistics::Path::MultiblockRefused).calls, 0);
}

fn an_accelerator_takes_what_is_larger_than_the_threshold(openssl: OpenSsl) {
    if !programs_are_here(openssl) {
        return;
    }
    for (suite, settings) in [
        ("ECDHE-RSA-AES256-GCM-SHA384", "threshold = 8192"),
        ("ECDHE-RSA-AES128-SHA256", "threshold = 8192\nmigration = paper"),
        ("ECDHE-RSA-AES256-SHA384", "paper_mode = 1"),
    ] {
        let site = Site::with_settings(openssl, &format!("accelerator = simulated\n{settings}"));
        site.let_others_in();
        let options = format!("ssl_ciphers {suite}; ssl_conf_command Options -EncryptThenMac;");
        let server = site.nginx_with(true, "master_process on; worker_processes 2;", &options);
        for page in PAGES {
            site.fetch(&server, false, page, TLS_1_2);
        }
        let all = Statistics::read_folder(&site.path("stats")).unwrap();
        let workers = all.iter().filter(|one| one.process != u64::from(server.process.id()));
        let busy: Vec<_> = workers.filter(|one| one.sum().calls > 0).collect();
        assert!(!busy.is_empty(), "{suite}: no worker counted anything");
        for worker in &busy {
            assert_eq!(worker.device.as_deref(), Some("simulated"));
            assert_eq!(worker.threshold(), Some(8192), "{suite}");
            // It makes one call after the other, so nothing can migrate.
            assert_eq!(worker.times(Event::MigratedToCpu), 0);
        }
        let sum = |of: &dyn Fn(&Statistics) -> u64| busy.iter().map(|one| of(one)).sum::<u64>();
        // A page of 2 MiB is 17 writes. What a busy machine was too late for, the CPU did.
        let late = sum(&|one| one.times(Event::Timeout) + one.times(Event::Absent));
        let accelerated = sum(&|one| one.lane(Lane::Accelerator).calls);
        assert!(accelerated + late >= 17, "{suite}: {accelerated}, and {late} late");
        assert!(sum(&|one| one.lane(Lane::Cpu).calls) > 0, "{suite}: handshakes are small");
        assert!(sum(&|one| one.lane(Lane::Accelerator).bytes) > 8192, "{suite}");
    }
}

fn ten_thousand_requests_reach_workers_that_were_forked(openssl: OpenSsl) {
    if !programs_are_here(openssl) || !openssl.has("ab") {
        return;
    }
    let site = Site::new(openssl);
    site.let_others_in();
    let server = site.nginx_with(
        true,
        "master_process on; worker_processes 2;",
        "ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384;",
    );
    for (page, requests) in [(1000, 9000), (130_000, 1000)] {
        let ran = Command::new("ab")
            .args(["-q", "-k", "-c", "32", "-n", &requests.to_string()])
            .args(["-f", "TLS1.2", "-Z", "ECDHE-RSA-AES256-GCM-SHA384"])
            .arg(format!("https://127.0.0.1:{}/{page}", server.port))
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&ran.stdout).into_owned();
        let number = |what: &str| {
            let line = report.lines().find_map(|line| line.strip_prefix(what));
            line.unwrap_or_default().split_whitespace().next().unwrap_or_default().to_owned()
        };
        assert_eq!(number("Complete requests:"), requests.to_string(), "{report}");
        assert_eq!(number("Failed requests:"), "0", "{report}");
    }
    let all = Statistics::read_folder(&site.path("stats")).unwrap();
    let busy = all.iter().filter(|one| one.counts(statistics::Path::GcmRecord).calls > 0);
    // One of them may have got every connection, but none of them is the master.
    let busy: Vec<u64> = busy.map(|one| one.process).collect();
    assert!((1..=2).contains(&busy.len()), "{busy:?}");
    assert!(!busy.contains(&u64::from(server.process.id())));
    assert!(site.counted(statistics::Path::GcmMultiblock).calls >= 1000);
}

fn multiblock_can_be_turned_off(openssl: OpenSsl) {
    if !programs_are_here(openssl) {
        return;
    }
    let site = Site::with_settings(openssl, "multiblock = 0");
    let server = site.nginx(true, "ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384;");
    site.fetch(&server, false, 2 << 20, TLS_1_2);
    assert_eq!(site.counted(statistics::Path::GcmMultiblock).calls, 0);
    assert!(site.counted(statistics::Path::GcmRecord).records >= 128);
}

/// Fetches all pages, with and without the provider on the client's side, and looks whether the
/// large ones were sealed that way.
fn large_pages(site: &Site, suite: &str, path: statistics::Path) {
    let setting = format!("ssl_ciphers {suite}; ssl_conf_command Options -EncryptThenMac;");
    let server = site.nginx(true, &setting);
    for with in [false, true] {
        let before = site.counted(path);
        for page in PAGES {
            site.fetch(&server, with, page, TLS_1_2);
        }
        let after = site.counted(path);
        let (calls, records) = (after.calls - before.calls, after.records - before.records);
        println!("{suite}: {records} records in {calls} calls");
        assert!(calls >= 16, "{suite}: the page of 2 MiB came in {calls} calls");
        assert!(records >= 4 * calls);
        assert!(after.bytes - before.bytes > 2_000_000);
    }
}

fn a_client_with_the_provider_reads_what_a_server_without_it_sealed(openssl: OpenSsl) {
    if !programs_are_here(openssl) {
        return;
    }
    let site = Site::new(openssl);
    for suite in [
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES256-SHA384",
        "ECDHE-RSA-AES128-SHA256",
        "ECDHE-RSA-AES256-SHA",
    ] {
        let server = site.nginx(false, &format!("ssl_ciphers {suite};"));
        for page in PAGES {
            site.fetch(&server, true, page, TLS_1_2);
        }
    }
    assert!(site.counted(statistics::Path::GcmRecord).bytes > 4 << 20);
    assert!(site.counted(statistics::Path::CbcRecord).bytes > 2 << 20);
    assert!(site.counted(statistics::Path::CompositeRecord).bytes == 0, "ETM is the default");
}

fn tls_1_3_goes_through_the_provider_on_both_sides(openssl: OpenSsl) {
    if !programs_are_here(openssl) {
        return;
    }
    let site = Site::new(openssl);
    for suite in ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"] {
        let setting = format!("ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites {suite};");
        for (server, client) in [(true, false), (false, true), (true, true)] {
            let before = site.counted(statistics::Path::GcmStream).bytes;
            let server = site.nginx(server, &setting);
            for page in PAGES {
                site.fetch(&server, client, page, &["--tlsv1.3"]);
            }
            assert!(site.counted(statistics::Path::GcmStream).bytes - before > 2 << 20);
        }
    }
}

fn cbc_with_either_order_of_mac_goes_through_the_provider(openssl: OpenSsl) {
    if !programs_are_here(openssl) {
        return;
    }
    let site = Site::new(openssl);
    for suite in ["ECDHE-RSA-AES256-SHA384", "ECDHE-RSA-AES128-SHA256"] {
        for option in ["EncryptThenMac", "-EncryptThenMac"] {
            // Without Encrypt-then-MAC, libssl prefers the composite where there is one.
            let composite = suite == "ECDHE-RSA-AES128-SHA256" && option == "-EncryptThenMac";
            let path = match composite {
                true => statistics::Path::CompositeRecord,
                false => statistics::Path::CbcRecord,
            };
            let before = site.counted(path).bytes;
            let setting = format!("ssl_ciphers {suite}; ssl_conf_command Options {option};");
            let server = site.nginx(true, &setting);
            for with in [false, true] {
                for page in PAGES {
                    site.fetch(&server, with, page, TLS_1_2);
                }
            }
            assert!(site.counted(path).bytes - before > 2 << 20, "{suite} {option}");
        }
    }
}

fn a_changed_record_is_refused_as_by_openssl(openssl: OpenSsl) {
    if !openssl.has("openssl") {
        return;
    }
    let site = Site::new(openssl);
    for (suite, protocol) in [
        ("ECDHE-RSA-AES256-GCM-SHA384", "-tls1_2"),
        ("ECDHE-RSA-AES256-SHA384", "-tls1_2"),
        ("ECDHE-RSA-AES256-SHA", "-tls1_2"),
        ("TLS_AES_256_GCM_SHA384", "-tls1_3"),
    ] {
        let alerts = [true, false].map(|with| alert_after_a_change(&site, with, suite, protocol));
        assert!(alerts[0].contains("bad record mac"), "{suite}: {}", alerts[0]);
        assert_eq!(alerts[0], alerts[1], "{suite}");
    }
}

/// What a client says after the server saw a record of its, changed on the way.
fn alert_after_a_change(site: &Site, with: bool, suite: &str, protocol: &str) -> String {
    let port = free_port();
    let mut command = site.command("openssl", with);
    let which = if protocol == "-tls1_3" { "-ciphersuites" } else { "-cipher" };
    command
        .args(["s_server", "-accept", &port.to_string(), "-key"])
        .arg(site.path("key.pem"))
        .arg("-cert")
        .arg(site.path("cert.pem"))
        .args([which, suite, protocol, "-rev"])
        .stdout(Stdio::null());
    let server = Server::start(command, port, &site.path("tmp/none"));
    let between = change_second_client_record(server.port, protocol == "-tls1_3");
    let mut client = site
        .command("openssl", false)
        .args(["s_client", "-connect", &format!("127.0.0.1:{between}"), protocol])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = client.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"a line that will not arrive as it is\n").unwrap();
    let lines = BufReader::new(client.stderr.take().unwrap()).lines();
    let alert = lines.map_while(Result::ok).find(|line| line.contains("alert"));
    drop(input);
    let _ = client.kill();
    let _ = client.wait();
    let alert = alert.unwrap_or_default();
    // The line begins with the thread's number.
    alert.split_once(":error:").map_or(alert.clone(), |(_, error)| error.to_owned())
}

/// Passes connections on to `to`, with a bit of the client's first record of application data
/// changed.
fn change_second_client_record(to: u16, tls_1_3: bool) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut server = std::net::TcpStream::connect(("127.0.0.1", to)).unwrap();
        let (mut back_from, mut back_to) =
            (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
        // In TLS 1.3 the client's Finished is of the type of application data already.
        let mut before = usize::from(tls_1_3);
        let mut header = [0; 5];
        while std::io::Read::read_exact(&mut client, &mut header).is_ok() {
            let mut record = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
            std::io::Read::read_exact(&mut client, &mut record).unwrap();
            if header[0] == 23 {
                if before == 0 {
                    let middle = record.len() / 2;
                    record[middle] ^= 1;
                }
                before = before.wrapping_sub(1);
            }
            let sent = std::io::Write::write_all(&mut server, &[&header[..], &record].concat());
            if sent.is_err() {
                break;
            }
        }
    });
    port
}

/// Else the newest would be tested by its name alone.
fn programs_run_with_the_openssl_under_test(openssl: OpenSsl) {
    if !programs_are_here(openssl) {
        return;
    }
    let said = |program: &str, argument: &str| {
        let told = openssl.command(program).arg(argument).output().unwrap();
        String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned()
    };
    let version =
        |text: &str| text.split("OpenSSL ").last().unwrap().split(' ').next().map(str::to_owned);
    let line = |text: String, start: &str| {
        text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned()
    };
    // The last of a line is what it runs with.
    let program = version(&line(said("openssl", "version"), "OpenSSL "));
    assert_eq!(version(&line(said("nginx", "-V"), "built with ")), program);
    println!("{openssl:?}: OpenSSL {}", program.as_deref().unwrap_or_default());
    if openssl == OpenSsl::Newest {
        let system = OpenSsl::System.command("openssl").arg("version").output().unwrap();
        assert_ne!(version(&String::from_utf8_lossy(&system.stdout)), program);
    }
}

on_every_openssl!(
    programs_run_with_the_openssl_under_test,
    nginx_seals_a_large_page_as_many_records_at_once,
    in_paper_mode_the_suite_of_the_paper_goes_the_same_way,
    an_accelerator_takes_what_is_larger_than_the_threshold,
    ten_thousand_requests_reach_workers_that_were_forked,
    multiblock_can_be_turned_off,
    a_client_with_the_provider_reads_what_a_server_without_it_sealed,
    tls_1_3_goes_through_the_provider_on_both_sides,
    cbc_with_either_order_of_mac_goes_through_the_provider,
    a_changed_record_is_refused_as_by_openssl,
);
