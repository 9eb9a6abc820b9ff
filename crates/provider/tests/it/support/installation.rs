//! The OpenSSLs that every test runs with: the system's, and those that `cargo xtask openssl` builds, each with an nginx
//! of its own. `make test` has 3.5, and `make test-all` all of them.

use std::path::PathBuf;
use std::process::Command;

/// An OpenSSL, and the programs that are linked to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenSsl {
    /// The one that is installed.
    System,
    /// That release, built by `cargo xtask openssl`.
    Built(&'static str),
}

impl OpenSsl {
    /// The file of libcrypto, or its name where the system's linker knows the rest; none, and a
    /// line that says so, where it was not built.
    pub fn libcrypto(self) -> Option<PathBuf> {
        match self {
            Self::System => Some("libcrypto.so.3".into()),
            Self::Built(release) => {
                let found = built(release).map(|folder| folder.join("lib/libcrypto.so"));
                let found = found.filter(|file| file.is_file());
                if found.is_none() {
                    skip_built(release);
                }
                found
            }
        }
    }

    /// Where its headers and libraries are, if that is not where a compiler looks by itself.
    pub fn prefix(self) -> Option<PathBuf> {
        match self {
            Self::System => None,
            Self::Built(release) => built(release),
        }
    }

    /// A program without the provider. Which OpenSSL it has is only this one's to say where it is
    /// a part of it; those that are built have no clients of their own but `openssl`.
    pub fn command(self, program: &str) -> Command {
        let mut command = Command::new(self.program(program).unwrap_or_else(|| program.into()));
        command.env_remove("OPENSSL_CONF").env_remove("OPENSSL_MODULES");
        command
    }

    /// Whether there is `program`; if not, says that the test is skipped.
    pub fn has(self, program: &str) -> bool {
        let found = self.program(program).is_some();
        match self {
            _ if found => {}
            Self::Built(release) if OWN.contains(&program) => skip_built(release),
            _ => wattlock_testing::skip(program, format_args!("{program} is not installed")),
        }
        found
    }

    fn program(self, program: &str) -> Option<PathBuf> {
        if let Self::Built(release) = self
            && OWN.contains(&program)
        {
            return built(release)
                .map(|folder| folder.join("bin").join(program))
                .filter(|at| at.is_file());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
        places.map(|folder| folder.join(program)).find(|at| at.is_file())
    }
}

/// Programs that those that are built have themselves; all others are the system's, with the system's OpenSSL.
const OWN: [&str; 2] = ["nginx", "openssl"];

fn skip_built(release: &str) {
    let why = format!("`cargo xtask openssl {release}` has not built it");
    wattlock_testing::skip(&format!("openssl-{release}"), why);
}

/// Its folder, in the target folder that the test is in.
fn built(release: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let folders = test.ancestors().map(|folder| folder.join(format!("openssl-{release}")));
    // The stamp is written last.
    folders.into_iter().find(|folder| folder.join("stamp-openssl").is_file())
}

/// Makes a test of each function for each OpenSSL: `system::NAME`, `openssl_3_5::NAME` and so on.
#[allow(unused_macros, reason = "not every test has all")]
macro_rules! on_every_openssl {
    ($($name:ident),* $(,)?) => {
        mod system {
            $(#[test]
            fn $name() {
                super::$name(super::OpenSsl::System);
            })*
        }

        $crate::support::installation::on_every_openssl!(@built openssl_3_5 "3.5", $($name)*);
        $crate::support::installation::on_every_openssl!(@built openssl_3_6 "3.6", $($name)*);
        $crate::support::installation::on_every_openssl!(@built openssl_4_0 "4.0", $($name)*);
    };
    (@built $module:ident $release:literal, $($name:ident)*) => {
        mod $module {
            $(#[test]
            fn $name() {
                $crate::support::installation::alone(module_path!(), stringify!($name), || {
                    super::$name(super::OpenSsl::Built($release));
                });
            })*
        }
    };
}
#[allow(unused_imports, reason = "as above")]
pub(crate) use on_every_openssl;

/// Runs a test in a process of its own: two libcryptos in one would share the module, and with it
/// what the provider counts and switches for the whole process.
pub fn alone(module: &str, function: &str, test: impl FnOnce()) {
    // nextest gives each test a process of its own.
    if std::env::var_os(ALONE).is_some() || std::env::var_os("NEXTEST").is_some() {
        return test();
    }
    // The harness leaves the name of the program out.
    let module = module.split_once("::").map_or("", |(_, module)| module);
    let name = &format!("{module}::{function}");
    let program = std::env::current_exe().expect("a test knows its file");
    let ran = Command::new(program)
        .args([name, "--exact", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .expect("a test can be started");
    let said = String::from_utf8_lossy(&ran.stdout);
    print!("{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{name} failed in a process of its own");
    assert!(said.contains("1 passed"), "no test is called {name}");
}

const ALONE: &str = "WATTLOCK_TEST_ALONE";
