//! Configurations that are wrong, or become so: OpenSSL's programs say why, or go on, and never
//! crash.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::process::{Command, Output};

use crate::support::Modules;
use crate::support::evp::Evp;
use crate::support::installation::{OpenSsl, on_every_openssl};
use crate::support::site::Site;
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
        let stats = format!("statistics = {}", site.statistics());
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

/// Files that 0.1 would have written, cut or hung on.
fn the_folder_of_an_older_configuration_is_a_name_and_stays_as_it_is(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    let folder = site.path("tmp/stats");
    fs::create_dir(&folder).unwrap();
    let fifo = folder.join("wattlock-1.stats");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let module = format!("module = {}", site.modules_path().join("wattlock.so").display());
    let ran = enc(&site, &configuration(&format!("{module}\nstatistics = {}", folder.display())));
    assert!(ran.status.success() && ran.stdout.len() == 1000);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

/// Two libraries in one process can each have a configuration.
fn each_library_context_has_its_own_settings(openssl: OpenSsl) {
    let all = ["multiblock = 0", "", "paper_mode = 1", "gcm = 0"];
    let modules = all.map(|settings| Modules::new(openssl, settings));
    let mut contexts = Vec::new();
    for modules in &modules {
        let Some(mut evp) = Evp::without_providers(modules) else { return };
        evp.configure(&modules.path().join("openssl.cnf"));
        for name in [c"default", c"wattlock"] {
            evp.provider(name).unwrap();
        }
        contexts.push(evp);
    }
    let without_gcm = contexts.pop().unwrap();
    let ciphers = without_gcm.ciphers_of("wattlock");
    assert!(ciphers.contains(&"AES-256-CTR".into()), "{ciphers:?}");
    assert!(!ciphers.iter().any(|name| name.ends_with("GCM")), "{ciphers:?}");
    for (evp, (multiblock, paper)) in contexts.iter().zip([(0, 0), (1, 0), (1, 1)]) {
        let gcm = evp.cipher("AES-256-GCM", "wattlock");
        assert_eq!(gcm.fixed(c"tls-multi"), Some(multiblock));
        let cbc = evp.cipher("AES-256-CBC", "wattlock");
        assert_eq!(cbc.fixed(c"aead"), Some(paper));
    }
}

on_every_openssl!(
    each_library_context_has_its_own_settings,
    a_module_that_cannot_be_loaded_leaves_openssls_own_or_an_error,
    a_configuration_that_cannot_be_read_leaves_openssls_own_or_an_error,
    settings_at_their_ends_encrypt_all_the_same,
    the_folder_of_an_older_configuration_is_a_name_and_stays_as_it_is,
);
