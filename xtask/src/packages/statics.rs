//! Static programs, which run on any Linux: with musl, for x86-64 and for 64-bit ARM.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::{Place, programs};
use crate::command::{ran, said};
use crate::openssl::cache;

/// A target of Rust with musl.
pub struct Target {
    /// What Rust calls it.
    pub triple: &'static str,
    /// What Debian calls it.
    debian: &'static str,
    /// The folder of its headers in Debian's musl.
    headers: &'static str,
    /// Debian's compiler for it.
    compiler: &'static str,
    /// Where the kernel's headers are.
    kernel: &'static [&'static str],
    /// What the compiler is told besides.
    flags: &'static [&'static str],
}

pub const TARGETS: [Target; 2] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        headers: "x86_64-linux-musl",
        compiler: "x86_64-linux-gnu-gcc",
        kernel: &["/usr/include/x86_64-linux-gnu", "/usr/include"],
        flags: &[],
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        debian: "arm64",
        headers: "aarch64-linux-musl",
        compiler: "aarch64-linux-gnu-gcc",
        kernel: &["/usr/aarch64-linux-gnu/include"],
        // Of these functions, Rust brings none.
        flags: &["-mno-outline-atomics"],
    },
];

/// Builds both and makes an archive of each; the programs.
///
/// # Errors
/// A compiler that is missing, or a build that fails.
pub fn make(place: &Place, share: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    for target in &TARGETS {
        let built = programs::build(place, Some(target.settings(place)?))?.join("wattlock");
        let name = format!("wattlock-{}-{}", place.version, target.triple);
        let folder = place.out.join("static").join(&name);
        fs::create_dir_all(&folder)?;
        let program = folder.join("wattlock");
        let objcopy = target.compiler.replace("gcc", "objcopy");
        ran(Command::new(objcopy).arg("--strip-all").arg(built).arg(&program))?;
        for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
            fs::copy(place.root.join(file), folder.join(file))?;
        }
        let share = share.join("wattlock");
        ran(Command::new("cp").arg("-r").arg(share).arg(folder.join("share")))?;
        let archive = place.out.join(format!("{name}.tar.gz"));
        place.archive(&place.out.join("static"), &name, &archive)?;
        made.push(program);
    }
    Ok(made)
}

impl Target {
    /// How it is built for.
    fn settings(&self, place: &Place) -> anyhow::Result<programs::Other<'_>> {
        let musl = self.musl(place)?.join("usr/include").join(self.headers);
        let own = said(Command::new(self.compiler).arg("-print-file-name=include"))?;
        let mut c_flags = vec!["-nostdinc".to_owned(), format!("-isystem {}", musl.display())];
        c_flags.push(format!("-isystem {}", own.trim()));
        // Only musl's are the C library's; the kernel's stand behind them.
        c_flags.extend(self.kernel.iter().map(|folder| format!("-idirafter {folder}")));
        c_flags.extend(self.flags.iter().map(|&flag| flag.to_owned()));
        let variable = self.triple.replace('-', "_");
        let linker = format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase());
        let compiler = format!("CC_{variable}");
        let variables = vec![(compiler, self.compiler), (linker, self.compiler)];
        Ok(programs::Other { triple: self.triple, c_flags, variables })
    }

    /// Debian's musl for it, unpacked into the user's cache and not installed.
    fn musl(&self, place: &Place) -> anyhow::Result<PathBuf> {
        let folder = cache(&place.root.join("target")).join(format!("musl-{}", self.debian));
        if folder.is_dir() {
            return Ok(folder);
        }
        let work = tempfile::tempdir_in(folder.parent().context("a folder in the cache")?)?;
        let at = |name: &str| work.path().join(name);
        for name in ["state/lists/partial", "cache/archives/partial", "deb"] {
            fs::create_dir_all(at(name))?;
        }
        // As on a machine of that kind with nothing installed, from where this machine gets its packages.
        let apt = |words: &[&str]| {
            let mut apt = Command::new("apt-get");
            apt.arg("-qq").current_dir(at("deb"));
            for (option, value) in [
                ("Dir::State", at("state")),
                ("Dir::Cache", at("cache")),
                ("Dir::State::status", PathBuf::from("/dev/null")),
                ("APT::Architecture", PathBuf::from(self.debian)),
                ("APT::Architectures", PathBuf::from(self.debian)),
                ("Debug::NoLocking", PathBuf::from("1")),
                ("APT::Sandbox::User", PathBuf::from("root")),
            ] {
                apt.arg("-o").arg(format!("{option}={}", value.display()));
            }
            said(apt.args(words))
        };
        apt(&["update"])?;
        apt(&["download", "musl-dev"])?;
        let package = fs::read_dir(at("deb"))?.next().context("no package musl-dev")??.path();
        said(Command::new("dpkg-deb").arg("-x").arg(package).arg(at("unpacked")))?;
        fs::rename(at("unpacked"), &folder)?;
        Ok(folder)
    }
}
