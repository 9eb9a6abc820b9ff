//! The programs that protect files, and their command lines.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::wattlock;

/// A program that is installed, and so takes part.
pub struct Tool {
    /// The name in tables.
    pub name: &'static str,
    /// What it says its version is.
    pub version: String,
    program: OsString,
    recipe: &'static Recipe,
}

/// How a program is called. In its arguments IN, OUT, RECIPIENT, IDENTITY, PASSPHRASE and THREADS
/// stand for what [`Keys`] and the bench give.
struct Recipe {
    name: &'static str,
    program: &'static str,
    version: &'static str,
    protect: &'static [&'static str],
    /// Empty for a tool that only copies.
    unprotect: &'static [&'static str],
}

/// What the tools' arguments may refer to.
pub struct Keys {
    /// Holds everything below, and is private to the bench.
    pub directory: PathBuf,
    /// An X25519 recipient.
    pub recipient: String,
    /// Its identity file.
    pub identity: PathBuf,
    /// A file with a passphrase.
    pub passphrase: PathBuf,
    /// CPU threads of wattlock.
    pub threads: usize,
    /// Which devices wattlock uses, as its flags say it.
    pub devices: Vec<String>,
}

const TOOLS: &[Recipe] = &[
    Recipe {
        name: "wattlock",
        program: "wattlock",
        version: "--version",
        protect: &["protect", "--threads=THREADS", "-r", "RECIPIENT", "-o", "OUT", "IN"],
        unprotect: &["unprotect", "--threads=THREADS", "-i", "IDENTITY", "-o", "OUT", "IN"],
    },
    Recipe {
        name: "wattlock --format age",
        program: "wattlock",
        version: "--version",
        protect: &[
            "protect",
            "--threads=THREADS",
            "--format=age",
            "-r",
            "RECIPIENT",
            "-o",
            "OUT",
            "IN",
        ],
        unprotect: &["unprotect", "--threads=THREADS", "-i", "IDENTITY", "-o", "OUT", "IN"],
    },
    Recipe {
        name: "cp",
        program: "cp",
        version: "--version",
        protect: &["IN", "OUT"],
        unprotect: &[],
    },
    Recipe {
        name: "age",
        program: "age",
        version: "--version",
        protect: &["-r", "RECIPIENT", "-o", "OUT", "IN"],
        unprotect: &["-d", "-i", "IDENTITY", "-o", "OUT", "IN"],
    },
    Recipe {
        name: "gpg",
        program: "gpg",
        version: "--version",
        protect: &[
            "--batch",
            "--yes",
            "--pinentry-mode=loopback",
            "--passphrase-file=PASSPHRASE",
            "--symmetric",
            "--cipher-algo=AES256",
            "--compress-algo=none",
            "-o",
            "OUT",
            "IN",
        ],
        unprotect: &[
            "--batch",
            "--yes",
            "--pinentry-mode=loopback",
            "--passphrase-file=PASSPHRASE",
            "-o",
            "OUT",
            "--decrypt",
            "IN",
        ],
    },
    Recipe {
        name: "openssl enc (not authenticated)",
        program: "openssl",
        version: "version",
        protect: &[
            "enc",
            "-aes-256-ctr",
            "-pbkdf2",
            "-pass",
            "file:PASSPHRASE",
            "-in",
            "IN",
            "-out",
            "OUT",
        ],
        unprotect: &[
            "enc",
            "-d",
            "-aes-256-ctr",
            "-pbkdf2",
            "-pass",
            "file:PASSPHRASE",
            "-in",
            "IN",
            "-out",
            "OUT",
        ],
    },
];

/// The installed tools, the given `age` among them, and the `wattlock` in this program's folder.
pub fn installed(age: Option<&Path>) -> anyhow::Result<Vec<Tool>> {
    let own = wattlock::program()?;
    let mut tools = Vec::new();
    for recipe in TOOLS {
        let program = match recipe.program {
            "wattlock" => own.clone().into_os_string(),
            "age" => age.map_or_else(|| "age".into(), |age| age.as_os_str().to_owned()),
            other => other.into(),
        };
        let Ok(answer) = Command::new(&program).arg(recipe.version).output() else {
            tell!("skipped {}: not installed", recipe.name);
            continue;
        };
        let first = String::from_utf8_lossy(&answer.stdout);
        let version = first.lines().next().unwrap_or("unknown").trim().to_owned();
        tools.push(Tool { name: recipe.name, version, program, recipe });
    }
    Ok(tools)
}

impl Tool {
    /// The program, by its name or its path.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// The command that makes a container of `input` at `output`.
    pub fn protect(&self, keys: &Keys, input: &Path, output: &Path) -> Command {
        self.command(self.recipe.protect, keys, input, output)
    }

    /// The command that makes a file of the container `input` at `output`, if there is such a thing.
    pub fn unprotect(&self, keys: &Keys, input: &Path, output: &Path) -> Option<Command> {
        let args = self.recipe.unprotect;
        (!args.is_empty()).then(|| self.command(args, keys, input, output))
    }

    fn command(&self, args: &[&str], keys: &Keys, input: &Path, output: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.env("GNUPGHOME", &keys.directory);
        for arg in args {
            command.arg(match *arg {
                "IN" => input.as_os_str().to_owned(),
                "OUT" => output.as_os_str().to_owned(),
                "IDENTITY" => keys.identity.as_os_str().to_owned(),
                other => other
                    .replace("RECIPIENT", &keys.recipient)
                    .replace("PASSPHRASE", &keys.passphrase.to_string_lossy())
                    .replace("THREADS", &keys.threads.to_string())
                    .into(),
            });
        }
        if self.recipe.program == "wattlock" {
            command.args(&keys.devices);
        }
        command
    }
}
