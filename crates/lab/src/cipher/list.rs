//! `wattlock-lab cipher --list`: what there is, what runs here, and why not.

use std::process::ExitCode;

use serde::Serialize;
use wattlock_host::exit::{self, Ended};
use wattlock_host::kernels::{Kernel, kernels};
use wattlock_report::columns::Columns;

use crate::study::{Algorithm, aes};

/// Everything that `wattlock-lab cipher` can use.
#[derive(Serialize)]
struct List {
    algorithms: Vec<Entry>,
    kernels: Vec<Kernel>,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    key_bytes: (usize, usize),
    iv_bytes: usize,
    block_bytes: usize,
    for_study_only: bool,
    kernels: &'static [&'static str],
}

pub fn print(json: bool) -> Ended {
    let tables = Kernel {
        name: aes::Kernel::TTABLE,
        algorithm: Kernel::AES,
        runs_here: true,
        chosen: false,
        measured: Some(true),
        why_not: None,
    };
    let algorithms: Vec<_> = Algorithm::ALL.into_iter().map(entry).collect();
    let is_used = |kernel: &Kernel| {
        let is_known = algorithms.iter().any(|entry| entry.kernels.contains(&kernel.name));
        is_known && kernel.algorithm != Kernel::CHACHA20_POLY1305
    };
    let used = kernels().into_iter().filter(is_used);
    let list = List { kernels: [tables].into_iter().chain(used).collect(), algorithms };
    let text = if json { serde_json::to_string_pretty(&list)? + "\n" } else { table(&list) };
    exit::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// True for a kernel of any algorithm, those that `cipher` does not have included.
pub fn is_kernel(name: &str) -> bool {
    name == aes::Kernel::TTABLE || kernels().iter().any(|kernel| kernel.name == name)
}

fn entry(algorithm: Algorithm) -> Entry {
    Entry {
        name: algorithm.name(),
        key_bytes: algorithm.key_len(),
        iv_bytes: algorithm.iv_len(),
        block_bytes: algorithm.block_len(),
        for_study_only: algorithm.for_study_only(),
        kernels: algorithm.kernels(),
    }
}

fn table(list: &List) -> String {
    let mut algorithms = Columns::new("<>><");
    algorithms.row(["algorithm", "key bytes", "IV bytes", "kernels"]);
    for entry in &list.algorithms {
        let key = match entry.key_bytes {
            (shortest, longest) if shortest == longest => shortest.to_string(),
            (shortest, longest) => format!("{shortest}-{longest}"),
        };
        let study = if entry.for_study_only { "  (for study only)" } else { "" };
        let kernels = entry.kernels.join(" ") + study;
        algorithms.row([entry.name.clone(), key, entry.iv_bytes.to_string(), kernels]);
    }
    let mut kernels = Columns::new("<");
    kernels.row(["kernel", "for", "runs here"]);
    for kernel in &list.kernels {
        let available = match &kernel.why_not {
            Some(why) => format!("no: {why}"),
            None if kernel.chosen => "yes (default)".into(),
            None => "yes".into(),
        };
        kernels.row([kernel.name.to_owned(), kernel.algorithm.to_owned(), available]);
    }
    format!("{algorithms}\n{kernels}")
}
