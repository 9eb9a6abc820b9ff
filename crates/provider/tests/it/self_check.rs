//! Where many records do not agree with single ones, single ones go out: at load, and in a write.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support::Modules;
use crate::support::evp::Evp;
use crate::support::installation::{OpenSsl, on_every_openssl};
use crate::support::site::{PAGES, Site, TLS_1_2};
use wattlock_provider::statistics::Path;

/// Suites, more settings, and the ways of single and of many records.
const SUITES: [(&str, &str, Path, Path); 4] = [
    ("ECDHE-RSA-AES256-GCM-SHA384", "", Path::GcmRecord, Path::GcmMultiblock),
    ("ECDHE-RSA-AES128-SHA256", "", Path::CompositeRecord, Path::CompositeMultiblock),
    ("ECDHE-RSA-AES256-SHA", "", Path::CompositeRecord, Path::CompositeMultiblock),
    ("ECDHE-RSA-AES256-SHA384", "paper_mode = 1", Path::CompositeRecord, Path::CompositeMultiblock),
];

/// Fetches all pages twice from one process of nginx.
fn fetch_all(site: &Site, suite: &str) {
    let options = format!("ssl_ciphers {suite}; ssl_conf_command Options -EncryptThenMac;");
    let server = site.nginx(true, &options);
    for _ in 0..2 {
        for page in PAGES {
            site.fetch(&server, false, page, TLS_1_2);
        }
    }
}

fn the_first_writes_of_each_process_and_suite_are_opened_again(openssl: OpenSsl) {
    for (suite, settings, _, many) in SUITES {
        let Some(site) = Site::with_settings(openssl, settings) else { return };
        fetch_all(&site, suite);
        let checked = site.counted(Path::WriteChecked);
        // nginx is one process here, and this was one suite: a write of four records, one of eight.
        assert_eq!((checked.calls, checked.records), (2, 12), "{suite}");
        assert!(site.counted(many).calls > 30, "{suite}");
        assert_eq!(site.counted(Path::SelfCheckFailed).calls, 0, "{suite}");
    }
}

fn after_a_disagreement_at_load_nothing_is_offered(openssl: OpenSsl) {
    for (suite, settings, single, many) in SUITES {
        let Some(site) =
            Site::with_settings(openssl, &format!("self_check = fail-at-load\n{settings}"))
        else {
            return;
        };
        fetch_all(&site, suite);
        assert_eq!(site.counted(many).calls, 0, "{suite}");
        assert_eq!(site.counted(Path::WriteChecked).calls, 0, "{suite}");
        // nginx counted that once.
        assert_eq!(site.counted(Path::SelfCheckFailed).calls, 1, "{suite}");
        // Without paper mode, libssl makes the MAC.
        let single = if settings.is_empty() { single } else { Path::CbcRecord };
        assert!(site.counted(single).bytes > 2 << 20, "{suite}");
    }
}

fn a_write_that_is_wrong_is_sealed_again_record_by_record(openssl: OpenSsl) {
    for (suite, settings, _, many) in SUITES {
        let Some(site) =
            Site::with_settings(openssl, &format!("self_check = fail-in-write\n{settings}"))
        else {
            return;
        };
        // What a client gets is right from the first write on.
        fetch_all(&site, suite);
        let failed = site.counted(Path::SelfCheckFailed);
        assert_eq!((failed.calls, failed.records), (1, 4), "{suite}");
        assert_eq!(site.counted(Path::WriteChecked).calls, 0, "{suite}");
        // libssl keeps the cipher's flags from when it fetched it, and goes on with writes.
        assert!(site.counted(many).calls > 30, "{suite}");
    }
}

fn the_offer_ends_with_a_disagreement(openssl: OpenSsl) {
    // The check is the process's: no other test here has one in this process.
    let modules = Modules::new(openssl, "self_check = fail-at-load\npaper_mode = 1");
    let Some(mut evp) = Evp::without_providers(&modules) else { return };
    evp.configure(&modules.path().join("openssl.cnf"));
    for name in [c"default", c"wattlock"] {
        evp.provider(name).unwrap();
    }
    for cipher in ["AES-128-GCM", "AES-256-CBC-HMAC-SHA256", "AES-256-CBC"] {
        let context = evp.cipher(cipher, "wattlock");
        assert_eq!(context.fixed(c"tls-multi"), Some(0), "{cipher}");
    }
    assert_eq!(evp.cipher("AES-256-CBC", "wattlock").fixed(c"aead"), Some(0));
}

/// What libssl does with a refusal: single records, or an end of the connection (`docs/spec/provider.md`). In any case it
/// is no other connection's.
fn a_refusal_costs_no_other_connection(openssl: OpenSsl) {
    let suite = "ECDHE-RSA-AES256-GCM-SHA384";
    for setting in ["refuse-plan", "refuse-write"] {
        let Some(site) = Site::with_settings(openssl, &format!("self_check = {setting}")) else {
            return;
        };
        site.let_others_in();
        let options = format!("ssl_ciphers {suite};");
        let server = site.nginx_with(true, "worker_processes 1;", &options);
        let version = openssl.command("openssl").arg("version").output().unwrap().stdout;
        let goes_on = version.starts_with(b"OpenSSL 3.0.") && setting == "refuse-plan";
        for _ in 0..2 {
            assert_eq!(site.can_fetch(&server, 2 << 20, TLS_1_2), goes_on, "{setting}");
            site.fetch(&server, false, 16_385, TLS_1_2);
        }
        assert!(site.counted(Path::MultiblockRefused).calls > 0, "{setting}");
        assert_eq!(site.counted(Path::GcmMultiblock).bytes, 0, "{setting}");
    }
}

fn a_setting_that_is_none_is_an_error(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "self_check = never");
    let Some(mut evp) = Evp::without_providers(&modules) else { return };
    let text = "openssl_conf = init\n[init]\nproviders = list\n[list]\nwattlock = section\n\
                [section]\nself_check = never\n";
    let config = modules.path().join("wrong.cnf");
    std::fs::write(&config, text).unwrap();
    evp.configure(&config);
    let error = evp.provider(c"wattlock").unwrap_err();
    assert!(error.contains("the setting self_check is none of"), "{error}");
}

on_every_openssl!(
    the_first_writes_of_each_process_and_suite_are_opened_again,
    after_a_disagreement_at_load_nothing_is_offered,
    a_write_that_is_wrong_is_sealed_again_record_by_record,
    the_offer_ends_with_a_disagreement,
    a_refusal_costs_no_other_connection,
    a_setting_that_is_none_is_an_error,
);
