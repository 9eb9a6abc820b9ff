//! What is inside: a bill of materials for each program, in the form CycloneDX, by cargo-cyclonedx.

use std::fs;
use std::process::Command;

use walkdir::WalkDir;

use super::{Place, ran};

/// Writes one for each program.
///
/// # Errors
/// No cargo-cyclonedx, or what it says.
pub fn list(place: &Place) -> anyhow::Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&place.root).env("SOURCE_DATE_EPOCH", &place.time);
    cargo.args(["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5"]);
    ran(cargo.args(["--override-filename", NAME]))?;
    let file = format!("{NAME}.json");
    for (name, folder) in [("wattlock", "crates/cli"), ("wattlock-lab", "crates/lab")] {
        let text = fs::read_to_string(place.root.join(folder).join(&file))?;
        // Where it was made is nobody's business.
        let here = format!("file://{}", place.root.display());
        let text = text.replace(&here, "file:///wattlock");
        fs::write(place.out.join(format!("{name}-{}.cdx.json", place.version)), text)?;
    }
    // It writes one into the folder of each crate.
    let ours =
        WalkDir::new(&place.root).into_iter().filter_entry(|entry| entry.file_name() != "target");
    for entry in ours {
        let entry = entry?;
        if entry.file_name() == file.as_str() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// What cargo-cyclonedx calls its files.
const NAME: &str = "packages-bill-of-materials";
