//! Where pages are served and asked for: the programs, the provider, two CPUs and a directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use wattlock_host::exit::unavailable;
use wattlock_provider::configuration;
use wattlock_report::results::Results;

use super::client::{self, Clients};
use super::contenders::{Contender, Release};
use super::server::{self, Place};
use super::{Bench, Load, Settings, cpus, guarded};
use crate::bench::lab::Lab;

/// A directory with a certificate and pages, the programs that serve and ask, and the provider.
pub struct Site {
    /// What the servers and their clients are; or which program is missing.
    parts: Result<(Place, Clients), String>,
    directory: PathBuf,
    provider: Result<PathBuf, String>,
    cpus: (usize, usize),
}

impl Site {
    /// Looks for all of it, makes the pages, and notes in the results what is missing.
    ///
    /// # Errors
    /// Exit code 4: the provider that was asked for is not there. And that no page can be made.
    pub fn new(
        directory: &Path,
        settings: &Settings,
        provider: Option<&Path>,
        results: &mut Results,
    ) -> anyhow::Result<Self> {
        let found = configuration::find(provider);
        if let (Some(_), Err(why)) = (provider, &found) {
            return Err(unavailable(why.as_str()));
        }
        let cpus = cpus()?;
        settings.record(results, cpus);
        if let Err(why) = &found {
            let ours = settings.contenders.iter().filter(|contender| contender.is_ours());
            let ours: Vec<String> = ours.map(|contender| contender.tool(results)).collect();
            results.skipped.push(format!("{}: {why}", ours.join(", ")));
        }
        let directory = directory.to_owned();
        let parts = parts(&directory, settings, cpus, results);
        match &parts {
            Ok((place, _)) => place.furnish(&settings.sizes)?,
            Err(why) => results.skipped.push(format!("pages by HTTPS: {why}")),
        }
        Ok(Self { parts, directory, provider: found, cpus })
    }

    /// With the nginx of other releases of OpenSSL.
    #[must_use]
    pub fn with_others(mut self, others: Vec<PathBuf>) -> Self {
        if let Ok((place, _)) = &mut self.parts {
            place.others = others;
        }
        self
    }

    /// The file of the provider.
    ///
    /// # Errors
    /// That there is none.
    pub fn provider(&self) -> anyhow::Result<&Path> {
        self.provider.as_deref().map_err(|why| unavailable(why.as_str()))
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn server_cpu(&self) -> usize {
        self.cpus.0
    }

    pub fn client_cpu(&self) -> usize {
        self.cpus.1
    }

    /// ApacheBench.
    ///
    /// # Errors
    /// Which program is missing.
    pub fn ab(&self) -> anyhow::Result<&Path> {
        let (_, clients) = self.parts()?;
        clients.ab.as_deref().context("ab is not installed")
    }

    /// What an address of this machine answers, by curl.
    ///
    /// # Errors
    /// What curl says.
    pub fn fetch(&self, url: &str) -> anyhow::Result<String> {
        let (place, clients) = self.parts()?;
        clients.fetch(place, url)
    }

    /// All pages of all suites by all contenders.
    ///
    /// # Errors
    /// That a signal came, or a meter cannot be read.
    pub fn pages(&self, lab: &mut Lab<'_>, settings: &Settings) -> anyhow::Result<()> {
        let Ok((place, clients)) = self.parts() else { return Ok(()) };
        let bench = Bench { site: self, place, clients, settings };
        settings.suites.iter().try_for_each(|suite| bench.suite(lab, *suite))
    }

    fn parts(&self) -> anyhow::Result<(&Place, &Clients)> {
        match &self.parts {
            Ok((place, clients)) => Ok((place, clients)),
            Err(why) => bail!("{why}"),
        }
    }
}

/// The programs without which no page is served and asked for.
fn parts(
    directory: &Path,
    settings: &Settings,
    (server_cpu, client_cpu): (usize, usize),
    results: &mut Results,
) -> Result<(Place, Clients), String> {
    let need = |name: &str, package: &str| {
        guarded::find(name)
            .ok_or_else(|| format!("{name} is not installed; Debian's package {package} has it"))
    };
    let client = |load: Load, name: &str, package: &str| {
        settings.loads.contains(&load).then(|| need(name, package)).transpose()
    };
    need("openssl", "openssl")?;
    need("taskset", "util-linux")?;
    let clients = Clients {
        wrk: client(Load::Wrk, "wrk", "wrk")?,
        ab: client(Load::Ab, "ab", "apache2-utils")?,
        curl: need("curl", "curl")?,
        cpu: client_cpu,
    };
    let nginx = need("nginx", "nginx")?;
    let mut add = |name: &str, version| results.tools.insert(name.into(), version);
    add("nginx", server::version(&nginx));
    add("curl", client::version(&clients.curl, &["--version"]));
    if let Some(wrk) = &clients.wrk {
        add("wrk", client::version(wrk, &["-v"]));
    }
    if let Some(ab) = &clients.ab {
        add("ab", client::version(ab, &["-V"]));
    }
    let (directory, go) = (directory.to_owned(), guarded::find("go"));
    Ok((Place { directory, nginx, others: Vec::new(), go, cpu: server_cpu }, clients))
}

impl Contender {
    /// EECA's four ways: software, instruction set, accelerator, and both with a threshold.
    pub fn study(hardware: super::Hardware) -> [Self; 4] {
        let plain = Self::InstructionSet(Release::Installed);
        [Self::Software, plain, Self::Accelerator(hardware), Self::Eeca(hardware)]
    }
}
