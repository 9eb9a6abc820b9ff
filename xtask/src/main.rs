//! Checks and chores of this repository: `cargo xtask structure`, `docs`, `pictures`, `openssl`, `kernel`,
//! `emulate`, `debian`, `python`, `test`, `dist` and `packages`.
#![forbid(unsafe_code)]

mod command;
mod debian;
mod dist;
mod docs;
mod emulate;
mod imports;
mod kernel;
mod modules;
mod openssl;
mod packages;
mod pictures;
mod public;
mod python;
mod sources;
mod structure;
mod test;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Without a backtrace: who reads the end of a long log wants to know what failed.
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> anyhow::Result<()> {
    match arguments.split_first().map(|(command, rest)| (command.as_str(), rest)) {
        Some(("structure", _)) => structure::check(),
        Some(("docs", options)) => docs::run(options),
        Some(("pictures", _)) => pictures::draw(),
        Some(("openssl", names)) => openssl::build(names),
        Some(("kernel", _)) => kernel::unpack(),
        Some(("emulate", options)) => emulate::run(options),
        Some(("test", options)) => test::run(options),
        Some(("dist", _)) => dist::dist(),
        Some(("packages", options)) => packages::run(options),
        Some(("debian", _)) => debian::run(),
        Some(("python", options)) => python::run(options),
        _ => {
            anyhow::bail!(
                "usage: cargo xtask structure | docs [--book] | pictures | openssl [VERSION...] | kernel | emulate [--kernels] \
                 | debian | dist | packages [--check] | python [PYTEST OPTIONS] | test [NEXTEST OPTIONS]"
            )
        }
    }
}
