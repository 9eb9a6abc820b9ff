//! A machine that is a directory, and the library that stands for NVIDIA's.

use std::fs;
use std::path::{Path, PathBuf};

use wattlock_energy::{Found, Metered, Root, Sources, Status};
use wattlock_testing::{rust_library, wait_until};

pub const UUID: &str = "GPU-01234567-89ab-cdef-0123-456789abcdef";
pub const OTHER_UUID: &str = "GPU-76543210-ba98-fedc-3210-fedcba987654";

/// A machine that is a directory, with a library of its own.
pub struct Machine(tempfile::TempDir);

impl Machine {
    /// One with neither a GPU nor a library.
    pub fn bare() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One with the library, and no GPU.
    pub fn new() -> Self {
        let machine = Self::bare();
        fs::create_dir_all(machine.path("usr/lib/nvml")).unwrap();
        fs::copy(stub(), machine.path("usr/lib/libnvidia-ml.so.1")).unwrap();
        machine
    }

    /// Adds an H200 that answers as these say.
    pub fn gpu(self, index: u32, answers: &[(&str, &str)]) -> Self {
        let uuid = [UUID, OTHER_UUID][index as usize];
        fs::create_dir_all(self.path(&format!("usr/lib/nvml/gpu{index}"))).unwrap();
        for (file, text) in [
            ("uuid", uuid),
            ("name", "NVIDIA H200"),
            ("limits_mw", "200000 700000"),
            ("limit_mw", "600000"),
            ("memory_mhz", "1593 3201 2619"),
            ("graphics_mhz", "1980 1965 1410 345"),
            ("clock_mhz", "345"),
        ] {
            self.says(&format!("gpu{index}/{file}"), text);
        }
        for (file, text) in answers {
            self.says(&format!("gpu{index}/{file}"), text);
        }
        self
    }

    /// Adds a K20M: pairs of clocks, and neither lock.
    pub fn k20m(self) -> Self {
        self.gpu(
            0,
            &[
                ("name", "Tesla K20m"),
                ("memory_mhz", "2600 324"),
                ("graphics_mhz", "758 705 666 640 614"),
                ("graphics_mhz_324", "324"),
                ("applications_mhz", "2600 705"),
                ("no_locks", ""),
                ("no_memory_lock", ""),
            ],
        )
    }

    /// Adds packages with a counter.
    pub fn package(self) -> Self {
        self.file("sys/class/powercap/intel-rapl:0/name", "package-0");
        self.file("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850");
        self.joules(0.0);
        self
    }

    /// What the packages' counter shows.
    pub fn joules(&self, joules: f64) {
        let uj = ((joules * 1e6) as u64).to_string();
        self.file("sys/class/powercap/intel-rapl:0/energy_uj", &uj);
    }

    /// Has the library answer so, at once: it may be reading.
    pub fn says(&self, file: &str, text: &str) {
        self.file("usr/lib/nvml/new", text);
        fs::rename(self.path("usr/lib/nvml/new"), self.path("usr/lib/nvml").join(file)).unwrap();
    }

    pub fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub fn root(&self) -> Root {
        Root::new(self.0.path())
    }

    pub fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("usr/lib/nvml/log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Waits until a GPU's sensor has been read `times` more times.
    pub fn wait_for_reads(&self, times: usize) {
        let reads = || self.log().iter().filter(|line| line.starts_with("power ")).count();
        let before = reads();
        wait_until("the GPU is read", || reads() >= before + times);
    }

    /// What was set.
    pub fn settings(&self) -> Vec<String> {
        let setting = |line: &String| {
            ["lock ", "unlock ", "limit ", "applications "]
                .iter()
                .any(|what| line.starts_with(what))
        };
        self.log().into_iter().filter(setting).collect()
    }

    /// The joules between the first and the last read of a GPU's counter since line `from`.
    pub fn counted(&self, gpu: u32, from: usize) -> u64 {
        let log = self.log();
        let reads = log[from..]
            .iter()
            .filter_map(|line| line.strip_prefix(&format!("energy {gpu} "))?.parse::<u64>().ok());
        let reads: Vec<_> = reads.collect();
        assert!(reads.len() >= 2, "{log:?}");
        (reads[reads.len() - 1] - reads[0]) * 1000
    }

    pub fn sources(&self) -> Sources {
        Sources::open(&self.root())
    }

    pub fn found(&self) -> Vec<Found> {
        self.sources().found().iter().filter(|found| found.source == "nvml").cloned().collect()
    }

    /// The only line about NVML, which must say that nothing is read.
    pub fn refusal(&self) -> Found {
        let found = self.found();
        assert_eq!((found.len(), found[0].status), (1, Status::Unavailable), "{found:?}");
        found[0].clone()
    }

    pub fn measure(&self, work: impl FnOnce()) -> Metered {
        self.sources().measure(work).unwrap().1
    }
}

/// The library, compiled once from `stub.rs`, which is no part of these tests.
fn stub() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/nvml/stub.rs");
    rust_library("nvml_stub", &source, Path::new(env!("CARGO_TARGET_TMPDIR")))
}
