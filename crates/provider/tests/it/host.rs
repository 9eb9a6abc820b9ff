//! A program in C, compiled here, that uses the provider as libssl does and as nobody should: by
//! itself, and under valgrind. `make sanitize` runs it with both instrumented.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::Modules;
use crate::support::installation::{OpenSsl, on_every_openssl};
use tempfile::TempDir;

/// The compiled program.
struct Host {
    openssl: OpenSsl,
    folder: TempDir,
}

impl Host {
    /// For that OpenSSL; `None`, and a line that says so, where it, a compiler or a header is
    /// missing.
    fn compile(openssl: OpenSsl) -> Option<Self> {
        if !openssl.has("cc") || !openssl.has("openssl") {
            return None;
        }
        let prefix = openssl.prefix();
        let folder = TempDir::new().unwrap();
        let mut compiler = Command::new("cc");
        compiler.args([
            "-std=c11",
            "-D_DEFAULT_SOURCE",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O1",
            "-g",
        ]);
        if let Some(prefix) = &prefix {
            compiler.arg("-I").arg(prefix.join("include"));
        }
        let header = ["-fsyntax-only", "-include", "openssl/evp.h", "-x", "c", "/dev/null"];
        let mut look = Command::new("cc");
        look.args(compiler.get_args()).args(header);
        if !look.output().unwrap().status.success() {
            wattlock_testing::skip("libssl-dev", "OpenSSL has no headers here");
            return None;
        }
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/host");
        for source in ["host.c", "multiblock.c", "calls.c"] {
            compiler.arg(sources.join(source));
        }
        for libraries in prefix.iter().flat_map(|prefix| ["lib", "lib64"].map(|l| prefix.join(l))) {
            compiler.arg("-L").arg(&libraries);
            compiler.arg(format!("-Wl,-rpath,{}", libraries.display()));
        }
        compiler.arg("-o").arg(folder.path().join("host")).arg("-lcrypto");
        let output = compiler.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(Self { openssl, folder })
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("host")
    }
}

/// Runs `command` on a folder of modules with those settings.
fn run(host: &Host, mut command: Command, settings: &str, arguments: &[&str]) -> Output {
    let modules = Modules::new(host.openssl, settings);
    command.arg(modules.path()).args(arguments).env("RUST_BACKTRACE", "0").output().unwrap()
}

fn succeeds(output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), &output.stderr);
    print!("{out}");
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(err));
    assert!(out.ends_with("as it should be\n"));
}

fn valgrind(host: &Host) -> Command {
    let mut command = Command::new("valgrind");
    command.args(["-q", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    command.arg(format!("--error-exitcode={FOUND}")).arg(host.program());
    command
}

/// What valgrind exits with if it finds anything.
const FOUND: i32 = 99;

fn a_host_in_c_has_its_records_opened_and_its_wrong_calls_refused(openssl: OpenSsl) {
    let Some(host) = Host::compile(openssl) else { return };
    succeeds(&run(&host, Command::new(host.program()), "", &[]));
    succeeds(&run(&host, Command::new(host.program()), "paper_mode = 1", &["paper"]));
}

/// Valgrind has no AVX-512 and shows none, so that these are the kernels below it.
fn valgrind_finds_nothing_but_the_control(openssl: OpenSsl) {
    if !openssl.has("valgrind") {
        return;
    }
    let Some(host) = Host::compile(openssl) else { return };
    let control = run(&host, valgrind(&host), "", &["control"]);
    assert_eq!(control.status.code(), Some(FOUND), "{control:?}");
    // Paper mode has every other cipher as well.
    succeeds(&run(&host, valgrind(&host), "paper_mode = 1", &["paper", "32"]));
}

on_every_openssl!(
    a_host_in_c_has_its_records_opened_and_its_wrong_calls_refused,
    valgrind_finds_nothing_but_the_control,
);
