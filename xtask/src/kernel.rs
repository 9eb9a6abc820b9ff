//! `cargo xtask kernel`: a kernel of Debian for tests in a virtual machine, unpacked and not installed, in
//! the user's cache; `kernel` in the target folder is a link to it, where the tests look for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use cargo_metadata::MetadataCommand;

use crate::command::said;
use crate::openssl::{cache, link};

/// The package that depends on the newest kernel of its kind.
const PACKAGE: &str = "linux-image-cloud-amd64";

/// Downloads and unpacks what is not there yet.
///
/// # Errors
/// That the system has no apt, or no such package.
pub fn unpack() -> anyhow::Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec().context("reading cargo metadata")?;
    let target = PathBuf::from(metadata.target_directory);
    let package = newest()?;
    let folder = cache(&target).join(&package);
    if !folder.join("boot").is_dir() {
        download(&package, &folder)?;
    }
    link(&folder, &target.join("kernel"))?;
    eprintln!("kernel: {package} is in {}", folder.display());
    Ok(())
}

/// The name of the package with the kernel itself.
fn newest() -> anyhow::Result<String> {
    let shown = said(Command::new("apt-cache").args(["depends", PACKAGE]))?;
    let depends = shown.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    let version = depends.with_context(|| format!("{PACKAGE} depends on no kernel"))?;
    Ok(format!("linux-image-{version}"))
}

fn download(package: &str, folder: &Path) -> anyhow::Result<()> {
    let above = folder.parent().context("a folder in the cache")?;
    let place = tempfile::tempdir_in(above)?;
    said(Command::new("apt-get").args(["download", "-qq", package]).current_dir(place.path()))?;
    let files = fs::read_dir(place.path())?;
    let mut files = files.filter_map(|file| Some(file.ok()?.path()));
    let file = files.find(|file| file.extension().is_some_and(|end| end == "deb"));
    let unpacked = place.path().join("unpacked");
    said(Command::new("dpkg-deb").arg("-x").arg(file.context("no package")?).arg(&unpacked))?;
    // Another run of this does the same.
    fs::rename(&unpacked, folder)
        .or_else(|error| if folder.join("boot").is_dir() { Ok(()) } else { Err(error) })?;
    Ok(())
}
