//! Configurations that are wrong, or become so: OpenSSL's programs say why, or go on, and never
//! crash.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::process::Output;

use crate::support::installation::{OpenSsl, on_every_openssl};
use crate::support::site::Site;
use crate::support::talk::{s_client, s_server};
use wattlock_provider::statistics::Path;

/// Encrypts something by `openssl enc` under a configuration.
fn enc(site: &Site, configuration: &str) -> Output {
    fs::write(site.path("tmp/cnf"), configuration).unwrap();
    site.command("openssl", false)
        .args(["enc", "-aes-256-ctr", "-K", &"0f".repeat(32), "-iv", &"01".repeat(16), "-in"])
        .arg(site.path("pages/1000"))
        .env("OPENSSL_CONF", site.path("tmp/cnf"))
        .env("OPENSSL_MODULES", site.modules_path())
        .output()
        .unwrap()
}

/// A configuration with OpenSSL's own provider and ours, whose section is given.
fn configuration(section: &str) -> String {
    format!(
        "openssl_conf = init\n[init]\nproviders = list\nalg_section = algorithms\n\
         [list]\ndefault = default_section\nwattlock = wattlock_section\n\
         [default_section]\nactivate = 1\n[wattlock_section]\nactivate = 1\n{section}\n\
         [algorithms]\ndefault_properties = ?provider=wattlock\n"
    )
}

fn a_module_that_cannot_be_loaded_leaves_openssls_own_or_an_error(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    let expected = enc(&site, "");
    assert!(expected.status.success());
    fs::write(site.path("tmp/text.so"), "no library").unwrap();
    let libc = "/lib/x86_64-linux-gnu/libz.so.1";
    for module in ["/nonexistent/wattlock.so", site.path("tmp/text.so").to_str().unwrap(), libc] {
        let ran = enc(&site, &configuration(&format!("module = {module}")));
        // Depending on its version, OpenSSL goes on with its own ciphers or refuses.
        let code = ran.status.code().expect("it was not ended by a signal");
        assert!(code == 1 || ran.stdout == expected.stdout, "{module}: {code}");
        assert!(code == 0 || !ran.stderr.is_empty(), "{module}: it said nothing");
    }
    assert_eq!(site.counted(Path::Ctr).calls, 0);
}

fn a_configuration_that_cannot_be_read_leaves_openssls_own_or_an_error(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    let expected = enc(&site, "");
    for text in
        ["openssl_conf = init\n[init", "openssl_conf = missing\n", "\0\0\0", "[[[[\n= =\n$x\n"]
    {
        let ran = enc(&site, text);
        let code = ran.status.code().expect("it was not ended by a signal");
        assert!(code == 1 || ran.stdout == expected.stdout, "{text:?}: {code}");
    }
    // A folder in its place.
    let ran = site
        .command("openssl", false)
        .args(["list", "-providers"])
        .env("OPENSSL_CONF", site.path("tmp"))
        .output();
    assert!(ran.unwrap().status.code().is_some());
}

fn settings_at_their_ends_encrypt_all_the_same(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    let expected = enc(&site, "").stdout;
    for settings in [
        "threshold = 0",
        "threshold = 18446744073709551615",
        "accelerator = simulated\nthreshold = 0",
        "accelerator = simulated:dies_after=0\nthreshold = 0",
        "accelerator = simulated\nthreshold = 18446744073709551615\nmigration = paper",
        "paper_mode = 1\nmultiblock = 1",
    ] {
        let before = site.counted(Path::Ctr).bytes;
        let stats = format!("statistics = {}", site.path("stats").display());
        let module = format!("module = {}", site.modules_path().join("wattlock.so").display());
        let ran = enc(&site, &configuration(&format!("{module}\n{stats}\n{settings}")));
        assert!(ran.status.success(), "{settings}: {}", String::from_utf8_lossy(&ran.stderr));
        assert!(ran.stdout == expected, "{settings}");
        assert_eq!(site.counted(Path::Ctr).bytes - before, 1000, "{settings}");
    }
    // One more than there can be.
    let ran = enc(&site, &configuration("threshold = 18446744073709551616"));
    let code = ran.status.code().expect("it was not ended by a signal");
    assert!(code == 1 || ran.stdout == expected);
}

fn statistics_that_cannot_be_written_do_not_stop_a_server(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    // Where nobody can make a file, root neither.
    let module = format!("module = {}", site.modules_path().join("wattlock.so").display());
    let ran = enc(&site, &configuration(&format!("{module}\nstatistics = /proc/self/fdinfo")));
    assert!(ran.status.success() && ran.stdout.len() == 1000);
}

fn a_folder_of_statistics_may_go_while_a_server_runs(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    let options = ["-quiet", "-tls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384"];
    let (mut server, port) = s_server(&site, true, &options);
    for time in 0..2 {
        let mut client = s_client(&site, false, port, &options);
        let text = format!("0123456789 time {time}\n");
        client.say(text.as_bytes());
        server.hear(text.as_bytes());
        if time == 0 {
            assert!(site.counted(Path::GcmRecord).calls > 0);
            fs::remove_dir_all(site.path("stats")).unwrap();
        }
    }
    // Whoever starts now is told.
    let listed = site.command("openssl", true).args(["list", "-providers"]).output().unwrap();
    assert!(listed.status.code().is_some());
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("wattlock"));
}

on_every_openssl!(
    a_module_that_cannot_be_loaded_leaves_openssls_own_or_an_error,
    a_configuration_that_cannot_be_read_leaves_openssls_own_or_an_error,
    settings_at_their_ends_encrypt_all_the_same,
    statistics_that_cannot_be_written_do_not_stop_a_server,
    a_folder_of_statistics_may_go_while_a_server_runs,
);
