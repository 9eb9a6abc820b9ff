//! Processes of brokers.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use wattlock_testing::{Place, free_port, has_program, skip, wait_for};

/// A broker, which is a controller of its cluster, too.
pub struct Broker {
    process: Option<Child>,
    port: u16,
    place: Place,
    jars: PathBuf,
    /// Megabytes of Java's heap.
    heap: u32,
}

/// What brokers have in addition.
#[derive(Default)]
pub struct More<'a> {
    /// Where they listen, too: begins with a comma.
    pub listeners: &'a str,
    /// Lines of settings.
    pub lines: &'a str,
    /// Options of the program that makes the folder of their data.
    pub format: &'a [&'a str],
}

impl Broker {
    /// Starts the brokers of a new cluster; `None`, with the reason said, if Java or the jars are missing.
    pub fn of_a_cluster(count: usize, more: &More<'_>) -> Option<Vec<Self>> {
        let jars = root().join("target/kafka/lib");
        if !has_program("java") {
            return None;
        }
        if !jars.is_dir() {
            skip("kafka", "there are no jars in target/kafka; `./.ci/prepare kafka` fetches them");
            return None;
        }
        let common = fs::read_to_string(root().join("testing/kafka/server.properties")).unwrap();
        let controllers: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let voter = |(at, port): (usize, &u16)| format!("{}@127.0.0.1:{port}", at + 1);
        let voters: Vec<_> = controllers.iter().enumerate().map(voter).collect();
        let broker = |(at, controller)| {
            let (place, port) = (Place::new(), free_port());
            let settings = format!(
                "{common}node.id={}\nlog.dirs={}\ncontroller.quorum.voters={}\n\
                 listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{}\n{}\n",
                at + 1,
                place.path("logs").display(),
                voters.join(","),
                more.listeners,
                more.lines,
            );
            place.write("server.properties", settings.as_bytes());
            let heap = if count == 1 { 768 } else { 256 };
            Self { process: None, port, place, jars: jars.clone(), heap }
        };
        let mut brokers: Vec<Self> = controllers.iter().enumerate().map(broker).collect();
        let formatting: Vec<Child> = brokers.iter().map(|one| one.format(more.format)).collect();
        for process in formatting {
            let formatted = process.wait_with_output().unwrap();
            assert!(formatted.status.success(), "{}", String::from_utf8_lossy(&formatted.stderr));
        }
        brokers.iter_mut().for_each(Self::start);
        brokers.iter().for_each(Self::wait_until_it_serves);
        Some(brokers)
    }

    /// Where its clients without TLS connect.
    pub fn server(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub fn restart(&mut self) {
        self.start();
        self.wait_until_it_serves();
    }

    /// Makes the folder of its data.
    fn format(&self, options: &[&str]) -> Child {
        let id = "MkU3OEVBNTcwNTJENDM2Qg";
        self.java()
            .args(["kafka.tools.StorageTool", "format", "-t", id, "-c"])
            .arg(self.place.path("server.properties"))
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn start(&mut self) {
        let file = |name: &str| File::create(self.place.path(name)).unwrap();
        let process = self
            .java()
            .arg("kafka.Kafka")
            .arg(self.place.path("server.properties"))
            .stdout(file("broker.log"))
            .stderr(file("broker.err"))
            .spawn()
            .unwrap();
        self.process = Some(process);
    }

    fn wait_until_it_serves(&self) {
        wait_for(|| {
            let said = |name: &str| fs::read_to_string(self.place.path(name)).unwrap();
            let said = said("broker.log") + &said("broker.err");
            if said.contains("Kafka Server started") { Ok(()) } else { Err(said) }
        });
    }

    /// A program of Kafka, whose name is missing yet.
    pub fn java(&self) -> Command {
        let mut java = Command::new("java");
        // It starts sooner without its best compiler.
        java.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
        java.arg(format!("-Xmx{}m", self.heap)).arg("-cp").arg(self.jars.join("*"));
        java.stdin(Stdio::null());
        java
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
