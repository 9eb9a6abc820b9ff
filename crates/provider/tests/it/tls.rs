//! TLS by the system's own programs, with the provider on one side or both.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

use crate::support::installation::{OpenSsl, on_every_openssl};
use crate::support::site::{PAGES, Site, TLS_1_2};
use wattlock_engine::Lane;
use wattlock_provider::statistics::{self, Event, Statistics};

fn nginx_seals_a_large_page_as_many_records_at_once(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    for suite in ["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"] {
        large_pages(&site, suite, statistics::Path::GcmMultiblock);
    }
    for suite in
        ["ECDHE-RSA-AES128-SHA256", "AES256-SHA256", "ECDHE-RSA-AES256-SHA", "ECDHE-RSA-AES128-SHA"]
    {
        large_pages(&site, suite, statistics::Path::CompositeMultiblock);
    }
    assert!(site.counted(statistics::Path::GcmRecord).calls > 0, "no single record");
    assert!(site.counted(statistics::Path::CompositeRecord).calls > 0, "no single record");
    assert_eq!(site.counted(statistics::Path::MultiblockRefused).calls, 0);
}

fn in_paper_mode_the_suite_of_the_paper_goes_the_same_way(openssl: OpenSsl) {
    let Some(site) = Site::with_settings(openssl, "paper_mode = 1") else { return };
    large_pages(&site, "ECDHE-RSA-AES256-SHA384", statistics::Path::CompositeMultiblock);
    assert_eq!(site.counted(statistics::Path::MultiblockRefused).calls, 0);
}

fn an_accelerator_takes_what_is_larger_than_the_threshold(openssl: OpenSsl) {
    for (suite, settings) in [
        ("ECDHE-RSA-AES256-GCM-SHA384", "threshold = 8192"),
        ("ECDHE-RSA-AES128-SHA256", "threshold = 8192\nmigration = paper"),
        ("ECDHE-RSA-AES256-SHA384", "paper_mode = 1"),
    ] {
        let Some(site) =
            Site::with_settings(openssl, &format!("accelerator = simulated\n{settings}"))
        else {
            return;
        };
        site.let_others_in();
        let options = format!("ssl_ciphers {suite}; ssl_conf_command Options -EncryptThenMac;");
        let server = site.nginx_with(true, "master_process on; worker_processes 2;", &options);
        for page in PAGES {
            site.fetch(&server, false, page, TLS_1_2);
        }
        let all = site.processes();
        let workers = all.iter().filter(|one| one.process != u64::from(server.process.id()));
        let busy: Vec<_> = workers.filter(|one| one.sum().calls > 0).collect();
        assert!(!busy.is_empty(), "{suite}: no worker counted anything");
        for worker in &busy {
            assert_eq!(worker.device.as_deref(), Some("simulated"));
            assert_eq!(worker.threshold(), Some(8192), "{suite}");
            // It makes one call after the other, so nothing can migrate.
            assert_eq!(worker.times(Event::MigratedToCpu), 0);
        }
        let sum = |of: &dyn Fn(&Statistics) -> u64| busy.iter().map(|one| of(one)).sum::<u64>();
        // A page of 2 MiB is 17 writes. What a busy machine was too late for, the CPU did.
        let late = sum(&|one| one.times(Event::Timeout) + one.times(Event::Absent));
        let accelerated = sum(&|one| one.lane(Lane::Accelerator).calls);
        assert!(accelerated + late >= 17, "{suite}: {accelerated}, and {late} late");
        assert!(sum(&|one| one.lane(Lane::Cpu).calls) > 0, "{suite}: handshakes are small");
        assert!(sum(&|one| one.lane(Lane::Accelerator).bytes) > 8192, "{suite}");
    }
}

fn ten_thousand_requests_reach_workers_that_were_forked(openssl: OpenSsl) {
    if !openssl.has("ab") {
        return;
    }
    let Some(site) = Site::new(openssl) else { return };
    site.let_others_in();
    let server = site.nginx_with(
        true,
        "master_process on; worker_processes 2;",
        "ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384;",
    );
    for (page, requests) in [(1000, 9000), (130_000, 1000)] {
        let ran = Command::new("ab")
            .args(["-q", "-k", "-c", "32", "-n", &requests.to_string()])
            .args(["-f", "TLS1.2", "-Z", "ECDHE-RSA-AES256-GCM-SHA384"])
            .arg(format!("https://127.0.0.1:{}/{page}", server.port))
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&ran.stdout).into_owned();
        let number = |what: &str| {
            let line = report.lines().find_map(|line| line.strip_prefix(what));
            line.unwrap_or_default().split_whitespace().next().unwrap_or_default().to_owned()
        };
        assert_eq!(number("Complete requests:"), requests.to_string(), "{report}");
        assert_eq!(number("Failed requests:"), "0", "{report}");
    }
    let all = site.processes();
    let busy = all.iter().filter(|one| one.counts(statistics::Path::GcmRecord).calls > 0);
    // One of them may have got every connection, but none of them is the master.
    let busy: Vec<u64> = busy.map(|one| one.process).collect();
    assert!((1..=2).contains(&busy.len()), "{busy:?}");
    assert!(!busy.contains(&u64::from(server.process.id())));
    assert!(site.counted(statistics::Path::GcmMultiblock).calls >= 1000);
}

fn multiblock_can_be_turned_off(openssl: OpenSsl) {
    let Some(site) = Site::with_settings(openssl, "multiblock = 0") else { return };
    let server = site.nginx(true, "ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384;");
    site.fetch(&server, false, 2 << 20, TLS_1_2);
    assert_eq!(site.counted(statistics::Path::GcmMultiblock).calls, 0);
    assert!(site.counted(statistics::Path::GcmRecord).records >= 128);
}

/// Fetches all pages, with and without the provider on the client's side, and looks whether the
/// large ones were sealed that way.
fn large_pages(site: &Site, suite: &str, path: statistics::Path) {
    let setting = format!("ssl_ciphers {suite}; ssl_conf_command Options -EncryptThenMac;");
    let server = site.nginx(true, &setting);
    for with in [false, true] {
        let before = site.counted(path);
        for page in PAGES {
            site.fetch(&server, with, page, TLS_1_2);
        }
        let after = site.counted(path);
        let (calls, records) = (after.calls - before.calls, after.records - before.records);
        println!("{suite}: {records} records in {calls} calls");
        assert!(calls >= 16, "{suite}: the page of 2 MiB came in {calls} calls");
        assert!(records >= 4 * calls);
        assert!(after.bytes - before.bytes > 2_000_000);
    }
}

fn a_client_with_the_provider_reads_what_a_server_without_it_sealed(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    for suite in [
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES256-SHA384",
        "ECDHE-RSA-AES128-SHA256",
        "ECDHE-RSA-AES256-SHA",
    ] {
        let server = site.nginx(false, &format!("ssl_ciphers {suite};"));
        for page in PAGES {
            site.fetch(&server, true, page, TLS_1_2);
        }
    }
    assert!(site.counted(statistics::Path::GcmRecord).bytes > 4 << 20);
    assert!(site.counted(statistics::Path::CbcRecord).bytes > 2 << 20);
    assert!(site.counted(statistics::Path::CompositeRecord).bytes == 0, "ETM is the default");
}

fn tls_1_3_goes_through_the_provider_on_both_sides(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    for suite in ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"] {
        let setting = format!("ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites {suite};");
        for (server, client) in [(true, false), (false, true), (true, true)] {
            let before = site.counted(statistics::Path::GcmStream).bytes;
            let server = site.nginx(server, &setting);
            for page in PAGES {
                site.fetch(&server, client, page, &["--tlsv1.3"]);
            }
            assert!(site.counted(statistics::Path::GcmStream).bytes - before > 2 << 20);
        }
    }
}

fn cbc_with_either_order_of_mac_goes_through_the_provider(openssl: OpenSsl) {
    let Some(site) = Site::new(openssl) else { return };
    for suite in ["ECDHE-RSA-AES256-SHA384", "ECDHE-RSA-AES128-SHA256"] {
        for option in ["EncryptThenMac", "-EncryptThenMac"] {
            // Without Encrypt-then-MAC, libssl prefers the composite where there is one.
            let composite = suite == "ECDHE-RSA-AES128-SHA256" && option == "-EncryptThenMac";
            use statistics::Path::{CbcRecord, CompositeRecord};
            let path = if composite { CompositeRecord } else { CbcRecord };
            let before = site.counted(path).bytes;
            let setting = format!("ssl_ciphers {suite}; ssl_conf_command Options {option};");
            let server = site.nginx(true, &setting);
            for with in [false, true] {
                for page in PAGES {
                    site.fetch(&server, with, page, TLS_1_2);
                }
            }
            assert!(site.counted(path).bytes - before > 2 << 20, "{suite} {option}");
        }
    }
}

/// Else a release would be tested by its name alone.
fn programs_run_with_the_openssl_under_test(openssl: OpenSsl) {
    if !openssl.has("nginx") || !openssl.has("openssl") {
        return;
    }
    let said = |program: &str, argument: &str| {
        let output = openssl.command(program).arg(argument).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let version =
        |text: &str| text.split("OpenSSL ").last().unwrap().split(' ').next().map(str::to_owned);
    let line = |text: String, start: &str| {
        text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned()
    };
    // The last of a line is what it runs with.
    let program = version(&line(said("openssl", "version"), "OpenSSL "));
    assert_eq!(version(&line(said("nginx", "-V"), "built with ")), program);
    println!("{openssl:?}: OpenSSL {}", program.as_deref().unwrap_or_default());
    if let OpenSsl::Built(release) = openssl {
        assert!(program.is_some_and(|program| program.starts_with(release)));
    }
}

on_every_openssl!(
    programs_run_with_the_openssl_under_test,
    nginx_seals_a_large_page_as_many_records_at_once,
    in_paper_mode_the_suite_of_the_paper_goes_the_same_way,
    an_accelerator_takes_what_is_larger_than_the_threshold,
    ten_thousand_requests_reach_workers_that_were_forked,
    multiblock_can_be_turned_off,
    a_client_with_the_provider_reads_what_a_server_without_it_sealed,
    tls_1_3_goes_through_the_provider_on_both_sides,
    cbc_with_either_order_of_mac_goes_through_the_provider,
);
