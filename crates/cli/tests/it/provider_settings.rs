//! `wattlock provider check` and `config`: what OpenSSL and nginx read, and what is said where the
//! provider is missing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Place, assert_exit, installed, stderr, stdout, wattlock};

#[test]
fn a_check_without_a_provider_says_so() {
    let place = Place::new();
    let check = |provider: &Path| {
        wattlock().args(["provider", "check", "--provider"]).arg(provider).output().unwrap()
    };
    let ran = check(&place.path("none.so"));
    assert_exit(&ran, 4);
    assert!(stderr(&ran).contains("no provider at "), "{}", stderr(&ran));
    let text = place.write("text.so", b"no module");
    let ran = wattlock()
        .args(["provider", "check", "--openssl", "/nowhere/openssl", "--provider"])
        .arg(&text)
        .output()
        .unwrap();
    assert_exit(&ran, 4);
    assert!(stderr(&ran).contains("no program at /nowhere/openssl"), "{}", stderr(&ran));
    if !installed("openssl") {
        return;
    }
    // A file that is no module, and a module that is no provider.
    let ran = check(&text);
    assert_exit(&ran, 1);
    let said = stderr(&ran);
    let (_, why) = said.split_once("does not load the provider: ").unwrap_or_default();
    assert!(!why.trim().is_empty(), "{}", stderr(&ran));
    assert!(stdout(&ran).is_empty());
    let mut other = wattlock();
    other.args(["provider", "check", "--openssl", "/bin/true", "--provider"]).arg(&text);
    let ran = other.output().unwrap();
    assert_exit(&ran, 4);
    assert!(stderr(&ran).contains("/bin/true is not an openssl program"), "{}", stderr(&ran));
}

#[test]
fn the_configuration_is_read_by_openssl() {
    if !installed("openssl") {
        return;
    }
    // Any provider will do, under a path with everything that means something in such a file.
    let output = Command::new("openssl").args(["version", "-m"]).output().unwrap();
    let Some(folder) = stdout(&output).split('"').nth(1).map(str::to_owned) else {
        return wattlock_testing::skip("openssl", "this OpenSSL has no folder of modules");
    };
    let Ok(module) = fs::read(Path::new(&folder).join("legacy.so")) else {
        return wattlock_testing::skip("openssl", format_args!("{folder} has no legacy.so"));
    };
    let place = Place::new();
    let provider = place.write("d/a $b #c\"'d.so", &module);
    let made = wattlock()
        .args(["provider", "config", "--statistics", "d $", "--provider"])
        .arg(&provider)
        .output()
        .unwrap();
    assert_exit(&made, 0);
    let text = stdout(&made);
    assert!(text.contains("?x.wattlock=yes") && text.contains("statistics = d \\$"), "{text}");
    let configuration = place.write("openssl.cnf", text.as_bytes());
    let listed = Command::new("openssl")
        .args(["list", "-providers"])
        .env("OPENSSL_CONF", configuration)
        .output()
        .unwrap();
    let said = stdout(&listed);
    assert!(said.contains("OpenSSL Default Provider"), "{said}");
    assert!(said.contains("OpenSSL Legacy Provider"), "{said}{}", stderr(&listed));
    assert!(said.lines().any(|line| line.trim() == "wattlock"), "{said}");
}

#[test]
fn the_provider_gets_its_settings() {
    let place = Place::new();
    // The head of a shared library; nothing else is looked at.
    let module = place.write("d/provider.so", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0");
    let config = |args: &[&str]| {
        let mut command = wattlock();
        command.args(["provider", "config", "--provider"]).arg(&module).args(args);
        command.output().unwrap()
    };
    let all = config(&[
        "--accelerator",
        "simulated:rate=6e9,latency_us=29",
        "--threshold",
        "8192",
        "--multiblock",
        "off",
    ]);
    assert_exit(&all, 0);
    for line in
        ["accelerator = simulated:rate=6e9,latency_us=29", "threshold = 8192", "multiblock = 0"]
    {
        assert!(stdout(&all).lines().any(|found| found == line), "{line}: {}", stdout(&all));
    }
    let none = config(&[]);
    assert_exit(&none, 0);
    for name in ["accelerator", "threshold", "migration", "multiblock", "gcm", "paper_mode"] {
        assert!(!stdout(&none).contains(&format!("{name} =")), "{}", stdout(&none));
    }
    for (args, reason) in [
        (["--accelerator", "abacus"], "--accelerator \"abacus\" is neither"),
        (["--accelerator", "simulated:speed=1"], "--accelerator \"simulated:speed=1\" is"),
        (["--threshold", "much"], "--threshold \"much\" is neither"),
        (["--threshold", "8k"], "--threshold \"8k\" is neither"),
        (["--multiblock", "1"], "possible values: on, off"),
    ] {
        let refused = config(&args);
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains(reason), "{args:?}: {}", stderr(&refused));
    }
    let both = config(&["--nginx"]);
    assert_exit(&both, 2);
    place.write("d/provider.so", b"# public key: age1\nAGE-SECRET-KEY-1\n");
    let refused = config(&[]);
    assert_exit(&refused, 4);
    assert!(stderr(&refused).contains("it is no ELF shared library"), "{}", stderr(&refused));
    assert_eq!(stdout(&refused), "");
}

#[test]
fn nginx_reads_its_settings() {
    let made = wattlock().args(["provider", "config", "--nginx"]).output().unwrap();
    assert_exit(&made, 0);
    let settings = stdout(&made);
    assert!(settings.contains("ssl_buffer_size 124k;"), "{settings}");
    if !installed("nginx") {
        return;
    }
    let place = Place::new();
    let text = format!(
        "pid {0}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{settings}\n\
         server {{ listen 127.0.0.1:1 ssl; ssl_certificate {1}/cert.pem; ssl_certificate_key {1}/key.pem; }}\n}}\n",
        place.path("d").display(),
        wattlock_testing::certificate().display()
    );
    let conf = place.write("d/nginx.conf", text.as_bytes());
    let mut path = std::env::var_os("PATH").unwrap();
    path.push(":/usr/sbin");
    let tested =
        Command::new("nginx").env("PATH", path).arg("-t").arg("-c").arg(conf).output().unwrap();
    // The port is not opened by a test of the configuration on every version.
    assert!(stderr(&tested).contains("syntax is ok"), "{}", stderr(&tested));
}
