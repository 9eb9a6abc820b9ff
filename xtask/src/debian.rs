//! `cargo xtask debian`: the provider's tests in Debian 13, with its OpenSSL 3.5 and its programs.
//!
//! A small Debian is unpacked once into the user's cache folder, and the tests, which were built here, run in it by
//! `chroot`. That takes root and debootstrap; without, it says so and has done nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, bail};
use cargo_metadata::{Message, MetadataCommand};

use crate::openssl::cache;

const SUITE: &str = "trixie";

/// What the tests run there. A test that lacks one of these programs has failed.
const PACKAGES: &str = "apache2-bin curl gcc haproxy libc6-dev libssl-dev nginx-light openssl postgresql python3-minimal \
                        libpython3-stdlib stunnel4 strace util-linux";
const REQUIRED: &str = "apache2 cc curl haproxy initdb libssl-dev nginx openssl postgres psql python3 setpriv strace \
                        stunnel4";

/// Tests of other versions, and what is tested once for all.
const LEFT_OUT: [&str; 3] = ["openssl_", "valgrind", "accelerator_devices::"];

/// Runs all tests of the provider with a program of their own in Debian 13.
///
/// # Errors
/// Those that failed.
pub fn run() -> anyhow::Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec().context("reading cargo metadata")?;
    let target = PathBuf::from(&metadata.target_directory);
    let root = cache(&target).join(format!("debian-{SUITE}"));
    if let Some(missing) = missing() {
        println!("debian: skipped: {missing}");
        return Ok(());
    }
    unpack(&root)?;
    let program = build()?;
    let mounts = [metadata.workspace_root.as_std_path(), &target];
    let listed = within(&root, &mounts, &program).args(["--list", "--format", "terse"]).output()?;
    let names = String::from_utf8(listed.stdout)?;
    let tests = names.lines().filter_map(|line| line.strip_suffix(": test"));
    let tests: Vec<&str> =
        tests.filter(|name| !LEFT_OUT.iter().any(|out| name.contains(out))).collect();
    if tests.is_empty() {
        let said = String::from_utf8_lossy(&listed.stderr);
        bail!("{} lists no tests in {}: {}", program.display(), root.display(), said.trim_end());
    }
    let (rest, failed) = (Mutex::new(tests.iter()), Mutex::new(Vec::new()));
    let work = || {
        while let Some(name) = { rest.lock().expect("no panic while locked").next() } {
            // A process for each test, as nextest has it.
            let ran =
                within(&root, &mounts, &program).args([name, "--exact", "--nocapture"]).output();
            let said = ran.map(|ran| (ran.status.success(), [ran.stdout, ran.stderr].concat()));
            if !matches!(said, Ok((true, _))) {
                let text = said.map(|(_, text)| String::from_utf8_lossy(&text).into_owned());
                let text = text.unwrap_or_else(|error| error.to_string());
                failed.lock().expect("no panic while locked").push(format!("{name}\n{text}"));
            }
        }
    };
    thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().expect("no panic while locked");
    failed.iter().for_each(|test| println!("debian: FAILED {test}"));
    let version = within(&root, &mounts, Path::new("openssl")).arg("version").output()?;
    print!("debian: {SUITE}, {}", String::from_utf8_lossy(&version.stdout));
    println!("debian: {} passed, {} failed", tests.len() - failed.len(), failed.len());
    if failed.is_empty() { Ok(()) } else { bail!("tests failed in Debian {SUITE}") }
}

/// What this takes and is not there.
fn missing() -> Option<&'static str> {
    let is = |program: &str, argument: &str| {
        let ran = Command::new(program).arg(argument).stdin(Stdio::null()).output();
        ran.ok().filter(|ran| ran.status.success()).map(|ran| ran.stdout)
    };
    if is("id", "-u").is_none_or(|user| user != b"0\n") {
        return Some("only root may change its root directory");
    }
    if is("debootstrap", "--version").is_none() {
        return Some("debootstrap is not installed");
    }
    None
}

/// Unpacks it with the packages, unless that is done.
fn unpack(root: &Path) -> anyhow::Result<()> {
    let stamp = root.join("stamp-wattlock");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == PACKAGES) {
        return Ok(());
    }
    println!("debian: unpacking Debian {SUITE} into {}, a minute or two", root.display());
    if !root.join("etc/debian_version").exists() {
        let _ = fs::remove_dir_all(root);
        ended(Command::new("debootstrap").args(["--variant=minbase", SUITE]).arg(root))?;
    }
    // A server that is installed is not started.
    let policy = root.join("usr/sbin/policy-rc.d");
    fs::write(&policy, "#!/bin/sh\nexit 101\n")?;
    ended(Command::new("chmod").arg("755").arg(&policy))?;
    // How this machine reaches Debian's packages.
    for file in ["etc/resolv.conf", "etc/apt/apt.conf.d"] {
        ended(
            Command::new("cp")
                .args(["-rL", &format!("/{file}")])
                .arg(root.join(file).with_file_name("")),
        )?;
    }
    for step in [
        "apt-get update -qq",
        &format!("apt-get install -y -qq --no-install-recommends {PACKAGES}"),
    ] {
        let mut apt = Command::new("chroot");
        apt.arg(root).args(["sh", "-c", step]).env("DEBIAN_FRONTEND", "noninteractive");
        ended(&mut apt)?;
    }
    Ok(fs::write(&stamp, PACKAGES)?)
}

/// Builds the tests and the module; the file of the tests.
fn build() -> anyhow::Result<PathBuf> {
    let built = Command::new("cargo")
        .args(["test", "--package", "wattlock-provider", "--test", "it", "--no-run", "--locked"])
        .arg("--message-format=json")
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    let messages = Message::parse_stream(&built.stdout[..]).filter_map(Result::ok);
    let programs = messages.filter_map(|message| match message {
        Message::CompilerArtifact(artifact) if artifact.target.name == "it" => artifact.executable,
        _ => None,
    });
    Ok(programs.last().context("the tests were not built")?.into())
}

/// A program in there, where the folders in `mounts` are what they are here.
fn within(root: &Path, mounts: &[&Path], program: &Path) -> Command {
    // The folders may be in /tmp themselves.
    let mut script = String::from("set -e; mount -t tmpfs tmpfs \"$1/tmp\"\n");
    for (index, _) in mounts.iter().enumerate() {
        let at = index + 3;
        script +=
            &format!("mkdir -p \"$1${{{at}}}\"; mount --rbind \"${{{at}}}\" \"$1${{{at}}}\"\n");
    }
    script += "mount -t proc proc \"$1/proc\"; mount --rbind /dev \"$1/dev\"\n\
               root=$1; program=$2; shift ";
    script += &(mounts.len() + 2).to_string();
    script += "\nexec chroot \"$root\" \"$program\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]);
    command.arg(root).arg(program).args(mounts).stdin(Stdio::null());
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
    // Each test has a process of its own.
    command.env("NEXTEST", "1").env("REQUIRE", REQUIRED);
    command
}

fn ended(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        let last: Vec<&str> = said.lines().rev().take(10).collect();
        bail!("{name} failed:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
    }
    Ok(())
}
