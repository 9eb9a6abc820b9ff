//! Links that another user plants in a tree: below what was named, none is followed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

use crate::support::{Place, Plugin, assert_exit, installed, names, stderr, wattlock};

/// `wattlock COMMAND ARGS…` in the folder of the place.
fn run(place: &Place, command: &str, args: &[&str]) -> Output {
    let mut run = wattlock();
    let key = if command == "protect" { ["-r", &place.recipient] } else { ["-i", "key.txt"] };
    run.arg(command).args(key).args(args).current_dir(place.path("")).output().unwrap()
}

/// Writes a file, and makes the folders that it is in.
fn write(place: &Place, name: &str, text: &str) {
    fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
    place.write(name, text.as_bytes());
}

#[test]
fn a_link_planted_below_out_dir_is_refused() {
    for command in ["protect", "unprotect"] {
        let place = Place::new();
        write(&place, "tree/a/f", "text");
        write(&place, "tree/b/f", "text");
        if command == "unprotect" {
            assert_exit(&run(&place, "protect", &["--recursive", "--replace", "tree"]), 0);
        }
        for folder in ["elsewhere", "out", "out/tree"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        symlink("../../elsewhere", place.path("out/tree/a")).unwrap();
        for force in [&[][..], &["-f", "--replace"]] {
            let args = [force, &["--recursive", "tree", "--out-dir", "out"]].concat();
            let ran = run(&place, command, &args);
            assert_exit(&ran, 1);
            let said = stderr(&ran);
            assert!(said.contains("out/tree/a is a symbolic link"), "{said}");
            assert!(said.contains("--out-dir"), "{said}");
            assert!(names(&place.path("elsewhere")).is_empty());
            // The other folder is done, and no original was lost.
            assert_eq!(names(&place.path("out/tree/b")).len(), 1);
            assert_eq!(names(&place.path("tree/a")).len(), 1);
        }
    }
}

/// What the user named may be a link, and so may all above it.
#[test]
fn a_link_that_was_named_is_followed() {
    let place = Place::new();
    write(&place, "tree/a/f", "text");
    fs::create_dir(place.path("out")).unwrap();
    symlink("out", place.path("named-out")).unwrap();
    symlink("tree", place.path("named-tree")).unwrap();
    let args = ["--recursive", "--replace", "--out-dir", "named-out", "named-tree"];
    assert_exit(&run(&place, "protect", &args), 0);
    assert_eq!(names(&place.path("out/named-tree/a")), ["f.wlk"]);
    assert!(names(&place.path("tree/a")).is_empty());
    // In place, through a link above what was named.
    let args = ["--recursive", "--replace", "named-out/named-tree"];
    assert_exit(&run(&place, "unprotect", &args), 0);
    assert_eq!(names(&place.path("out/named-tree/a")), ["f"]);
    let args = ["--replace", "named-out/named-tree/a/f"];
    assert_exit(&run(&place, "protect", &args), 0);
    assert_eq!(names(&place.path("out/named-tree/a")), ["f.wlk"]);
}

/// The tree is listed, and then one of its folders becomes a link: while the first file is worked on,
/// before the second is opened. Of few folders, the run may still hold the one that was moved away.
#[test]
fn a_folder_that_becomes_a_link_loses_nothing_outside() {
    if !installed("python3") {
        return;
    }
    for others in [0, 12] {
        let place = Place::new();
        write(&place, "tree/a/f", "mine");
        write(&place, "tree/b/f", "mine");
        write(&place, "victim/f", "another's");
        for number in 0..others {
            write(&place, &format!("tree/c{number}/f"), "mine");
        }
        let plugin = Plugin::new(&place);
        let swap = "[ -L tree/b ] || { mv tree/b moved; ln -s ../victim tree/b; }";
        let mut protect = plugin.wattlock_and(swap);
        protect.args(["protect", "--threads=1", "--replace", "--recursive", "-r"]);
        protect.arg(&plugin.recipient).arg("tree").current_dir(place.path(""));
        let ran = protect.output().unwrap();
        assert!(fs::symlink_metadata(place.path("tree/b")).unwrap().is_symlink());
        assert_eq!(names(&place.path("victim")), ["f"]);
        assert_eq!(names(&place.path("moved")).len(), 1);
        assert_eq!(names(&place.path("tree/a")), ["f.wlk"]);
        if others > 0 {
            assert_exit(&ran, 1);
            assert!(stderr(&ran).contains("tree/b is a symbolic link"), "{}", stderr(&ran));
            assert_eq!(names(&place.path("moved")), ["f"]);
        }
    }
}

/// The same with the folder of the outputs, and with the file itself.
#[test]
fn outputs_and_files_that_become_links_are_refused() {
    if !installed("python3") {
        return;
    }
    let place = Place::new();
    for (folder, swap) in [
        ("in-place", "[ -L t/b/f ] || { mv t/b/f moved; ln -s ../../victim/f t/b/f; }"),
        ("out", "[ -L out/t/b ] || { rmdir out/t/b; ln -s ../../victim out/t/b; }"),
    ] {
        for name in ["t/a/f", "t/b/f", "victim/f"] {
            write(&place, name, name);
        }
        let plugin = Plugin::new(&place);
        let mut protect = plugin.wattlock_and(swap);
        protect.args(["protect", "--threads=1", "--replace", "--recursive", "-r"]);
        protect.arg(&plugin.recipient);
        if folder == "out" {
            protect.args(["--out-dir", "out"]);
        }
        let ran = protect.arg("t").current_dir(place.path("")).output().unwrap();
        assert_exit(&ran, 1);
        assert!(stderr(&ran).contains("is a symbolic link"), "{}", stderr(&ran));
        assert_eq!(names(&place.path("victim")), ["f"]);
        fs::remove_dir_all(place.path("t")).unwrap();
    }
}
