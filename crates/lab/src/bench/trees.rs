//! Trees of many small files: each tool takes all of them in one run, in memory and on a disk.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::child;
use super::content::{random_file, same};
use super::lab::Lab;
use super::rows::{Watched, add, watched};
use super::tools::{Keys, Tool};
use crate::wattlock;

/// The files of a tree, and where it is.
pub struct Tree<'a> {
    /// What it is called in results: "memory", "disk".
    pub place: &'static str,
    /// A folder of its own.
    pub directory: &'a Path,
    /// How many files it has.
    pub files: usize,
    /// Bytes of each.
    pub file_size: u64,
    /// Rounds that count.
    pub rounds: usize,
}

/// A program that takes a tree. Its commands are shell scripts with the variables IN, OUT, NAME (of the
/// tree), RECIPIENT, IDENTITY, PASSWORD, THREADS, WATTLOCK and AGE.
struct Recipe {
    name: &'static str,
    /// Programs that must be installed.
    needs: &'static [&'static str],
    /// Not measured.
    prepare: &'static str,
    protect: &'static str,
    unprotect: &'static str,
}

const TOOLS: &[Recipe] = &[
    Recipe {
        name: "wattlock",
        needs: &[],
        prepare: "",
        protect: "$WATTLOCK protect --quiet --threads=$THREADS -r $RECIPIENT --recursive $IN --out-dir $OUT",
        unprotect: "$WATTLOCK unprotect --quiet --threads=$THREADS -i $IDENTITY --recursive $IN/$NAME \
                    --out-dir $OUT",
    },
    Recipe {
        name: "cp -r",
        needs: &[],
        prepare: "mkdir $OUT",
        protect: "cp -r $IN $OUT && sync -f $OUT",
        unprotect: "",
    },
    Recipe {
        name: "tar | age",
        needs: &["tar", "age"],
        prepare: "mkdir $OUT",
        protect: "tar -C $IN/.. -cf - $NAME | $AGE -r $RECIPIENT -o $OUT/tree.age && sync -f $OUT",
        unprotect: "$AGE -d -i $IDENTITY $IN/tree.age | tar -C $OUT -xf - && sync -f $OUT",
    },
    Recipe {
        name: "rclone crypt",
        needs: &["rclone"],
        prepare: "mkdir $OUT",
        protect: "export RCLONE_CONFIG_X_TYPE=crypt RCLONE_CONFIG_X_REMOTE=$OUT RCLONE_CONFIG_X_PASSWORD=$OBSCURED
                  rclone --config= copy $IN X:$NAME && sync -f $OUT",
        unprotect: "export RCLONE_CONFIG_X_TYPE=crypt RCLONE_CONFIG_X_REMOTE=$IN RCLONE_CONFIG_X_PASSWORD=$OBSCURED
                    rclone --config= copy X: $OUT && sync -f $OUT",
    },
    Recipe {
        name: "restic",
        needs: &["restic"],
        prepare: "RESTIC_PASSWORD=$PASSWORD restic -q --no-cache -r $OUT init",
        protect: "cd $IN/.. && RESTIC_PASSWORD=$PASSWORD restic -q --no-cache --compression off -r $OUT backup $NAME \
                  && sync -f $OUT",
        unprotect: "RESTIC_PASSWORD=$PASSWORD restic -q --no-cache -r $IN restore latest --target $OUT && sync -f $OUT",
    },
    Recipe {
        name: "7z -mx0",
        needs: &["7z"],
        prepare: "mkdir $OUT",
        protect: "7z a -bd -mx0 -mhe -p$PASSWORD $OUT/tree.7z $IN && sync -f $OUT",
        unprotect: "7z x -bd -p$PASSWORD -o$OUT $IN/tree.7z && sync -f $OUT",
    },
];

/// The tools that are installed, by name and version; `tools` are those of the large file.
pub fn versions(tools: &[Tool]) -> Vec<(&'static str, String)> {
    let first_line = |program: &str, args: &[&str]| {
        let answer = Command::new(program).args(args).output().ok()?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        Some(text.lines().find(|line| !line.trim().is_empty())?.trim().to_owned())
    };
    let known = |name: &str| Some(tools.iter().find(|tool| tool.name == name)?.version.clone());
    let asked = [
        ("cp -r", known("cp")),
        ("tar | age", known("age")),
        ("rclone crypt", first_line("rclone", &["version"])),
        ("restic", first_line("restic", &["version"])),
        ("7z -mx0", first_line("7z", &[])),
    ];
    asked.into_iter().filter_map(|(name, version)| Some((name, version?))).collect()
}

/// Every tool protects and unprotects the tree, in turn, round after round.
///
/// # Errors
/// That a tool fails, or gives back something else than it was given.
pub fn run(
    lab: &mut Lab<'_>,
    tree: &Tree<'_>,
    keys: &Keys,
    age: Option<&Tool>,
) -> anyhow::Result<()> {
    let folder = File::open(tree.directory)?;
    let plain = tree.directory.join("plain");
    fs::create_dir(&plain)?;
    let names: Vec<String> = (0..tree.files).map(|index| format!("{index:05}")).collect();
    for name in &names {
        random_file(&plain.join(name), tree.file_size)?;
    }
    let is_here = |program: &&str| match *program {
        "age" => age.is_some(),
        other => Command::new(other).arg("--help").output().is_ok(),
    };
    let tools: Vec<&Recipe> = TOOLS.iter().filter(|tool| tool.needs.iter().all(is_here)).collect();
    let shell = Shell::new(keys, age)?;
    let mut costs: Vec<(Vec<Watched>, Vec<Watched>)> =
        tools.iter().map(|_| Default::default()).collect();
    for round in 0..=tree.rounds {
        for turn in 0..tools.len() {
            let index = (round + turn) % tools.len();
            let tool = tools[index];
            let (sealed, opened) = (
                tree.directory.join(format!("sealed{round}-{index}")),
                tree.directory.join(format!("opened{round}-{index}")),
            );
            shell.run(tool.prepare, &plain, &sealed)?;
            // What others left unwritten is not this tool's.
            rustix::fs::syncfs(&folder)?;
            let there =
                watched(lab, || child::run(&mut shell.command(tool.protect, &plain, &sealed)))?;
            let mut back = None;
            if !tool.unprotect.is_empty() {
                fs::create_dir(&opened)?;
                rustix::fs::syncfs(&folder)?;
                back = Some(watched(lab, || {
                    child::run(&mut shell.command(tool.unprotect, &sealed, &opened))
                })?);
            }
            if round == 0 {
                check(tool, &plain, if back.is_some() { &opened } else { &sealed }, &names)?;
            } else {
                costs[index].0.push(there);
                costs[index].1.extend(back);
            }
        }
        tell!("tree in {}: round {round} of {}", tree.place, tree.rounds);
    }
    let bytes = tree.file_size * tree.files as u64;
    for (tool, (there, back)) in tools.iter().zip(costs) {
        let first = if back.is_empty() { "copy" } else { "protect" };
        add(lab, tool.name, &format!("{first} tree, {}", tree.place), bytes, there);
        if !back.is_empty() {
            add(lab, tool.name, &format!("unprotect tree, {}", tree.place), bytes, back);
        }
    }
    // Only now: a file system that just lost thousands of files makes new ones slowly for a while, ext4 for
    // instance, which does not take their inodes for some seconds.
    fs::remove_dir_all(tree.directory)
        .with_context(|| format!("cannot remove {}", tree.directory.display()))
}

/// Fails unless each file is somewhere below `folder` as it was.
fn check(tool: &Recipe, plain: &Path, folder: &Path, names: &[String]) -> anyhow::Result<()> {
    let below = ["", "plain"].map(|inner| folder.join(inner));
    let is_same = |name: &String| {
        below.iter().any(|folder| same(&plain.join(name), &folder.join(name)).unwrap_or(false))
    };
    match names.iter().find(|name| !is_same(name)) {
        Some(name) => bail!("{}: the file {name} came back different, or not at all", tool.name),
        None => Ok(()),
    }
}

/// Runs the scripts of recipes.
struct Shell {
    variables: Vec<(&'static str, String)>,
}

impl Shell {
    fn new(keys: &Keys, age: Option<&Tool>) -> anyhow::Result<Self> {
        let password = fs::read_to_string(&keys.passphrase)?.trim().replace(' ', "-");
        let obscured = Command::new("rclone").args(["obscure", &password]).output();
        let obscured = obscured.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        Ok(Self {
            variables: vec![
                ("WATTLOCK", path(wattlock::program()?)),
                ("AGE", age.map_or_else(String::new, |age| path(age.program().into()))),
                ("RECIPIENT", keys.recipient.clone()),
                ("IDENTITY", path(keys.identity.clone())),
                ("PASSWORD", password),
                ("OBSCURED", obscured.unwrap_or_default()),
                ("THREADS", keys.threads.to_string()),
                ("NAME", "plain".to_owned()),
            ],
        })
    }

    fn command(&self, script: &str, from: &Path, to: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("IN", from).env("OUT", to);
        command
    }

    fn run(&self, script: &str, from: &Path, to: &Path) -> anyhow::Result<()> {
        child::run(&mut self.command(script, from, to)).map(|_| ())
    }
}
