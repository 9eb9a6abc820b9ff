//! `wattlock-lab bench ciphers --submit`: the results in a file that can be given away. It is made of
//! what is named here; a host, a user, a path and a serial number are not among it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};
use wattlock_engine::crypto::{AesKernel, GcmKernel, KeccakKernel, ShaKernel};
use wattlock_report::results::Results;

/// Writes the file.
///
/// # Errors
/// That it cannot be written.
pub fn write(results: &Results, path: &Path) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(&document(results))? + "\n";
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Results of the same schema, with the CPU's features and our choice of kernels.
fn document(results: &Results) -> Value {
    let machine = results.machine.as_ref().map(|machine| {
        // Builders add names of their own behind the version.
        let kernel = machine.kernel.split(['-', '+', '_']).next();
        json!({
            "cpu": machine.processor.cpu,
            "cpu_id": machine.processor.cpu_id,
            "cpus": machine.processor.cpus,
            "cores": cores(),
            "caches": caches(),
            "virtual_machine": machine.processor.virtual_machine,
            "features": features(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            "architecture": std::env::consts::ARCH,
            "memory_bytes": machine.memory_bytes,
            "kernel": kernel,
            "system": machine.system,
        })
    });
    // The message of a loader may hold a path.
    let skipped = results.skipped.iter().map(|why| match why.contains('/') {
        true => why.split([':', '(']).next().unwrap_or_default().trim(),
        false => why,
    });
    // What --only asked for is a part of a case's name, or nothing was measured.
    let settings = results.settings.iter().map(|(name, value)| (name.clone(), value.clone()));
    let mut settings = serde_json::Map::from_iter(settings);
    settings.insert("aes".into(), json!(AesKernel::best().name()));
    settings.insert("keccak".into(), json!(KeccakKernel::best().name()));
    settings.insert("sha".into(), json!(ShaKernel::best().name()));
    settings.insert("gcm".into(), json!(GcmKernel::best().name()));
    json!({
        "schema": results.schema,
        "kind": results.kind,
        "created_unix_s": results.created_unix_s,
        "commit": results.commit,
        "build": results.build,
        "warnings": results.warnings,
        "load_before": results.load_before,
        "load_during": results.load_during,
        "machine": machine,
        "tools": results.tools,
        "settings": settings,
        "bounds": results.bounds,
        "rows": results.rows,
        "ratios": results.ratios,
        "skipped": skipped.collect::<Vec<_>>(),
        "advice": results.advice,
    })
}

/// Cores, as far as the system says which CPUs are threads of one.
fn cores() -> Option<usize> {
    let cpus = fs::read_dir("/sys/devices/system/cpu").ok()?.flatten();
    let siblings = cpus.filter_map(|cpu| {
        fs::read_to_string(cpu.path().join("topology/thread_siblings_list")).ok()
    });
    Some(siblings.collect::<BTreeSet<_>>().len()).filter(|cores| *cores > 0)
}

/// The caches of the first CPU, as the system names and measures them: "L1 Data": "48K".
fn caches() -> BTreeMap<String, String> {
    let folder = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").into_iter().flatten().flatten();
    let cache = folder.filter_map(|cache| {
        let of = |name: &str| fs::read_to_string(cache.path().join(name)).ok();
        let name = format!("L{} {}", of("level")?.trim(), of("type")?.trim());
        Some((name, of("size")?.trim().to_owned()))
    });
    cache.collect()
}

/// The CPU's features that matter to ciphers, from `/proc/cpuinfo` of x86-64 or ARM.
fn features(cpuinfo: &str) -> Vec<&str> {
    let line =
        cpuinfo.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
    let words = line.and_then(|line| line.split_once(':')).map_or("", |(_, words)| words);
    words
        .split_whitespace()
        .filter(|word| OF_INTEREST.iter().any(|of| word.starts_with(of)))
        .collect()
}

const OF_INTEREST: [&str; 17] = [
    "aes", "avx", "vaes", "gfni", "vpclmul", "pclmul", "sha", "sse", "ssse3", "bmi", "adx",
    "asimd", "pmull", "sve", "sm3", "sm4", "neon",
];
