//! Every container vector, as a file and as a stream, ends as its `expect:` line says.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use wattlock_engine::Engine;
use wattlock_file::{
    Damage, Error, Identities, Identity, Input, NativeIdentity, Opener, Passphrase, Progress,
    Target, Unprotect, UsedNames, unprotect,
};
use wattlock_vectors::{Vector, containers, sha256};

/// The identities of a vector.
fn identities(vector: &Vector) -> Identities {
    let mut list: Vec<Identity> = Vec::new();
    for identity in vector.all("identity") {
        list.push(identity.parse::<NativeIdentity>().unwrap().into());
    }
    for passphrase in vector.all("passphrase") {
        list.push(Identity::passphrase(&Passphrase::from(passphrase), 22));
    }
    Identities::new(list)
}

fn open(vector: &Vector, input: &Input, threads: usize) -> Result<Vec<u8>, Error> {
    let identities = identities(vector);
    let mut released = Vec::new();
    let how = Unprotect {
        engine: &Engine::new(threads),
        identities: &identities,
        range: None,
        sealed_name: None,
        used_names: &UsedNames::default(),
        overwrite: false,
        replace: false,
        progress: &Progress::default(),
    };
    unprotect(&how, input, Target::Stream(&mut released))?;
    Ok(released)
}

/// Opens by a stream, or by a view.
fn open_in_memory(vector: &Vector, by_view: bool) -> Result<Vec<u8>, Error> {
    let (engine, identities) = (Engine::new(2), identities(vector));
    let opener = Opener::new(&engine, &identities);
    let mut opened = Vec::new();
    if by_view {
        let view = opener.view(&vector.body[..])?.plaintext;
        opened.resize(view.len() as usize, 0);
        view.read_all(&mut opened)?;
    } else {
        opener.open(&mut &vector.body[..], &mut opened)?;
    }
    Ok(opened)
}

fn check(vector: &Vector, opened: Result<Vec<u8>, Error>, how: &str) {
    let name = &vector.name;
    let error = match (vector.expect(), opened) {
        ("success", Ok(plaintext)) => {
            assert_eq!(Some(&*sha256(&plaintext)), vector.one("payload"), "{name} {how}");
            return;
        }
        (expected, Ok(_)) => panic!("{name} {how}: opened, and should have been: {expected}"),
        ("success", Err(error)) => panic!("{name} {how}: {error}"),
        (_, Err(error)) => error,
    };
    let error = match error {
        Error::Incomplete { source, .. } => *source,
        error => error,
    };
    let right = match vector.expect() {
        "no match" => matches!(
            error,
            Error::WrongKey { .. } | Error::NeedsPassphrase | Error::WrongPassphrase
        ),
        "HMAC failure" => matches!(error, Error::HeaderAuthentication),
        "header failure" => matches!(
            error,
            Error::NotAContainer
                | Error::UnknownVersion
                | Error::Header { .. }
                | Error::HeaderCut
                | Error::HeaderAuthentication
                | Error::Unwrap(_)
                | Error::TooMuchWork(_)
                // The nonce in front of the payload belongs to the header for these vectors.
                | Error::Damaged(Damage::Truncated)
        ),
        "payload failure" => matches!(error, Error::Damaged(_)),
        "armor failure" => true,
        other => panic!("{name}: unknown expectation {other}"),
    };
    assert!(right, "{name} {how}: {error:?} is not a {}", vector.expect());
}

fn check_folder(folder: &str, least: usize) {
    let directory = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for vector in containers(folder) {
        let path = directory.path().join(&vector.name);
        fs::write(&path, &vector.body).unwrap();
        for threads in [1, 3] {
            let how = format!("from a file, {threads} threads");
            check(&vector, open(&vector, &Input::Path(path.clone()), threads), &how);
        }
        check(&vector, open_in_memory(&vector, false), "from memory, in order");
        if !vector.body.trim_ascii_start().starts_with(b"-----") {
            check(&vector, open_in_memory(&vector, true), "from memory, at any offset");
        }
        let fifo = directory.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let mut writer = Command::new("sh")
            .args(["-c", "cat \"$0\" > \"$1\""])
            .args([&path, &fifo])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        check(&vector, open(&vector, &Input::Path(fifo.clone()), 3), "from a pipe");
        let _ = writer.wait();
        fs::remove_file(fifo).unwrap();
        checked += 1;
    }
    println!("{checked} vectors of {folder}");
    assert!(checked >= least, "only {checked} vectors of {folder} were checked");
    std::io::stdout().flush().unwrap();
}

#[test]
fn age_v1() {
    check_folder("age", 143);
}

#[test]
fn wattlock_v1() {
    check_folder("wattlock-v1", 20);
}
