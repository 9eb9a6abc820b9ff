//! Many files in one run: trees, --replace, --resume.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::{Place, assert_exit, names, pattern, stderr, stdout, wattlock};

/// A tree with files of many sizes, a link, a FIFO and a container.
fn tree(place: &Place) {
    fs::create_dir_all(place.path("tree/sub/empty")).unwrap();
    for (index, name) in ["a", "b.txt", "sub/c", "sub/d"].iter().enumerate() {
        place.write(format!("tree/{name}"), &pattern(index * 300_000));
    }
    symlink("a", place.path("tree/link")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path("tree/fifo")).status().unwrap().success());
}

fn summary(output: &std::process::Output) -> serde_json::Value {
    serde_json::from_str(&stdout(output)).unwrap()
}

fn statuses(output: &std::process::Output) -> Vec<String> {
    let files = summary(output)["files"].as_array().unwrap().clone();
    let mut all: Vec<_> =
        files.iter().map(|file| file["status"].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

#[test]
fn a_tree_keeps_its_shape_under_out_dir() {
    let place = Place::new();
    tree(&place);
    let (tree, sealed, opened) = (place.path("tree"), place.path("sealed"), place.path("opened"));
    let to = |dir: &std::path::Path| [OsStr::new("--out-dir").to_owned(), dir.into()];
    let recursive = OsStr::new("--recursive").to_owned();
    let mut args = vec![recursive.clone(), "--json".into(), tree.clone().into()];
    args.extend(to(&sealed));
    let made = place.protect(&args);
    assert_exit(&made, 0);
    assert_eq!(names(&sealed.join("tree")), ["a.wlk", "b.txt.wlk", "sub"]);
    assert_eq!(names(&sealed.join("tree/sub")), ["c.wlk", "d.wlk"]);
    assert_eq!(summary(&made)["skipped"].as_array().unwrap().len(), 2);
    let mut args = vec![recursive, sealed.join("tree").into()];
    args.extend(to(&opened));
    assert_exit(&place.open("unprotect", &args), 0);
    for name in ["a", "b.txt", "sub/c", "sub/d"] {
        let (before, after) = (tree.join(name), opened.join("tree").join(name));
        assert_eq!(fs::read(before).unwrap(), fs::read(after).unwrap(), "{name}");
    }
}

#[test]
fn a_tree_in_place_is_not_protected_twice() {
    let place = Place::new();
    tree(&place);
    let args = [OsStr::new("--recursive"), place.path("tree").as_os_str()].map(OsStr::to_owned);
    assert_exit(&place.protect(&args), 0);
    fs::write(place.path("tree/new"), b"new").unwrap();
    let again = place.protect(&args);
    assert_exit(&again, 1);
    assert!(stderr(&again).contains("exists already"));
    assert!(place.path("tree/new.wlk").exists());
    assert!(!place.path("tree/a.wlk.wlk").exists());
}

#[test]
fn replace_removes_an_original_only_for_a_good_copy() {
    let place = Place::new();
    let plain = pattern(2_000_000);
    let file = place.write("d/f", &plain);
    assert_exit(&place.protect(&[OsStr::new("--replace"), file.as_os_str()]), 0);
    assert_eq!(place.names(), ["f.wlk"]);
    let sealed = place.path("d/f.wlk");
    let mut bytes = fs::read(&sealed).unwrap();
    bytes[1_000_000] ^= 1;
    fs::write(&sealed, &bytes).unwrap();
    assert_exit(&place.open("unprotect", &[OsStr::new("--replace"), sealed.as_os_str()]), 3);
    assert_eq!(place.names(), ["f.wlk"]);
    bytes[1_000_000] ^= 1;
    fs::write(&sealed, &bytes).unwrap();
    assert_exit(&place.open("unprotect", &[OsStr::new("--replace"), sealed.as_os_str()]), 0);
    assert_eq!(place.names(), ["f"]);
    assert!(fs::read(&file).unwrap() == plain);
}

#[test]
fn resume_checks_what_is_there_and_does_the_rest() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.write(format!("d/{name}"), &pattern(100_000 + name.len()));
    }
    let key = place.path("key.txt");
    let files = ["d/a", "d/b", "d/c"].map(|name| place.path(name));
    let protect = |extra: &[&OsStr]| {
        let mut args = vec![OsStr::new("--json")];
        args.extend(extra);
        args.extend(files.iter().map(|file| file.as_os_str()));
        place.protect(&args)
    };
    assert_exit(&place.protect(&[&files[0]]), 0);
    assert_exit(&place.protect(&[&files[1]]), 0);
    let resume = [OsStr::new("--resume"), OsStr::new("-i"), key.as_os_str()];
    // One output is whole, one has a changed byte that only its tag shows, one is missing.
    let mut bytes = fs::read(place.path("d/b.wlk")).unwrap();
    bytes[50_000] ^= 1;
    fs::write(place.path("d/b.wlk"), bytes).unwrap();
    let made = protect(&resume);
    assert_exit(&made, 0);
    assert_eq!(statuses(&made), ["done", "done", "kept"]);
    assert_exit(
        &place.open("verify", &["a", "b", "c"].map(|n| place.path(format!("d/{n}.wlk")))),
        0,
    );
    // An original that has changed since is protected again, if that is what is wanted.
    fs::write(&files[0], b"changed").unwrap();
    let made = protect(&resume);
    assert_exit(&made, 1);
    assert_eq!(statuses(&made), ["failed", "kept", "kept"]);
    let forced = [&resume[..], &[OsStr::new("--force")]].concat();
    assert_eq!(statuses(&protect(&forced)), ["done", "kept", "kept"]);
    // Without a key nothing proves whom the containers are for.
    let made = protect(&[OsStr::new("--resume")]);
    assert_exit(&made, 1);
    assert_eq!(statuses(&made), ["failed"; 3]);
    assert!(stderr(&made).contains("-i"));
}

#[test]
fn resume_of_unprotect_compares_with_the_container() {
    let place = Place::new();
    let sealed = ["a", "b", "c"].map(|name| place.container(name, &pattern(100_000)));
    assert_exit(&place.open("unprotect", &sealed[..2]), 0);
    fs::write(place.path("d/b"), b"not what was sealed").unwrap();
    let mut args: Vec<&OsStr> = vec![OsStr::new("--json"), OsStr::new("--resume")];
    args.extend(sealed.iter().map(|path| path.as_os_str()));
    // An output that differs is the user's work, not a partial output of an earlier run.
    let made = place.open("unprotect", &args);
    assert_exit(&made, 1);
    assert_eq!(statuses(&made), ["done", "failed", "kept"]);
    assert_eq!(fs::read(place.path("d/b")).unwrap(), b"not what was sealed");
    args.insert(0, OsStr::new("--force"));
    let made = place.open("unprotect", &args);
    assert_exit(&made, 0);
    assert_eq!(statuses(&made), ["done", "kept", "kept"]);
    for name in ["a", "b", "c"] {
        assert!(fs::read(place.path(format!("d/{name}"))).unwrap() == pattern(100_000));
    }
}

#[test]
fn a_thousand_small_files_take_one_key_derivation() {
    let place = Place::new();
    let files: Vec<_> =
        (0..1000).map(|i| place.write(format!("d/{i:04}"), &pattern(i * 20))).collect();
    let secret = place.write("passphrase", b"correct horse\n");
    // 2^18 is half a second and 256 MiB: a thousand of them would take ten minutes.
    let run = |command: &str, files: &[std::path::PathBuf]| {
        wattlock()
            .args([command, "--replace", "--passphrase-file"])
            .arg(&secret)
            .args(files)
            .output()
            .unwrap()
    };
    assert_exit(&run("protect", &files), 0);
    let sealed: Vec<_> = files.iter().map(|file| file.with_extension("wlk")).collect();
    assert_exit(&run("unprotect", &sealed), 0);
    for (index, file) in files.iter().enumerate() {
        assert!(fs::read(file).unwrap() == pattern(index * 20));
    }
}

#[test]
fn resume_touches_nothing_that_is_not_its_own() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let notes = place.write("d/f.wlk", b"my notes");
    for extra in [&[][..], &["-i", place.path("key.txt").to_str().unwrap()]] {
        let mut args: Vec<&OsStr> = extra.iter().map(OsStr::new).collect();
        args.extend([OsStr::new("--resume"), file.as_os_str()]);
        assert_exit(&place.protect(&args), 1);
        assert_eq!(fs::read(&notes).unwrap(), b"my notes");
    }
    // Nor is a container for another recipient, or of another file.
    fs::remove_file(&notes).unwrap();
    assert_exit(&place.protect(&[&file]), 0);
    let before = fs::read(&notes).unwrap();
    let other = place.keygen("other.txt");
    let args = [OsStr::new("--resume"), OsStr::new("-r"), OsStr::new(&other)];
    assert_exit(&place.protect(&[&args[..], &[file.as_os_str()]].concat()), 1);
    fs::write(&file, b"another text").unwrap();
    assert_exit(&place.protect(&[OsStr::new("--resume"), file.as_os_str()]), 1);
    assert!(fs::read(&notes).unwrap() == before);
}

#[test]
fn a_damaged_container_in_a_tree_comes_out() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.container(name, b"text");
    }
    fs::write(place.path("d/b.wlk"), b"").unwrap();
    let tree = [OsStr::new("--recursive"), place.path("d").as_os_str()].map(OsStr::to_owned);
    let verified = place.open("verify", &tree);
    assert_exit(&verified, 3);
    assert!(stderr(&verified).contains("b.wlk"));
    fs::create_dir(place.path("nothing")).unwrap();
    let nothing =
        [OsStr::new("--recursive"), place.path("nothing").as_os_str()].map(OsStr::to_owned);
    assert_exit(&place.open("verify", &nothing), 1);
}

#[test]
fn a_missing_input_does_not_keep_the_others_from_being_done() {
    let place = Place::new();
    let (good, missing) = (place.write("d/good", b"text"), place.path("d/missing"));
    assert_exit(&place.protect(&[&missing, &good]), 1);
    assert_eq!(place.names(), ["good", "good.wlk"]);
}
