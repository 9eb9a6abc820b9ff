//! `wattlock-lab cipher` agrees with `openssl enc`, and refuses what makes no sense.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Command, Output, Stdio};

use proptest::prelude::*;
use wattlock_testing::{assert_exit, has_program, pattern, stderr, stdout, with_input};

use crate::lab;

fn cipher(args: &[&str], input: &[u8]) -> Output {
    with_input(lab().arg("cipher").args(args), input)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What `openssl enc` makes of `input`.
fn openssl(name: &str, key: &[u8], iv: &[u8], more: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new("openssl");
    command.args(["enc", &format!("-{name}"), "-K", &hex(key)]).args(more);
    if !iv.is_empty() {
        command.args(["-iv", &hex(iv)]);
    }
    with_input(&mut command, input)
}

/// Each key, IV and length once with every kernel that runs here, and back.
fn agrees(bits: usize, mode: &str, key: &[u8], iv: &[u8], input: &[u8]) {
    let options: &[&[&str]] = &[
        &[],
        &["--threads", "1"],
        &["--block-size", "512"],
        &["--kernel", "aes-soft"],
        &["--kernel", "aes-ttable-vartime"],
        &["--kernel", "aes-ni"],
        &["--kernel", "aes-vaes256"],
        &["--kernel", "aes-vaes512"],
    ];
    agree(bits, mode, key, iv, input, options);
}

/// The same with each of `options`.
fn agree(bits: usize, mode: &str, key: &[u8], iv: &[u8], input: &[u8], options: &[&[&str]]) {
    let (name, key) = (format!("aes-{bits}-{mode}"), &key[..bits / 8]);
    let iv = if mode == "ecb" { &[] } else { iv };
    let expected = openssl(&name, key, iv, &[], input).stdout;
    let mut args = vec!["--alg".to_owned(), name.clone(), "--key".into(), hex(key)];
    if !iv.is_empty() {
        args.extend(["--iv".into(), hex(iv)]);
    }
    if mode != "ctr" {
        args.extend(["--pad".into(), "pkcs7".into()]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    for more in options.iter().copied() {
        let sealed = cipher(&[&args, more].concat(), input);
        if stderr(&sealed).contains("this CPU cannot run") {
            assert_exit(&sealed, 2);
            wattlock_testing::skip("cpu", stderr(&sealed).trim());
            continue;
        }
        assert_exit(&sealed, 0);
        assert!(sealed.stdout == expected, "{name}, {} bytes, {more:?}", input.len());
        let opened = cipher(&[&args, more, &["--decrypt"]].concat(), &expected);
        assert_exit(&opened, 0);
        assert!(opened.stdout == input, "{name} back, {} bytes, {more:?}", input.len());
    }
}

#[test]
fn aes_is_that_of_openssl_enc_at_all_sizes() {
    if !has_program("openssl") {
        return;
    }
    // All pairs of a size of key and a mode: the kernels are compared elsewhere, here it is their names.
    let pairs = [128, 192, 256].map(|bits| ["ecb", "cbc", "ctr"].map(|mode| (bits, mode)));
    let lengths = [0, 1, 15, 16, 17, 511, 512, 513, 65_536, 100_001];
    for ((bits, mode), len) in pairs.into_iter().flatten().cycle().zip(lengths) {
        agrees(bits, mode, &pattern(32), &[0xff; 16], &pattern(len));
    }
    // Longer than a window of the stream, with any kernel.
    let long = pattern((16 << 20) + 1);
    for mode in ["cbc", "ctr"] {
        agree(256, mode, &pattern(32), &[0xff; 16], &long, &[&[], &["--threads", "1"]]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn aes_is_that_of_openssl_enc_on_random_inputs(
        bits in prop::sample::select(vec![128, 192, 256]),
        mode in prop::sample::select(vec!["ecb", "cbc", "ctr"]),
        key in any::<[u8; 32]>(),
        iv in any::<[u8; 16]>(),
        input in prop::collection::vec(any::<u8>(), 0..40_000),
    ) {
        if has_program("openssl") {
            agrees(bits, mode, &key, &iv, &input);
        }
    }
}

#[test]
fn the_study_s_ciphers_are_those_of_openssl() {
    if !has_program("openssl") {
        return;
    }
    let legacy = ["-provider", "legacy", "-provider", "default"];
    let (key, input) = (pattern(16), pattern(100_000));
    let digits = hex(&key);
    for (ours, theirs) in
        [("rc4", "rc4"), ("parc4", "rc4"), ("blowfish-ecb", "bf-ecb"), ("pblock", "bf-ecb")]
    {
        let expected = openssl(theirs, &key, &[], &[&legacy[..], &["-nopad"]].concat(), &input);
        if !expected.status.success() {
            wattlock_testing::skip(
                "openssl",
                format_args!("no {theirs}: {}", stderr(&expected).trim()),
            );
            continue;
        }
        for more in [&[][..], &["--threads", "3", "--block-size", "4096"]] {
            let args = [&["--alg", ours, "--key", &digits], more].concat();
            let sealed = cipher(&args, &input);
            assert_exit(&sealed, 0);
            assert!(sealed.stdout == expected.stdout, "{ours} {more:?}");
            let opened = cipher(&[&args[..], &["-d"]].concat(), &sealed.stdout);
            assert!(opened.stdout == input, "{ours} {more:?} back");
        }
    }
    let known = [
        (&["--alg", "rc4a", "--key", "0102030405"][..], "4fb6c51dc703ea5efe00e480f98179cd"),
        (
            &[
                "--alg",
                "rc4a",
                "--key",
                "0102030405060708090a0b0c0d0e0f10",
                "--key2",
                "100f0e0d0c0b0a090807060504030201",
            ],
            "5d0e597563995dc000f36882021c33ae",
        ),
        (
            &["--alg", "parc4-i", "--key", "0102030405060708090a0b0c0d0e0f10"],
            "ae711c661714fcd77344e848ae4a1c87",
        ),
    ];
    for (args, expected) in known {
        assert_eq!(hex(&cipher(args, &[0; 16]).stdout), expected, "{args:?}");
    }
}

#[test]
fn gcm_appends_its_tag_and_releases_nothing_unauthenticated() {
    // NIST SP 800-38D's test case 16, from "The Galois/Counter Mode of Operation" by its authors.
    let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
    let args = [
        "--alg",
        "aes-256-gcm",
        "--key",
        key,
        "--iv",
        "cafebabefacedbaddecaf888",
        "--aad",
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
    ];
    let plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c959568\
                 09532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
    let expected = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590d\
                    bb3da7b08b1056828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b";
    let plain: Vec<u8> = plain
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let sealed = cipher(&args, &plain);
    assert_eq!(hex(&sealed.stdout), expected);
    for kernel in ["aws-lc", "gcm-vaes512", "gcm-vaes256", "gcm-aes-ni"] {
        let sealed = cipher(&[&args[..], &["--kernel", kernel]].concat(), &plain);
        if stderr(&sealed).contains("this CPU cannot run") {
            wattlock_testing::skip("cpu", stderr(&sealed).trim());
            continue;
        }
        assert_eq!(hex(&sealed.stdout), expected, "{kernel}");
        // A kernel may leave a long message to AWS-LC.
        let long = plain.repeat(1000);
        let by_kernel = cipher(&[&args[..], &["--kernel", kernel]].concat(), &long);
        assert!(by_kernel.stdout == cipher(&args, &long).stdout, "{kernel}");
    }
    let open = [&args[..], &["--decrypt"]].concat();
    assert_eq!(cipher(&open, &sealed.stdout).stdout, plain);
    for (at, what) in [(0, "text"), (sealed.stdout.len() - 1, "tag")] {
        let mut wrong = sealed.stdout.clone();
        wrong[at] ^= 1;
        let opened = cipher(&open, &wrong);
        assert_exit(&opened, 3);
        assert!(opened.stdout.is_empty(), "a wrong {what} released something");
    }
    assert_exit(&cipher(&open, &sealed.stdout[..15]), 3);
}

#[test]
fn what_makes_no_sense_is_refused_and_no_key_is_repeated() {
    let secret = "00112233445566778899aabbccddeef";
    let key = "00112233445566778899aabbccddeeff";
    let iv = "000102030405060708090a0b0c0d0e0f";
    let nonce = &iv[..24];
    let cases: [(&[&str], &str); 23] = [
        (&["--alg", "rc4", "--key", key, "--goal", "time"], "--goal requires --policy auto"),
        (
            &["--alg", "rc4", "--key", key, "--goal", "time", "--policy", "serial"],
            "--goal requires --policy auto",
        ),
        (&["--alg", "aes-128-xts", "--key", key], "unknown algorithm"),
        (&["--alg", "aes-128-ecb", "--key", secret], "odd number"),
        (&["--alg", "aes-128-ecb", "--key", "0g"], "hexadecimal"),
        (&["--alg", "aes-128-ecb", "--key", "0011"], "16 bytes, not 2"),
        (&["--alg", "aes-256-ecb", "--key", key], "32 bytes, not 16"),
        (
            &["--alg", "aes-128-ctr", "--key", key],
            "aes-128-ctr requires --iv: 16 bytes (32 hexadecimal digits)\n",
        ),
        (
            &["--alg", "aes-128-ctr", "--key", key, "--iv", "00"],
            "the IV has 1 byte; aes-128-ctr takes 16\n",
        ),
        (&["--alg", "aes-128-ecb", "--key", key, "--iv", iv], "aes-128-ecb takes no --iv\n"),
        (&["--alg", "aes-128-ecb", "--key", key, "--kernel", "aes-quantum"], "no kernel"),
        (
            &["--alg", "rc4", "--key", key, "--kernel", "aes-soft"],
            "rc4 cannot use the kernel aes-soft; its kernels are portable",
        ),
        (
            &["--alg", "aes-128-ctr", "--key", key, "--iv", iv, "--kernel", "gcm-vaes512"],
            "aes-128-ctr cannot use the kernel gcm-vaes512; its kernels are aes-",
        ),
        (
            &["--alg", "aes-128-gcm", "--key", key, "--iv", nonce, "--kernel", "aes-soft"],
            "aes-128-gcm cannot use the kernel aes-soft; its kernels are aws-lc",
        ),
        (&["--alg", "rc4", "--key", key, "--kernel", "abacus"], "there is no kernel named"),
        (&["--alg", "aes-128-ctr", "--key", key, "--iv", iv, "--aad", "00"], "--aad is for GCM"),
        (&["--alg", "rc4", "--key", key, "--key2", key], "--key2 is for rc4a"),
        (&["--alg", "rc4", "--key", key, "--pad", "pkcs7"], "--pad is for"),
        (&["--alg", "rc4", "--key", ""], "1 to 256 bytes, not 0"),
        (&["--alg", "blowfish-ecb", "--key", "001122"], "4 to 56 bytes, not 3"),
        (&["--alg", "aes-128-ecb", "--key", key, "--block-size", "100"], "multiple of 16"),
        (&["--alg", "aes-128-ecb", "--key", key, "--block-size", "0"], "multiple of 16"),
        (
            &["--alg", "aes-128-gcm", "--key", key, "--iv", iv],
            "the IV has 16 bytes; aes-128-gcm takes 12\n",
        ),
    ];
    for (args, expected) in cases {
        let refused = cipher(args, b"0123456789abcdef");
        assert_exit(&refused, 2);
        let said = stderr(&refused);
        assert!(said.contains(expected), "{args:?}: {said}");
        assert!(!said.contains(secret), "{said}");
        assert!(refused.stdout.is_empty());
    }
    // Where a key stands where none is expected, it is not repeated either.
    for args in [
        &["--alg", "aes-128-ctr", key][..],
        &["--alg", key, "--key", key],
        &["--alg", "aes-128-ctr", "--key", "--iv", key],
        &["--alg", "aes-128-ctr", "--key", key, "--iv", iv, "--kernel", key],
        &["--alg", "aes-128-ctr", "--key", key, "--threads", key],
        &["--alg", "aes-128-ctr", "--key", key, "--pad", key],
        &["--decrypt=00112233445566778899aabbccddeeff"],
        &["--00112233445566778899aabbccddeeff"],
        &["--json", "--alg", "aes-128-ctr", "--key", key, "--iv", iv],
    ] {
        let refused = cipher(args, b"");
        assert_exit(&refused, 2);
        assert!(!stderr(&refused).contains("8899aabb"), "{args:?}: {}", stderr(&refused));
    }
    // A number and a short word are.
    for (flag, value) in
        [("--threads", "20000000000000000000"), ("--alg", "12345678"), ("--pad", "face")]
    {
        let refused = cipher(&["--key", key, flag, value], b"");
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains(value), "{}", stderr(&refused));
        let range = "give a whole number from 1 to 256";
        assert_eq!(stderr(&refused).contains(range), flag == "--threads", "{}", stderr(&refused));
    }
    let args = ["--alg", "aes-128-cbc", "--key", key, "--iv", iv];
    let refused = cipher(&args, b"17 bytes, not 16.");
    assert_exit(&refused, 2);
    assert!(stderr(&refused).contains("the input has 17"), "{}", stderr(&refused));
    let padded = [&args[..], &["--pad", "pkcs7", "--decrypt"]].concat();
    assert_exit(&cipher(&padded, &[7; 32]), 3);
    assert_exit(&cipher(&padded, &[]), 3);
    assert_exit(&cipher(&padded, &[7; 33]), 3);
}

/// One thread of the CPU works on a message of GCM: an option that says otherwise is refused.
#[test]
fn gcm_refuses_the_options_of_the_engine() {
    let key = "00112233445566778899aabbccddeeff";
    let gcm = ["--alg", "aes-128-gcm", "--key", key, "--iv", &key[..24]];
    for (options, why) in [
        (
            &["--device", "cuda:99"][..],
            "aes-128-gcm runs on one CPU thread; --device cannot be used",
        ),
        (&["--device", "cpu,abacus"], "--device cannot be used"),
        (&["--policy", "serial"], "--policy cannot be used"),
        (&["--verify", "none"], "--verify none cannot be used"),
        (&["--threads", "2"], "--threads above 1 cannot be used"),
        (&["--goal", "time"], "--goal requires --policy auto"),
    ] {
        let refused = cipher(&[&gcm[..], options].concat(), b"message");
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains(why), "{options:?}: {}", stderr(&refused));
        assert!(refused.stdout.is_empty());
    }
    let sealed = cipher(&[&gcm[..], &["--device", "cpu", "--threads", "1"]].concat(), b"message");
    assert_exit(&sealed, 0);
    assert_eq!(sealed.stdout.len(), 7 + 16);
}

#[test]
fn the_list_is_of_all_kernels_or_refused() {
    for option in [&["--kernel", "aes-soft"][..], &["--pad", "none"], &["--decrypt"]] {
        let refused = cipher(&[&["--list"], option].concat(), b"");
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains("cannot be used with"), "{}", stderr(&refused));
    }
}

#[test]
fn a_kernel_that_the_list_names_is_accepted() {
    let key = "00112233445566778899aabbccddeeff";
    for alg in ["rc4", "pblock"] {
        let args = ["--alg", alg, "--key", key, "--kernel", "portable"];
        assert_exit(&cipher(&args, b"8 bytes."), 0);
    }
}

#[test]
fn an_output_that_would_be_spoilt_is_refused() {
    let key = "00112233445566778899aabbccddeeff";
    let args = ["--alg", "aes-128-ecb", "--key", key];
    let place = wattlock_testing::Place::new();
    let file = place.write("file", &pattern(4096));
    let open = || std::fs::File::options().read(true).append(true).open(&file).unwrap();
    let refused =
        lab().arg("cipher").args(args).stdin(open()).stdout(open()).stderr(Stdio::piped()).spawn();
    let refused = refused.unwrap().wait_with_output().unwrap();
    assert_exit(&refused, 2);
    assert!(stderr(&refused).contains("appended to the input"), "{}", stderr(&refused));
    assert_eq!(std::fs::read(&file).unwrap(), pattern(4096));
    // Another file may be appended to.
    let other = std::fs::File::options().append(true).create(true).open(place.path("o")).unwrap();
    let ran = lab().arg("cipher").args(args).stdin(open()).stdout(other).status().unwrap();
    assert!(ran.success());

    if Command::new("script").arg("--version").output().is_err() {
        return wattlock_testing::skip("script", "it is not installed");
    }
    // `script` runs a command on a terminal of its own.
    let program = env!("CARGO_BIN_EXE_wattlock-lab");
    let on_a_terminal = |more: &str| {
        let command = format!("'{program}' cipher {} {more} <'{}'", args.join(" "), file.display());
        Command::new("script").args(["-qec", &command, "/dev/null"]).output().unwrap()
    };
    let refused = on_a_terminal("");
    let said = stdout(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("refusing to write binary data to a terminal"), "{said}");
    assert_exit(&on_a_terminal("--decrypt"), 0);
}

#[test]
fn streams_that_cannot_be_used_are_noticed() {
    let key = "00112233445566778899aabbccddeeff";
    let null =
        |write: bool| std::fs::OpenOptions::new().read(!write).write(write).open("/dev/null");
    for command in [&["cipher", "--alg", "aes-128-ecb", "--key", key][..], &["hash"]] {
        let unreadable = lab().args(command).stdin(null(true).unwrap()).output().unwrap();
        assert_exit(&unreadable, 1);
        let mut unwritable = lab();
        unwritable.args(command).stdout(null(false).unwrap());
        assert_eq!(unwritable.status().unwrap().code(), Some(1));
    }
}

#[test]
fn the_list_names_every_kernel_and_why_it_does_not_run() {
    let listed = cipher(&["--list", "--json"], &[]);
    assert_exit(&listed, 0);
    let list: serde_json::Value = serde_json::from_str(&stdout(&listed)).unwrap();
    let kernels = list["kernels"].as_array().unwrap();
    for name in ["aes-soft", "aes-ni", "aes-vaes512", "aes-ttable-vartime", "gcm-vaes512"] {
        let kernel = kernels.iter().find(|kernel| kernel["name"] == name).unwrap();
        let runs = kernel["runs_here"].as_bool().unwrap();
        assert_eq!(runs, kernel["why_not"].is_null(), "{name}");
    }
    let named = |name: &str| kernels.iter().find(|kernel| kernel["name"] == name).unwrap();
    assert_eq!(named("aes-ttable-vartime")["chosen"], false);
    assert_eq!(named("gcm-vaes512")["algorithm"], "AES-GCM");
    // Each kernel of an algorithm once, and no other.
    let mut of_algorithms: Vec<_> = list["algorithms"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|algorithm| algorithm["kernels"].as_array().unwrap())
        .map(|name| name.as_str().unwrap())
        .collect();
    of_algorithms.sort_unstable();
    of_algorithms.dedup();
    let mut names: Vec<_> = kernels.iter().map(|kernel| kernel["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, of_algorithms);
    assert!(list["algorithms"].as_array().unwrap().len() >= 18);
    let text = stdout(&cipher(&["--list"], &[]));
    assert!(text.contains("pblock"), "{text}");
    let (_, table) = text.split_once("\nkernel ").unwrap();
    assert!(table.contains("yes (default)") && !table.contains("keccak"), "{table}");
    let in_text = table.lines().skip(1).map(|line| line.split_whitespace().next().unwrap());
    assert!(in_text.eq(kernels.iter().map(|kernel| kernel["name"].as_str().unwrap())), "{table}");
}
