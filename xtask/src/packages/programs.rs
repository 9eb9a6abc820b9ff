//! The programs and the provider as they are packaged, and what they say of themselves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::Place;
use crate::command::{ran, said};

/// Another kind of machine, for which the program alone is built.
pub struct Other<'a> {
    /// What Rust calls it.
    pub triple: &'a str,
    /// What the C compiler is told, and what else is set.
    pub c_flags: Vec<String>,
    pub variables: Vec<(String, &'a str)>,
}

/// Builds the programs of a release, for `other` or for this machine; the folder with them.
///
/// No path of this machine gets into them, so that two folders give the same bytes.
///
/// # Errors
/// A build that fails.
pub fn build(place: &Place, other: Option<Other<'_>>) -> anyhow::Result<PathBuf> {
    let folder = place.out.join("build");
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&place.root).args(["build", "--release", "--locked", "-p", "wattlock"]);
    // Functions that become public when units are optimised together get the unit's name added, and
    // not a number that depends on addresses in the compiler (rust-lang/rust, issue 126976).
    let mut flags = " -Cllvm-args=-use-source-filename-for-promoted-locals".to_owned();
    let mut c_flags = Vec::new();
    let places = places(place)?;
    for (from, to) in &places {
        flags += &format!(" '--remap-path-prefix={}={to}'", from.display());
        c_flags.push(format!("-ffile-prefix-map={}={to}", from.display()));
    }
    let mut c_variable = "CFLAGS".to_owned();
    let built = match other {
        None => {
            cargo.args(["-p", "wattlock-provider", "-p", "wattlock-lab"]);
            folder.join("release")
        }
        Some(Other { triple, c_flags: more, variables }) => {
            cargo.args(["--target", triple]).envs(variables);
            c_variable = format!("CFLAGS_{}", triple.replace('-', "_"));
            c_flags.extend(more);
            folder.join(triple).join("release")
        }
    };
    // By a program around the compiler: cargo makes names of RUSTFLAGS, which end up in symbols.
    let wrapper = folder.join("rustc");
    let script = format!("#!/bin/sh\nexec \"$@\"{flags}\n");
    if folder.exists() && fs::read_to_string(&wrapper).ok().as_deref() != Some(&script) {
        // Nor does it build anew for other ones.
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    fs::write(&wrapper, script)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    // A crate embeds this, and is not built again when it changes: so it never does.
    cargo.env("CARGO_TARGET_DIR", &folder).env("SOURCE_DATE_EPOCH", "0");
    cargo.env("RUSTC_WRAPPER", &wrapper).env("RUSTFLAGS", "").env(c_variable, c_flags.join(" "));
    // Results of this program say which commit it is of.
    let mut describe = Command::new("git");
    describe.args(["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]);
    let commit = said(describe.current_dir(&place.root))?;
    cargo.env("WATTLOCK_COMMIT", commit.trim());
    ran(&mut cargo)?;
    for (path, _) in &places {
        // Debug information goes elsewhere, and holds no path either.
        let mut grep = Command::new("grep");
        grep.args(["--quiet", "--text", "--fixed-strings"]).arg(path).arg(built.join("wattlock"));
        if grep.status()?.success() {
            bail!("the program holds the path {}", path.display());
        }
    }
    Ok(built)
}

/// The folders whose names must not get into a program, the inner ones last, and what stands there instead.
fn places(place: &Place) -> anyhow::Result<Vec<(PathBuf, &'static str)>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.context("HOME is not set")?.join("registry/src");
    let mut places = vec![(place.root.clone(), "/wattlock")];
    // One for each registry, which has its address in its name.
    for registry in fs::read_dir(&sources).context("reading the folder of cargo's sources")? {
        places.push((registry?.path(), "/crates"));
    }
    places.push((place.out.join("build"), "/build"));
    Ok(places)
}

/// Writes manual pages and completions of the programs below `share`, as they lie below `/usr/share`.
///
/// # Errors
/// A program that fails.
pub fn documents(wattlock: &Path, lab: &Path, share: &Path) -> anyhow::Result<()> {
    for (name, program) in [("wattlock", wattlock), ("wattlock-lab", lab)] {
        let folder = share.join(name);
        let pages = folder.join("man/man1");
        fs::create_dir_all(&pages)?;
        ran(Command::new(program).arg("man").arg(&pages))?;
        // All of them before the first is another.
        let made = fs::read_dir(&pages)?.map(|entry| Ok(entry?.path()));
        let made: Vec<PathBuf> = made.collect::<std::io::Result<_>>()?;
        ran(Command::new("gzip").arg("-9n").args(made))?;
        for (shell, file) in [
            ("bash", format!("bash-completion/completions/{name}")),
            ("zsh", format!("zsh/vendor-completions/_{name}")),
            ("fish", format!("fish/vendor_completions.d/{name}.fish")),
        ] {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().context("a folder")?)?;
            fs::write(&file, said(Command::new(program).args(["completions", shell]))?)?;
        }
    }
    Ok(())
}
