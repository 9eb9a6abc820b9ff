//! What was measured, on the terminal as it comes, and as JSON in the end.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use wattlock_engine::Processor;
use wattlock_gpu::cuda::{Info, Options, Version};

pub struct Results {
    machine: Value,
    settings: Value,
    rows: Vec<Value>,
    wrong: bool,
}

impl Results {
    pub fn new(info: &Info, driver: Version, options: Options) -> Self {
        let cpu = Processor::here();
        println!("{} ({}), CUDA {driver}", info.name, info.uuid);
        println!(
            "  {} multiprocessors, {} kHz, {} bytes of shared memory a block, {} bytes of memory",
            info.multiprocessors, info.clock_khz, info.shared_bytes, info.memory_bytes
        );
        println!("{cpu}");
        println!(
            "  {} slots of {} bytes, {:?}",
            options.slots, options.piece_bytes, options.tables
        );
        let machine = json!({
            "cpu": cpu.cpu,
            "cpu_id": cpu.cpu_id,
            "cpus": cpu.cpus,
            "virtual_machine": cpu.virtual_machine,
            "gpu": info.name,
            "gpu_uuid": info.uuid,
            "gpu_capability": format!("{}.{}", info.capability.0, info.capability.1),
            "gpu_multiprocessors": info.multiprocessors,
            "gpu_clock_khz": info.clock_khz,
            "gpu_memory_bytes": info.memory_bytes,
            "gpu_shared_bytes": info.shared_bytes,
            "cuda": driver.to_string(),
        });
        let settings = json!({
            "slots": options.slots,
            "piece_bytes": options.piece_bytes,
            "tables": format!("{:?}", options.tables),
        });
        Self { machine, settings, rows: Vec::new(), wrong: false }
    }

    /// A line that is no row.
    pub fn say(&self, line: &str) {
        println!("{line}");
    }

    /// Something that had to be right, and whether it was.
    pub fn check(&mut self, case: &str, right: bool) {
        println!("{:60} {}", case, if right { "right" } else { "WRONG" });
        self.wrong |= !right;
        self.rows.push(json!({ "tool": "wattlock", "case": case, "right": right }));
    }

    /// Seconds that something took, each time.
    pub fn times(&mut self, case: &str, bytes: usize, seconds: &[f64]) -> f64 {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];
        let spread = 100.0 * (sorted[sorted.len() - 1] - sorted[0]) / median;
        let rate = bytes as f64 / median / 1e9;
        println!("{case:60} {rate:9.2} GB/s  (spread {spread:.0} %)");
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        self.rows.push(json!({
            "tool": "wattlock",
            "case": case,
            "bytes": bytes,
            "wall_ns": {
                "median": ns(median),
                "min": ns(sorted[0]),
                "max": ns(sorted[sorted.len() - 1]),
                "values": seconds.iter().map(|s| ns(*s)).collect::<Vec<_>>(),
            },
        }));
        bytes as f64 / median
    }

    /// Any other figure, with its unit in the key.
    pub fn figure(&mut self, case: &str, key: &str, value: f64) {
        println!("{case:60} {value:14.3} {key}");
        self.rows.push(json!({ "tool": "wattlock", "case": case, key: value }));
    }

    /// True if something was not right.
    pub fn wrong(&self) -> bool {
        self.wrong
    }

    pub fn json(&self) -> String {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let document = json!({
            "schema": "wattlock-results/1",
            "kind": "gpu",
            "created_unix_s": created,
            "machine": self.machine,
            "tools": { "wattlock": env!("CARGO_PKG_VERSION") },
            "settings": self.settings,
            "rows": self.rows,
        });
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }
}
