//! The secrets of everything but the `_vartime` files reach no branch and no address, as valgrind's
//! memcheck sees it; and for the AVX-512 kernels, which valgrind cannot run, as a comparison of
//! instruction traces sees it. The program is `examples/constant_time`, the page
//! `docs/constant-time.md`.

// For their unit tests, which an example would not run.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[allow(dead_code, reason = "the example uses it")]
#[path = "../../examples/constant_time/methods/mod.rs"]
mod methods;

use wattlock_testing::constant_time;

#[test]
fn memcheck_finds_secrets_in_the_controls_only() {
    constant_time::memcheck_finds_nothing_but_controls("constant_time");
}

#[test]
fn traces_of_avx_512_differ_in_the_controls_only() {
    // One size of key: a step takes microseconds.
    let kernels = [
        "aes-vaes512/256",
        "gcm-vaes512/256/seal",
        "gcm-vaes256/256/seal",
        "keccak-avx512/sha3-256",
        "sha-avx512/hmac-sha384",
    ];
    let others = ["control", "pkcs7", "secret", "sha-ni/hmac-sha256"];
    let cases = [&kernels[..], &others].concat();
    constant_time::traces_differ_in_controls_only("constant_time", &cases);
}
