//! What is measured for the paper, and how its rows are found.

use wattlock_report::paper::{Row, Rule, Source};
use wattlock_report::results::{Results, Row as Measured};

use super::printed::said;
use crate::paper::live::NOT_MEASURED;

/// The listing of the study, as a kernel's name.
pub const LISTING: &str = "listing";

/// The study's extended blocks.
pub const EXTENDED: [usize; 4] = [512, 1024, 2048, 4096];

/// The key of everything that is measured. It protects nothing.
pub const KEY: [u8; 16] = [0x42; 16];

/// What was measured on this machine, if anything was.
#[derive(Clone, Copy)]
pub struct Live<'a>(pub Option<&'a Results>);

impl<'a> Live<'a> {
    /// The listing's row with blocks of so many bytes.
    pub fn listing(self, megabytes: usize, block: usize, threads: usize) -> Option<&'a Measured> {
        let case = case(block, megabytes);
        self.0?.rows.iter().find(|row| {
            row.case == case
                && row.kernel.as_deref() == Some(LISTING)
                && row.threads == Some(threads)
        })
    }

    /// What blocks of 1 KB gain over 16 bytes in CPU time, each at its best.
    pub fn cpu_gain(self, megabytes: usize, threads: usize) -> Option<f64> {
        let time = |block| Some(&self.listing(megabytes, block, threads)?.cpu_ns);
        Some(time(16)?.over(time(1024)?))
    }

    /// The row of a device with blocks of so many bytes.
    pub fn on_device(self, megabytes: usize, block: usize) -> Option<&'a Measured> {
        let case = case(block, megabytes);
        self.0?.rows.iter().find(|row| row.case == case && row.device.is_some())
    }

    /// The name of the device; if it is a CPU, with that.
    pub fn device(self) -> Option<(&'a str, bool)> {
        let results = self.0?;
        let name = results.rows.iter().find_map(|row| row.device.as_deref())?;
        Some((name, results.settings.contains_key(DEVICE_IS_A_CPU)))
    }

    /// The row that splits single blocks among so many threads.
    pub fn fine(self, threads: usize) -> Option<&'a Measured> {
        self.of_short(FINE, threads)
    }

    /// The row of the same message in whole blocks.
    pub fn whole(self, threads: usize) -> Option<&'a Measured> {
        self.of_short(WHOLE, threads)
    }

    fn of_short(self, kind: &str, threads: usize) -> Option<&'a Measured> {
        let rows = &self.0?.rows;
        rows.iter().find(|row| row.case.starts_with(kind) && row.threads == Some(threads))
    }

    /// The largest message that was measured, in MB.
    pub fn largest(self) -> Option<usize> {
        let rows = self.0?.rows.iter();
        let sizes = rows.filter_map(|row| {
            row.case.strip_prefix("coarse, 16 bytes, ")?.strip_suffix(" MB")?.parse().ok()
        });
        sizes.max()
    }

    /// CPUs of the machine.
    pub fn cpus(self) -> Option<usize> {
        Some(self.0?.machine.as_ref()?.processor.cpus)
    }
}

/// The name of a message in blocks of so many bytes.
pub fn case(block: usize, megabytes: usize) -> String {
    match block {
        16 => format!("coarse, 16 bytes, {megabytes} MB"),
        _ => format!("extended, {block} bytes, {megabytes} MB"),
    }
}

/// The message of single blocks that threads share, as rows name it.
pub const FINE: &str = "fine, inside a block";
/// The same message in whole blocks.
pub const WHOLE: &str = "coarse, the message of fine";

/// A number of the text that ours has to be.
pub fn exact(id: &str, item: &str, ours: &impl ToString) -> Row {
    let (printed, unit) = said(id);
    let ours = ours.to_string();
    let row = Row::claim(Rule::Value, item, &ours, ours == printed, Source::Exact);
    row.printed(&format!("{printed} {unit}")).bound("the same")
}

/// A claim that is measured here: what was found, and whether that agrees with it by the bound.
pub fn held_live(
    rule: Rule,
    item: &str,
    printed: &str,
    found: Option<(String, bool)>,
    live: Live<'_>,
) -> Row {
    let row = match found {
        Some((ours, holds)) => Row::claim(rule, item, &ours, holds, Source::Live),
        None if live.0.is_some() => {
            Row::printed_only(rule, item, Source::Live).not_here("not measured in so short a run")
        }
        None => Row::printed_only(rule, item, Source::Live).not_here(NOT_MEASURED),
    };
    row.printed(printed)
}

/// The setting that says that the device is OpenCL on the CPU.
pub const DEVICE_IS_A_CPU: &str = "device_is_a_cpu";
