//! `wattlock-lab sefps`: the bytes that openssl makes, the warning at every use, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use wattlock_testing::{
    Place, assert_exit, has_program, pattern, stderr, stdout, wattlock, with_input,
};

use crate::lab;

const IV: &str = "fffffffffffffffffffffffffffffffe";

/// Of a key of the frozen corpus.
const RECIPIENT: &str = "age149s7z0ccqr035fgzf8ps0rqltdls854dmfllggq0tv9a4e737erq90e6wl";

/// `wattlock-lab sefps COMMAND` with a key file of `key_bytes` bytes.
fn sefps(place: &Place, command: &str, key_bytes: usize) -> Command {
    let mut program = lab();
    program.args(["sefps", command, "--key-file"]).arg(key_file(place, key_bytes));
    program
}

fn key_file(place: &Place, bytes: usize) -> PathBuf {
    place.write(format!("key-{bytes}"), &(0..bytes).map(|i| i as u8 | 0x80).collect::<Vec<_>>())
}

fn cipher(bits: usize, mode: &str) -> Vec<String> {
    let iv = ["--iv".to_owned(), IV.to_owned()];
    let named = ["--cipher".to_owned(), format!("aes-{bits}-{mode}")];
    named.into_iter().chain(iv.into_iter().filter(|_| mode == "ctr")).collect()
}

/// The container by openssl alone, as `docs/spec/sefps.md` says.
fn by_openssl(place: &Place, bits: usize, mode: &str, data: &[u8]) -> Vec<u8> {
    let zeros = 16 - data.len() % 16;
    let mut padded = data.to_vec();
    padded.resize(data.len() + zeros, 0);
    padded.resize(padded.len() + 16, zeros as u8);
    let mut digest = Command::new("openssl");
    let digest = with_input(digest.args(["dgst", "-sha3-256", "-binary"]), &padded).stdout;
    assert_eq!(digest.len(), 32);
    padded.extend(digest);
    let key = fs::read(key_file(place, bits / 8)).unwrap();
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut enc = Command::new("openssl");
    enc.args(["enc", &format!("-aes-{bits}-{mode}"), "-nopad", "-K", &key]);
    if mode == "ctr" {
        enc.args(["-iv", IV]);
    }
    with_input(&mut enc, &padded).stdout
}

#[track_caller]
fn assert_warned(ran: &Output) {
    let said = stderr(ran);
    assert!(said.contains("warning: sefps is for study only"), "{said}");
    assert!(said.contains("can forge") && said.contains("ECB shows"), "{said}");
    assert!(said.contains("use `wattlock protect`"), "{said}");
}

#[test]
fn containers_are_what_openssl_makes() {
    if !has_program("openssl") {
        return;
    }
    let place = Place::new();
    let large = [(1 << 20) - 1, (3 << 20) + 7];
    for (bits, mode) in [128, 192, 256].into_iter().flat_map(|bits| [(bits, "ecb"), (bits, "ctr")])
    {
        // Every X mod 16 once, over the key sizes and modes, and the empty file each time.
        let lens = (0..=16).filter(|len| *len == 0 || bits == 128 || len % 5 == 0);
        for len in lens.chain(large.into_iter().filter(|_| bits != 192)) {
            let what = format!("aes-{bits}-{mode}, {len} bytes");
            let plain = place.write("d/file", &pattern(len));
            let run = |command: &str| {
                let mut program = sefps(&place, command, bits / 8);
                program.args(cipher(bits, mode));
                program
            };
            let made = run("protect").arg(&plain).output().unwrap();
            assert_exit(&made, 0);
            assert_warned(&made);
            let sealed = place.path("d/file.sefps");
            let container = fs::read(&sealed).unwrap();
            assert!(container == by_openssl(&place, bits, mode, &pattern(len)), "{what}");
            fs::remove_file(&plain).unwrap();
            let opened = run("unprotect").arg(&sealed).output().unwrap();
            assert_exit(&opened, 0);
            assert_warned(&opened);
            assert!(fs::read(&plain).unwrap() == pattern(len), "{what}");
            // From a pipe to a pipe, the same.
            let piped = with_input(&mut run("protect"), &pattern(len));
            assert!(piped.stdout == container, "{what}");
            let piped = with_input(&mut run("unprotect"), &container);
            assert!(piped.stdout == pattern(len), "{what}");
            fs::remove_file(&sealed).unwrap();
            fs::remove_file(&plain).unwrap();
        }
    }
}

#[test]
fn variants_and_kernels_make_the_same() {
    let place = Place::new();
    let plain = place.write("d/file", &pattern(3_000_000));
    let mut expected = None;
    for more in [
        &["--variant", "csp"][..],
        &["--variant", "cpp"],
        &["--variant", "overlapped"],
        &["--variant", "csp", "--kernel", "aes-ttable-vartime"],
        &["--variant", "cpp", "--kernel", "aes-soft", "--threads", "3"],
    ] {
        let mut program = sefps(&place, "protect", 16);
        let made = program.args(cipher(128, "ecb")).args(more).arg(&plain).arg("--force").output();
        assert_exit(&made.unwrap(), 0);
        let sealed = fs::read(place.path("d/file.sefps")).unwrap();
        assert!(*expected.get_or_insert_with(|| sealed.clone()) == sealed, "{more:?}");
    }
    for variant in ["csup", "cpup", "overlapped"] {
        let mut program = sefps(&place, "unprotect", 16);
        program.args(cipher(128, "ecb")).args(["--variant", variant, "-o", "-"]);
        let opened = program.arg(place.path("d/file.sefps")).output().unwrap();
        assert_exit(&opened, 0);
        assert!(opened.stdout == pattern(3_000_000), "{variant}");
    }
}

/// By PoCL, where there is nothing else; what comes out is what one thread makes.
#[test]
fn gpu_variants_make_the_same() {
    let place = Place::new();
    let plain = place.write("d/file", &pattern(3_000_000));
    let run = |command: &str, variant: &str, device: &[&str], input: &std::path::Path| {
        let mut program = sefps(&place, command, 32);
        program.args(cipher(256, "ecb")).args(["--variant", variant]).args(device);
        program.arg(input).args(["-o", "-"]).output().unwrap()
    };
    let expected = run("protect", "csp", &[], &plain);
    assert_exit(&expected, 0);
    let sealed = place.write("d/sealed", &expected.stdout);
    for (there, back) in [("gpp", "gpup"), ("hpp", "hpup")] {
        let ran = run("protect", there, &["--device", "opencl,cpu"], &plain);
        if ran.status.code() == Some(4) {
            wattlock_testing::skip("pocl", "no OpenCL device");
            return;
        }
        assert!(ran.stdout == expected.stdout, "{there}");
        let ran = run("unprotect", back, &["--device", "opencl,cpu"], &sealed);
        assert!(ran.stdout == pattern(3_000_000), "{back}");
    }
}

/// Whether the command line names the CPU or not, and for the smallest file of the paper, too.
#[test]
fn both_devices_work_in_hpp() {
    let place = Place::new();
    let plain = place.write("d/file", &pattern(5745));
    for devices in ["opencl", "opencl,cpu"] {
        let run = |command: &str, variant: &str, input: &std::path::Path, output: &str| {
            let mut program = sefps(&place, command, 16);
            program.args(cipher(128, "ecb")).args(["--variant", variant, "--device", devices]);
            program.arg(input).args(["--force", "--json", "-o"]).arg(place.path(output));
            program.output().unwrap()
        };
        let ran = run("protect", "hpp", &plain, "d/sealed");
        if ran.status.code() == Some(4) {
            wattlock_testing::skip("pocl", "no OpenCL device");
            return;
        }
        let back = run("unprotect", "hpup", &place.path("d/sealed"), "d/opened");
        assert!(fs::read(place.path("d/opened")).unwrap() == pattern(5745), "{devices}");
        for ran in [ran, back] {
            assert_exit(&ran, 0);
            let summary: serde_json::Value = serde_json::from_str(&stdout(&ran)).unwrap();
            let used = summary["devices"].as_array().unwrap();
            let bytes: Vec<u64> = used.iter().map(|one| one["bytes"].as_u64().unwrap()).collect();
            assert_eq!((bytes.len(), bytes.iter().sum()), (2, 5808), "{summary}");
            assert!(bytes.iter().all(|bytes| *bytes > 0 && bytes % 16 == 0), "{summary}");
        }
    }
}

#[test]
fn gpu_variants_say_what_doctor_would() {
    let place = Place::new();
    let plain = place.write("d/file", b"data");
    for (command, variants) in [("protect", ["gpp", "hpp"]), ("unprotect", ["gpup", "hpup"])] {
        for variant in variants {
            let mut program = sefps(&place, command, 16);
            program.args(cipher(128, "ecb")).args(["--variant", variant]);
            program.env("WATTLOCK_LIBCUDA", "/no/such/libcuda.so.1");
            let ran = program.arg(&plain).args(["-o", "-"]).output().unwrap();
            if ran.status.code() != Some(4) {
                wattlock_testing::skip("no-gpu", "this machine has a GPU by OpenCL");
                return;
            }
            let said = stderr(&ran);
            assert!(said.contains(&format!("{variant}: no GPU can be used here")), "{said}");
            assert!(said.contains("libcuda.so.1") && said.contains("OpenCL loader"), "{said}");
            assert!(ran.stdout.is_empty());
        }
    }
    assert_eq!(place.names(), ["file"]);
}

/// The attacks of the paper, from a file and from a pipe: exit 3, its message, and no output.
#[test]
fn altering_deleting_and_adding_are_detected() {
    let place = Place::new();
    for mode in ["ecb", "ctr"] {
        let mut program = sefps(&place, "protect", 32);
        let sealed = with_input(program.args(cipher(256, mode)), &pattern(5000)).stdout;
        let digest = sealed.len() - 32;
        for places in [&[160][..], &[digest], &[160, digest]] {
            let (mut altered, mut cut, mut grown) =
                (sealed.clone(), sealed.clone(), sealed.clone());
            for &at in places.iter().rev() {
                altered[at] ^= 0x20;
                cut.drain(at..at + 16);
                grown.splice(at..at, [0; 16]);
            }
            for attacked in [altered, cut, grown, sealed[..sealed.len() - 1].to_vec(), Vec::new()] {
                let file = place.write("d/file.sefps", &attacked);
                let run = || {
                    let mut program = sefps(&place, "unprotect", 32);
                    program.args(cipher(256, mode));
                    program
                };
                for ran in [run().arg(file).output().unwrap(), with_input(&mut run(), &attacked)] {
                    assert_exit(&ran, 3);
                    assert_warned(&ran);
                    let papers = "The data may be altered or decrypted with wrong password";
                    assert!(stderr(&ran).contains(papers), "{}", stderr(&ran));
                    assert!(ran.stdout.is_empty());
                    assert_eq!(place.names(), ["file.sefps"]);
                }
            }
        }
    }
}

#[test]
fn wrong_keys_modes_and_ivs_are_no_plaintext() {
    let place = Place::new();
    let mut program = sefps(&place, "protect", 16);
    let sealed = with_input(program.args(cipher(128, "ctr")), &pattern(100)).stdout;
    let sealed = place.write("d/file.sefps", &sealed);
    let other = place.write("other", &[9; 16]);
    let other = other.to_str().unwrap();
    let right = key_file(&place, 16);
    let right = right.to_str().unwrap();
    for (key, more) in [
        (other, &["--cipher", "aes-128-ctr", "--iv", IV][..]),
        (right, &["--cipher", "aes-128-ecb"]),
        (right, &["--cipher", "aes-128-ctr", "--iv", "00000000000000000000000000000000"]),
    ] {
        let mut program = lab();
        program.args(["sefps", "unprotect", "--key-file", key]).args(more);
        let ran = program.arg(&sealed).output().unwrap();
        assert_exit(&ran, 3);
        let said = stderr(&ran);
        assert!(said.contains("damaged, or the key, cipher or IV is wrong"), "{said}");
        assert_eq!(place.names(), ["file.sefps"]);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    let plain = place.write("d/file", b"data");
    let plain = plain.to_str().unwrap();
    let [k16, k20, k32, k33] =
        [16, 20, 32, 33].map(|bytes| key_file(&place, bytes).to_str().unwrap().to_owned());
    let ecb = ["--cipher", "aes-128-ecb"];
    let cases: &[(&[&str], &str)] = &[
        (&["--key-file", &k16], "no cipher: use --cipher"),
        (&["--cipher", "aes-128-ecb"], "no key: use --key-file"),
        (&["--key-file", &k20, "--cipher", "aes-128-ecb"], "holds 20 bytes"),
        (&["--key-file", &k33, "--cipher", "aes-256-ecb"], "holds more than 32 bytes"),
        (&["--key-file", &k32, "--cipher", "aes-128-ecb"], "aes-128-ecb takes 16"),
        (&["--key-file", &k16, "--cipher", "aes-256-ecb"], "aes-256-ecb takes 32"),
        (&["--key-file", &k16, "--cipher", "aes-128-ctr"], "requires --iv: 16 bytes (32 hex"),
        (&["--key-file", &k16, "--cipher", "aes-128-ecb", "--iv", IV], "takes no --iv"),
        (
            &["--key-file", &k16, "--cipher", "aes-128-ctr", "--iv", "00"],
            "the IV has 1 byte; aes-128-ctr takes 16",
        ),
        (&["--key-file", &k16, "--cipher", "aes-128-ctr", "--iv", "zz"], "hexadecimal"),
        (&["--key-file", &k16, "--cipher", "aes-128-cbc"], "unknown; use aes-128"),
        (&["--key-file", &k16, "--cipher", "rc4"], "unknown; use aes-128"),
        (&["--key-file", &k16, ecb[0], ecb[1], "--kernel", "none"], "aes-128-ecb has the kernels"),
        (&["--key-file", &k16, ecb[0], ecb[1], "--variant", "csup"], "csup"),
        (&["--key-file", &k16, ecb[0], ecb[1], "--replace"], "unexpected argument '--replace'"),
        (&["--key-file", &k16, ecb[0], ecb[1], "--resume"], "unexpected argument '--resume'"),
        (&["--key-file", &k16, ecb[0], ecb[1], "--recursive"], "unexpected argument '--recursive'"),
        (
            &["--key-file", &k16, ecb[0], ecb[1], "--no-metadata"],
            "unexpected argument '--no-metadata'",
        ),
        (&["--key-file", &k16, ecb[0], ecb[1], "-r", "age1x"], "unexpected argument '-r'"),
        (&["--key-file", &k16, ecb[0], ecb[1], "-p"], "unexpected argument '-p'"),
        (&["--key-file", &k16, ecb[0], ecb[1], plain], "would both become"),
    ];
    for (args, expected) in cases {
        let ran = lab().args(["sefps", "protect", plain]).args(*args).output().unwrap();
        assert_exit(&ran, 2);
        assert!(stderr(&ran).contains(expected), "{args:?}: {}", stderr(&ran));
        assert_eq!(place.names(), ["file"], "{args:?}");
    }
}

#[test]
fn one_iv_for_several_files_and_flags_of_another_program_are_refused() {
    let place = Place::new();
    let plain = place.write("d/file", b"data");
    let plain = plain.to_str().unwrap();
    let k16 = key_file(&place, 16).to_str().unwrap().to_owned();
    let ecb = ["--cipher", "aes-128-ecb"];
    let other = place.write("other", b"data");
    let mut program = sefps(&place, "protect", 16);
    let ran = program.args(cipher(128, "ctr")).arg(plain).arg(other).output().unwrap();
    assert_exit(&ran, 2);
    assert!(stderr(&ran).contains("reveal each other"), "{}", stderr(&ran));
    // Its flags are its own, and `wattlock` does not know the format.
    for args in [
        &["--key-file", &k16][..],
        &ecb,
        &["--iv", IV],
        &["--variant", "cpp"],
        &["--format", "sefps"],
    ] {
        let ran = wattlock().args(["protect", "-r", RECIPIENT, plain]).args(args).output();
        assert_exit(&ran.unwrap(), 2);
    }
    let missing = place.path("missing");
    let mut program = lab();
    program.args(["sefps", "protect", "--key-file"]).arg(missing).args(ecb);
    assert_exit(&program.arg(plain).output().unwrap(), 1);
    assert_eq!(place.names(), ["file"]);
}

#[test]
fn outputs_appear_whole_in_the_same_folder_or_another() {
    let place = Place::new();
    let plain: Vec<PathBuf> =
        (0..20).map(|i| place.write(format!("d/{i:02}"), &pattern(i * 1000))).collect();
    let run = |command: &str, more: &[&str], files: &[PathBuf]| {
        let mut program = sefps(&place, command, 24);
        program.args(cipher(192, "ecb")).args(more).args(files).output().unwrap()
    };
    let (sealed, opened) = (place.path("sealed"), place.path("opened"));
    let into = |dir: &Path| dir.to_str().unwrap().to_owned();
    let made = run("protect", &["--json", "--out-dir", &into(&sealed)], &plain);
    assert_exit(&made, 0);
    assert_eq!(stdout(&made).matches("\"format\": \"sefps\"").count(), 20);
    let containers: Vec<PathBuf> = (0..20).map(|i| sealed.join(format!("{i:02}.sefps"))).collect();
    let back = run("unprotect", &["--quiet", "--out-dir", &into(&opened)], &containers);
    assert_exit(&back, 0);
    assert_warned(&back);
    for (i, path) in plain.iter().enumerate() {
        let name = path.file_name().unwrap();
        assert!(fs::read(opened.join(name)).unwrap() == pattern(i * 1000), "{i}");
    }
    // What is there stays, unless it is to be replaced.
    let again = run("unprotect", &["--out-dir", &into(&opened)], &containers);
    assert_exit(&again, 1);
    assert!(stderr(&again).contains("exists already"));
    assert_exit(&run("unprotect", &["--force", "--out-dir", &into(&opened)], &containers), 0);
    // A name without the suffix, and one with it.
    fs::rename(&containers[3], place.path("odd")).unwrap();
    assert_exit(&run("unprotect", &[], &[place.path("odd")]), 2);
    let named = into(&place.path("named"));
    assert_exit(&run("unprotect", &["-o", &named], &[place.path("odd")]), 0);
    assert!(fs::read(named).unwrap() == pattern(3000));
    // Of several, one that is damaged does not keep the others from coming out.
    fs::write(&containers[4], pattern(640)).unwrap();
    let fresh = place.path("fresh");
    let ran = run("unprotect", &["--out-dir", &into(&fresh)], &containers[4..7]);
    assert_exit(&ran, 3);
    assert_eq!(wattlock_testing::names(&fresh), ["05", "06"]);
}
