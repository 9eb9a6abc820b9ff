//! Sections 5.1 and 5.2: the setup and the benchmarks.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::Found;
use super::motivation::DRAWING;
use super::printed::{Line, Way};
use super::quotes::quote;
use super::rows::{claim, stated};
use super::speed::{CORES, THRESHOLD_KB};

/// Sections 5.1 and 5.2.
pub fn before_tables(found: &Found) -> Vec<Section> {
    vec![
        Section::new("Section 5.1", "setup (Figure 8)", setup(found)),
        Section::new("Section 5.2", "benchmarks", benchmarks()),
    ]
}

fn setup(found: &Found) -> Vec<Row> {
    let bits = |line: &Line| 8.0 * line.rate(Way::Eeca) * line.bytes();
    let most = found.two.iter().map(bits).fold(0.0, f64::max);
    let links = quote("S5.1-interfaces") * quote("S5.1-interface") * 1e9;
    let cycles = quote("S5.1-clock") * 1e9 / found.machine.core_rate;
    let crossing = found.machine.crossing_kb();
    let other = |name: &str, printed: &str| stated(name, printed, "another machine");
    vec![
        claim(
            (Rule::Value, Source::Print),
            "four interfaces of 10 Gbit/s are enough",
            "40 Gbit/s",
            format!("{:.1} % of them used at most", 100.0 * most / links),
            most < links,
        )
        .bound("less than all of them"),
        stated("servers", "2, of which one is the client", "models take one with 8 cores"),
        claim(
            (Rule::Value, Source::Model),
            "clock of the cores",
            "2.10 GHz",
            format!("AES-256-CBC takes {cycles:.2} cycles a byte at it"),
            (cycles / A57_CYCLES - 1.0).abs() < 0.05,
        )
        .bound("2.73 cycles in OpenSSL's notes on this core, within 5 %"),
        other("memory", "128 GB"),
        other("Linux", "4.1.27"),
        other("nginx", "1.11.6"),
        other("OpenSSL", "1.0.2j"),
        claim(
            (Rule::Value, Source::Model),
            "the threshold T",
            "8 kB",
            format!("{crossing:.1} kB: where the lines of a core and of the accelerator cross"),
            (8.0..=16.0).contains(&crossing),
        )
        .bound("within one size")
        .note("Section 2.3, from which T is said to follow, prints no number for it"),
        stated(
            "accuracy of the meter",
            "0.1 % of reading and 0.05 % of range",
            "the range is not printed",
        ),
        stated(
            "readings",
            "the maximum of each third of a second",
            "a maximum of watts is no energy; idle watts are not printed",
        ),
        stated("inputs of the meter", "2", "a definition"),
        other("the meter", "YOKOGAWA WT310E, read by WTViewerFreePlus"),
        other("what the meter sees", "the server only, at a constant room temperature"),
        stated("Figure 8: how energy is measured", "a drawing", DRAWING),
    ]
}

fn benchmarks() -> Vec<Row> {
    vec![
        stated(
            "ab reports requests a second",
            "\u{201c}how many requests per second (RPS)\u{201d}",
            "Table 2, here, is made of them",
        ),
        stated(
            "ab loads with several threads",
            "\u{201c}multiple independent threads\u{201d}",
            "ab has one thread and many connections",
        ),
        stated("seconds of a measurement of speed", "3, raised to 10", "flags set them here"),
        stated("a kilobyte of speed", "1000 B", "Table 1's kB/s are taken so"),
    ]
}

/// AES-256-CBC on a Cortex-A57 in OpenSSL's notes: 1.95 cycles for 128-bit keys, 14 rounds for 10.
const A57_CYCLES: f64 = 1.95 * 1.4;

const _: () = assert!(THRESHOLD_KB == 8 && CORES == 8.0, "the texts name them");
