//! What is secret in a record of TLS under CBC reaches no branch and no address, as valgrind's memcheck
//! sees it; and with AVX-512, which valgrind cannot run, as a comparison of instruction traces sees
//! it. The program is `examples/constant_time_records`, the page `docs/constant-time.md`.

use wattlock_testing::constant_time;

#[test]
fn memcheck_finds_secrets_in_the_controls_only() {
    constant_time::memcheck_finds_nothing_but_controls("constant_time_records");
}

#[test]
fn traces_of_avx_512_differ_in_the_controls_only() {
    // One size of key: a step takes microseconds.
    let cases = ["tls-cbc/hmac-sha256/unpad-right", "cbc-sha-avx512/128/hmac-sha256", "control"];
    constant_time::traces_differ_in_controls_only("constant_time_records", &cases);
}
