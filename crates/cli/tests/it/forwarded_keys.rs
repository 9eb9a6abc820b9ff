//! Key files that `wattlock stream --forward` sends: what opens the messages of a store is never replaced, and the copy of a
//! folder belongs to whoever made it first.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::authority::Authority;
use crate::support::stream::{Gateway, segments, stream};
use crate::support::{Place, assert_exit, installed, stderr, stdout, wattlock, with_input};

/// The address of the store.
fn address(place: &Place) -> String {
    format!("unix:{}", place.path("store.sock").display())
}

/// Starts a store in `copies`.
fn store(place: &Place) -> Gateway {
    let mut command = wattlock();
    command.args(["stream", "--store", "--listen", &address(place), "-o"]);
    Gateway::start_with(command.arg(place.path("copies")))
}

/// The only subfolder of the store.
fn copy(place: &Place) -> PathBuf {
    let mut folders =
        fs::read_dir(place.path("copies")).unwrap().map(|entry| entry.unwrap().path());
    let folder = folders.next().unwrap();
    assert!(folders.next().is_none());
    folder
}

/// Seals `bytes` into the folder `name`, and forwards it to the store.
fn forward(place: &Place, name: &str, bytes: &[u8]) -> Output {
    let mut command = stream(place);
    command.args(["--framing", "ndjson", "--forward", &address(place), "-o"]);
    with_input(command.arg(place.path(format!("{name}/"))), bytes)
}

fn open(place: &Place, folder: &Path) -> Output {
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg(folder);
    command.output().unwrap()
}

#[track_caller]
fn assert_opens(place: &Place, folder: &Path, bytes: &[u8]) {
    let output = open(place, folder);
    assert_exit(&output, 0);
    assert_eq!(output.stdout, bytes);
}

fn lines(from: usize, to: usize) -> Vec<u8> {
    (from..to).flat_map(|line| format!("line {line}\n").into_bytes()).collect()
}

/// Names in the folder of keys of the copy, in order.
fn key_names(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(copy(place).join("keys")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_damaged_key_does_not_replace_the_good_one_in_a_store() {
    let place = Place::new();
    let near = store(&place);
    assert_exit(&forward(&place, "logs", &lines(0, 100)), 0);
    let key = place.path("logs/keys/000001.key");
    let good = fs::read(&key).unwrap();
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&key, &damaged).unwrap();
    let again = forward(&place, "logs", &lines(100, 101));
    assert_exit(&again, 0);
    assert!(stderr(&again).contains("has another key file of this epoch"), "{}", stderr(&again));
    let folder = copy(&place);
    assert_opens(&place, &folder, &lines(0, 101));
    assert_eq!(key_names(&place), ["000001.key", "000001.key.1", "000002.key"]);
    assert_eq!(fs::read(folder.join("keys/000001.key")).unwrap(), good);
    assert_eq!(fs::read(folder.join("keys/000001.key.1")).unwrap(), damaged);

    // What has not the form of a key file is not sent, and the segment waits until it has.
    fs::write(&key, b"").unwrap();
    let empty = forward(&place, "logs", &lines(101, 102));
    assert_exit(&empty, 3);
    assert!(stderr(&empty).contains("the key of epoch 1 does not open"), "{}", stderr(&empty));
    fs::write(&key, &good).unwrap();
    assert_exit(&forward(&place, "logs", &lines(102, 103)), 0);
    assert_opens(&place, &folder, &lines(0, 103));
    assert_eq!(fs::read(folder.join("keys/000001.key")).unwrap(), good);

    // It does not matter which of the two came first.
    fs::write(folder.join("keys/000001.key"), &damaged).unwrap();
    fs::write(folder.join("keys/000001.key.1"), &good).unwrap();
    assert_opens(&place, &folder, &lines(0, 103));
    let mut verify = wattlock();
    verify.args(["verify", "-i"]).arg(place.path("key.txt")).arg(&folder);
    assert_exit(&verify.output().unwrap(), 0);
    let inspected = wattlock().arg("inspect").arg(&folder).output().unwrap();
    assert_exit(&inspected, 0);
    assert!(stdout(&inspected).contains("X25519"), "{}", stdout(&inspected));
    let said = near.stop();
    assert_exit(&said, 0);
    assert!(stderr(&said).contains("they are kept beside it as 000001.key.1"), "{}", stderr(&said));
}

#[test]
fn a_rekeyed_key_reaches_the_store_and_opens_there() {
    let place = Place::new();
    let new = place.keygen("new.txt");
    let near = store(&place);
    assert_exit(&forward(&place, "logs", &lines(0, 10)), 0);
    let mut rekey = wattlock();
    rekey.args(["rekey", "-r", &new, "-i"]).arg(place.path("key.txt")).arg(place.path("logs"));
    assert_exit(&rekey.output().unwrap(), 0);
    assert_exit(&forward(&place, "logs", b""), 0);
    assert_opens(&place, &copy(&place), &lines(0, 10));
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("new.txt"));
    command.arg(copy(&place).join("000001.wls"));
    let opened = command.output().unwrap();
    assert_exit(&opened, 0);
    assert_eq!(opened.stdout, lines(0, 10));
    assert_exit(&near.stop(), 0);
}

#[test]
fn a_cloned_folder_takes_no_key_from_the_first() {
    let place = Place::new();
    let near = store(&place);
    assert_exit(&forward(&place, "logs", &lines(0, 10)), 0);
    // A machine that was cloned has the same identity, and goes on with keys of its own.
    fs::create_dir(place.path("clone")).unwrap();
    fs::copy(place.path("logs/id"), place.path("clone/id")).unwrap();
    let clone = forward(&place, "clone", &lines(10, 20));
    assert_exit(&clone, 1);
    assert!(stderr(&clone).contains("another segment of that name"), "{}", stderr(&clone));
    assert_opens(&place, &copy(&place), &lines(0, 10));
    // A segment of the clone that has a number of its own opens, too.
    fs::copy(&segments(&place.path("clone"))[0], copy(&place).join("000002.wls")).unwrap();
    assert_opens(&place, &copy(&place), &lines(0, 20));
    assert_exit(&near.stop(), 0);
}

/// Sends key files as a forwarder does, and returns the answers.
fn send_keys(place: &Place, id: &[u8], contents: &[Vec<u8>]) -> Vec<u64> {
    let mut connection = UnixStream::connect(place.path("store.sock")).unwrap();
    connection.write_all(&[b"wattlock-forward/v1\n", id].concat()).unwrap();
    let mut answers = Vec::new();
    for content in contents {
        let len = (content.len() as u32).to_be_bytes();
        connection.write_all(&[b"k\x0a000001.key", &len[..], content].concat()).unwrap();
        let mut answer = [0; 8];
        connection.read_exact(&mut answer).unwrap();
        answers.push(u64::from_be_bytes(answer));
    }
    answers
}

#[test]
fn who_knows_an_identity_takes_no_key_away_and_fills_no_disk() {
    let place = Place::new();
    let near = store(&place);
    assert_exit(&forward(&place, "logs", &lines(0, 10)), 0);
    let id_path = place.path("logs/id");
    assert_eq!(id_path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let id = fs::read(&id_path).unwrap();
    let good = fs::read(place.path("logs/keys/000001.key")).unwrap();
    let mut contents: Vec<_> = (0..20).map(|number| format!("key {number}").into_bytes()).collect();
    contents.push(b"key 0".to_vec());
    contents.push(good.clone());
    let mut expected = vec![u64::MAX - 1; 16];
    expected.extend([u64::MAX; 4]);
    expected.extend([5, good.len() as u64]);
    assert_eq!(send_keys(&place, &id, &contents), expected);
    assert_eq!(key_names(&place).len(), 17);
    assert_opens(&place, &copy(&place), &lines(0, 10));
    // An earlier version let everybody read it.
    fs::set_permissions(&id_path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_exit(&forward(&place, "logs", &lines(10, 11)), 0);
    assert_eq!(id_path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // The folder's own key is rekeyed, and finds no place there: its segments stay here.
    let mut rekey = wattlock();
    rekey.args(["rekey", "-r", &place.recipient, "-i"]).arg(place.path("key.txt"));
    assert_exit(&rekey.arg(place.path("logs/000001.wls")).output().unwrap(), 0);
    let refused = forward(&place, "logs", b"");
    assert_exit(&refused, 1);
    assert!(
        stderr(&refused).contains("keeps 16 additional key files of epoch 1"),
        "{}",
        stderr(&refused)
    );
    assert_exit(&near.stop(), 0);
}

#[test]
fn a_salt_that_does_not_fit_its_segment_is_not_sent() {
    let place = Place::new();
    let key = place.write("key", &[7; 32]);
    let near = store(&place);
    let forward = |bytes: &[u8]| {
        let mut command = wattlock();
        command.args(["stream", "--key-file"]).arg(&key).args(["--framing", "ndjson"]);
        command.args(["--forward", &address(&place), "-o"]).arg(place.path("logs/"));
        with_input(&mut command, bytes)
    };
    assert_exit(&forward(&lines(0, 10)), 0);
    let salt = place.path("logs/keys/000001.salt");
    let mut damaged = fs::read(&salt).unwrap();
    damaged[5] ^= 1;
    fs::write(&salt, damaged).unwrap();
    let refused = forward(&lines(10, 11));
    assert_exit(&refused, 3);
    let said = stderr(&refused);
    assert!(said.contains("is not the one that the segment was sealed under"), "{said}");
    assert_eq!(key_names(&place), ["000001.salt", "000002.salt"]);
    assert_exit(&near.stop(), 0);
}

#[test]
fn a_copy_belongs_to_the_certificate_that_made_it() {
    let place = Place::new();
    if !installed("openssl") {
        return;
    }
    let authority = Authority::new(place.path("authority"));
    authority.sign("alpha", "DNS:alpha.example");
    authority.sign("beta", "DNS:beta.example");
    let mut command = wattlock();
    command.args(["stream", "--store", "--listen", "tls:127.0.0.1:0", "--tls-client-ca"]);
    command.arg(authority.path("ca.pem")).args(authority.listening());
    let near = Gateway::start_with(command.arg("-o").arg(place.path("copies")));
    let forwarding = |name: &str, folder: &str| {
        let mut command = stream(&place);
        command.args(["--framing", "ndjson", "--forward", &near.address()]);
        command.arg("--tls-ca").arg(authority.path("ca.pem"));
        command.arg("--tls-cert").arg(authority.path(&format!("{name}.pem")));
        command.arg("--tls-key").arg(authority.path(&format!("{name}.key")));
        command.arg("-o").arg(place.path(folder));
        command
    };
    assert_exit(&with_input(&mut forwarding("alpha", "logs/"), &lines(0, 10)), 0);
    fs::create_dir(place.path("stolen")).unwrap();
    fs::copy(place.path("logs/id"), place.path("stolen/id")).unwrap();
    let cut = "wattlock_stream_connections_cut_total";
    near.wait_for("wattlock_stream_connections_open 0");
    let before = near.value(cut);
    let mut stolen = forwarding("beta", "stolen/");
    let listen = format!("unix:{}", place.path("in.sock").display());
    let thief = Gateway::start_with(stolen.args(["--drain", "0", "--listen", &listen]));
    near.wait_until("the store refuses it", |_| near.value(cut) > before);
    thief.stop();
    // A renewed certificate has the same names.
    authority.sign("alpha", "DNS:alpha.example");
    assert_exit(&with_input(&mut forwarding("alpha", "logs/"), &lines(10, 20)), 0);
    assert_opens(&place, &copy(&place), &lines(0, 20));
    let output = near.stop();
    let said = stderr(&output);
    assert!(
        said.contains("belongs to the certificate of alpha.example, and this is another"),
        "{said}"
    );
}

#[test]
fn a_store_without_client_certificates_is_reached_from_this_machine_alone() {
    let place = Place::new();
    for address in ["tcp:0.0.0.0:0", "tls:0.0.0.0:0"] {
        let mut command = wattlock();
        command.args(["stream", "--store", "--insecure", "--listen", address, "-o"]);
        let refused = command.arg(place.path("copies")).output().unwrap();
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains("client certificates"), "{}", stderr(&refused));
    }
    assert!(!place.path("copies").exists());
}
