//! The system's OpenSSL with the provider that was built: as a library, and as programs.
#![allow(dead_code, reason = "no test uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

pub mod evp;
pub mod multiblock;
pub mod site;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder with the module under the name that OpenSSL looks for, and a configuration.
pub struct Modules {
    folder: TempDir,
}

impl Modules {
    /// Both providers, ours preferred, with `settings` in its section.
    pub fn new(settings: &str) -> Self {
        let folder = TempDir::new().unwrap();
        symlink(module(), folder.path().join("wattlock.so")).unwrap();
        let config = format!(
            "openssl_conf = init\n\
             [init]\nproviders = provider_list\nalg_section = algorithms\n\
             [provider_list]\ndefault = default_section\nwattlock = wattlock_section\n\
             [default_section]\nactivate = 1\n\
             [wattlock_section]\nactivate = 1\n{settings}\n\
             [algorithms]\ndefault_properties = ?provider=wattlock\n"
        );
        fs::write(folder.path().join("openssl.cnf"), config).unwrap();
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A program of the system that uses OpenSSL with the provider.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("OPENSSL_CONF", self.path().join("openssl.cnf"))
            .env("OPENSSL_MODULES", self.path());
        command
    }
}

/// Where cargo put the module: beside the test.
fn module() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let module = test.parent().unwrap().join("libwattlock_provider.so");
    assert!(module.exists(), "{} was not built", module.display());
    module
}

/// Whether the system has `program`; if not, says that the test is skipped.
pub fn has(program: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path)
            .chain(["/usr/sbin".into()])
            .any(|folder| folder.join(program).is_file())
    });
    if !found {
        println!("skipped: there is no {program} here");
    }
    found
}

/// Numbers that look random and are the same each time (xorshift64*).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 24) as u8).collect()
    }
}
