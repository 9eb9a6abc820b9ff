//! `wattlock completions` and `wattlock man`: made from the flags, so that they cannot differ.

use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use wattlock_host::exit::{Ended, print};

use crate::args::{self, Cli};

/// `wattlock completions`.
pub fn completions(args: &args::Completions) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "wattlock", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// `wattlock man`.
pub fn man(args: &args::Man) -> Ended {
    match &args.dir {
        Some(dir) => {
            std::fs::create_dir_all(dir)
                .and_then(|()| clap_mangen::generate_to(Cli::command(), dir))
                .with_context(|| format!("cannot write the manual pages to {}", dir.display()))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
