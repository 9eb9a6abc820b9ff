//! The clients: curl, which looks at what comes, and wrk and ab, which ask as fast as they can.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use super::guarded;
use super::server::{Place, Server};
use crate::args::Suite;
use crate::bench::content::same;

/// A program that asks for one page again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// One thread, several connections that stay open.
    Wrk,
    /// The study's: ApacheBench, with connections that stay open, too.
    Ab,
}

impl Load {
    pub fn name(self) -> &'static str {
        if self == Self::Wrk { "wrk" } else { "ab" }
    }
}

/// What curl saw of a page.
pub struct Answer {
    /// Protocol and suite, as curl reports them.
    pub negotiated: String,
    /// Bytes of the answer's header.
    pub header_bytes: u64,
}

/// What a client saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Pages that came.
    pub requests: u64,
    /// From the first question to the end.
    pub wall: Duration,
}

/// The clients that are installed.
pub struct Clients {
    pub wrk: Option<PathBuf>,
    pub ab: Option<PathBuf>,
    pub curl: PathBuf,
    /// Their CPU.
    pub cpu: usize,
}

impl Clients {
    /// One page by curl, compared with the file, over a connection of the suite.
    ///
    /// # Errors
    /// That it did not come, or is another page, or came in another way.
    pub fn check(
        &self,
        place: &Place,
        server: &Server,
        suite: Suite,
        size: u64,
    ) -> anyhow::Result<Answer> {
        let got = place.directory.join("got");
        let asked = self
            .curl(place)
            .args(["--verbose", "--write-out", "%{size_header}", "--output"])
            .arg(&got)
            .arg(format!("https://127.0.0.1:{}/{size}", server.port))
            .output()
            .context("cannot run curl")?;
        let said = String::from_utf8_lossy(&asked.stderr);
        if !asked.status.success() {
            let why = said.lines().rfind(|line| line.starts_with("curl:")).unwrap_or("failed");
            bail!("curl cannot fetch the page of {size} bytes: {why}");
        }
        if !same(&got, &place.page(size))? {
            bail!("curl fetched a page of {size} bytes that differs from the file");
        }
        fs::remove_file(&got)?;
        let negotiated = said.lines().find_map(|line| line.split_once("SSL connection using "));
        let (_, negotiated) = negotiated.context("curl does not report the negotiated cipher")?;
        if !negotiated.contains(suite.openssl_name()) {
            bail!("negotiated {negotiated} instead of {}", suite.openssl_name());
        }
        let header_bytes = String::from_utf8_lossy(&asked.stdout).trim().parse();
        Ok(Answer {
            negotiated: negotiated.trim().to_owned(),
            header_bytes: header_bytes.context("curl does not report the header's size")?,
        })
    }

    /// What an address answers.
    ///
    /// # Errors
    /// What curl says.
    pub fn fetch(&self, place: &Place, url: &str) -> anyhow::Result<String> {
        let asked = self.curl(place).arg(url).output().context("cannot run curl")?;
        if !asked.status.success() {
            bail!("curl: {}", String::from_utf8_lossy(&asked.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&asked.stdout).into_owned())
    }

    fn curl(&self, place: &Place) -> Command {
        let mut curl = Command::new(&self.curl);
        guarded::stock(&mut curl);
        curl.env("OPENSSL_CONF", place.clients_settings());
        curl.args(["--disable", "--silent", "--show-error", "--fail", "--max-time", "60"]);
        curl.args(["--noproxy", "*", "--http1.1", "--cacert"]).arg(place.certificate());
        curl
    }

    /// Requests a page repeatedly for `seconds`.
    ///
    /// # Errors
    /// Fails if the client fails or counts errors.
    pub fn load(
        &self,
        load: Load,
        place: &Place,
        server: &Server,
        suite: Suite,
        (size, seconds): (u64, u16),
    ) -> anyhow::Result<Seen> {
        let url = format!("https://127.0.0.1:{}/{size}", server.port);
        let most = (MOST_A_SECOND * u32::from(seconds)).to_string();
        let (connections, seconds) = (CONNECTIONS.to_string(), seconds.to_string());
        let (name, program) = (load.name(), if load == Load::Wrk { &self.wrk } else { &self.ab });
        let program = program.as_deref().with_context(|| format!("{name} is not installed"))?;
        let mut command = guarded::command(self.cpu, program);
        command.env("OPENSSL_CONF", place.clients_settings());
        match load {
            Load::Wrk => {
                let script = place.directory.join("report.lua");
                fs::write(&script, SCRIPT)?;
                command.args(["-t", "1", "-c", &connections, "-d", &seconds, "--timeout", "60"]);
                command.arg("-s").arg(script).arg(url);
            }
            Load::Ab => {
                command.args(["-q", "-k", "-t", &seconds, "-n", &most, "-c", &connections, "-f"]);
                command.args(["TLS1.2", "-Z", suite.openssl_name(), &url]);
            }
        }
        let output = guarded::run(command).with_context(|| format!("cannot run {name}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let seen = match load {
            Load::Wrk => by_wrk(&said),
            Load::Ab => by_ab(&said),
        };
        match seen {
            Some((seen, 0)) if output.status.success() && seen.requests > 0 => Ok(seen),
            Some((_, errors)) if errors > 0 => bail!("{name} counted {errors} errors"),
            _ => {
                let why = String::from_utf8_lossy(&output.stderr);
                bail!("{name} fetched no page: {}", why.trim());
            }
        }
    }
}

/// What `SCRIPT` writes: requests, microseconds, errors.
fn by_wrk(said: &str) -> Option<(Seen, u64)> {
    let line = said.lines().find_map(|line| line.strip_prefix("wattlock "))?;
    let mut numbers = line.split(' ').map(str::parse::<u64>);
    let mut number = || numbers.next()?.ok();
    let seen = Seen { requests: number()?, wall: Duration::from_micros(number()?) };
    Some((seen, number()?))
}

fn by_ab(said: &str) -> Option<(Seen, u64)> {
    let number = |key: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let seconds = number("Time taken for tests:")?;
    let requests = number("Complete requests:")? as u64;
    let seen = Seen { requests, wall: Duration::from_secs_f64(seconds) };
    let answers = number("Non-2xx responses:").unwrap_or(0.0);
    Some((seen, (number("Failed requests:")? + answers) as u64))
}

/// The first line of what a client says of itself.
pub fn version(program: &Path, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().next().unwrap_or("unknown").trim().to_owned()
}

/// As many as keep a server busy, and so few that what was begun at the end matters little.
pub const CONNECTIONS: usize = 4;

/// More than any core answers; ab allocates memory for this many.
const MOST_A_SECOND: u32 = 500_000;

/// Exact numbers, where wrk rounds.
const SCRIPT: &str = "\
done = function(summary, latency, requests)
  local e = summary.errors
  local errors = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format('wattlock %d %d %d\\n', summary.requests, summary.duration, errors))
end
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_say_is_read() {
        let seen = |requests, wall| Seen { requests, wall: Duration::from_micros(wall) };
        assert_eq!(by_wrk("Running\nwattlock 65 1030000 0\n"), Some((seen(65, 1_030_000), 0)));
        assert_eq!(by_wrk("Running\nwattlock 65\n"), None);
        let said = "Time taken for tests:   2.500 seconds\nComplete requests:      1000\n\
                    Failed requests:        3\nNon-2xx responses:      4\n";
        assert_eq!(by_ab(said), Some((seen(1000, 2_500_000), 7)));
        assert_eq!(by_ab(""), None);
    }
}
