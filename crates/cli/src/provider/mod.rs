//! `wattlock provider`: Wattlock's ciphers in the system's OpenSSL.

mod agreement;
mod check;
pub mod configuration;
pub mod statistics;
mod tls;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::args;
use crate::exit::{Ended, print, unavailable, usage};
use configuration::Configuration;
use wattlock_provider::statistics::Statistics;

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
    let statistics = args.statistics.as_deref().map(std::path::absolute).transpose()?;
    let accelerator = args.accelerator.clone().map(|device| ("accelerator", device));
    let settings: Vec<_> = accelerator.into_iter().collect();
    let configuration =
        Configuration { module: &module, statistics: statistics.as_deref(), settings: &settings };
    print(&configuration.text().map_err(usage)?)?;
    Ok(ExitCode::SUCCESS)
}

/// `wattlock provider stats`.
fn stats(args: &args::ProviderStats) -> Ended {
    let all = Statistics::read_folder(&args.folder)?;
    if args.json {
        print(&(serde_json::to_string_pretty(&statistics::document(&all))? + "\n"))?;
    } else if all.is_empty() {
        tell!(
            "wattlock: no process has counted anything in {}; its configuration has to name this \
             folder as `statistics`, and the process has to be allowed to write there",
            args.folder.display()
        );
    } else {
        print(&all.iter().map(statistics::text).collect::<Vec<_>>().join("\n"))?;
    }
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
        let openssl = agreement::OpenSsl::with(module, directory.path())?;
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
