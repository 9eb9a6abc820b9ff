//! Clusters that clients reach over TLS, with a password or a certificate.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use wattlock_testing::{Place, assert_exit, free_port, has_program, stderr, wait_until, wattlock};

use crate::broker::More;
use crate::cluster::Cluster;
use crate::setting::{Running, Setting, numbers, to_the_end};

const PASSWORD: &str = "correct-horse-battery";
const WRONG_PASSWORD: &str = "wrong-horse-battery";
/// That of the client's key.
const KEY_PASSWORD: &str = "staple";

/// A cluster with two more listeners.
struct Tls {
    setting: Setting,
    files: Place,
    /// The port with TLS and passwords.
    sasl: u16,
    /// The port with TLS that takes clients with a certificate only.
    mutual: u16,
}

impl Tls {
    fn start() -> Option<Self> {
        if !has_program("openssl") {
            return None;
        }
        let files = certificates();
        let (sasl, mutual) = (free_port(), free_port());
        let path = |name: &str| files.path(name).display().to_string();
        let cluster = Cluster::with(
            1,
            &More {
                listeners: &format!(",SASL_SSL://127.0.0.1:{sasl},SSL://127.0.0.1:{mutual}"),
                lines: &format!(
                    "listener.security.protocol.map=\
                     PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL\n\
                     sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN\n\
                     listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\
                     org.apache.kafka.common.security.scram.ScramLoginModule required;\n\
                     listener.name.sasl_ssl.plain.sasl.jaas.config=\
                     org.apache.kafka.common.security.plain.PlainLoginModule required \
                     user_wattlock=\"{PASSWORD}\";\n\
                     ssl.keystore.type=PEM\nssl.keystore.location={}\n\
                     ssl.truststore.type=PEM\nssl.truststore.location={}\n\
                     listener.name.ssl.ssl.client.auth=required\n",
                    path("server.pem"),
                    path("ca.pem"),
                ),
                format: &[
                    "--add-scram",
                    &format!("SCRAM-SHA-512=[name=wattlock,password={PASSWORD}]"),
                ],
            },
        )?;
        Some(Self { setting: Setting::with(cluster), files, sasl, mutual })
    }

    /// The settings of a client that has a password.
    fn with_password(&self, mechanism: &str, password: &str, ca: &str) -> String {
        format!(
            "security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\nsasl.username=wattlock\n\
             sasl.password={password}\nssl.ca.location={}\n",
            self.files.path(ca).display()
        )
    }

    /// The settings of a client that has a certificate.
    fn with_certificate(&self) -> String {
        let path = |name: &str| self.files.path(name).display().to_string();
        format!(
            "security.protocol=SSL\nssl.ca.location={}\nssl.certificate.location={}\n\
             ssl.key.location={}\nssl.key.password={KEY_PASSWORD}\n",
            path("ca.pem"),
            path("client.crt"),
            path("client.key")
        )
    }

    /// `wattlock kafka` with settings, without keys.
    fn mirror(&self, server: &str, topics: [&str; 2], config: &str) -> Command {
        let mut command = wattlock();
        let [from, to] = topics.map(|topic| format!("kafka://{server}/{topic}"));
        command.args(["kafka", "--from", &from, "--to", &to, "--config"]).arg(self.file(config));
        command
    }

    /// A file with these settings.
    fn file(&self, config: &str) -> PathBuf {
        let name = (0..).map(|n| format!("config-{n}")).find(|n| !self.files.path(n).exists());
        self.files.write(name.unwrap(), config.as_bytes())
    }
}

/// Makes certificates of the server, for its address alone, and of a client, and another authority.
fn certificates() -> Place {
    let place = Place::new();
    let openssl = |args: &[&str]| {
        let made = Command::new("openssl").args(args).current_dir(place.path("")).output().unwrap();
        assert!(made.status.success(), "{args:?}: {}", stderr(&made));
    };
    let new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    for authority in ["ca", "other"] {
        let (key, certificate) = (format!("{authority}.key"), format!("{authority}.pem"));
        let made =
            ["req", "-x509", "-subj", "/CN=authority", "-keyout", &key, "-out", &certificate];
        openssl(&[&made[..], &new_key].concat());
    }
    for (name, extension) in
        [("server", "subjectAltName=IP:127.0.0.1"), ("client", "keyUsage=digitalSignature")]
    {
        let [key, certificate] = ["key", "crt"].map(|end| format!("{name}.{end}"));
        let made = ["req", "-x509", "-CA", "ca.pem", "-CAkey", "ca.key", "-subj", "/CN=wattlock"];
        let files = [
            "-addext",
            extension,
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-keyout",
            &key,
            "-out",
            &certificate,
        ];
        openssl(&[&made[..], &files, &new_key].concat());
    }
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    place.write("server.pem", &[read("server.key"), read("server.crt")].concat());
    let password = format!("pass:{KEY_PASSWORD}");
    openssl(&["pkcs8", "-topk8", "-in", "client.key", "-out", "locked.key", "-passout", &password]);
    std::fs::rename(place.path("locked.key"), place.path("client.key")).unwrap();
    place
}

#[test]
fn passwords_and_certificates_are_taken() {
    let Some(tls) = Tls::start() else { return };
    let cluster = &tls.setting.cluster;
    let (sasl, mutual) = (format!("127.0.0.1:{}", tls.sasl), format!("127.0.0.1:{}", tls.mutual));
    let scram = tls.with_password("SCRAM-SHA-512", PASSWORD, "ca.pem");
    let plain = tls.with_password("PLAIN", PASSWORD, "ca.pem");
    let certificate = tls.with_certificate();
    let key = tls.setting.place.path("key.txt");
    cluster.create("plain", 2, &[]);
    cluster.produce("plain", numbers(0..1000, 2));
    let ways = [
        ("scram", &sasl, &scram),
        ("password", &sasl, &plain),
        ("certificate", &mutual, &certificate),
    ];
    for (name, server, config) in ways {
        let (sealed, opened) = (format!("{name}.sealed"), format!("{name}.opened"));
        cluster.create(&sealed, 2, &[]);
        cluster.create(&opened, 2, &[]);
        let mut sealing = tls.mirror(server, ["plain", &sealed], config);
        to_the_end(sealing.args(["-r", &tls.setting.recipient]));
        let mut opening = tls.mirror(server, [&sealed, &opened], config);
        to_the_end(opening.arg("--open").arg("-i").arg(&key));
        assert_eq!(cluster.records(&opened), cluster.records("plain"), "{name}");
    }
    // Another cluster has settings of its own.
    let Some(other) = Cluster::start() else { return };
    other.create("sealed", 2, &[]);
    cluster.create("opened", 2, &[]);
    let without = tls.file("security.protocol=PLAINTEXT\n");
    let inside = |topic: &str| format!("kafka://{sasl}/{topic}");
    let mut sealing = wattlock();
    sealing.args(["kafka", "--from", &inside("plain"), "--config"]).arg(tls.file(&scram));
    sealing.args(["--to", &other.address("sealed"), "--to-config"]).arg(&without);
    to_the_end(sealing.args(["-r", &tls.setting.recipient]));
    let mut opening = wattlock();
    opening.args(["kafka", "--open", "--from", &other.address("sealed"), "--config"]).arg(&without);
    opening.args(["--to", &inside("opened"), "--to-config"]).arg(tls.file(&scram));
    to_the_end(opening.arg("-i").arg(&key));
    assert_eq!(cluster.records("opened"), cluster.records("plain"));
}

#[test]
fn who_is_not_let_in_loses_nothing() {
    let Some(tls) = Tls::start() else { return };
    let server = |port: u16| format!("127.0.0.1:{port}");
    let (sasl, mutual) = (server(tls.sasl), server(tls.mutual));
    let scram = |password, ca| tls.with_password("SCRAM-SHA-512", password, ca);
    let right = scram(PASSWORD, "ca.pem");
    let without = |config: &str, name: &str| -> String {
        config
            .lines()
            .filter(|line| !line.starts_with(name))
            .fold(String::new(), |all, line| all + line + "\n")
    };
    let cluster = &tls.setting.cluster;
    for topic in ["plain", "sealed", "opened"] {
        cluster.create(topic, 2, &[]);
    }
    cluster.produce("plain", numbers(0..1000, 2));
    let sealing = |server: &str, config: &str| {
        let mut sealing = tls.mirror(server, ["plain", "sealed"], config);
        sealing.args(["-r", &tls.setting.recipient, "--until-end"]);
        sealing
    };
    let credentials = "invalid credentials";
    let certificate = "broker certificate could not be verified";
    let cases = [
        (&sasl, scram(WRONG_PASSWORD, "ca.pem"), 1, credentials),
        (&sasl, tls.with_password("PLAIN", WRONG_PASSWORD, "ca.pem"), 1, "Authentication failed"),
        (&sasl, right.replace("=wattlock", "=somebody"), 1, credentials),
        (&sasl, scram(PASSWORD, "other.pem"), 1, certificate),
        // The system's authorities do not know it.
        (&sasl, without(&right, "ssl.ca"), 1, certificate),
        // The certificate is for the address.
        (&format!("localhost:{}", tls.sasl), right.clone(), 1, certificate),
        (&mutual, without(&tls.with_certificate(), "ssl.c"), 2, "client settings cannot be used"),
        (
            &mutual,
            without(&without(&tls.with_certificate(), "ssl.key"), "ssl.certificate"),
            1,
            "SSL alert",
        ),
        (&sasl, "security.protocol=PLAINTEXT\n".to_owned(), 1, "security.protocol"),
        (&sasl, without(&right, "sasl.mechanism"), 2, "No provider for SASL mechanism GSSAPI"),
        (&sasl, scram(PASSWORD, "missing.pem"), 2, "ssl.ca.location failed"),
        (
            &mutual,
            tls.with_certificate().replace(KEY_PASSWORD, WRONG_PASSWORD),
            2,
            "ssl.key.location failed",
        ),
    ];
    // At once: some have to wait.
    let started: Vec<_> = cases
        .iter()
        .map(|(server, config, ..)| {
            sealing(server, config).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let refused = |ended: &Output, code: i32, why: &str| {
        assert_exit(ended, code);
        let said = stderr(ended);
        println!("{said}");
        assert!(said.contains(why), "{why}: {said}");
        assert!(
            !said.contains(PASSWORD)
                && !said.contains(WRONG_PASSWORD)
                && !said.contains(KEY_PASSWORD),
            "{said}"
        );
    };
    for (running, (.., code, why)) in started.into_iter().zip(&cases) {
        refused(&running.wait_with_output().unwrap(), *code, why);
    }
    assert_eq!(cluster.records("sealed"), []);
    assert_eq!(cluster.committed("wattlock.sealed", "plain"), [None, None]);
    // So is who opens.
    assert_exit(&sealing(&sasl, &right).output().unwrap(), 0);
    let opening = |config: &str| {
        let mut opening = tls.mirror(&sasl, ["sealed", "opened"], config);
        opening.args(["--open", "--until-end", "-i"]).arg(tls.setting.place.path("key.txt"));
        opening.output().unwrap()
    };
    refused(&opening(&scram(WRONG_PASSWORD, "ca.pem")), 1, credentials);
    refused(&opening(&scram(PASSWORD, "other.pem")), 1, certificate);
    assert_eq!(cluster.records("opened"), []);
    assert_exit(&opening(&right), 0);
    assert_eq!(cluster.records("opened"), cluster.records("plain"));
}

#[test]
fn kills_under_tls_lose_and_double_nothing() {
    let Some(mut tls) = Tls::start() else { return };
    let config = tls.with_password("SCRAM-SHA-512", PASSWORD, "ca.pem");
    let server = format!("127.0.0.1:{}", tls.sasl);
    let count = 100_000_usize;
    for topic in ["plain", "sealed"] {
        tls.setting.cluster.create(topic, 2, &[]);
    }
    tls.setting.cluster.produce("plain", numbers(0..count, 2));
    let start = |tls: &Tls| {
        let mut sealing = tls.mirror(&server, ["plain", "sealed"], &config);
        Running::start(sealing.args(["-r", &tls.setting.recipient]))
    };
    let mut process = start(&tls);
    for kill in 1..=4 {
        wait_until("more are sealed", || {
            tls.setting.cluster.ends("sealed").iter().sum::<i64>() >= (kill * count / 6) as i64
        });
        if kill == 2 {
            tls.setting.cluster.kill(0);
            tls.setting.cluster.restart(0);
        } else {
            process.kill();
            process = start(&tls);
        }
    }
    let cluster = &tls.setting.cluster;
    cluster.wait_for_no_lag("wattlock.sealed", "plain");
    process.stop();
    assert_eq!(cluster.tally("sealed", "read_committed", count), (0, 0));
}
