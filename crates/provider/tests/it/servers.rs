//! Programs that use OpenSSL, each with nothing but an `OPENSSL_CONF` that [`Configuration`] writes: a page, a query or a
//! message arrives as it is, and the counters show that the provider's ciphers did it.
//!
//! The programs are the system's, with its OpenSSL. `cargo xtask debian` runs these tests in another Debian.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use wattlock_testing::{free_port, wait_until};

use crate::support::program::{Place, VERSIONS, found, is_root, plain, serve_plainly};
use crate::support::site::Server;

fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args([name, &process.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// The children of a process.
fn children(process: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    listed.unwrap_or_default().split_whitespace().flat_map(str::parse).collect()
}

fn apache(mpm: &str) {
    let Some(place) = Place::new(&["apache2", "curl", "openssl"]) else { return };
    let port = free_port();
    let user = if is_root() { "User www-data\nGroup www-data" } else { "" };
    let settings = place.settings(
        "apache.conf",
        port,
        &format!(
            "ServerName localhost\nServerRoot @\nDefaultRuntimeDir @/tmp\nPidFile @/tmp/pid\n\
             ErrorLog @/tmp/error\nListen 127.0.0.1:PORT\n{user}\n\
             LoadModule mpm_{mpm}_module /usr/lib/apache2/modules/mod_mpm_{mpm}.so\n\
             LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
             LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so\n\
             DocumentRoot @/pages\nSSLEngine on\nSSLSessionCache none\n\
             SSLCertificateFile @/cert.pem\nSSLCertificateKeyFile @/key.pem\n"
        ),
    );
    let mut command = place.command("apache2");
    // It ends by a signal to all of its group.
    command.args(["-D", "FOREGROUND", "-f"]).arg(settings).process_group(0);
    let server = Server::start(command, port, &place.path("tmp/error"));
    place.serves(port);
    place.serves_after_an_aborted_client(port);
    // New workers read the configuration anew, and take new library contexts.
    let before = children(server.process.id());
    signal(server.process.id(), "-USR1");
    wait_until("Apache has new workers", || {
        let now = children(server.process.id());
        !now.is_empty() && now.iter().any(|child| !before.contains(child))
    });
    place.serves(port);
    let workers = children(server.process.id());
    signal(workers[0], "-KILL");
    wait_until("the worker is gone", || !children(server.process.id()).contains(&workers[0]));
    place.serves(port);
}

#[test]
fn apache_with_threads_serves_pages() {
    apache("event");
}

#[test]
fn apache_with_processes_serves_pages() {
    apache("prefork");
}

#[test]
fn haproxy_serves_pages_through_a_reload() {
    let Some(place) = Place::new(&["haproxy", "curl", "openssl"]) else { return };
    let (port, behind) = (free_port(), serve_plainly(place.path("pages")));
    let settings = place.settings(
        "haproxy.cfg",
        port,
        &format!(
            "global\n  stats socket @/tmp/socket expose-fd listeners\n\
             defaults\n  mode http\n  timeout connect 60s\n  timeout client 60s\n  timeout server 60s\n\
             frontend front\n  bind 127.0.0.1:PORT ssl crt @/both.pem\n  default_backend back\n\
             backend back\n  server one 127.0.0.1:{behind}\n"
        ),
    );
    let mut command = place.command("haproxy");
    command.args(["-Ws", "-f"]).arg(settings).stdout(Stdio::null());
    let server = Server::start(command, port, &place.path("tmp/error"));
    place.serves(port);
    place.serves_after_an_aborted_client(port);
    let before = children(server.process.id());
    signal(server.process.id(), "-USR2");
    wait_until("HAProxy has a new worker", || {
        children(server.process.id()).iter().any(|child| !before.contains(child))
    });
    place.serves(port);
}

#[test]
fn stunnel_passes_pages_on() {
    let Some(place) = Place::new(&["stunnel4", "curl", "openssl"]) else { return };
    let (port, behind) = (free_port(), serve_plainly(place.path("pages")));
    let settings = place.settings(
        "stunnel.conf",
        port,
        &format!(
            "foreground = yes\noutput = @/tmp/error\npid =\n[pages]\naccept = 127.0.0.1:PORT\n\
             connect = 127.0.0.1:{behind}\ncert = @/cert.pem\nkey = @/key.pem\n"
        ),
    );
    let mut command = place.command("stunnel4");
    command.arg(settings);
    let server = Server::start(command, port, &place.path("tmp/error"));
    place.serves(port);
    place.serves_after_an_aborted_client(port);
    // It reads its configuration anew.
    signal(server.process.id(), "-HUP");
    wait_until("stunnel has its new configuration", || {
        let log = fs::read_to_string(place.path("tmp/error")).unwrap_or_default();
        log.matches("Configuration successful").count() == 2
    });
    place.serves(port);
}

#[test]
fn postgresql_answers_queries_over_tls() {
    let Some(place) = Place::new(&["postgres", "initdb", "psql", "setpriv", "openssl"]) else {
        return;
    };
    let data = place.path("data");
    fs::create_dir(&data).unwrap();
    // It refuses to run as root.
    let user = is_root().then(|| user_id("postgres")).flatten();
    let own = |path: &Path| chown(path, user, None).unwrap();
    let as_user = |program: &str, with: bool| {
        let file = found(program).unwrap();
        let mut command = if user.is_some() { plain("setpriv") } else { plain(program) };
        if let Some(user) = user {
            command.args([&format!("--reuid={user}"), "--clear-groups"]).arg(file);
        }
        if with {
            command.env("OPENSSL_CONF", place.path("wattlock.cnf"));
        }
        command.current_dir(place.path("tmp")).env("HOME", place.path("tmp"));
        command
    };
    own(&data);
    let made = as_user("initdb", false)
        .args(["--auth=trust", "--no-sync", "--username=postgres", "--pgdata"])
        .arg(&data)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for name in ["cert.pem", "key.pem"] {
        fs::copy(place.path(name), data.join(name)).unwrap();
        fs::set_permissions(data.join(name), fs::Permissions::from_mode(0o600)).unwrap();
        own(&data.join(name));
    }
    let port = free_port();
    let mut command = as_user("postgres", true);
    command.arg("-D").arg(&data).args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", ""]);
    for setting in ["fsync=off", "ssl=on", "ssl_cert_file=cert.pem", "ssl_key_file=key.pem"] {
        command.args(["-c", setting]);
    }
    let _server = Server::start(command, port, &place.path("tmp/error"));
    let query = "select ssl, version, cipher from pg_stat_ssl where pid = pg_backend_pid();\
                 select string_agg(md5(n::text), '' order by n) from generate_series(1, 40000) n;\
                 select length(:'long');";
    for version in ["TLSv1.2", "TLSv1.3"] {
        let long = "x".repeat(50_000);
        let mut told = Vec::new();
        for with in [false, true] {
            let mut client = if with { place.command("psql") } else { plain("psql") };
            let address = format!(
                "host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=require \
                 ssl_min_protocol_version={version} ssl_max_protocol_version={version}"
            );
            let client = client.args(["-X", "-At", "-v", &format!("long={long}"), &address]);
            let mut client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            client.stdin.take().unwrap().write_all(query.as_bytes()).unwrap();
            let answer = client.wait_with_output().unwrap();
            assert!(answer.status.success());
            told.push(String::from_utf8(answer.stdout).unwrap());
        }
        assert!(told[0].starts_with(&format!("t|{version}|")), "{:.60}", told[0]);
        assert!(told[0].ends_with("50000\n") && told[0].len() > 40_000 * 32);
        assert!(told[0] == told[1], "{version}");
    }
    wait_until("the provider has sealed all answers", || place.bytes() > 2 * 2 * 40_000 * 32);
}

/// The number of a user of this system.
fn user_id(name: &str) -> Option<u32> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.starts_with(&format!("{name}:")))?;
    line.split(':').nth(2)?.parse().ok()
}

/// Server and client in one process, in threads, with sockets and with memory in between.
const PYTHON: &str = r#"
import hashlib, socket, ssl, sys, threading
folder = sys.argv[1]
page = open(folder + "/pages/1000000", "rb").read()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + "/cert.pem", folder + "/key.pem")
trusting = ssl.create_default_context(cafile=folder + "/cert.pem")
listener = socket.create_server(("127.0.0.1", 0))
def serve():
    while True:
        connection, _ = listener.accept()
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(1)
            secure.sendall(page)
threading.Thread(target=serve, daemon=True).start()
for version in ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3:
    trusting.minimum_version = trusting.maximum_version = version
    with socket.create_connection(listener.getsockname()) as plain:
        with trusting.wrap_socket(plain, server_hostname="localhost") as secure:
            secure.sendall(b"x")
            got = b""
            while len(got) < len(page):
                part = secure.recv(1 << 16)
                assert part, "the connection ended"
                got += part
    assert got == page, version
    print(secure.version() or version.name, hashlib.sha256(got).hexdigest())
with open(sys.argv[2], "w") as done:
    done.write("done")
sys.stdin.read()
"#;

#[test]
fn python_serves_and_fetches_pages() {
    let Some(place) = Place::new(&["python3", "openssl"]) else { return };
    let done = place.path("tmp/done");
    let mut python = place
        .command("python3")
        .args(["-c", PYTHON])
        .arg(place.folder.path())
        .arg(&done)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("Python has fetched its pages", || {
        assert!(python.try_wait().unwrap().is_none(), "Python failed");
        fs::read(&done).is_ok_and(|text| text == b"done")
    });
    // Two pages, on two sides.
    assert!(place.bytes() > 4_000_000, "{:?}", place.counted());
    drop(python.stdin.take());
    assert!(python.wait().unwrap().success());
}

#[test]
fn curl_fetches_pages() {
    let Some(place) = Place::new(&["nginx", "curl", "openssl"]) else { return };
    let port = free_port();
    let settings = place.settings(
        "nginx.conf",
        port,
        "daemon off; master_process off; pid @/tmp/pid; error_log @/tmp/error; events {}\n\
         http { access_log off; client_body_temp_path @/tmp/1; proxy_temp_path @/tmp/2;\n\
         fastcgi_temp_path @/tmp/3; uwsgi_temp_path @/tmp/4; scgi_temp_path @/tmp/5;\n\
         server { listen 127.0.0.1:PORT ssl; root @/pages; ssl_protocols TLSv1.2 TLSv1.3;\n\
         ssl_certificate @/cert.pem; ssl_certificate_key @/key.pem; } }\n",
    );
    let mut command = plain("nginx");
    command.arg("-c").arg(settings).arg("-p").arg(place.folder.path());
    command.arg("-e").arg(place.path("tmp/error"));
    let _server = Server::start(command, port, &place.path("tmp/error"));
    for version in VERSIONS {
        // It waits for its output to be read: so its counters can be, too.
        let mut curl = place
            .command("curl")
            .args(["--silent", "--show-error", "--fail", "--insecure", "--max-time", "60"])
            .args(version)
            .arg(format!("https://localhost:{port}/1000000"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = curl.stdout.take().unwrap();
        let mut got = vec![0; 500_000];
        std::io::Read::read_exact(&mut output, &mut got).unwrap();
        assert!(place.bytes() > 400_000, "{version:?}: {:?}", place.counted());
        std::io::Read::read_to_end(&mut output, &mut got).unwrap();
        assert!(curl.wait().unwrap().success());
        assert!(got == fs::read(place.path("pages/1000000")).unwrap(), "{version:?}");
    }
}

/// A message that one side encrypts, the other decrypts.
#[test]
fn openssl_encrypts_files_mails_and_keys() {
    let Some(place) = Place::new(&["openssl"]) else { return };
    let run = |with: bool, arguments: &str| {
        let mut command = if with { place.command("openssl") } else { plain("openssl") };
        let arguments = arguments.replace('@', place.folder.path().to_str().unwrap());
        let ran = command.args(arguments.split(' ')).output().unwrap();
        assert!(ran.status.success(), "{arguments}: {}", String::from_utf8_lossy(&ran.stderr));
        ran.stdout
    };
    let page = fs::read(place.path("pages/1000000")).unwrap();
    let files = "-in @/pages/1000000 -out @/tmp/sealed";
    let mail = "-recip @/cert.pem -inkey @/key.pem -in @/tmp/sealed";
    for (seal, open) in [
        (
            format!("enc -aes-256-cbc -pbkdf2 -pass pass:x {files}"),
            "enc -d -aes-256-cbc -pbkdf2 -pass pass:x -in @/tmp/sealed".to_owned(),
        ),
        (
            format!("enc -aes-128-ctr -pbkdf2 -pass pass:x {files}"),
            "enc -d -aes-128-ctr -pbkdf2 -pass pass:x -in @/tmp/sealed".to_owned(),
        ),
        (
            format!("cms -encrypt -binary -aes256 {files} @/cert.pem"),
            format!("cms -decrypt {mail}"),
        ),
        (
            format!("cms -encrypt -binary -aes-256-gcm {files} @/cert.pem"),
            format!("cms -decrypt {mail}"),
        ),
        (
            format!("smime -encrypt -binary -aes128 {files} @/cert.pem"),
            format!("smime -decrypt {mail}"),
        ),
    ] {
        for (seals, opens) in [(true, false), (false, true), (true, true)] {
            run(seals, &seal);
            assert!(run(opens, &open) == page, "{seal}: {seals}, {opens}");
        }
    }
    let keep = "pkcs12 -export -inkey @/key.pem -in @/cert.pem -passout pass:x -out @/tmp/kept";
    let read = "pkcs12 -in @/tmp/kept -passin pass:x -nodes -nocerts";
    run(false, keep);
    let expected = run(false, read);
    for (keeps, reads) in [(true, false), (false, true), (true, true)] {
        run(keeps, keep);
        let key = |text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            text[text.find("-----BEGIN").unwrap()..].to_owned()
        };
        assert_eq!(key(&run(reads, read)), key(&expected), "{keeps}, {reads}");
    }
}
