//! `completions` and `man` of both programs: made from the flags, so that they cannot differ.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command, ValueHint};

use crate::exit::{Ended, print};
use crate::flags::EXIT_CODES;
use crate::program;

/// Print the completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Completions {
    /// Shell to print completions for
    pub shell: clap_complete::Shell,
}

/// Print the manual page, or write one per command into a directory.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Man {
    /// Write the page of the program and one for each command here
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

impl Completions {
    /// Prints them for the program with these commands.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn run(&self, mut program: Command) -> Ended {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, program::name(), &mut script);
        print(&String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Man {
    /// Prints or writes the pages of the program with these commands.
    ///
    /// # Errors
    /// A folder or a page that cannot be written.
    pub fn run(&self, program: Command) -> Ended {
        match &self.dir {
            Some(dir) => {
                std::fs::create_dir_all(dir)
                    .and_then(|()| clap_mangen::generate_to(program, dir))
                    .with_context(|| {
                        format!("cannot write the manual pages to {}", dir.display())
                    })?;
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(program).render(&mut page)?;
                print(&String::from_utf8_lossy(&page))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
