//! What a container may decide about its output, and what the user's folders, names and mask do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use age::Identity;
use age::secrecy::ExposeSecret;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, NONCE_LEN, Secret, hkdf};
use wattlock_file::{Format, Header, Identities, Input, NativeIdentity, Stanza, data_key};

use crate::support::{
    Place, Plugin, assert_exit, install, installed, is_root, names, pattern, stderr, stdout,
    wattlock,
};

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The program under a umask.
fn under_mask(mask: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("umask {mask}; exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_wattlock"));
    command
}

/// A container at `d/NAME` in which the name SEALED is sealed.
fn disguised(place: &Place, name: &str, sealed: &str) -> PathBuf {
    let container = place.container(sealed, b"alias ls='rm -r'");
    let path = place.path("d").join(name);
    fs::rename(container, &path).unwrap();
    path
}

#[test]
fn a_sealed_name_is_used_only_when_asked_for() {
    let place = Place::new();
    let container = disguised(&place, "invoice.pdf", ".bash_aliases");
    let open = |words: &[&str]| {
        let words = words.iter().map(OsStr::new).chain([container.as_os_str()]);
        place.open("unprotect", &words.collect::<Vec<_>>())
    };
    for words in [&[][..], &["--force"], &["--replace"], &["--resume"], &["--recursive"]] {
        let made = open(words);
        assert_exit(&made, 2);
        assert!(stderr(&made).contains("-o") && stderr(&made).contains("--restore-name"));
        assert_eq!(place.names(), ["invoice.pdf"], "{words:?}");
    }
    place.write("d/.bash_aliases", b"precious");
    assert_exit(&open(&["--force"]), 2);
    // Asked for a sealed name, but not for a hidden file.
    for words in [&["-N"][..], &["-N", "--force"], &["-N", "--resume", "--force"]] {
        let made = open(words);
        assert_exit(&made, 1);
        assert!(stderr(&made).contains(".bash_aliases") && stderr(&made).contains("--dot-files"));
        assert_eq!(fs::read(place.path("d/.bash_aliases")).unwrap(), b"precious");
    }
    assert_exit(&open(&["-N", "--dot-files"]), 1);
    assert_eq!(fs::read(place.path("d/.bash_aliases")).unwrap(), b"precious");
    assert_exit(&open(&["-N", "--dot-files", "--force"]), 0);
    assert_eq!(fs::read(place.path("d/.bash_aliases")).unwrap(), b"alias ls='rm -r'");
    // Flags that contradict each other, or do nothing.
    let output = place.path("d/out");
    assert_exit(&open(&["-N", "-o", output.to_str().unwrap()]), 2);
    assert_exit(&open(&["--dot-files"]), 2);
    assert_eq!(place.names(), [".bash_aliases", "invoice.pdf"]);
}

#[test]
fn a_container_without_a_suffix_keeps_its_name_elsewhere() {
    let place = Place::new();
    let container = disguised(&place, "invoice.pdf", ".bash_aliases");
    let out = place.path("out");
    let args = [OsStr::new("--out-dir"), out.as_os_str(), container.as_os_str()];
    assert_exit(&place.open("unprotect", &args), 0);
    assert_eq!(names(&out), ["invoice.pdf"]);
    // In a tree the others are done, and this one is reported.
    place.container("good", b"text");
    let tree = [OsStr::new("--recursive"), place.path("d").as_os_str()].map(OsStr::to_owned);
    let made = place.open("unprotect", &tree);
    assert_exit(&made, 2);
    assert!(stderr(&made).contains("invoice.pdf"));
    assert_eq!(place.names(), ["good", "good.wlk", "invoice.pdf"]);
}

#[test]
fn a_sealed_name_that_is_not_there_is_an_error() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    assert_exit(&place.protect(&[OsStr::new("--no-metadata"), file.as_os_str()]), 0);
    fs::remove_file(&file).unwrap();
    let sealed = place.path("d/f.wlk");
    let made = place.open("unprotect", &[OsStr::new("-N"), sealed.as_os_str()]);
    assert_exit(&made, 1);
    assert!(stderr(&made).contains("no name is sealed"));
    assert_eq!(place.names(), ["f.wlk"]);
}

/// The container with other sealed metadata, as an attacker who knows the recipient makes it.
fn forge(place: &Place, container: &Path, metadata: &[u8]) -> Vec<u8> {
    let bytes = fs::read(container).unwrap();
    let text = fs::read_to_string(place.path("key.txt")).unwrap();
    let line = text.lines().last().unwrap();
    let header = Header::read(&mut &bytes[..]).unwrap();
    let to_age = |stanza: &Stanza| {
        let Stanza { tag, args, body } = stanza.clone();
        age_core::format::Stanza { tag, args, body }
    };
    let stanzas: Vec<_> = header.stanzas().iter().map(to_age).collect();
    let identity: age::x25519::Identity = line.parse().unwrap();
    let file_key = identity.unwrap_stanzas(&stanzas).unwrap().unwrap();
    let identities = Identities::new(vec![line.parse::<NativeIdentity>().unwrap().into()]);
    let (data_key, start) = data_key(&Input::Path(container.to_owned()), &identities).unwrap();
    let salt = [7; 16];
    let key: Secret<32> = hkdf::expand_sha512(&data_key, &[b"wattlock/v1 metadata", &[0], &salt]);
    let mut body = metadata.to_vec();
    body.resize(metadata.len().next_multiple_of(64), 0);
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, key.expose()).unwrap();
    let tag = key.seal([0; NONCE_LEN], b"", &mut body).unwrap();
    body.extend_from_slice(&tag);
    let data_key_field = header.fields().iter().find(|field| field.tag == "data-key").unwrap();
    let metadata = Stanza { tag: "metadata".into(), args: vec![BASE64.encode(salt)], body };
    let mac_key = hkdf::sha256(file_key.expose_secret(), b"", b"wattlock/v1 header");
    let fields = [data_key_field.clone(), metadata];
    let header = Header::encode(Format::WattlockV1, header.stanzas(), &fields, &mac_key).unwrap();
    [&header, &bytes[start as usize..]].concat()
}

#[test]
fn a_sealed_name_never_leaves_its_folder() {
    let place = Place::new();
    let container = place.container("f", b"text");
    for evil in ["../x", "/tmp/x", "a/b", "d/../../x", "..", ".", "", "a\0b"] {
        let metadata = [&[1, 0, evil.len() as u8], evil.as_bytes()].concat();
        let path = place.path("d/evil");
        fs::write(&path, forge(&place, &container, &metadata)).unwrap();
        for words in [&["-f", "-N", "--dot-files"][..], &["-f", "-N"], &["-f"]] {
            let words = words.iter().map(OsStr::new).chain([path.as_os_str()]);
            let made = place.open("unprotect", &words.collect::<Vec<_>>());
            assert!(matches!(made.status.code(), Some(2 | 3)), "{evil:?}: {}", stderr(&made));
            assert_eq!(place.names(), ["evil", "f.wlk"], "{evil:?}");
            assert_eq!(names(&place.path("")), ["d", "key.txt"], "{evil:?}");
        }
    }
    // What the forgery is worth: with an honest name it opens.
    let honest = forge(&place, &container, b"\x01\0\x04name");
    let path = place.write("d/evil", &honest);
    assert_exit(&place.open("unprotect", &[OsStr::new("-N"), path.as_os_str()]), 0);
    assert_eq!(place.names(), ["evil", "f.wlk", "name"]);
}

#[test]
fn the_umask_is_above_every_sealed_mode() {
    let place = Place::new();
    let container = place.container("f", b"text");
    let everything = [2, 0, 4, 0, 0, 0o7777u16.to_be_bytes()[0], 0o7777u16.to_be_bytes()[1]];
    fs::write(&container, forge(&place, &container, &everything)).unwrap();
    let file = place.path("d/f");
    for (mask, expected) in [("077", 0o700), ("027", 0o750), ("022", 0o755), ("000", 0o777)] {
        let mut unprotect = under_mask(mask);
        unprotect.args(["unprotect", "-f", "-i"]).arg(place.path("key.txt")).arg(&container);
        assert_exit(&unprotect.output().unwrap(), 0);
        assert_eq!(mode(&file), expected, "umask {mask}");
    }
    // Without a sealed mode the container's own counts, as far as the mask lets it.
    let sealed = place.path("d/sealed.age");
    let args = ["--format", "age", "-o", sealed.to_str().unwrap(), file.to_str().unwrap()];
    assert_exit(&place.protect(&args), 0);
    set_mode(&sealed, 0o4666);
    let mut unprotect = under_mask("077");
    unprotect.args(["unprotect", "-i"]).arg(place.path("key.txt")).arg(&sealed);
    assert_exit(&unprotect.output().unwrap(), 0);
    assert_eq!(mode(place.path("d/sealed")), 0o600);
}

/// A tree whose folders have these modes, with a file in each.
fn tree(place: &Place, modes: &[u32]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for mode in modes {
        let folder = PathBuf::from(format!("tree/{mode:o}"));
        fs::create_dir_all(place.path(&folder)).unwrap();
        place.write(folder.join("f"), &pattern(1000));
        folders.push(folder);
    }
    place.write("tree/f", &pattern(1000));
    for (folder, mode) in folders.iter().zip(modes) {
        set_mode(place.path(folder), *mode);
    }
    set_mode(place.path("tree"), 0o700);
    folders.push("tree".into());
    folders
}

fn recursive(place: &Place, mask: &str, words: &[&str], from: &str, to: &str) -> Output {
    let mut command = under_mask(mask);
    command.args(words).args(["--recursive", from, "--out-dir", to]);
    command.current_dir(place.path("")).output().unwrap()
}

#[test]
fn folders_keep_their_modes() {
    let place = Place::new();
    // Root alone can read and remove what is in a folder that even its owner may not write to.
    let odd: &[u32] = if is_root() { &[0o500, 0o555, 0o300, 0o000] } else { &[] };
    let modes = [&[0o700, 0o750, 0o711, 0o755, 0o775, 0o1777][..], odd].concat();
    let folders = tree(&place, &modes);
    let protect = ["protect", "-r", &place.recipient];
    assert_exit(&recursive(&place, "022", &protect, "tree", "safe"), 0);
    assert_eq!(mode(place.path("safe")), 0o755, "a new folder gets its mode from the umask");
    for folder in &folders {
        let (before, after) = (place.path(folder), place.path("safe").join(folder));
        assert_eq!(mode(&before), mode(&after), "protect, {}", folder.display());
    }
    let unprotect = ["unprotect", "-i", "key.txt"];
    for mask in [0o022, 0o077, 0o000] {
        let back = format!("back-{mask:o}");
        let made = recursive(&place, &format!("{mask:o}"), &unprotect, "safe/tree", &back);
        assert_exit(&made, 0);
        for folder in &folders {
            let (before, after) = (mode(place.path(folder)), place.path(&back).join(folder));
            assert_eq!(before & !mask, mode(&after), "unprotect, {}", folder.display());
            assert_eq!(fs::read(after.join("f")).unwrap(), pattern(1000));
        }
    }
    // Seen from inside, the top of the tree has no name; the output folder stands for it.
    set_mode(place.path("tree"), 0o750);
    let mut inside = under_mask("022");
    inside.args(protect).args(["--recursive", ".", "--out-dir", "../inside"]);
    assert_exit(&inside.current_dir(place.path("tree")).output().unwrap(), 0);
    assert_eq!(mode(place.path("inside")), 0o750);
    assert_eq!(mode(place.path("inside/700")), 0o700);
}

#[test]
fn folders_that_exist_stay_as_they_are() {
    let place = Place::new();
    tree(&place, &[0o755]);
    fs::create_dir_all(place.path("safe/tree")).unwrap();
    set_mode(place.path("safe"), 0o710);
    set_mode(place.path("safe/tree"), 0o750);
    let protect = ["protect", "-r", &place.recipient];
    assert_exit(&recursive(&place, "022", &protect, "tree", "safe"), 0);
    assert_eq!(mode(place.path("safe")), 0o710);
    assert_eq!(mode(place.path("safe/tree")), 0o750);
    assert_eq!(mode(place.path("safe/tree/755")), 0o755);
}

/// The plugin looks when the folders are there and nothing is in them; then it ends the program.
#[test]
fn no_folder_is_wider_meanwhile_or_after_a_kill() {
    if !installed("python3") {
        return;
    }
    for signal in ["INT", "KILL"] {
        let place = Place::new();
        let folders = tree(&place, &[0o700, 0o710, 0o755, 0o777]);
        let plugin = Plugin::new(&place);
        let mut protect = plugin.wattlock_and(&format!(
            "stat -c '%n %a' safe/tree safe/tree/*[0-9] > seen
            kill -{signal} $WATTLOCKTEST_CALLER
            while kill -0 $WATTLOCKTEST_CALLER; do :; done 2> /dev/null"
        ));
        protect.args(["protect", "-r", &plugin.recipient, "--recursive", "tree"]);
        protect.args(["--out-dir", "safe"]).current_dir(place.path("")).stderr(Stdio::null());
        assert!(!protect.status().unwrap().success());
        let seen = fs::read_to_string(place.path("seen")).unwrap();
        assert_eq!(seen.lines().count(), folders.len());
        for line in seen.lines() {
            let (name, seen) = line.split_once(' ').unwrap();
            let seen = u32::from_str_radix(seen, 8).unwrap();
            let wanted = mode(place.path(name.strip_prefix("safe/").unwrap()));
            assert_eq!(seen & !0o700, wanted & !0o700, "{name} meanwhile");
            assert_eq!(mode(place.path(name)), seen, "{name} after the end");
        }
    }
}

#[test]
fn a_folder_of_another_group_gives_nothing_to_ones_own() {
    if !is_root() {
        wattlock_testing::skip("root", "only root may give a file to another user");
        return;
    }
    if !installed("setpriv") {
        return;
    }
    let place = Place::new();
    tree(&place, &[0o770]);
    let chown = |owner: &str, path: &str| {
        assert!(
            Command::new("chown")
                .args(["-R", owner])
                .arg(place.path(path))
                .status()
                .unwrap()
                .success()
        );
    };
    // The tree's group is one that the user is not in.
    set_mode(place.path(""), 0o777);
    chown("65534:12345", "tree");
    let program = place.path("program");
    install(env!("CARGO_BIN_EXE_wattlock"), &program);
    let mut protect = Command::new("setpriv");
    protect.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    protect.args(["protect", "-r", &place.recipient, "--recursive", "tree", "--out-dir", "safe"]);
    assert_exit(&protect.current_dir(place.path("")).output().unwrap(), 0);
    assert_eq!(mode(place.path("safe/tree/770")), 0o700);
    // Root gives it to whom it belonged.
    let made = {
        let mut protect = wattlock();
        protect.args([
            "protect",
            "-r",
            &place.recipient,
            "--recursive",
            "tree",
            "--out-dir",
            "root",
        ]);
        protect.current_dir(place.path("")).output().unwrap()
    };
    assert_exit(&made, 0);
    let shown =
        Command::new("stat").args(["-c", "%u:%g %a"]).arg(place.path("root/tree/770")).output();
    assert_eq!(stdout(&shown.unwrap()).trim(), "65534:12345 770");
}
