//! A real tree there and back: the Rust toolchain that builds this.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Place, assert_exit, stdout, wattlock};

/// What of a file is kept: its length, its mode less what the umask takes, its time.
type Kept = (u64, u32, i64, i64);

fn files(top: &Path) -> BTreeMap<PathBuf, Kept> {
    let mut found = BTreeMap::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let status = entry.metadata().unwrap();
            if status.is_dir() {
                folders.push(entry.path());
            } else if status.is_file() {
                let kept =
                    (status.len(), status.mode() & 0o755, status.mtime(), status.mtime_nsec());
                found.insert(entry.path().strip_prefix(top).unwrap().to_owned(), kept);
            }
        }
    }
    found
}

#[test]
#[ignore = "moves more than a gigabyte: make test-all"]
fn soak_of_a_real_tree() {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let tree = PathBuf::from(stdout(&sysroot).trim());
    let before = files(&tree);
    let place = Place::new();
    let (sealed, opened) = (place.path("sealed"), place.path("opened"));
    let name = tree.file_name().unwrap();
    let run = |command: &str, from: &Path, to: &Path, key: [&str; 2]| {
        let mut wattlock = wattlock();
        wattlock.args([command, "--quiet", "--recursive", "--out-dir"]).args([to, from]).args(key);
        assert_exit(&wattlock.output().unwrap(), 0);
    };
    let key = place.path("key.txt");
    run("protect", &tree, &sealed, ["-r", &place.recipient]);
    run("unprotect", &sealed.join(name), &opened, ["-i", key.to_str().unwrap()]);
    let after = files(&opened.join(name));
    assert_eq!(before.len(), after.len());
    for (path, kept) in &before {
        assert_eq!(after.get(path), Some(kept), "{}", path.display());
        let same =
            fs::read(tree.join(path)).unwrap() == fs::read(opened.join(name).join(path)).unwrap();
        assert!(same, "{}", path.display());
    }
    println!("{} files", before.len());
    if before.len() < 50_000 {
        wattlock_testing::skip(
            "large-tree",
            format_args!("this toolchain has {} files only", before.len()),
        );
    }
}
