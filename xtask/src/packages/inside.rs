//! What is inside: a bill of materials for each program and for the provider, in the form CycloneDX, by
//! cargo-cyclonedx.

use std::fs;
use std::process::Command;

use walkdir::WalkDir;

use super::Place;
use crate::command::ran;

/// Writes one for each.
///
/// # Errors
/// No cargo-cyclonedx, or what it says.
pub fn list(place: &Place) -> anyhow::Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&place.root).env("SOURCE_DATE_EPOCH", &place.time);
    cargo.args(["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5"]);
    let listed = ran(cargo.args(["--override-filename", NAME])).and_then(|()| take(place));
    // It writes one into the folder of each crate.
    let ours =
        WalkDir::new(&place.root).into_iter().filter_entry(|entry| entry.file_name() != "target");
    for entry in ours {
        let entry = entry?;
        if entry.file_name().to_str() == Some(&format!("{NAME}.json")) {
            fs::remove_file(entry.path())?;
        }
    }
    listed
}

/// Takes those of what is shipped.
fn take(place: &Place) -> anyhow::Result<()> {
    for (name, folder) in SHIPPED {
        let file = place.root.join(folder).join(format!("{NAME}.json"));
        // Without the folder in which it was made.
        let here = format!("file://{}", place.root.display());
        let text = fs::read_to_string(file)?.replace(&here, "file:///wattlock");
        fs::write(place.out.join(format!("{name}-{}.cdx.json", place.version)), text)?;
    }
    Ok(())
}

/// What is shipped, and its crate.
const SHIPPED: [(&str, &str); 3] = [
    ("wattlock", "crates/cli"),
    ("wattlock-provider", "crates/provider"),
    ("wattlock-lab", "crates/lab"),
];

/// What cargo-cyclonedx calls its files.
const NAME: &str = "packages-bill-of-materials";
