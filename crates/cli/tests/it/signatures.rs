//! Who made a container: signatures by ssh-ed25519 keys, which OpenSSH checks as well.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::process::{Command, Output, Stdio};

use wattlock_testing::with_input;

use crate::support::{Place, assert_exit, installed, names, pattern, stderr, stdout, wattlock};

/// A place with two signing keys, and a file that allows one of them as alice.
fn place() -> Option<Place> {
    if !installed("ssh-keygen") {
        return None;
    }
    let place = Place::new();
    for name in ["alice", "mallory"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(place.path(name));
        assert!(keygen.status().unwrap().success());
    }
    let key = fs::read_to_string(place.path("alice.pub")).unwrap();
    place.write("signers", format!("alice@example.com {key}").as_bytes());
    fs::create_dir_all(place.path("d")).unwrap();
    Some(place)
}

fn run(place: &Place, args: &[&str]) -> Output {
    wattlock().current_dir(place.path("")).args(args).output().unwrap()
}

fn sign(place: &Place, key: &str, len: usize) -> Output {
    place.write("d/f", &pattern(len));
    run(place, &["protect", "-f", "-i", "key.txt", "--sign", key, "d/f"])
}

const VERIFY: [&str; 4] = ["verify", "--signer", "signers", "d/f.wlk"];

#[test]
fn a_signature_names_its_signer_with_and_without_a_key() {
    let Some(place) = place() else { return };
    for len in [0, 16_384, 1_000_000] {
        assert_exit(&sign(&place, "alice", len), 0);
        let verified = run(&place, &VERIFY);
        assert_exit(&verified, 0);
        let said = stderr(&verified);
        assert!(said.contains("d/f.wlk: signed by alice@example.com"), "{said}");
        for key in [&[][..], &["-i", "key.txt"]] {
            let verified = run(&place, &[&VERIFY[..], &["--json"], key].concat());
            assert_exit(&verified, 0);
            let json: serde_json::Value = serde_json::from_str(&stdout(&verified)).unwrap();
            assert_eq!(json["files"][0]["signed_by"], "alice@example.com");
        }
        // OpenSSH says the same of the bytes behind the header.
        let shown = stdout(&run(&place, &["inspect", "--json", "d/f.wlk"]));
        let json: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let header = json[0]["header_bytes"].as_u64().unwrap() as usize;
        let payload = fs::read(place.path("d/f.wlk")).unwrap()[header..].to_vec();
        let mut keygen = Command::new("ssh-keygen");
        keygen.current_dir(place.path("")).args(["-Y", "verify", "-n", "wattlock-payload-v1"]);
        keygen.args(["-f", "signers", "-I", "alice@example.com", "-s", "d/f.wlk.sig"]);
        assert_exit(&with_input(&mut keygen, &payload), 0);
    }
    // OpenSSH's own signature is as good.
    let shown = stdout(&run(&place, &["inspect", "--json", "d/f.wlk"]));
    let json: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let header = json[0]["header_bytes"].as_u64().unwrap() as usize;
    let payload = fs::read(place.path("d/f.wlk")).unwrap()[header..].to_vec();
    let mut keygen = Command::new("ssh-keygen");
    keygen.current_dir(place.path("")).args(["-Y", "sign", "-n", "wattlock-payload-v1"]);
    keygen.args(["-O", "hashalg=sha256", "-f", "alice"]).stdin(Stdio::piped());
    let made = with_input(&mut keygen, &payload);
    assert!(made.stdout.starts_with(b"-----BEGIN SSH SIGNATURE-----"), "{made:?}");
    fs::write(place.path("d/f.wlk.sig"), made.stdout).unwrap();
    assert_exit(&run(&place, &VERIFY), 0);
}

#[test]
fn what_is_not_signed_by_an_allowed_key_is_refused() {
    let Some(place) = place() else { return };
    assert_exit(&sign(&place, "mallory", 100_000), 0);
    let refused = run(&place, &VERIFY);
    assert_exit(&refused, 3);
    assert!(stderr(&refused).contains("not among the allowed signers"), "{}", stderr(&refused));
    fs::remove_file(place.path("d/f.wlk.sig")).unwrap();
    assert_exit(&run(&place, &VERIFY), 3);
    // A signature of another payload, a changed payload, a changed signature.
    assert_exit(&sign(&place, "alice", 50_000), 0);
    let old = fs::read(place.path("d/f.wlk.sig")).unwrap();
    assert_exit(&sign(&place, "alice", 50_000), 0);
    let good = fs::read(place.path("d/f.wlk.sig")).unwrap();
    fs::write(place.path("d/f.wlk.sig"), &old).unwrap();
    assert_exit(&run(&place, &VERIFY), 3);
    fs::write(place.path("d/f.wlk.sig"), &good).unwrap();
    assert_exit(&run(&place, &VERIFY), 0);
    let mut bytes = fs::read(place.path("d/f.wlk")).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(place.path("d/f.wlk"), &bytes).unwrap();
    assert_exit(&run(&place, &VERIFY), 3);
    for text in [&b"garbage"[..], b""] {
        fs::write(place.path("d/f.wlk.sig"), text).unwrap();
        assert_exit(&run(&place, &VERIFY), 3);
    }
}

#[test]
fn rekey_keeps_a_signature_and_reseal_drops_it() {
    let Some(place) = place() else { return };
    assert_exit(&sign(&place, "alice", 100_000), 0);
    let recipient = place.recipient.clone();
    let rekey = ["rekey", "-i", "key.txt", "-r", &recipient, "d/f.wlk"];
    assert_exit(&run(&place, &rekey), 0);
    assert_exit(&run(&place, &VERIFY), 0);
    // Another output has it, too; one that was there stays.
    let copied = run(&place, &[&rekey[..], &["-o", "other.wlk"]].concat());
    assert_exit(&copied, 0);
    assert_exit(&run(&place, &["verify", "--signer", "signers", "other.wlk"]), 0);
    place.write("third.wlk.sig", b"my notes");
    assert_exit(&run(&place, &[&rekey[..], &["-o", "third.wlk"]].concat()), 1);
    assert_eq!(fs::read(place.path("third.wlk.sig")).unwrap(), b"my notes");
    assert!(!place.path("third.wlk").exists());
    let resealed = run(&place, &[&rekey[..], &["--reseal"]].concat());
    assert_exit(&resealed, 0);
    assert!(stderr(&resealed).contains("d/f.wlk.sig: removed"), "{}", stderr(&resealed));
    assert_eq!(names(&place.path("d")), ["f", "f.wlk"]);
    assert_exit(&run(&place, &VERIFY), 3);
}

/// One that stayed would match nothing.
#[test]
fn a_new_payload_ends_the_former_signature() {
    let Some(place) = place() else { return };
    assert_exit(&sign(&place, "alice", 100_000), 0);
    // A run that fails, and one that replaces nothing.
    let protect = ["protect", "-i", "key.txt"];
    assert_exit(&run(&place, &[&protect[..], &["-f", "d/none", "-o", "d/f.wlk"]].concat()), 1);
    assert_exit(&run(&place, &[&protect[..], &["d/f"]].concat()), 1);
    assert_exit(&run(&place, &VERIFY), 0);
    place.write("d/g", b"another");
    // One file, and one of several, which are committed together.
    for more in [&[][..], &["d/g"]] {
        assert_exit(&sign(&place, "alice", 100_000), 0);
        let replaced = run(&place, &[&protect[..], &["-f", "d/f"], more].concat());
        assert_exit(&replaced, 0);
        assert!(stderr(&replaced).contains("d/f.wlk.sig: removed"), "{}", stderr(&replaced));
        assert!(!place.path("d/f.wlk.sig").exists());
        assert_exit(&run(&place, &VERIFY), 3);
    }
    assert_exit(&sign(&place, "alice", 100_000), 0);
    let reseal = ["rekey", "-i", "key.txt", "-r", &place.recipient, "--reseal", "-f"];
    assert_exit(&run(&place, &[&reseal[..], &["d/g.wlk", "-o", "d/f.wlk"]].concat()), 0);
    assert!(!place.path("d/f.wlk.sig").exists());
    // What is no signature stays, and so does one without a container.
    place.write("d/f.wlk.sig", b"my notes");
    assert_exit(&run(&place, &[&protect[..], &["-f", "d/f"]].concat()), 0);
    assert_eq!(fs::read(place.path("d/f.wlk.sig")).unwrap(), b"my notes");
    assert_exit(&sign(&place, "alice", 100_000), 0);
    fs::remove_file(place.path("d/f.wlk")).unwrap();
    assert_exit(&run(&place, &[&protect[..], &["-f", "d/f"]].concat()), 0);
    assert!(place.path("d/f.wlk.sig").exists());
}

/// Files that only have the name of a signature are files like others.
#[test]
fn what_is_no_signature_is_protected_and_kept() {
    let Some(place) = place() else { return };
    assert_exit(&sign(&place, "alice", 1000), 0);
    place.write("d/notes.age.sig", b"my notes");
    let to = ["protect", "-i", "key.txt", "--replace", "--recursive", "d"];
    assert_exit(&run(&place, &to), 1);
    assert_eq!(names(&place.path("d")), ["f", "f.wlk", "f.wlk.sig", "notes.age.sig.wlk"]);
    place.write("d/f.wlk.sig", b"my notes");
    let recipient = place.recipient.clone();
    let reseal = ["rekey", "-i", "key.txt", "-r", &recipient, "--reseal", "d/f.wlk"];
    assert_exit(&run(&place, &reseal), 0);
    assert_eq!(fs::read(place.path("d/f.wlk.sig")).unwrap(), b"my notes");
    assert_exit(&run(&place, &VERIFY), 3);
    fs::remove_file(place.path("d/f.wlk.sig")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path("d/f.wlk.sig")).status().unwrap().success());
    assert_exit(&run(&place, &VERIFY), 1);
    assert_exit(&run(&place, &reseal), 0);
}

/// Another identity of the user's own is no reason to want the container's.
#[test]
fn a_signature_is_checked_without_the_users_own_key() {
    let Some(place) = place() else { return };
    assert_exit(&sign(&place, "alice", 1000), 0);
    let _ = place.keygen("other.txt");
    fs::create_dir_all(place.path("config/wattlock")).unwrap();
    fs::copy(place.path("other.txt"), place.path("config/wattlock/identity.txt")).unwrap();
    let mut verify = wattlock();
    verify.current_dir(place.path("")).env("XDG_CONFIG_HOME", place.path("config")).args(VERIFY);
    assert_exit(&verify.output().unwrap(), 0);
    assert_exit(&run(&place, &["verify", "--signer", "signers"]), 2);
}

#[test]
fn keys_and_files_that_cannot_be_used_are_named() {
    let Some(place) = place() else { return };
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ecdsa", "-N", "", "-f"]).arg(place.path("ecdsa"));
    assert!(keygen.status().unwrap().success());
    for (key, code, said) in [
        ("ecdsa", 2, "no ssh-ed25519 private key"),
        ("alice.pub", 2, "no ssh-ed25519 private key"),
        ("nokey", 1, "no such key file"),
    ] {
        let refused = sign(&place, key, 10);
        assert_exit(&refused, code);
        assert!(stderr(&refused).contains(said), "{}", stderr(&refused));
    }
    assert_eq!(names(&place.path("d")), ["f"]);
    let to = ["protect", "-i", "key.txt", "--sign", "alice"];
    assert_exit(&run(&place, &[&to[..], &["--format=age", "d/f"]].concat()), 2);
    assert_exit(&run(&place, &[&to[..], &["-o-", "d/f"]].concat()), 2);
    assert_eq!(names(&place.path("d")), ["f"]);
    place.write("bad", b"alice@example.com ssh-ed25519 AAAA\n");
    let refused = run(&place, &["verify", "--signer", "bad", "d/f"]);
    assert_exit(&refused, 2);
    assert!(stderr(&refused).contains("line 1"), "{}", stderr(&refused));
}

/// `vectors/signatures` is frozen: what its README lists has these verdicts for ever.
#[test]
fn the_frozen_signatures() {
    let place = Place::new();
    let folder = wattlock_vectors::folder("signatures");
    let verify = |container: &str, signature: &str, signers: &str| {
        fs::copy(folder.join(container), place.path("c.wlk")).unwrap();
        fs::copy(folder.join(signature), place.path("c.wlk.sig")).unwrap();
        fs::copy(folder.join(signers), place.path("allowed")).unwrap();
        run(&place, &["verify", "--signer", "allowed", "c.wlk"]).status.code()
    };
    for container in ["signed.wlk", "rekeyed.wlk"] {
        for signature in ["wattlock.sig", "openssh.sig", "sha512.sig"] {
            assert_eq!(verify(container, signature, "signers"), Some(0), "{container} {signature}");
        }
    }
    for signature in ["other-namespace.sig", "other-payload.sig", "flipped.sig"] {
        assert_eq!(verify("signed.wlk", signature, "signers"), Some(3), "{signature}");
    }
    assert_eq!(verify("signed.wlk", "other-key.sig", "signers"), Some(3));
    assert_eq!(verify("signed.wlk", "wattlock.sig", "signers-other-namespace"), Some(3));
    assert_eq!(verify("signed.wlk", "wattlock.sig", "signers-expired"), Some(3));
}
