//! Debian packages, by cargo-deb; what is in them is in the manifests of the programs.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Place;
use crate::command::{ran, said};

/// The crates that are packaged.
const CRATES: [&str; 2] = ["wattlock", "wattlock-lab"];

/// As in the manifests of the programs.
const REVISION: &str = "0wattlock1";
const AUTHORS: &str = "The Wattlock authors <wattlock@users.noreply.invalid>";

/// Makes them of what was built in `built`.
///
/// # Errors
/// No cargo-deb, or what it says.
pub fn make(place: &Place, built: &Path) -> anyhow::Result<()> {
    let mut date = Command::new("date");
    let date = said(date.args(["-R", "-u", "-d", &format!("@{}", place.time)]))?;
    for name in CRATES {
        let share = place.out.join("share").join(name);
        let text = format!(
            "{name} ({}-{REVISION}) unstable; urgency=medium\n\n  * See the changelog of the \
             program.\n\n -- {AUTHORS}  {date}",
            place.version
        );
        fs::write(share.join("changelog"), text)?;
        let news = share.join("news");
        fs::create_dir_all(&news)?;
        fs::copy(place.root.join("CHANGELOG.md"), news.join("changelog"))?;
        ran(Command::new("gzip").arg("-9n").arg(news.join("changelog")))?;
        let mut cargo = Command::new("cargo");
        cargo.current_dir(&place.root).args([
            "deb",
            "--no-build",
            "--locked",
            "--quiet",
            "-p",
            name,
        ]);
        // The folder above `release`.
        cargo.env("CARGO_TARGET_DIR", built.with_file_name(""));
        cargo.arg("-o").arg(&place.out).env("SOURCE_DATE_EPOCH", &place.time);
        ran(&mut cargo)?;
    }
    Ok(())
}
