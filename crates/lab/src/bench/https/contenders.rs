//! Who serves: nginx with OpenSSL's own ciphers in three ways and the provider's in four, the same in other releases
//! of OpenSSL, and servers that have no OpenSSL.

use std::fs;
use std::iter;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use wattlock_engine::Lane;
use wattlock_gpu::{RUNTIMES, Runtime};
use wattlock_host::exit::unavailable;
use wattlock_host::program;
use wattlock_provider::configuration::{Configuration, TUNABLES};
use wattlock_provider::statistics::{SharedTable, Statistics};
use wattlock_report::results::Results;

use super::guarded::stock;
use super::server::{self, KERNELS, Place, Program, Server, Setup};
pub use super::server::{OTHER_VERSIONS, Release};
use crate::args::Suite;

/// A way to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// OpenSSL without the CPU's instructions for AES, GCM and SHA.
    Software,
    /// OpenSSL as it is.
    InstructionSet(Release),
    /// OpenSSL as it is, with buffers large enough for its own multiblock, where it has one.
    LargeBuffers(Release),
    /// The provider, one record a call.
    Single(Release),
    /// The provider, all records of a write in one call.
    Reconstruction(Release),
    /// The same in the installed OpenSSL, all by an accelerator.
    Accelerator(Hardware),
    /// The same, by the accelerator above pages of 8 KiB, as the study has it.
    Eeca(Hardware),
    /// A server on rustls, of this program.
    Rustls,
    /// A server of Go's standard library.
    Go,
}

/// What the accelerator is. A model is never called anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hardware {
    Simulated,
    /// A device, by the name of what reaches it.
    Real(&'static str),
    /// A driver that makes a device of the CPU, as PoCL does, by the name of what reaches it.
    OnTheCpu(&'static str),
}

impl Hardware {
    pub fn all() -> impl Iterator<Item = Self> {
        let of = |runtime: &Runtime| [Self::Real(runtime.name), Self::OnTheCpu(runtime.name)];
        iter::once(Self::Simulated).chain(RUNTIMES.iter().flat_map(of))
    }
}

impl Contender {
    /// All of them, with that many other releases of OpenSSL.
    pub fn all(hardware: Hardware, others: usize) -> Vec<Self> {
        let of = |release| {
            [
                Self::InstructionSet(release),
                Self::LargeBuffers(release),
                Self::Single(release),
                Self::Reconstruction(release),
            ]
        };
        let mut all = vec![Self::Software];
        all.extend(of(Release::Installed));
        all.extend([Self::Accelerator(hardware), Self::Eeca(hardware)]);
        all.extend((0..others).flat_map(|other| of(Release::Other(other))));
        all.extend([Self::Rustls, Self::Go]);
        all
    }

    /// The row's tool; of another OpenSSL with its version, which the settings of `results` have.
    pub fn tool(self, results: &Results) -> String {
        let version = |release: Release| release.version(results);
        let openssl = |release| match version(release) {
            Some(version) => format!("openssl {version}"),
            None => "openssl".into(),
        };
        let wattlock = |how: &str, release| match version(release) {
            Some(version) => format!("wattlock {how}, {version}"),
            None => format!("wattlock {how}"),
        };
        match self {
            Self::Software => "openssl, software".into(),
            Self::InstructionSet(release) => openssl(release),
            Self::LargeBuffers(release) => format!("{}, 124k buffers", openssl(release)),
            Self::Single(release) => wattlock("single records", release),
            Self::Reconstruction(release) => wattlock("reconstruction", release),
            Self::Accelerator(Hardware::Simulated) => "wattlock simulated accelerator".into(),
            Self::Accelerator(Hardware::Real(name)) => format!("wattlock {name} accelerator"),
            Self::Accelerator(Hardware::OnTheCpu(name)) => format!("wattlock {name} on the CPU"),
            Self::Eeca(Hardware::Simulated) => "wattlock EECA, simulated".into(),
            Self::Eeca(Hardware::Real(name)) => format!("wattlock EECA, {name}"),
            Self::Eeca(Hardware::OnTheCpu(name)) => format!("wattlock EECA, {name} on the CPU"),
            Self::Rustls => "rustls".into(),
            Self::Go => "Go".into(),
        }
    }

    /// True if the provider takes part.
    pub fn is_ours(self) -> bool {
        match self {
            Self::Single(_) | Self::Reconstruction(_) | Self::Accelerator(_) | Self::Eeca(_) => {
                true
            }
            Self::Software
            | Self::InstructionSet(_)
            | Self::LargeBuffers(_)
            | Self::Rustls
            | Self::Go => false,
        }
    }

    /// The OpenSSL of its nginx; none if it is no nginx.
    pub fn release(self) -> Option<Release> {
        match self {
            Self::InstructionSet(release)
            | Self::LargeBuffers(release)
            | Self::Single(release)
            | Self::Reconstruction(release) => Some(release),
            Self::Software | Self::Accelerator(_) | Self::Eeca(_) => Some(Release::Installed),
            Self::Rustls | Self::Go => None,
        }
    }

    /// What serves, and its version.
    pub fn version(self, place: &Place) -> String {
        match self {
            Self::Rustls => wattlock_peers::rustls_version(),
            Self::Go => place.go_version(),
            _ => {
                let nginx = self.release().and_then(|release| place.nginx(release));
                nginx.map(server::version).unwrap_or_default()
            }
        }
    }

    fn has_large_buffers(self) -> bool {
        match self {
            Self::LargeBuffers(_)
            | Self::Reconstruction(_)
            | Self::Accelerator(_)
            | Self::Eeca(_) => true,
            Self::Software
            | Self::InstructionSet(_)
            | Self::Single(_)
            | Self::Rustls
            | Self::Go => false,
        }
    }

    /// What its accelerator is, if it has one.
    pub fn hardware(self) -> Option<Hardware> {
        match self {
            Self::Accelerator(hardware) | Self::Eeca(hardware) => Some(hardware),
            _ => None,
        }
    }

    /// Why there is no such thing, if so.
    fn cannot(self, suite: Suite) -> Option<&'static str> {
        match self {
            Self::Software if !cfg!(target_arch = "x86_64") => {
                Some("OpenSSL's instructions can be masked on x86-64 only")
            }
            _ if self.has_large_buffers() && suite == Suite::Tls13 => {
                Some("libssl hands over one record at a time in TLS 1.3")
            }
            Self::Rustls if !wattlock_peers::rustls_has(suite.openssl_name()) => {
                Some("rustls has no CBC suites")
            }
            Self::Go if suite == Suite::CbcSha384 => Some("Go has no such suite"),
            _ => None,
        }
    }

    /// The settings of the provider.
    fn settings(self, suite: Suite, given: Given<'_>) -> Vec<(&'static str, String)> {
        let mut settings = vec![("multiblock", u8::from(self.has_large_buffers()).to_string())];
        if self.has_large_buffers() && suite == Suite::CbcSha384 {
            settings.push(("paper_mode", "1".into()));
        }
        if let Some(hardware) = self.hardware() {
            let threshold = match (self, hardware) {
                // nginx writes the header and the page at once; a page of T bytes counts as T.
                (Self::Eeca(_), _) => STUDYS_THRESHOLD + given.header,
                (_, Hardware::Simulated) => 0,
                // What a server's master does must not open a driver, which does not survive a
                // fork.
                _ => LEAST_THRESHOLD,
            };
            settings.push(("accelerator", given.accelerator.into()));
            settings.push(("threshold", threshold.to_string()));
        }
        settings
    }
}

/// What servers of the provider are given.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// The provider's file.
    pub provider: Option<&'a Path>,
    /// Its setting for the accelerator.
    pub accelerator: &'a str,
    /// Bytes of an answer's header.
    pub header: u64,
}

/// A contender whose server runs.
pub struct Running {
    pub contender: Contender,
    pub server: Server,
    /// Where the provider counts.
    statistics: Option<SharedTable>,
}

impl Running {
    /// Starts its server.
    ///
    /// # Errors
    /// Why that cannot be; among others, that there is no provider.
    pub fn start(
        place: &Place,
        contender: Contender,
        suite: Suite,
        given: Given<'_>,
    ) -> anyhow::Result<Self> {
        if let Some(why) = contender.cannot(suite) {
            bail!(why);
        }
        let name = format!("{contender:?}-{suite:?}").replace(['(', ')'], "-");
        let mut environment = Vec::new();
        let mut statistics = None;
        if contender.is_ours() {
            let module = given.provider.context("no provider")?;
            program::let_children_open_files();
            let table = SharedTable::new().context("cannot make a memory file")?;
            let file = place.directory.join(format!("{name}.cnf"));
            configure(&file, module, &table, &contender.settings(suite, given))?;
            if matches!(contender.hardware(), Some(Hardware::OnTheCpu(_))) {
                let kernels = place.directory.join(format!("{name}-kernels"));
                compile_into(&kernels, &file)?;
                environment.push((KERNELS, kernels.display().to_string()));
            }
            environment.push(("OPENSSL_CONF", file.display().to_string()));
            statistics = Some(table);
        }
        if contender == Contender::Software {
            environment.push((MASK.0, MASK.1.into()));
        }
        if contender.has_large_buffers() {
            environment.push(("GLIBC_TUNABLES", TUNABLES.into()));
        }
        let program = match contender {
            Contender::Rustls => Program::Alone(place.rustls()?),
            Contender::Go => Program::Alone(place.go()?),
            _ => {
                let nginx = contender.release().and_then(|release| place.nginx(release));
                Program::Nginx(nginx.context("no such OpenSSL")?.to_owned())
            }
        };
        let large_buffers = contender.has_large_buffers();
        let setup = Setup { name, program, suite, large_buffers, environment: &environment };
        Ok(Self { contender, server: place.serve(&setup)?, statistics })
    }

    /// What the provider has counted in the worker; none without a provider, or before it counts.
    pub fn counted(&self) -> anyhow::Result<Option<Statistics>> {
        let Some(table) = &self.statistics else { return Ok(None) };
        let (all, worker) = (table.read()?, u64::from(self.server.worker));
        Ok(all.into_iter().find(|one| one.process == worker))
    }

    /// True if its accelerator has done anything yet: a driver may have to compile first, and
    /// requests are the CPU's until then.
    ///
    /// # Errors
    /// That the counters cannot be read.
    pub fn has_accelerated(&self) -> anyhow::Result<bool> {
        let counted = self.counted()?;
        Ok(counted.is_some_and(|one| one.lane(Lane::Accelerator).calls > 0))
    }

    /// Checks whether the pages served since `before`, `bytes` bytes in all, went through the
    /// provider as this contender says.
    ///
    /// # Errors
    /// What did not.
    pub fn prove(
        &self,
        before: Option<&Statistics>,
        bytes: u64,
        largest: u64,
    ) -> anyhow::Result<()> {
        if self.statistics.is_none() {
            return Ok(());
        }
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            // The last of them are counted after the client has its page.
            match self.missing(before, self.counted()?.as_ref(), bytes, largest) {
                None => return Ok(()),
                Some(why) if std::time::Instant::now() > deadline => bail!(why),
                Some(_) => std::thread::sleep(std::time::Duration::from_millis(50)),
            }
        }
    }

    fn missing(
        &self,
        before: Option<&Statistics>,
        after: Option<&Statistics>,
        bytes: u64,
        largest: u64,
    ) -> Option<String> {
        let since = |of: &dyn Fn(&Statistics) -> u64| {
            let [before, after] = [before, after].map(|statistics| statistics.map_or(0, of));
            after.saturating_sub(before)
        };
        let counted = since(&|statistics| statistics.sum().bytes);
        if counted < bytes {
            return Some(format!(
                "OpenSSL did not use the provider: it counted {counted} of {bytes} bytes"
            ));
        }
        let contender = self.contender;
        let together = since(&|statistics| statistics.multiblock().calls);
        if contender.has_large_buffers() && largest >= LEAST_WRITE && together == 0 {
            return Some("the provider's counters show no records sealed together".into());
        }
        let accelerated = since(&|statistics| statistics.lane(Lane::Accelerator).calls);
        // A write below the threshold is not the accelerator's.
        let is_large = largest > STUDYS_THRESHOLD || matches!(contender, Contender::Accelerator(_));
        if contender.hardware().is_some() && is_large && accelerated == 0 {
            return Some("the provider's counters show no work on the accelerator".into());
        }
        None
    }
}

/// Has PoCL compile its kernels in a process that does not wait for the children of others, as nginx
/// does, and makes them readable for all users.
fn compile_into(kernels: &Path, configuration: &Path) -> anyhow::Result<()> {
    fs::create_dir(kernels)?;
    let zeros = kernels.join("zeros");
    fs::write(&zeros, vec![0; 1 << 20])?;
    let (key, iv) = ("00".repeat(32), "00".repeat(16));
    let mut enciphers = Command::new("openssl");
    enciphers.args(["enc", "-aes-256-ctr", "-bufsize", "65536", "-K", &key, "-iv", &iv, "-in"]);
    enciphers.arg(&zeros).args(["-out", "/dev/null"]).env(KERNELS, kernels);
    stock(&mut enciphers);
    enciphers.env("OPENSSL_CONF", configuration);
    let mut opens = Command::new("chmod");
    opens.args(["-R", "a+rwX"]).arg(kernels);
    for mut command in [enciphers, opens] {
        let ran = command.stdin(Stdio::null()).output().context("cannot start openssl")?;
        if !ran.status.success() {
            bail!("compiling for OpenCL: {}", String::from_utf8_lossy(&ran.stderr).trim());
        }
    }
    Ok(())
}

/// Writes the configuration for OpenSSL.
pub fn configure(
    file: &Path,
    module: &Path,
    statistics: &SharedTable,
    settings: &[(&'static str, String)],
) -> anyhow::Result<()> {
    let setting = statistics.setting();
    let configuration =
        Configuration { module, statistics: Some(&setting), settings, system: None };
    fs::write(file, configuration.text().map_err(unavailable)?)?;
    Ok(())
}

/// What takes AES-NI, PCLMULQDQ, SHA, VAES and VPCLMULQDQ from OpenSSL, `OPENSSL_ia32cap(3)`: what
/// is left for AES is its constant-time code with vector permutations.
pub const MASK: (&str, &str) = ("OPENSSL_ia32cap", "~0x200000200000000:~0x60020000000");

/// Bytes of a request that are the CPU's even where all are the accelerator's.
const LEAST_THRESHOLD: u64 = 512;

/// The threshold that the study chose, bytes of a page or a message.
pub const STUDYS_THRESHOLD: u64 = 8 << 10;

/// A write in which libssl sees four records.
const LEAST_WRITE: u64 = 64 << 10;

/// How long the provider may take to write its counters.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
