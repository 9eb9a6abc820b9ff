//! `wattlock provider`: Wattlock's ciphers in the system's OpenSSL.

mod agreement;
mod check;
mod statistics;
mod tls;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, anyhow};
use rustix::fs::{fstat, stat};
use rustix::process::geteuid;
use wattlock_file::Shown;
use wattlock_host::exit::{Ended, print, unavailable, usage};
use wattlock_provider::configuration::{self, Configuration, System, find};
use wattlock_provider::statistics::services;

use crate::args;

/// `wattlock provider`.
pub fn run(args: &args::Provider) -> Ended {
    match args {
        args::Provider::Config(args) => config(args),
        args::Provider::Check(args) => check::run(args),
        args::Provider::Stats(args) => stats(args),
    }
}

/// `wattlock provider config`.
fn config(args: &args::ProviderConfig) -> Ended {
    if args.nginx {
        print(configuration::NGINX)?;
        return Ok(ExitCode::SUCCESS);
    }
    let module = find(args.provider.as_deref()).map_err(unavailable)?;
    let settings = settings(args)?;
    check_library(&module)?;
    let file = system_file();
    if is_stdout(&file) {
        return Err(usage(format!(
            "the output goes to the system's own {}, which the configuration includes; save it in another file",
            Shown(&file)
        )));
    }
    let system = System::read(&file);
    let system = system
        .map_err(|why| anyhow!("cannot add the provider to the system's configuration: {why}"))?;
    if system.is_none() {
        say!(
            "warning: {} does not exist; the configuration contains no system policies",
            Shown(&file)
        );
    }
    let configuration = Configuration {
        module: &module,
        statistics: args.statistics.as_deref(),
        settings: &settings,
        system: system.as_ref(),
    };
    print(&configuration.text().map_err(usage)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether standard output is this file.
fn is_stdout(file: &Path) -> bool {
    let Ok((stdout, file)) = fstat(std::io::stdout()).and_then(|stdout| Ok((stdout, stat(file)?)))
    else {
        return false;
    };
    (stdout.st_dev, stdout.st_ino) == (file.st_dev, file.st_ino)
}

/// The `openssl.cnf` of the program openssl of `PATH`; without that program, where distributions have it.
fn system_file() -> PathBuf {
    let asked = Command::new("openssl").args(["version", "-d"]).stderr(Stdio::null()).output();
    let said = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    // OPENSSLDIR: "/usr/lib/ssl"
    let folder = said.ok().and_then(|said| Some(PathBuf::from(said.split('"').nth(1)?)));
    let file_in = |folder: PathBuf| folder.join("openssl.cnf");
    folder.map_or_else(
        || {
            let all = ["/etc/ssl", "/etc/pki/tls", "/usr/lib/ssl"].map(|one| file_in(one.into()));
            let [first, ..] = &all;
            all.iter().find(|file| file.exists()).unwrap_or(first).clone()
        },
        file_in,
    )
}

/// Refuses a file that OpenSSL could never load: programs that read the configuration would go on
/// without the provider, and say nothing.
fn check_library(module: &Path) -> anyhow::Result<()> {
    let mut head = [0; 18];
    let read = File::open(module).and_then(|mut file| file.read_exact(&mut head));
    // The magic number, the order of bytes, and the type: ET_DYN.
    let is_library = read.is_ok()
        && head.starts_with(b"\x7fELF")
        && matches!((head[5], [head[16], head[17]]), (1, [3, 0]) | (2, [0, 3]));
    if is_library {
        return Ok(());
    }
    Err(unavailable(format!("no provider at {}: it is no ELF shared library", Shown(module))))
}

/// The provider's settings other than its statistics, if they are valid.
fn settings(args: &args::ProviderConfig) -> anyhow::Result<Vec<(&'static str, String)>> {
    if args.statistics.as_deref().is_some_and(|name| !wattlock_provider::statistics::is_name(name))
    {
        return Err(usage(
            "--statistics takes a name of 1 to 200 bytes without control characters",
        ));
    }
    let all = [
        ("accelerator", args.accelerator.clone()),
        ("threshold", args.threshold.clone()),
        ("multiblock", args.multiblock.map(str::to_owned)),
    ];
    let settings: Vec<_> =
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let setting = |name: &str| {
        let found = settings.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| value.clone())
    };
    let refused = |error: wattlock_provider::Error| usage(of_flag(&error.to_string(), &settings));
    wattlock_provider::check_settings(setting).map_err(refused)?;
    Ok(settings)
}

/// What the provider says of a setting, said of the flag that gave it.
fn of_flag(why: &str, settings: &[(&str, String)]) -> String {
    let named = why.strip_prefix("the setting ").and_then(|rest| rest.split_once(' '));
    let given = |(name, rest)| {
        let (_, value) = settings.iter().find(|(setting, _)| *setting == name)?;
        Some(format!("--{name} {value:?} {rest}"))
    };
    named.and_then(given).unwrap_or_else(|| why.to_owned())
}

/// `wattlock provider stats`.
fn stats(args: &args::ProviderStats) -> Ended {
    let mut found = services().context("cannot read /proc")?;
    if let Some(name) = &args.service {
        found.services.retain(|service| service.name == *name);
    }
    for why in &found.skipped {
        say!("skipped {why}");
    }
    if args.json {
        print(&(serde_json::to_string_pretty(&statistics::document(&found))? + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.services.is_empty() {
        let which = args.service.as_ref().map(|name| format!(" of service {name}"));
        say!(
            "no running process{} has loaded the provider with statistics; `wattlock \
             provider config --statistics NAME` turns them on",
            which.unwrap_or_default()
        );
        if found.hidden > 0 {
            let whose = match found.hidden {
                1 => "1 process of another user".to_owned(),
                hidden => format!("{hidden} processes of other users"),
            };
            let root = if geteuid().is_root() { "" } else { "; run as root" };
            say!("cannot read {whose}{root}");
        }
    }
    print(&found.services.iter().map(statistics::service).collect::<Vec<_>>().join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// What the program openssl takes from the provider, in a line.
///
/// # Errors
/// Why it takes nothing.
pub fn loaded(module: &Path) -> Result<String, String> {
    let looked = || {
        let directory = tempfile::Builder::new().prefix("wattlock-doctor-").tempdir()?;
        let openssl = agreement::OpenSsl::with(None, module, directory.path())?;
        let ciphers = openssl.ciphers()?.len();
        anyhow::Ok((ciphers, openssl.version))
    };
    match looked() {
        Ok((0, version)) => Err(format!("{version} loads it, but uses no cipher of it")),
        Ok((ciphers, version)) => {
            let advice = "`wattlock provider config` makes programs use them";
            Ok(format!("{version} loads it and finds {ciphers} ciphers; {advice}"))
        }
        Err(error) => Err(format!("{error:#}")),
    }
}

/// The version of the program openssl of `PATH`.
///
/// # Errors
/// Why it cannot be asked.
pub fn version() -> Result<String, String> {
    let asked = Command::new("openssl").arg("version").stderr(Stdio::null()).output();
    match asked {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => Err(format!("`openssl version` ends with {}", output.status)),
        Err(error) => Err(format!("cannot run openssl: {error}")),
    }
}
