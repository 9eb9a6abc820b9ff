//! A container image with the static program and nothing else, in the layout of OCI, by umoci.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::Place;
use crate::command::{ran, said};

/// What the image is called in its layout.
pub const TAG: &str = "wattlock";

/// Makes the image of the program for x86-64 and an archive of it.
///
/// # Errors
/// No umoci, or what it says.
pub fn make(place: &Place, programs: &[PathBuf]) -> anyhow::Result<()> {
    let program = programs.first().context("no static program")?;
    let work = place.out.join("image");
    let root = work.join("root");
    fs::create_dir_all(root.join("usr/bin"))?;
    fs::create_dir_all(root.join("data"))?;
    fs::copy(program, root.join("usr/bin/wattlock"))?;
    let licences = root.join("usr/share/doc/wattlock");
    fs::create_dir_all(&licences)?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(place.root.join(file), licences.join(file))?;
    }
    ran(Command::new("chmod").arg("-R").arg("u=rwX,go=rX").arg(&root))?;
    // Any user of it writes there.
    ran(Command::new("chmod").arg("1777").arg(root.join("data")))?;
    // The times of the files are part of the image.
    let mut touch = Command::new("find");
    let seconds = format!("@{}", place.time);
    ran(touch.arg(&root).args(["-exec", "touch", "-h", "-d", &seconds, "{}", "+"]))?;
    let created = time(place)?;
    let layout = work.join("layout");
    let tagged = format!("{}:{TAG}", layout.display());
    ran(umoci(&["init", "--layout"]).arg(&layout))?;
    ran(&mut umoci(&["new", "--image", &tagged]))?;
    ran(umoci(&["insert", "--image", &tagged, "--history.created", &created]).arg(&root).arg("/"))?;
    ran(&mut umoci(&[
        "config",
        "--image",
        &tagged,
        "--created",
        &created,
        "--history.created",
        &created,
        "--architecture",
        "amd64",
        "--os",
        "linux",
        "--config.entrypoint",
        "/usr/bin/wattlock",
        "--config.workingdir",
        "/data",
        "--config.user",
        "1000:1000",
    ]))?;
    ran(umoci(&["gc", "--layout"]).arg(&layout))?;
    place.archive(&layout, ".", &archive(place))
}

fn umoci(words: &[&str]) -> Command {
    let mut command = Command::new("umoci");
    command.args(words);
    command
}

/// The time of the last commit, as images have it.
fn time(place: &Place) -> anyhow::Result<String> {
    let mut date = Command::new("date");
    let text = said(date.args(["-u", "-d", &format!("@{}", place.time), "+%Y-%m-%dT%H:%M:%SZ"]))?;
    Ok(text.trim().to_owned())
}

/// Where the archive of the image is.
pub fn archive(place: &Place) -> PathBuf {
    place.out.join(format!("wattlock-{}-image.tar.gz", place.version))
}

/// Unpacks the archive of the image in `work`, and makes `bundle` of it, a container that can be run.
///
/// # Errors
/// What tar or umoci says.
pub fn unpack(place: &Place, work: &Path, bundle: &Path) -> anyhow::Result<()> {
    let layout = work.join("layout");
    fs::create_dir(&layout)?;
    ran(Command::new("tar").arg("-xzf").arg(archive(place)).arg("-C").arg(&layout))?;
    let tagged = format!("{}:{TAG}", layout.display());
    ran(umoci(&["unpack", "--image", &tagged]).arg(bundle))
}
