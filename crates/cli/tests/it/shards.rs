//! Shards: several runs that share the files of one tree.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::support::stores::Stored;
use super::support::{Place, assert_exit, is_root, names, pattern, stderr, stdout, wattlock};

/// A tree of small files, by their paths below the place.
fn tree(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for number in 0..60 {
        let path = format!("tree/{}/{number}.txt", number % 4);
        files.insert(path.clone(), pattern(1000 + number * 700));
        fs::create_dir_all(place.path(&path).parent().unwrap()).unwrap();
        place.write(&path, &files[&path]);
    }
    files
}

/// All files below `top`, by their paths from it on.
fn files_below(top: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found
}

fn start(place: &Place, shard: &str, out: &str) -> Child {
    wattlock()
        .args(["protect", "-q", "-r", &place.recipient, "-i"])
        .arg(place.path("key.txt"))
        .args(["--resume", "--recursive", "--shard", shard, "--out-dir", out, "tree"])
        .current_dir(place.path(""))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn shards_together_are_one_run() {
    let place = Place::new();
    let files = tree(&place);
    let run = |shard: &str, json: &str| {
        let mut command = wattlock();
        command.args([
            "protect",
            "-r",
            &place.recipient,
            "--recursive",
            "--json",
            "--shard",
            shard,
        ]);
        let made = command.args(["--out-dir", "safe", "tree"]).current_dir(place.path("")).output();
        let made = made.unwrap();
        assert_exit(&made, 0);
        place.write(json, made.stdout.as_slice());
        serde_json::from_slice::<Value>(&made.stdout).unwrap()
    };
    let summaries = [run("1/3", "1.json"), run("2/3", "2.json"), run("3/3", "3.json")];
    let counts: Vec<_> = summaries.iter().map(|s| s["files"].as_array().unwrap().len()).collect();
    assert_eq!(counts.iter().sum::<usize>(), 60);
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
    assert_eq!(summaries[1]["shard"], "2/3");
    let expected: BTreeSet<String> = files.keys().map(|path| format!("{path}.wlk")).collect();
    assert_eq!(files_below(&place.path("safe")), expected);

    let opening = |shard: &str| {
        let made = place.open(
            "unprotect",
            &["--recursive", "--shard", shard, "--out-dir"]
                .map(str::to_owned)
                .into_iter()
                .chain(
                    [place.path("back"), place.path("safe/tree")].map(|p| p.display().to_string()),
                )
                .collect::<Vec<_>>(),
        );
        assert_exit(&made, 0);
    };
    opening("1/2");
    assert!(files_below(&place.path("back")).len() < 60);
    opening("2/2");
    for (path, bytes) in &files {
        assert_eq!(&fs::read(place.path("back").join(path)).unwrap(), bytes, "{path}");
    }

    let merge = |files: &[&str]| {
        let mut command = wattlock();
        command.args(["report", "--merge"]).args(files).current_dir(place.path(""));
        let merged = command.output().unwrap();
        (merged.status.code().unwrap(), serde_json::from_str::<Value>(&stdout(&merged)).unwrap())
    };
    let (code, merged) = merge(&["1.json", "3.json", "2.json"]);
    assert_eq!((code, &merged["files"]["done"], &merged["runs"]), (0, &60.into(), &3.into()));
    let bytes: usize = files.values().map(Vec::len).sum();
    assert_eq!((&merged["in_bytes"], merged.get("energy")), (&bytes.into(), None));
    // Started again, a run counts its files as they were counted before.
    let mut again = wattlock();
    again.args(["protect", "-r", &place.recipient, "-i", "key.txt", "--resume", "--recursive"]);
    again.args(["--json", "--shard", "1/3", "--out-dir", "safe", "tree"]);
    let again = again.current_dir(place.path("")).output().unwrap();
    place.write("again.json", &again.stdout);
    let (code, resumed) = merge(&["1.json", "3.json", "2.json", "again.json"]);
    assert_eq!((code, &resumed["files"]["kept"]), (0, &counts[0].into()));
    for bytes in ["in_bytes", "out_bytes"] {
        assert_eq!(resumed[bytes], merged[bytes]);
    }

    // A run that was killed leaves no summary.
    place.write("killed.json", b"");
    let (code, cut) = merge(&["1.json", "3.json", "killed.json"]);
    assert_eq!((code, &cut["incomplete"][0]), (1, &"killed.json".into()));
    let (code, merged) = merge(&["1.json", "3.json"]);
    assert_eq!((code, &merged["shards"]["missing"][0]), (1, &2.into()));
}

#[test]
fn shards_that_are_killed_and_started_again_end_in_the_same_tree() {
    let place = Place::new();
    let files = tree(&place);
    let expected: BTreeSet<String> = files.keys().map(|path| format!("{path}.wlk")).collect();
    for (round, moment) in [0, 1, 7, 15, 24, 33, 45, 55].into_iter().enumerate() {
        let out = format!("safe{round}");
        let done = || files_below(&place.path(&out)).len();
        let mut children = ["1/2", "2/2"].map(|shard| start(&place, shard, &out));
        // At that many outputs, or at the end.
        wattlock_testing::wait_until("outputs, or the end", || {
            done() >= moment || children.iter_mut().all(|c| c.try_wait().unwrap().is_some())
        });
        for child in children.iter_mut().skip(round % 2) {
            child.kill().unwrap();
        }
        children.into_iter().for_each(|child| drop(child.wait_with_output().unwrap()));
        for child in ["2/2", "1/2"].map(|shard| start(&place, shard, &out)) {
            assert_exit(&child.wait_with_output().unwrap(), 0);
        }
        assert_eq!(files_below(&place.path(&out)), expected, "killed at {moment}");
        let verified = place.open("verify", &[Path::new("--recursive"), &place.path(&out)]);
        assert_exit(&verified, 0);
    }
    let back = place.open(
        "unprotect",
        &[
            Path::new("--recursive"),
            &place.path("safe7/tree"),
            Path::new("--out-dir"),
            &place.path("back"),
        ],
    );
    assert_exit(&back, 0);
    for (path, bytes) in &files {
        assert_eq!(&fs::read(place.path("back").join(path)).unwrap(), bytes, "{path}");
    }
}

#[test]
fn shards_share_a_bucket_and_its_hidden_names() {
    let stored = Stored::new();
    let tree = stored.tree();
    for (shard, hidden) in
        [("1/2", "plain"), ("2/2", "plain"), ("1/2", "hidden"), ("2/2", "hidden")]
    {
        let out = format!("s3://bucket/{hidden}");
        let mut args = vec!["--recursive", "tree", "--shard", shard, "--out-dir", &out];
        if hidden == "hidden" {
            args.extend(["--hide-names", "-i", "key.txt"]);
        }
        stored.protect(0, &args);
    }
    for name in ["plain", "hidden"] {
        let top = if name == "plain" { "s3://bucket/plain/tree" } else { "s3://bucket/hidden" };
        for shard in ["2/2", "1/2"] {
            stored.open(0, "unprotect", &["--recursive", top, "--shard", shard, "--out-dir", name]);
        }
        let top = if name == "plain" { "plain" } else { "hidden/hidden" };
        stored.assert_tree(top, &tree);
    }
}

#[test]
fn a_shard_may_have_no_file() {
    let place = Place::new();
    place.container("only", b"one");
    let mut ended = Vec::new();
    for shard in ["1/2", "2/2"] {
        let folder = place.path("d");
        let verified = place.open(
            "verify",
            &["--recursive".as_ref(), folder.as_os_str(), "--shard".as_ref(), shard.as_ref()],
        );
        assert_exit(&verified, 0);
        ended.push(stderr(&verified).contains("no file of this run is in this shard"));
    }
    ended.sort_unstable();
    assert_eq!(ended, [false, true]);
}

#[test]
fn a_dry_run_lists_the_shard() {
    let place = Place::new();
    tree(&place);
    let list = |shard: &str| {
        let mut command = wattlock();
        command.args(["protect", "-n", "--json", "-r", &place.recipient, "--recursive", "tree"]);
        let listed = command.args(["--shard", shard]).current_dir(place.path("")).output().unwrap();
        assert_exit(&listed, 0);
        stdout(&listed).matches(".txt.wlk").count()
    };
    let (first, second) = (list("1/2"), list("2/2"));
    assert!(first > 10 && second > 10, "{first}, {second}");
    assert_eq!(first + second, list("1/1"));
    assert_eq!(names(&place.path("")), ["d", "key.txt", "tree"]);
}

/// Another shard has to write there, too.
#[test]
fn folders_stay_writable_for_the_other_shards() {
    let place = Place::new();
    tree(&place);
    let folder = place.path("tree/1");
    fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    for shard in ["1/2", "2/2"] {
        assert_exit(&start(&place, shard, "safe").wait_with_output().unwrap(), 0);
    }
    assert_eq!(files_below(&place.path("safe")).len(), 60);
    if !is_root() {
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
}

#[test]
fn wrong_shards_are_refused() {
    let place = Place::new();
    place.write("a", b"a");
    for (args, says) in [
        (&["--shard", "5/4", "a"][..], "there is no shard 5 of 4"),
        (&["--shard", "3", "a"], "a shard is I/N such as 3/16"),
        (&["--shard", "auto", "a"], "auto needs a Slurm array"),
        (&["--shard", "1/2", "a", "-o", "b"], "--shard cannot be used with -o"),
        (&["--shard", "1/2"], "--shard requires FILE arguments"),
    ] {
        let mut command = wattlock();
        command.args(["protect", "-r", &place.recipient]).args(args).current_dir(place.path(""));
        let refused = command.stdin(Stdio::null()).output().unwrap();
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
}
