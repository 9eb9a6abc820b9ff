//! `cargo xtask packages [--check]`: what users install, in `target/packages`: Debian packages, archives with static
//! programs, a container image, a list of all that is inside, and checksums. `--check` installs, runs and removes
//! them, and builds them once more in another folder, which has to give the same bytes.

mod check;
mod debian;
mod image;
mod inside;
mod programs;
mod statics;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use cargo_metadata::MetadataCommand;

use crate::command::{ran, said};

/// Where the packages of one working tree are made.
pub struct Place {
    /// The working tree.
    root: PathBuf,
    /// Where the packages go.
    out: PathBuf,
    /// The time that all files in packages get: that of the last commit.
    time: String,
    version: String,
}

/// Makes all packages; with `--check` it tries them as well.
///
/// # Errors
/// What is missing, what failed to build, or what a check found.
pub fn run(options: &[String]) -> anyhow::Result<()> {
    let check = match options {
        [] => false,
        [option] if option == "--check" => true,
        _ => bail!("usage: cargo xtask packages [--check]"),
    };
    if std::env::consts::ARCH != "x86_64" {
        bail!("the packages are made on x86-64 only");
    }
    let metadata = MetadataCommand::new().no_deps().exec().context("reading cargo metadata")?;
    let root = metadata.workspace_root.as_std_path().to_owned();
    let program = metadata.packages.iter().find(|package| package.name.as_str() == "wattlock");
    let version = program.context("there is no package wattlock")?.version.to_string();
    let place = Place::new(root, version)?;
    if check {
        check::refuse_changes(&place)?;
    }
    place.make()?;
    if check { check::all(&place) } else { Ok(()) }
}

impl Place {
    fn new(root: PathBuf, version: String) -> anyhow::Result<Self> {
        // Compilers take their flags apart at spaces.
        if root.to_string_lossy().contains(|c: char| c.is_whitespace() || "'\"\\".contains(c)) {
            bail!("{}: move the folder to a path without spaces and quotes", root.display());
        }
        // As the manifests have it, wherever cargo builds.
        let out = root.join("target/packages");
        let mut git = Command::new("git");
        let time = said(git.args(["log", "-1", "--format=%ct"]).current_dir(&root))?;
        Ok(Self { root, out, time: time.trim().to_owned(), version })
    }

    fn make(&self) -> anyhow::Result<()> {
        fs::create_dir_all(&self.out)?;
        for entry in fs::read_dir(&self.out)? {
            let path = entry?.path();
            if path.is_file() {
                fs::remove_file(path)?;
            } else if path.file_name() != Some(OsStr::new("build")) {
                fs::remove_dir_all(path)?;
            }
        }
        let built = programs::build(self, None)?;
        let share = self.out.join("share");
        programs::documents(&built.join("wattlock"), &built.join("wattlock-lab"), &share)?;
        debian::make(self, &built)?;
        let statics = statics::make(self, &share)?;
        image::make(self, &statics)?;
        inside::list(self)?;
        self.sums()?;
        for file in self.files()? {
            let len = fs::metadata(self.out.join(&file))?.len();
            println!("packages: {:>7.2} MB  {file}", len as f64 / 1e6);
        }
        Ok(())
    }

    /// The names of all packages.
    fn files(&self) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.out)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Writes the checksums of all packages.
    fn sums(&self) -> anyhow::Result<()> {
        let sums = said(Command::new("sha256sum").args(self.files()?).current_dir(&self.out))?;
        Ok(fs::write(self.out.join("SHA256SUMS"), sums)?)
    }

    /// A compressed archive of the folder `what` of `folder`; the same bytes for the same files.
    fn archive(&self, folder: &Path, what: &str, to: &Path) -> anyhow::Result<()> {
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
        // Whatever the umask was.
        tar.arg("--mode=u=rwX,go=rX");
        tar.arg(format!("--mtime=@{}", self.time));
        tar.args(["--use-compress-program=gzip -9n", "-cf"])
            .arg(to)
            .arg("-C")
            .arg(folder)
            .arg(what);
        ran(&mut tar)
    }
}
