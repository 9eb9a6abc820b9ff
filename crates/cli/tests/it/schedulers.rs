//! The recipes of the handbook for many machines, as it prints them, under the programs that they are for.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::env;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use wattlock_testing::{free_port, wait_until, wattlock_path};

use super::support::stores::OtherServer;
use super::support::{Place, assert_exit, installed, is_root, names, pattern, stdout};

const FILES: usize = 100;

/// A place with a tree of small files, and the key and recipients of the recipes.
fn place() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("data")).unwrap();
    for number in 0..FILES {
        place.write(format!("data/{number}"), &pattern(1000 + number * 700));
    }
    place.write("team.txt", place.recipient.as_bytes());
    fs::rename(place.path("key.txt"), place.path("team-key.txt")).unwrap();
    place
}

/// The block of the handbook that has `mark` in it, with the paths of `place`.
fn recipe(place: &Place, mark: &str) -> String {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(manifest.join("../../docs/fleets.md")).unwrap();
    let mut blocks = text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let block = blocks.find(|block| block.contains(mark)).unwrap();
    let (data, safe) = (place.path("data"), place.path("safe"));
    let (data, safe) = (data.to_str().unwrap(), safe.to_str().unwrap());
    let found = |from: &str| assert!(block.contains(from), "{from} in {block}");
    found("/data ");
    found("/safe ");
    block
        .replace("/lustre/data ", "/data ")
        .replace("/lustre/safe ", "/safe ")
        .replace("/data ", &format!("{data} "))
        .replace("/safe ", &format!("{safe} "))
}

/// A command in `place`, for which `wattlock` is the program that is tested.
fn command(place: &Place, program: &str) -> Command {
    let mut folders = vec![wattlock_path().parent().unwrap().to_owned()];
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap()));
    let mut command = Command::new(program);
    command.current_dir(place.path("")).env("PATH", env::join_paths(folders).unwrap());
    command
}

/// The exit code of `report --merge` with all summaries, and what it says.
fn merged(place: &Place) -> (Option<i32>, Value) {
    let json = |name: &String| Path::new(name).extension().is_some_and(|end| end == "json");
    let names = names(&place.path("")).into_iter().filter(json);
    let ended =
        command(place, "wattlock").args(["report", "--merge"]).args(names).output().unwrap();
    (ended.status.code(), serde_json::from_str(&stdout(&ended)).unwrap())
}

fn assert_all_protected(place: &Place) {
    assert_eq!(names(&place.path("safe/data")).len(), FILES);
    let verify = ["verify", "-i", "team-key.txt", "--recursive", "safe"];
    assert_exit(&command(place, "wattlock").args(verify).output().unwrap(), 0);
}

/// A cluster of one machine.
struct Slurm {
    configuration: PathBuf,
    servers: Vec<OtherServer>,
}

impl Slurm {
    fn new(place: &Place) -> Self {
        let folder = place.path("slurm");
        for name in ["", "state", "spool"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        place.write("slurm/key", &pattern(1024));
        fs::set_permissions(folder.join("key"), Permissions::from_mode(0o400)).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        let (path, socket) = (folder.to_str().unwrap(), folder.join("socket"));
        let host = stdout(&Command::new("hostname").arg("-s").output().unwrap()).trim().to_owned();
        let (controller, node) = (free_port(), free_port());
        let configuration = place.write(
            "slurm/slurm.conf",
            format!(
                "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n\
                 AuthType=auth/munge\nAuthInfo=socket={path}/socket\n\
                 SlurmctldPort={controller}\nSlurmdPort={node}\n\
                 StateSaveLocation={path}/state\nSlurmdSpoolDir={path}/spool\n\
                 SlurmctldPidFile={path}/slurmctld.pid\nSlurmdPidFile={path}/slurmd.pid\n\
                 ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
                 JobAcctGatherType=jobacct_gather/none\nSelectType=select/cons_tres\n\
                 SelectTypeParameters=CR_CPU\nSlurmdParameters=config_overrides\nMailProg=/bin/true\n\
                 SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0\n\
                 NodeName={host} NodeAddr=127.0.0.1 NodeHostname={host} Port={node} CPUs=4\n\
                 PartitionName=all Nodes=ALL Default=YES State=UP\n"
            )
            .as_bytes(),
        );
        let mut slurm = Self { configuration, servers: Vec::new() };
        let option = |name: &str, file: &str| OsString::from(format!("--{name}={path}/{file}"));
        let munged = [
            "--foreground".into(),
            "--force".into(),
            option("key-file", "key"),
            option("socket", "socket"),
            option("pid-file", "munged.pid"),
            option("seed-file", "seed"),
            option("log-file", "munged.log"),
        ];
        slurm.start("munged", &munged);
        wait_until("munged", || socket.exists());
        let foreground = ["-D".into(), "-f".into(), slurm.configuration.clone().into()];
        slurm.start("slurmctld", &foreground);
        slurm.start("slurmd", &foreground);
        wait_until("the node", || {
            let listed = slurm.with(Command::new("sinfo")).args(["-h", "-o", "%T"]).output();
            stdout(&listed.unwrap()).trim() == "idle"
        });
        slurm
    }

    fn start(&mut self, server: &str, args: &[OsString]) {
        let mut command = self.with(Command::new(server));
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.servers.push(OtherServer(command.spawn().unwrap()));
    }

    fn with(&self, mut command: Command) -> Command {
        command.env("SLURM_CONF", &self.configuration);
        command
    }

    /// Submits `job.sh` and waits for its end.
    fn batch(&self, place: &Place, options: &[&str]) -> Output {
        let mut command = self.with(command(place, "sbatch"));
        command.args(["--wait", "--output=%a.log"]).args(options).arg("job.sh").output().unwrap()
    }
}

#[test]
#[ignore = "needs the programs of Slurm: make test-all"]
fn soak_of_the_recipe_for_slurm() {
    if !["munged", "slurmctld", "slurmd", "sbatch", "hostname"].into_iter().all(installed) {
        return;
    }
    if !is_root() {
        wattlock_testing::skip("root", "for slurmd");
        return;
    }
    let place = place();
    let slurm = Slurm::new(&place);
    let job = recipe(&place, "#SBATCH");
    // One task is killed before it starts the program.
    let (head, run) = job.split_at(job.find("wattlock measure").unwrap());
    let killed = "[ \"$SLURM_ARRAY_TASK_ID\" != 5 ] || kill -9 $$\n";
    place.write("job.sh", [head, killed, run].concat().as_bytes());
    assert!(!slurm.batch(&place, &[]).status.success());
    let (code, summary) = merged(&place);
    assert_eq!((code, &summary["shards"]["missing"]), (Some(1), &serde_json::json!([6])));
    // It is run again, as the handbook says.
    place.write("job.sh", job.as_bytes());
    assert_exit(&slurm.batch(&place, &["--array=5"]), 0);
    let (code, summary) = merged(&place);
    assert_eq!(code, Some(0), "{summary}");
    assert_eq!(summary["files"]["done"], FILES);
    assert_eq!(summary["measured_runs"], 16);
    assert!(summary["energy"]["class"].is_string());
    assert_all_protected(&place);

    // The number of shards by Slurm too, with tasks from one on.
    fs::remove_dir_all(place.path("safe")).unwrap();
    let by_slurm = job.replace("auto/16", "auto");
    assert_ne!(by_slurm, job);
    place.write("job.sh", by_slurm.as_bytes());
    assert_exit(&slurm.batch(&place, &["--array=1-3"]), 0);
    assert_all_protected(&place);
}

#[test]
#[ignore = "needs GNU parallel: make test-all"]
fn soak_of_the_recipe_for_gnu_parallel() {
    if !installed("parallel") {
        return;
    }
    let place = place();
    // On this machine instead of two others.
    let recipe = recipe(&place, "parallel -S");
    let here = recipe.replace("-S node1,node2", "-S :");
    assert_ne!(here, recipe);
    let ended =
        command(&place, "sh").args(["-c", &here]).env("HOME", place.path("")).output().unwrap();
    assert_exit(&ended, 0);
    let (code, summary) = merged(&place);
    assert_eq!(
        (code, &summary["runs"], &summary["files"]["done"]),
        (Some(0), &8.into(), &FILES.into())
    );
    assert_all_protected(&place);
}
