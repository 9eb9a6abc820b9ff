//! A program in C, compiled here, that uses the provider as libssl does and also misuses it: by
//! itself, and under valgrind. `make sanitize` runs it with both instrumented.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::Modules;
use crate::support::installation::{OpenSsl, on_every_openssl};
use tempfile::TempDir;
use wattlock_provider::statistics::{Path, SharedTable, Statistics};

/// The compiled program.
struct Host {
    openssl: OpenSsl,
    folder: TempDir,
}

impl Host {
    /// For that OpenSSL; `None`, and a line that says so, where it, a compiler or a header is
    /// missing.
    fn compile(openssl: OpenSsl) -> Option<Self> {
        Self::compile_files(openssl, &["host.c", "multiblock.c", "calls.c", "sandbox.c"])
    }

    fn compile_files(openssl: OpenSsl, files: &[&str]) -> Option<Self> {
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
        let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/host");
        for source in files {
            compiler.arg(sources.join(source));
        }
        for libraries in prefix.iter().flat_map(|prefix| ["lib", "lib64"].map(|l| prefix.join(l))) {
            compiler.arg("-L").arg(&libraries);
            compiler.arg(format!("-Wl,-rpath,{}", libraries.display()));
        }
        compiler.arg("-o").arg(folder.path().join("host")).args(["-lssl", "-lcrypto"]);
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

/// After the load, the provider makes no system calls except for memory, even in a forked process:
/// for each cipher, single and many records, good and wrong ones, and for counting them.
fn forked_processes_work_and_count_in_a_sandbox(openssl: OpenSsl) {
    let Some(host) = Host::compile(openssl) else { return };
    let table = SharedTable::new().unwrap();
    let settings = format!("paper_mode = 1\nstatistics = {}", table.setting());
    let control = run(&host, Command::new(host.program()), &settings, &["sandbox-control"]);
    assert_eq!(control.status.signal(), Some(libc::SIGSYS), "{control:?}");
    succeeds(&run(&host, Command::new(host.program()), &settings, &["sandbox"]));
    let counted = table.read().unwrap();
    let workers: Vec<_> =
        counted.iter().filter(|one| one.process != 0 && one.sum().calls > 0).collect();
    assert_eq!(workers.len(), 3, "{counted:?}");
    for worker in workers {
        for path in [Path::GcmMultiblock, Path::CompositeMultiblock, Path::Block, Path::Ctr] {
            assert!(worker.counts(path).bytes > 0, "{}: {}", worker.process, path.name());
        }
    }
}

fn processes_that_come_of_one_draw_different_random_numbers(openssl: OpenSsl) {
    let Some(host) = Host::compile(openssl) else { return };
    succeeds(&run(&host, Command::new(host.program()), "", &["draws"]));
}

/// 403 processes, 31 at a time, in a table that does not grow: nothing that they counted is lost.
fn a_table_is_bounded_and_loses_nothing(openssl: OpenSsl) {
    let Some(host) = Host::compile(openssl) else { return };
    let table = SharedTable::new().unwrap();
    let settings = format!("statistics = {}", table.setting());
    succeeds(&run(&host, Command::new(host.program()), &settings, &["crowd", "403", "31"]));
    let counted = table.read().unwrap();
    let calls = |one: &Statistics| one.counts(Path::Ctr).calls;
    assert_eq!(counted.iter().map(calls).sum::<u64>(), 403 + 1);
    assert_eq!(counted.iter().map(|one| one.counts(Path::Ctr).bytes).sum::<u64>(), 404_000);
    let with_a_row = counted.iter().filter(|one| one.process != 0).count();
    assert!((32..=127).contains(&with_a_row), "{with_a_row}");
    let earlier = counted.iter().find(|one| one.process == 0).unwrap();
    assert!(calls(earlier) >= 404 - 127, "{earlier:?}");
}

/// Once a connection goes on, neither its records nor what counts them take any memory.
fn a_record_of_a_kilobyte_allocates_nothing(openssl: OpenSsl) {
    let Some(host) = Host::compile_files(openssl, &["steady.c"]) else { return };
    for settings in ["", "accelerator = simulated\nthreshold = 8192"] {
        let output = run(&host, Command::new(host.program()), settings, &[]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(text.matches(": 0 allocations").count(), 3, "{settings}: {text}");
    }
}

/// QUIC seals its packets by EVP, in parts, and protects their headers by single blocks.
fn streams_of_quic_arrive(openssl: OpenSsl) {
    if !openssl.has("openssl") {
        return;
    }
    let version = openssl.command("openssl").arg("version").output().unwrap().stdout;
    if version.starts_with(b"OpenSSL 3.0.") {
        // Servers of QUIC came with 3.5.
        return;
    }
    let Some(host) = Host::compile_files(openssl, &["quic.c"]) else { return };
    let made = wattlock_testing::certificate();
    let (certificate, key) = (made.join("cert.pem"), made.join("key.pem"));
    let arguments = [certificate.to_str().unwrap(), key.to_str().unwrap()];
    for with in [false, true] {
        let table = SharedTable::new().unwrap();
        let modules = Modules::new(openssl, &format!("statistics = {}", table.setting()));
        let mut command = Command::new(host.program());
        if with {
            command.env("OPENSSL_CONF", modules.path().join("openssl.cnf"));
            command.env("OPENSSL_MODULES", modules.path());
        }
        succeeds(&command.arg(modules.path()).args(arguments).output().unwrap());
        let sum = |path: Path| -> u64 {
            table.read().unwrap().iter().map(|one| one.counts(path).bytes).sum()
        };
        // Both sides seal and open a megabyte, in packets.
        assert_eq!(sum(Path::GcmStream) > 4 << 20, with, "{}", sum(Path::GcmStream));
        assert_eq!(sum(Path::Block) > 4096, with, "{}", sum(Path::Block));
    }
}

/// A library may free what it holds in a destructor, which runs after OpenSSL has cleaned up.
fn what_is_freed_after_openssl_cleaned_up_ends_no_program(openssl: OpenSsl) {
    let Some(host) = Host::compile_files(openssl, &["ending.c"]) else { return };
    let modules = Modules::new(openssl, "");
    for provider in ["default", "wattlock"] {
        for cleanup in ["", "cleanup"] {
            let mut command = Command::new(host.program());
            command.args([provider, cleanup]).env("OPENSSL_MODULES", modules.path());
            let config = modules.path().join("openssl.cnf");
            command.env("OPENSSL_CONF", if provider == "default" { "".as_ref() } else { &*config });
            let output = command.output().unwrap();
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{provider}, {cleanup}: {}: {err}", output.status);
            assert_eq!(output.stdout, b"as it should be\n", "{provider}, {cleanup}");
        }
    }
}

on_every_openssl!(
    what_is_freed_after_openssl_cleaned_up_ends_no_program,
    streams_of_quic_arrive,
    a_record_of_a_kilobyte_allocates_nothing,
    forked_processes_work_and_count_in_a_sandbox,
    a_table_is_bounded_and_loses_nothing,
    processes_that_come_of_one_draw_different_random_numbers,
    a_host_in_c_has_its_records_opened_and_its_wrong_calls_refused,
    valgrind_finds_nothing_but_the_control,
);
