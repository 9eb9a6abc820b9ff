//! Renegotiation, resumption, key updates and close of a connection, and records of odd sizes,
//! between `openssl s_server` and `s_client`, each with the provider and without.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use crate::support::Numbers;
use crate::support::installation::{OpenSsl, on_every_openssl};
use crate::support::site::Site;
use crate::support::talk::{Talk, s_client, s_server};
use wattlock_provider::statistics::{Counts, Path};

/// A suite under a protocol, and the way through the provider that it takes.
struct Suite {
    /// For server and client.
    options: &'static [&'static str],
    /// Of the provider.
    settings: &'static str,
    path: Path,
}

const GCM: Suite = Suite {
    options: &["-tls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384"],
    settings: "",
    path: Path::GcmRecord,
};
const COMPOSITE: Suite = Suite {
    options: &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA256", "-no_etm"],
    settings: "",
    path: Path::CompositeRecord,
};
const ENCRYPT_THEN_MAC: Suite = Suite {
    options: &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA256"],
    settings: "",
    path: Path::CbcRecord,
};
const MAC_OF_LIBSSL: Suite = Suite {
    options: &["-tls1_2", "-cipher", "ECDHE-RSA-AES256-SHA384", "-no_etm"],
    settings: "",
    path: Path::CbcRecord,
};
const PAPER: Suite = Suite {
    options: &["-tls1_2", "-cipher", "ECDHE-RSA-AES256-SHA384", "-no_etm"],
    settings: "paper_mode = 1",
    path: Path::CompositeRecord,
};
const TLS_1_3: Suite = Suite {
    options: &["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384"],
    settings: "",
    path: Path::GcmStream,
};

const ALL_1_2: [&Suite; 5] = [&GCM, &COMPOSITE, &ENCRYPT_THEN_MAC, &MAC_OF_LIBSSL, &PAPER];

/// Whether the server and the client have the provider.
const SIDES: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

/// Runs `test` for each suite with the provider on neither, either and both sides. Checks that the
/// sides with it used the suite's path for at least as many bytes as `test` returns for one side.
fn on_both_sides(
    openssl: OpenSsl,
    suites: &[&Suite],
    test: impl Fn(&Site, &Suite, bool, bool) -> usize,
) {
    for suite in suites {
        let Some(site) = Site::with_settings(openssl, suite.settings) else { return };
        for (server, client) in SIDES {
            let before = counted(&site, suite).bytes;
            let bytes = test(&site, suite, server, client) as u64;
            let counted = counted(&site, suite).bytes - before;
            let sides = u64::from(server) + u64::from(client);
            let shown = (suite.options, server, client);
            assert!(counted >= sides * bytes, "{shown:?}: {counted} of {sides} times {bytes}");
            assert!(sides > 0 || counted == 0, "{shown:?}: {counted}, though no side has it");
        }
    }
}

/// What went the suite's way, alone or as one of many records.
fn counted(site: &Site, suite: &Suite) -> Counts {
    let many = match suite.path {
        Path::GcmRecord => Path::GcmMultiblock,
        Path::CompositeRecord => Path::CompositeMultiblock,
        _ => return site.counted(suite.path),
    };
    site.counted(suite.path).plus(site.counted(many))
}

/// Text that is no command of `s_client` or `s_server`, however it is cut.
fn digits(numbers: &mut Numbers, len: usize) -> Vec<u8> {
    (0..len).map(|_| b'0' + numbers.below(10) as u8).collect()
}

/// A text from each to the other; returns the bytes of both.
#[track_caller]
fn both_ways(server: &mut Talk, client: &mut Talk, numbers: &mut Numbers, len: usize) -> usize {
    for is_clients in [true, false] {
        let text = digits(numbers, len);
        let (from, to) =
            if is_clients { (&mut *client, &mut *server) } else { (&mut *server, &mut *client) };
        from.say(&text);
        to.hear(&text);
    }
    2 * len
}

fn server(site: &Site, with: bool, suite: &Suite, more: &[&str]) -> (Talk, u16) {
    s_server(site, with, &[&["-quiet"], suite.options, more].concat())
}

fn client(site: &Site, with: bool, port: u16, suite: &Suite, more: &[&str]) -> Talk {
    s_client(site, with, port, &[&["-quiet", "-no_ign_eof"], suite.options, more].concat())
}

/// What `-msgfile` has of messages that were seen, each as the words of its line.
fn messages(site: &Site) -> Vec<String> {
    let text = fs::read_to_string(site.path("messages")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("<<<") || line.starts_with(">>>"));
    lines.map(str::to_owned).collect()
}

fn times(messages: &[String], what: &str) -> usize {
    messages.iter().filter(|line| line.ends_with(what)).count()
}

fn data_goes_on_after_a_renegotiation(openssl: OpenSsl) {
    on_both_sides(openssl, &ALL_1_2, |site, suite, with_server, with_client| {
        let mut numbers = Numbers(21);
        let file = site.path("messages");
        let trace = ["-msg", "-msgfile", file.to_str().unwrap()];
        let (mut server, port) = server(site, with_server, suite, &["-client_renegotiation"]);
        let mut client = client(site, with_client, port, suite, &trace);
        let mut bytes = both_ways(&mut server, &mut client, &mut numbers, 5000);
        for time in 1..=3 {
            client.say(b"R\n");
            client.hear_errors(time, "RENEGOTIATING");
            bytes += both_ways(&mut server, &mut client, &mut numbers, 5000);
        }
        let (status, _, errors) = client.end();
        assert!(status.success(), "{errors}");
        let messages = messages(site);
        assert_eq!(times(&messages, "ClientHello"), 4, "{messages:?}");
        assert_eq!(times(&messages, "Finished"), 8, "{messages:?}");
        bytes
    });
}

fn a_session_is_taken_up_again_by_ticket_or_by_id(openssl: OpenSsl) {
    let suites = [&GCM, &COMPOSITE, &ENCRYPT_THEN_MAC, &PAPER, &TLS_1_3];
    on_both_sides(openssl, &suites, |site, suite, with_server, with_client| {
        let mut numbers = Numbers(22);
        let file = site.path("session");
        let file = file.to_str().unwrap();
        let mut bytes = 0;
        for tickets in [&[][..], &["-no_ticket"]] {
            let (mut server, port) = server(site, with_server, suite, tickets);
            let options: Vec<&str> =
                suite.options.iter().copied().chain(tickets.iter().copied()).collect();
            let _ = fs::remove_file(file);
            let mut first =
                s_client(site, with_client, port, &[&options[..], &["-sess_out", file]].concat());
            first.hear(b"New, TLSv1.");
            // The tickets of TLS 1.3 come after the handshake, and before these bytes.
            bytes += both_ways(&mut server, &mut first, &mut numbers, 1000);
            let (status, _, errors) = first.end();
            assert!(status.success(), "{errors}");
            for _ in 0..2 {
                let mut again = s_client(
                    site,
                    with_client,
                    port,
                    &[&options[..], &["-sess_in", file]].concat(),
                );
                again.hear(b"Reused, TLSv1.");
                bytes += both_ways(&mut server, &mut again, &mut numbers, 20_000);
                let (status, _, errors) = again.end();
                assert!(status.success(), "{errors}");
            }
        }
        bytes
    });
}

fn early_data_arrive_before_the_handshake_ends(openssl: OpenSsl) {
    on_both_sides(openssl, &[&TLS_1_3], |site, suite, with_server, with_client| {
        let mut numbers = Numbers(23);
        let file = site.path("session");
        let file = file.to_str().unwrap();
        let early = digits(&mut numbers, 8000);
        fs::write(site.path("early"), &early).unwrap();
        let (mut server, port) =
            s_server(site, with_server, &[suite.options, &["-early_data"]].concat());
        let options = |more: &[&str]| {
            let all = [suite.options, more].concat();
            s_client(site, with_client, port, &all)
        };
        let mut first = options(&["-sess_out", file]);
        // What comes before the end of its handshake, s_server that takes early data may forget.
        server.hear(b"CIPHER is");
        let mut bytes = both_ways(&mut server, &mut first, &mut numbers, 1000);
        assert!(first.end().0.success());
        let mut again =
            options(&["-sess_in", file, "-early_data", site.path("early").to_str().unwrap()]);
        server.hear(&early);
        again.hear(b"Early data was accepted");
        server.hear(b"CIPHER is");
        bytes += early.len();
        bytes += both_ways(&mut server, &mut again, &mut numbers, 1000);
        assert!(again.end().0.success());
        bytes
    });
}

fn data_goes_on_under_new_keys_of_tls_1_3(openssl: OpenSsl) {
    on_both_sides(openssl, &[&TLS_1_3], |site, suite, with_server, with_client| {
        let mut numbers = Numbers(24);
        let file = site.path("messages");
        let trace = ["-msg", "-msgfile", file.to_str().unwrap()];
        let (mut server, port) = server(site, with_server, suite, &[]);
        let mut client = client(site, with_client, port, suite, &trace);
        let mut bytes = both_ways(&mut server, &mut client, &mut numbers, 5000);
        // The client's keys alone, and those of both.
        for (time, command) in (1..).zip([b"k\n", b"K\n", b"K\n"]) {
            client.say(command);
            client.hear_errors(time, "KEYUPDATE");
            bytes += both_ways(&mut server, &mut client, &mut numbers, 20_000);
        }
        let (status, _, errors) = client.end();
        assert!(status.success(), "{errors}");
        let updates: Vec<String> =
            messages(site).into_iter().filter(|line| line.ends_with("KeyUpdate")).collect();
        let sent = updates.iter().filter(|line| line.starts_with(">>>")).count();
        assert_eq!((sent, updates.len() - sent), (3, 2), "{updates:?}");
        bytes
    });
}

fn single_bytes_and_texts_of_odd_lengths_arrive_as_they_are(openssl: OpenSsl) {
    let suites = [&GCM, &COMPOSITE, &ENCRYPT_THEN_MAC, &MAC_OF_LIBSSL, &PAPER, &TLS_1_3];
    on_both_sides(openssl, &suites, |site, suite, with_server, with_client| {
        let mut numbers = Numbers(25);
        let (mut server, port) = server(site, with_server, suite, &[]);
        let mut client = client(site, with_client, port, suite, &[]);
        let mut bytes = 0;
        // Each is on its way alone, since the next waits for it.
        for len in [1; 20].into_iter().chain(2..=70).chain([255, 256, 257, 16_383, 16_384, 16_385])
        {
            bytes += both_ways(&mut server, &mut client, &mut numbers, len);
        }
        let (status, _, errors) = client.end();
        assert!(status.success(), "{errors}");
        bytes
    });
}

fn small_fragments_are_sealed_and_opened(openssl: OpenSsl) {
    let suites = [&GCM, &COMPOSITE, &ENCRYPT_THEN_MAC, &MAC_OF_LIBSSL, &PAPER, &TLS_1_3];
    on_both_sides(openssl, &suites, |site, suite, with_server, with_client| {
        let mut bytes = 0;
        for fragments in [
            &["-max_send_frag", "512"][..],
            &["-max_send_frag", "1000", "-split_send_frag", "777"],
            // Not with pipelines, for which s_server of OpenSSL 4.0 reads ahead and forgets what it
            // read; no provider has any.
            &["-split_send_frag", "513"],
        ] {
            let mut numbers = Numbers(26);
            let (mut server, port) = server(site, with_server, suite, fragments);
            let mut client = client(site, with_client, port, suite, fragments);
            for len in [1, 511, 512, 513, 777, 40_000] {
                bytes += both_ways(&mut server, &mut client, &mut numbers, len);
            }
            let (status, _, errors) = client.end();
            assert!(status.success(), "{errors}");
        }
        bytes
    });
}

/// TLS 1.0 under CBC sends an empty record before each, so that an attacker cannot choose the
/// plaintext for a known IV; TLS 1.1 has the composites too.
fn empty_records_of_tls_1_0_go_through_the_composites(openssl: OpenSsl) {
    const EMPTY: Suite = Suite {
        options: &["-tls1", "-cipher", "AES256-SHA@SECLEVEL=0", "-no_etm"],
        settings: "",
        path: Path::CompositeRecord,
    };
    const EXPLICIT: Suite = Suite {
        options: &["-tls1_1", "-cipher", "AES128-SHA@SECLEVEL=0", "-no_etm"],
        settings: "",
        path: Path::CompositeRecord,
    };
    const ETM: Suite = Suite {
        options: &["-tls1", "-cipher", "AES256-SHA@SECLEVEL=0"],
        settings: "",
        path: Path::CbcRecord,
    };
    on_both_sides(openssl, &[&EMPTY, &EXPLICIT, &ETM], |site, suite, with_server, with_client| {
        let mut numbers = Numbers(27);
        let before = site.counted(suite.path);
        let (mut server, port) = server(site, with_server, suite, &[]);
        let mut client = client(site, with_client, port, suite, &[]);
        let mut bytes = 0;
        for len in [1, 1, 1, 16, 5000] {
            bytes += both_ways(&mut server, &mut client, &mut numbers, len);
        }
        let (status, _, errors) = client.end();
        assert!(status.success(), "{errors}");
        if with_server || with_client {
            // Two for each of ten texts, and two for each Finished.
            let records = site.counted(suite.path).records - before.records;
            let least = if suite.options[0] == "-tls1" { 20 } else { 10 };
            assert!(records >= least, "{:?}: {records} records", suite.options);
        }
        bytes
    });
}

fn datagrams_go_through_the_provider(openssl: OpenSsl) {
    const GCM: Suite = Suite {
        options: &["-dtls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384"],
        settings: "",
        path: Path::GcmRecord,
    };
    const MAC_OF_LIBSSL: Suite = Suite {
        options: &["-dtls1_2", "-cipher", "ECDHE-RSA-AES128-SHA256", "-no_etm"],
        settings: "",
        // libssl has no composites for datagrams.
        path: Path::CbcRecord,
    };
    const ETM: Suite = Suite {
        options: &["-dtls1_2", "-cipher", "ECDHE-RSA-AES256-SHA384"],
        settings: "",
        path: Path::CbcRecord,
    };
    const PAPER: Suite = Suite {
        options: &["-dtls1_2", "-cipher", "ECDHE-RSA-AES256-SHA384", "-no_etm"],
        settings: "paper_mode = 1",
        path: Path::CompositeRecord,
    };
    on_both_sides(
        openssl,
        &[&GCM, &MAC_OF_LIBSSL, &ETM, &PAPER],
        |site, suite, with_server, with_client| {
            let mut numbers = Numbers(28);
            let (mut server, port) = server(site, with_server, suite, &[]);
            let mut client = client(site, with_client, port, suite, &[]);
            let mut bytes = 0;
            for len in [1, 15, 16, 17, 1000, 1300] {
                bytes += both_ways(&mut server, &mut client, &mut numbers, len);
            }
            drop(client);
            bytes
        },
    );
}

fn both_sides_say_that_they_close(openssl: OpenSsl) {
    let suites = [&GCM, &COMPOSITE, &ENCRYPT_THEN_MAC, &MAC_OF_LIBSSL, &PAPER, &TLS_1_3];
    on_both_sides(openssl, &suites, |site, suite, with_server, with_client| {
        let file = site.path("messages");
        let trace = ["-msg", "-msgfile", file.to_str().unwrap()];
        let (_server, port) =
            s_server(site, with_server, &[&["-WWW", "-quiet"], suite.options].concat());
        let page = fs::read(site.path("pages").join("16385")).unwrap();
        let options = [&["-quiet"], suite.options, &trace].concat();
        let mut client = s_client(site, with_client, port, &options);
        client.say(b"GET /16385 HTTP/1.0\r\n\r\n");
        // The server closes, and the client's input is open still.
        let (status, out, errors) = client.wait();
        assert!(status.success(), "{errors}");
        assert!(out.ends_with(&page), "{errors}");
        let messages = messages(site);
        let close = "warning close_notify";
        let received = messages.iter().filter(|line| line.starts_with("<<<"));
        assert_eq!(received.filter(|line| line.ends_with(close)).count(), 1, "{messages:?}");
        page.len()
    });
}

/// libssl leaves the MAC to an AEAD and has none of its own for Encrypt-then-MAC.
fn paper_mode_with_encrypt_then_mac_ends_in_an_alert_and_the_server_goes_on(openssl: OpenSsl) {
    let Some(site) = Site::with_settings(openssl, PAPER.settings) else { return };
    let both = ["-quiet", "-tls1_2", "-cipher", "ECDHE-RSA-AES256-SHA384"];
    let (mut server, port) = s_server(&site, true, &both);
    let client = s_client(&site, false, port, &both);
    client.hear_errors(1, "SSL routines:");
    let (status, _, errors) = client.end();
    assert!(!status.success() && errors.contains("bad record mac"), "{errors}");
    let mut client = s_client(&site, false, port, &[&both[..], &["-no_etm"]].concat());
    client.say(b"0123456789\n");
    server.hear(b"0123456789\n");
    assert!(counted(&site, &PAPER).bytes > 0);
}

on_every_openssl!(
    data_goes_on_after_a_renegotiation,
    a_session_is_taken_up_again_by_ticket_or_by_id,
    early_data_arrive_before_the_handshake_ends,
    data_goes_on_under_new_keys_of_tls_1_3,
    single_bytes_and_texts_of_odd_lengths_arrive_as_they_are,
    small_fragments_are_sealed_and_opened,
    empty_records_of_tls_1_0_go_through_the_composites,
    datagrams_go_through_the_provider,
    both_sides_say_that_they_close,
    paper_mode_with_encrypt_then_mac_ends_in_an_alert_and_the_server_goes_on,
);
