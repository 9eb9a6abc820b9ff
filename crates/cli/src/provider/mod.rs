//! `wattlock provider`: Wattlock's ciphers in the system's OpenSSL.

mod agreement;
mod check;
pub mod configuration;
pub mod statistics;
mod tls;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::args;
use crate::exit::{Ended, print, unavailable, usage};
use configuration::Configuration;
use wattlock_provider::statistics::services;

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
    let configuration = Configuration {
        module: &module,
        statistics: args.statistics.as_deref(),
        settings: &settings,
    };
    print(&configuration.text().map_err(usage)?)?;
    Ok(ExitCode::SUCCESS)
}

/// What the provider is to be told beside its statistics, if it would take it.
fn settings(args: &args::ProviderConfig) -> anyhow::Result<Vec<(&'static str, String)>> {
    let migration = args.migration.map(|rule| match rule {
        args::ProviderMigration::Sooner => "sooner",
        args::ProviderMigration::Paper => "paper",
        args::ProviderMigration::Never => "never",
    });
    let multiblock = args.multiblock.map(|switch| match switch {
        args::Switch::On => "1",
        args::Switch::Off => "0",
    });
    if args.statistics.as_deref().is_some_and(|name| !wattlock_provider::statistics::is_name(name))
    {
        return Err(usage(
            "--statistics takes a name of 1 to 200 bytes without control characters",
        ));
    }
    let all = [
        ("accelerator", args.accelerator.clone()),
        ("threshold", args.threshold.clone()),
        ("migration", migration.map(str::to_owned)),
        ("multiblock", multiblock.map(str::to_owned)),
        ("paper_mode", args.paper_mode.then(|| "1".to_owned())),
    ];
    let settings: Vec<_> =
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let told = |name: &str| {
        let found = settings.iter().find(|(told, _)| *told == name);
        found.map(|(_, value)| value.clone())
    };
    wattlock_provider::check_settings(told).map_err(|error| usage(error.to_string()))?;
    Ok(settings)
}

/// `wattlock provider stats`.
fn stats(args: &args::ProviderStats) -> Ended {
    let mut found = services().context("cannot read /proc")?;
    if let Some(name) = &args.service {
        found.services.retain(|service| service.name == *name);
    }
    for why in &found.skipped {
        tell!("wattlock: skipped {why}");
    }
    if args.json {
        print(&(serde_json::to_string_pretty(&statistics::document(&found))? + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.services.is_empty() {
        let which = args.service.as_ref().map(|name| format!(" of service {name}"));
        tell!(
            "wattlock: no running process{} has loaded the provider with statistics; `wattlock \
             provider config --statistics NAME` turns them on",
            which.unwrap_or_default()
        );
        if found.hidden > 0 {
            let processes = if found.hidden == 1 { "process" } else { "processes" };
            tell!(
                "wattlock: {} {processes} of other users could not be read; try as root",
                found.hidden
            );
        }
    }
    print(&found.services.iter().map(statistics::service).collect::<Vec<_>>().join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The file of the provider: the one that was asked for, or that beside this program.
///
/// # Errors
/// Where it was looked for, and what to do.
pub fn find(asked: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(path) = asked {
        let found = path.canonicalize().map_err(|error| {
            format!("no provider at {}: {error}; --provider names its file", path.display())
        })?;
        return if found.is_file() {
            Ok(found)
        } else {
            Err(format!("no provider at {}: it is not a file", path.display()))
        };
    }
    let own = std::env::current_exe().and_then(|own| own.canonicalize());
    let own = own.map_err(|error| format!("this program does not know where it is: {error}"))?;
    let beside = own.with_file_name(FILE_NAME);
    if beside.is_file() {
        return Ok(beside);
    }
    Err(format!(
        "no provider at {}; `cargo build --release -p wattlock-provider` makes it, and --provider \
         names one elsewhere",
        beside.display()
    ))
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
        Ok((0, version)) => Err(format!("{version} loads it, and takes no cipher from it")),
        Ok((ciphers, version)) => {
            let told = "`wattlock provider config` tells programs to use them";
            Ok(format!("{version} loads it and finds {ciphers} ciphers; {told}"))
        }
        Err(error) => Err(format!("{error:#}")),
    }
}

const FILE_NAME: &str = "libwattlock_provider.so";
