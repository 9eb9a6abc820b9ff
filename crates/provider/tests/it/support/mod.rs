//! OpenSSL with the provider that was built: as a library, and as programs.
#![allow(dead_code, reason = "no test uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

pub mod between;
pub mod evp;
pub mod installation;
pub mod multiblock;
pub mod program;
pub mod site;
pub mod talk;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use installation::OpenSsl;
use tempfile::TempDir;

/// A folder with the module under the name that OpenSSL looks for, and a configuration.
pub struct Modules {
    folder: TempDir,
    openssl: OpenSsl,
}

impl Modules {
    /// Both providers, ours preferred, with `settings` in its section. Unless these say otherwise, it has AES-GCM, which
    /// it leaves to OpenSSL on some CPUs.
    pub fn new(openssl: OpenSsl, settings: &str) -> Self {
        let gcm = if settings.contains("gcm = ") { "" } else { "gcm = 1\n" };
        let folder = TempDir::new().unwrap();
        symlink(module(), folder.path().join("wattlock.so")).unwrap();
        let config = format!(
            "openssl_conf = init\n\
             [init]\nproviders = provider_list\nalg_section = algorithms\n\
             [provider_list]\ndefault = default_section\nwattlock = wattlock_section\n\
             [default_section]\nactivate = 1\n\
             [wattlock_section]\nactivate = 1\n{gcm}{settings}\n\
             [algorithms]\ndefault_properties = ?provider=wattlock\n"
        );
        fs::write(folder.path().join("openssl.cnf"), config).unwrap();
        Self { folder, openssl }
    }

    /// Whose modules they are.
    pub fn openssl(&self) -> OpenSsl {
        self.openssl
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A program that uses OpenSSL with the provider.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.openssl.command(program);
        command
            .env("OPENSSL_CONF", self.path().join("openssl.cnf"))
            .env("OPENSSL_MODULES", self.path());
        command
    }
}

/// Where cargo put the module: next to the test, or, for an example, where tests are.
pub fn module() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let sibling = test.with_file_name("libwattlock_provider.so");
    let of_tests = test.ancestors().nth(2).unwrap().join("deps/libwattlock_provider.so");
    let module = if sibling.exists() { sibling } else { of_tests };
    assert!(module.exists(), "{} was not built", module.display());
    module
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
