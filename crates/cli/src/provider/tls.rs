//! A page by TLS between openssl's own server and client, one of which has the provider.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::agreement::{By, Checked, OpenSsl};

/// A cipher suite, and the cipher that libssl asks for first.
struct Suite {
    name: &'static str,
    /// Options for `s_server` and `s_client`.
    options: [&'static str; 3],
    cipher: &'static str,
}

const fn tls12(name: &'static str, cipher: &'static str) -> Suite {
    Suite { name, options: ["-tls1_2", "-cipher", name], cipher }
}

const fn tls13(name: &'static str, cipher: &'static str) -> Suite {
    Suite { name, options: ["-tls1_3", "-ciphersuites", name], cipher }
}

const SUITES: [Suite; 9] = [
    tls12("ECDHE-RSA-AES128-SHA", "AES-128-CBC-HMAC-SHA1"),
    tls12("ECDHE-RSA-AES256-SHA", "AES-256-CBC-HMAC-SHA1"),
    tls12("ECDHE-RSA-AES128-SHA256", "AES-128-CBC-HMAC-SHA256"),
    tls12("AES256-SHA256", "AES-256-CBC-HMAC-SHA256"),
    tls12("ECDHE-RSA-AES256-SHA384", "AES-256-CBC"),
    tls12("ECDHE-RSA-AES128-GCM-SHA256", "AES-128-GCM"),
    tls12("ECDHE-RSA-AES256-GCM-SHA384", "AES-256-GCM"),
    tls13("TLS_AES_128_GCM_SHA256", "AES-128-GCM"),
    tls13("TLS_AES_256_GCM_SHA384", "AES-256-GCM"),
];

/// True of a cipher that some suite here uses.
pub fn uses(cipher: &str) -> bool {
    SUITES.iter().any(|suite| suite.cipher == cipher)
}

/// A page of every suite for which the provider has the cipher, sealed by it and opened by it.
///
/// For suites with SHA-1 and SHA-256, libssl takes a composite of cipher and MAC from any provider
/// that has one, and does not use a provider without composites.
///
/// # Errors
/// That files cannot be written, or no server can be started.
pub fn check(openssl: &OpenSsl, ciphers: &[String]) -> anyhow::Result<Vec<Checked>> {
    let offers = |suite: &&Suite| ciphers.iter().any(|cipher| cipher == suite.cipher);
    let suites: Vec<&Suite> = SUITES.iter().filter(offers).collect();
    if suites.is_empty() {
        return Ok(Vec::new());
    }
    let made = openssl.command(By::OpenSsl).args(CERTIFICATE).output()?;
    if !made.status.success() {
        bail!("openssl req failed: {}", String::from_utf8_lossy(&made.stderr).trim());
    }
    let page: Vec<u8> = (0..PAGE_BYTES).map(|i| (i % 251) as u8).collect();
    fs::write(openssl.directory.join("page"), &page)?;
    let mut all = Vec::new();
    for suite in suites {
        openssl.counted()?;
        let differs = [(By::Wattlock, By::OpenSsl), (By::OpenSsl, By::Wattlock)]
            .into_iter()
            .find_map(|(server, client)| match got(openssl, suite, server, client) {
                Ok(got) if got == page => None,
                Ok(got) => Some(format!("{server:?} served {} other bytes", got.len())),
                Err(why) => Some(format!("served by {server:?}: {why:#}")),
            });
        all.push(Checked {
            name: suite.name.into(),
            how: "openssl s_server, s_client",
            counted: openssl.counted()?,
            expected_bytes: 2 * PAGE_BYTES as u64,
            differs,
        });
    }
    Ok(all)
}

/// The page as the client got it.
fn got(openssl: &OpenSsl, suite: &Suite, server: By, client: By) -> anyhow::Result<Vec<u8>> {
    let (serving, port) = Serving::start(openssl, suite, server)?;
    let mut asking = openssl
        .command(client)
        .args(["s_client", "-quiet", "-CAfile", "cert.pem", "-connect"])
        .arg(format!("127.0.0.1:{port}"))
        .args(suite.options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start openssl s_client")?;
    if let Some(mut input) = asking.stdin.take() {
        input.write_all(b"GET /page HTTP/1.0\r\n\r\n")?;
    }
    let answer = asking.wait_with_output()?;
    serving.end()?;
    let Some(head) = answer.stdout.windows(4).position(|four| four == b"\r\n\r\n") else {
        bail!("no page received: {}", String::from_utf8_lossy(&answer.stderr).trim());
    };
    Ok(answer.stdout[head + 4..].to_vec())
}

/// A server for one connection.
struct Serving {
    child: Child,
    /// Held until it has ended: it says more, and would fail.
    output: Option<BufReader<ChildStdout>>,
}

impl Serving {
    fn start(openssl: &OpenSsl, suite: &Suite, by: By) -> anyhow::Result<(Self, u16)> {
        let mut child = openssl
            .command(by)
            .args(["s_server", "-WWW", "-naccept", "1", "-accept", "127.0.0.1:0", "-no_etm"])
            .args(["-cert", "cert.pem", "-key", "key.pem"])
            .args(suite.options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start openssl s_server")?;
        let output = child.stdout.take().map(BufReader::new);
        let mut serving = Self { child, output };
        let lines = serving.output.as_mut().context("openssl s_server has no output")?.lines();
        for line in lines {
            let line = line?;
            if let Some(address) = line.strip_prefix("ACCEPT") {
                let port = address.rsplit(':').next().and_then(|port| port.trim().parse().ok());
                return Ok((serving, port.with_context(|| format!("{line:?} names no port"))?));
            }
        }
        bail!("openssl s_server ended before it listened");
    }

    /// Waits until it has ended by itself, and written its counters.
    fn end(mut self) -> anyhow::Result<()> {
        if let Some(output) = &mut self.output {
            io::copy(output, &mut io::sink())?;
        }
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // `timeout` passes it on.
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

/// Several records, and a last one that is not full.
const PAGE_BYTES: usize = 300_001;

const CERTIFICATE: [&str; 13] = [
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-keyout",
    "key.pem",
    "-out",
    "cert.pem",
    "-days",
    "2",
    "-subj",
    "/CN=localhost",
];
