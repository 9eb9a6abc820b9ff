//! Documents for the tests of reports.

use serde_json::{Value, json};

/// Results of a kind.
pub fn document(kind: &str, rows: &[Value]) -> Value {
    json!({
        "schema": "wattlock-results/1",
        "kind": kind,
        "created_unix_s": 1_795_266_478,
        "machine": {
            "cpu": "A CPU", "cpu_id": "family 1", "cpus": 2, "virtual_machine": false,
            "memory_bytes": 8_589_934_592_u64,
        },
        "tools": { "wattlock": "0.1.0" },
        "settings": { "rounds": 3 },
        "rows": rows,
        "ratios": [],
    })
}

/// A row of 1000 bytes in `median_ns` nanoseconds.
pub fn row(tool: &str, case: &str, median_ns: u64) -> Value {
    let sample = json!({
        "median": median_ns, "min": median_ns, "max": median_ns + 9, "mad": 4, "values": [median_ns],
    });
    json!({
        "tool": tool, "case": case, "call_bytes": 1000, "bytes": 1000,
        "wall_ns": sample, "cpu_ns": sample,
    })
}

/// The row with an energy of 10^9 bytes, gross and net.
pub fn with_energy(mut row: Value, energy: &Value) -> Value {
    row["energy_bytes"] = json!(1_000_000_000);
    row["energy"] = energy.clone();
    row["net"] = energy.clone();
    row
}

/// Joules from a sensor, 2 % off at most.
pub fn counted(class: &str, best_uj: u64) -> Value {
    json!({
        "class": class,
        "energy_uj": { "lo": best_uj - best_uj / 50, "best": best_uj, "hi": best_uj + best_uj / 50 },
        "covers": ["package-0", "dram"], "gaps": [], "caveats": ["whole-machine"],
    })
}

/// Joules from a model.
pub fn modelled(lo: u64, hi: u64) -> Value {
    json!({
        "class": "modelled", "energy_model_uj": { "lo": lo, "hi": hi },
        "covers": ["cpu"], "gaps": [], "caveats": ["utilisation-only"],
    })
}
