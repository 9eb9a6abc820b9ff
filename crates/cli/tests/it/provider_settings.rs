//! `wattlock provider check` and `config`: what OpenSSL and nginx read, and what is said where the
//! provider is missing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

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

/// `provider config` on a system whose openssl.cnf has this text; `@` in it is the folder d.
fn config_on_a_system(place: &Place, module: &Path, text: &str) -> Output {
    config_command(place, module, text).output().unwrap()
}

fn config_command(place: &Place, module: &Path, text: &str) -> Command {
    let folder = place.path("d");
    let folder = folder.to_str().unwrap();
    fs::create_dir_all(place.path("d/bin")).unwrap();
    place.write("d/openssl.cnf", text.replace('@', folder).as_bytes());
    let script = format!("#!/bin/sh\necho 'OPENSSLDIR: \"{folder}\"'\n");
    let openssl = place.write("d/bin/openssl", script.as_bytes());
    fs::set_permissions(openssl, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = wattlock();
    command.env("PATH", format!("{folder}/bin:{path}"));
    command.args(["provider", "config", "--provider"]).arg(module);
    command
}

#[test]
fn the_systems_policy_stays_in_force() {
    let Some(module) = crate::provider::module() else { return };
    if !installed("openssl") {
        return;
    }
    let place = Place::new();
    place.write("d/policy.cnf", b"MinProtocol = TLSv1.3\n");
    // As Debian has it, and as Fedora.
    let files = [
        "openssl_conf = init\n[init]\nssl_conf = ssl\n[ssl]\nsystem_default = policy\n[policy]\n\
         MinProtocol = TLSv1.3\n",
        "openssl_conf = init\n[init]\nproviders = all\nssl_conf = ssl\nalg_section = algorithms\n[all]\n\
         default = one\n[one]\nactivate = 1\n[ssl]\nsystem_default = policy\n[policy]\n\
         .include = @/policy.cnf\n[algorithms]\ndefault_properties = ?fips=no\n",
    ];
    for text in files {
        let made = config_on_a_system(&place, &module, text);
        assert_exit(&made, 0);
        let configuration = place.write("d/wattlock.cnf", &made.stdout);
        let openssl = || {
            let mut command = Command::new("openssl");
            command.env("OPENSSL_CONF", &configuration);
            command
        };
        let listed =
            openssl().args(["list", "-cipher-algorithms", "-propquery", ""]).output().unwrap();
        assert!(stdout(&listed).contains("@ wattlock"), "{}{}", stdout(&listed), stderr(&listed));
        let certificate = wattlock_testing::certificate();
        let mut server = openssl()
            .args(["s_server", "-WWW", "-naccept", "2", "-accept", "127.0.0.1:0", "-cert"])
            .arg(certificate.join("cert.pem"))
            .arg("-key")
            .arg(certificate.join("key.pem"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
        let accept = lines.find(|line| line.starts_with("ACCEPT")).unwrap();
        let address = format!("127.0.0.1:{}", accept.rsplit(':').next().unwrap().trim());
        // The clients have no configuration: only the server's keeps the first one out.
        let gets_in = |version: &str| {
            let mut client = Command::new("openssl");
            client.env("OPENSSL_CONF", "").args(["s_client", version, "-connect", &address]);
            client.stdin(Stdio::null()).output().unwrap().status.success()
        };
        assert_eq!((gets_in("-tls1_2"), gets_in("-tls1_3")), (false, true), "{text}");
        server.wait().unwrap();
    }
}

#[test]
fn a_policy_that_excludes_the_provider_is_not_replaced() {
    let place = Place::new();
    let module = place.write("d/provider.so", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0");
    let refused = config_on_a_system(
        &place,
        &module,
        "openssl_conf = init\n[init]\nalg_section = algorithms\n[algorithms]\ndefault_properties = fips=yes\n",
    );
    assert_exit(&refused, 1);
    assert_eq!(stdout(&refused), "");
    let said = stderr(&refused);
    assert!(said.contains("d/openssl.cnf: default_properties demands fips=yes"), "{said}");
}

/// A file that includes itself would be read without end.
#[test]
fn a_configuration_does_not_take_the_systems_place() {
    let place = Place::new();
    let module = place.write("d/provider.so", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0");
    let text = "# nothing\n";
    let mut command = config_command(&place, &module, text);
    let file = fs::File::options().append(true).open(place.path("d/openssl.cnf")).unwrap();
    let refused = command.stdout(file).output().unwrap();
    assert_exit(&refused, 2);
    assert!(
        stderr(&refused).contains("the output goes to the system's own"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(fs::read_to_string(place.path("d/openssl.cnf")).unwrap(), text);
    let mut command = config_command(&place, &module, text);
    fs::remove_file(place.path("d/openssl.cnf")).unwrap();
    let alone = command.output().unwrap();
    assert_exit(&alone, 0);
    assert!(
        stderr(&alone).contains(
            "d/openssl.cnf does not exist; the configuration contains no system policies"
        )
    );
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
