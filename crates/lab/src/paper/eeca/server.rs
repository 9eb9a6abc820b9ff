//! Table 2 in virtual time: what a page costs a core of the paper's web server.
//!
//! Requests a second are those of eight busy cores. The printed cell of the instruction set is the
//! starting point of each page, because a smooth line through that column misses by 7 %, more than
//! most effects. The cost of a call is fitted to the accelerator's column. Of EECA's column one cell
//! is used, that of 1 kB, for pages that stay with the instruction set.

use super::printed::{Line, Way, Which};
use super::speed::{CORES, Machine, THRESHOLD_KB, straight};

/// Bytes of the answer's header.
pub const HEADER: u64 = 241;

/// The largest record of TLS.
pub const RECORD: u64 = 16 << 10;

/// The server, as Table 2 shows it.
#[derive(Clone, Debug)]
pub struct Server {
    pub lines: Vec<Line>,
    /// Bytes a microsecond of a core that encrypts by the instruction set, and by software.
    set_rate: f64,
    software_rate: f64,
    /// Microseconds of a core for a call of the accelerator, by Table 2's column.
    pub call_us: f64,
    /// The same in Table 1, where nothing else is done.
    pub speed_call_us: f64,
    /// Bytes a microsecond of the accelerator.
    pub device_rate: f64,
    /// Microseconds that EECA adds to a page that the instruction set encrypts: the 1 kB cells.
    pub check_us: f64,
    /// What software takes beside AES: microseconds a page, and a byte.
    pub software_us: f64,
    pub software_us_per_byte: f64,
}

/// A way to reckon what a page costs when the accelerator encrypts it.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    pub name: &'static str,
    /// Microseconds of a core for a call.
    pub call_us: f64,
    /// How much of the core's AES time a call saves.
    pub saved: f64,
    /// Whether the worker waits while the accelerator works.
    pub waits: bool,
}

impl Server {
    /// The server of the printed table, with what the machine's Table 1 says of AES.
    pub fn printed(machine: &Machine) -> Self {
        let lines = Which::Two.lines();
        let mut server = Self {
            set_rate: machine.core_rate / 1e6,
            software_rate: machine.software_rate / 1e6,
            call_us: 0.0,
            speed_call_us: machine.device.call_ns / 1e3,
            device_rate: machine.device.rate / 1e6,
            check_us: core_us(&lines[0], Way::Eeca) - core_us(&lines[0], Way::InstructionSet),
            software_us: 0.0,
            software_us_per_byte: 0.0,
            lines,
        };
        server.call_us = server.fitted_call();
        (server.software_us, server.software_us_per_byte) = server.fitted_software();
        server
    }

    /// Microseconds of a core for AES of a page by the instruction set.
    pub fn aes_us(&self, line: &Line) -> f64 {
        line.bytes() / self.set_rate
    }

    /// The same by software.
    pub fn software_aes_us(&self, line: &Line) -> f64 {
        line.bytes() / self.software_rate
    }

    /// The least sum of `((IS - AES + records call) / HW - 1)²`.
    fn fitted_call(&self) -> f64 {
        let (mut top, mut bottom) = (0.0, 0.0);
        for line in &self.lines {
            let accelerator = core_us(line, Way::Accelerator);
            let records = records(line.kb) as f64 / accelerator;
            let rest = (core_us(line, Way::InstructionSet) - self.aes_us(line)) / accelerator;
            top += records * (1.0 - rest);
            bottom += records * records;
        }
        top / bottom
    }

    /// The same of two unknowns: the call, and how much of AES it saves, with `more` calls a page
    /// than records.
    pub fn fitted_saving(&self, cells: &[Line], more: f64) -> (f64, f64) {
        let [mut aa, mut an, mut nn, mut ya, mut yn] = [0.0; 5];
        for line in cells {
            let accelerator = core_us(line, Way::Accelerator);
            let aes = -self.aes_us(line) / accelerator;
            let calls = (records(line.kb) as f64 + more) / accelerator;
            let rest = 1.0 - core_us(line, Way::InstructionSet) / accelerator;
            aa += aes * aes;
            an += aes * calls;
            nn += calls * calls;
            ya += aes * rest;
            yn += calls * rest;
        }
        let determinant = aa * nn - an * an;
        ((yn * aa - ya * an) / determinant, (ya * nn - yn * an) / determinant)
    }

    /// What software takes more than the instruction set beside AES, as a start and a slope.
    fn fitted_software(&self) -> (f64, f64) {
        let more = |line: &Line| {
            core_us(line, Way::Software)
                - core_us(line, Way::InstructionSet)
                - self.software_aes_us(line)
                + self.aes_us(line)
        };
        straight(
            self.lines.iter().map(|line| (line.bytes(), more(line), core_us(line, Way::Software))),
        )
    }

    /// Requests a second by one way alone, as fitted.
    pub fn single(&self, way: Way, line: &Line) -> f64 {
        let set = core_us(line, Way::InstructionSet);
        let us = match way {
            Way::Software => {
                set + self.software_aes_us(line) - self.aes_us(line)
                    + self.software_us
                    + self.software_us_per_byte * line.bytes()
            }
            Way::Accelerator => set - self.aes_us(line) + records(line.kb) as f64 * self.call_us,
            Way::InstructionSet | Way::Eeca => set,
        };
        per_second(us)
    }

    /// The model that was chosen before it was compared: one call a page, at the cost of Table 2.
    pub fn main(&self) -> Variant {
        Variant { name: "main model", call_us: self.call_us, saved: 1.0, waits: false }
    }

    /// All ways to reckon, to see what the choice decides.
    pub fn variants(&self) -> [Variant; 6] {
        let (free_call, free) = self.fitted_saving(&self.lines, 0.0);
        let variant = |name, call_us, saved, waits| Variant { name, call_us, saved, waits };
        [
            self.main(),
            variant("main model, the worker waits", self.call_us, 1.0, true),
            variant("call of Table 1", self.speed_call_us, 1.0, false),
            variant("call of Table 1, the worker waits", self.speed_call_us, 1.0, true),
            variant("saving fitted", free_call, free, false),
            variant("saving fitted, the worker waits", free_call, free, true),
        ]
    }

    /// Requests a second of EECA: above the threshold as the variant says, below with the check.
    pub fn eeca(&self, line: &Line, variant: Variant) -> f64 {
        if line.kb > THRESHOLD_KB {
            per_second(self.accelerated_us(line, variant, 1.0))
        } else {
            per_second(core_us(line, Way::InstructionSet) + self.check_us)
        }
    }

    /// The same with a call for each record: without reconstruction.
    pub fn without_reconstruction(&self, line: &Line, variant: Variant) -> f64 {
        per_second(self.accelerated_us(line, variant, records(line.kb) as f64))
    }

    fn accelerated_us(&self, line: &Line, variant: Variant, calls: f64) -> f64 {
        let wait = if variant.waits { line.bytes() / self.device_rate } else { 0.0 };
        core_us(line, Way::InstructionSet) - variant.saved * self.aes_us(line)
            + calls * variant.call_us
            + wait
    }

    /// Requests a second if what comes to the scheduler is what a provider of OpenSSL sees: writes
    /// of libssl rather than pages. A page of T bytes counts as T, as in the bench: its header is added
    /// to the threshold.
    pub fn by_writes(&self, line: &Line, call_us: f64) -> f64 {
        let large = large_writes(line.kb);
        if large.is_empty() {
            return per_second(core_us(line, Way::InstructionSet) + self.check_us);
        }
        let saved = large.iter().sum::<u64>() as f64 / self.set_rate;
        per_second(core_us(line, Way::InstructionSet) - saved + large.len() as f64 * call_us)
    }
}

/// Microseconds of a core that a printed cell gives for a page.
pub fn core_us(line: &Line, way: Way) -> f64 {
    CORES * 1e6 / line.rate(way)
}

fn per_second(us: f64) -> f64 {
    CORES * 1e6 / us
}

/// Records of a page and its header.
pub fn records(kb: u64) -> u64 {
    ((kb << 10) + HEADER).div_ceil(RECORD)
}

/// The requests that a provider sees of a page: libssl hands over a write of 64 KiB or more as four
/// or eight records at a time, and the rest record by record. nginx writes 124 KiB at most.
pub fn writes(kb: u64) -> Vec<u64> {
    let mut requests = Vec::new();
    let mut left = (kb << 10) + HEADER;
    while left > 0 {
        let mut write = left.min(WRITE);
        left -= write;
        if write >= LEAST_TOGETHER {
            while write >= 4 * TOGETHER {
                let taken = if write >= 8 * TOGETHER { 8 * TOGETHER } else { 4 * TOGETHER };
                requests.push(taken);
                write -= taken;
            }
        }
        while write > 0 {
            let taken = write.min(RECORD);
            requests.push(taken);
            write -= taken;
        }
    }
    requests
}

/// Those of them that are the accelerator's.
pub fn large_writes(kb: u64) -> Vec<u64> {
    let threshold = (THRESHOLD_KB << 10) + HEADER;
    writes(kb).into_iter().filter(|bytes| *bytes > threshold).collect()
}

/// `SSL_write` of nginx with `ssl_buffer_size 124k`.
const WRITE: u64 = 124 << 10;

/// Bytes of each record that libssl hands over with others.
const TOGETHER: u64 = 15_872;

/// The least write of which it does.
const LEAST_TOGETHER: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::eeca::printed::gain;

    fn server() -> Server {
        Server::printed(&Machine::printed())
    }

    #[track_caller]
    fn near(found: f64, wanted: f64, by: f64) {
        assert!((found - wanted).abs() <= by, "{found} instead of {wanted}");
    }

    /// What a throughput gains over the printed one of the instruction set, from 16 kB on.
    fn gains(server: &Server, rate: impl Fn(&Line) -> f64) -> Vec<f64> {
        let above = server.lines[3..].iter();
        above.map(|line| gain(rate(line), line.rate(Way::InstructionSet))).collect()
    }

    #[track_caller]
    fn all_near(found: &[f64], wanted: [f64; 8]) {
        assert_eq!(found.len(), wanted.len());
        found.iter().zip(wanted).for_each(|(found, wanted)| near(*found, wanted, 0.06));
    }

    #[test]
    fn a_call_costs_four_times_what_table_1_shows() {
        let server = server();
        near(server.call_us, 58.9, 0.06);
        near(server.call_us / server.speed_call_us, 4.06, 0.02);
        let errors = server
            .lines
            .iter()
            .map(|line| gain(server.single(Way::Accelerator, line), line.rate(Way::Accelerator)));
        let errors: Vec<f64> = errors.collect();
        near(errors[2], 9.95, 0.03);
        assert!(errors.iter().enumerate().all(|(index, error)| index == 2 || error.abs() < 4.2));
        let software = server
            .lines
            .iter()
            .map(|line| gain(server.single(Way::Software, line), line.rate(Way::Software)).abs());
        assert!(software.into_iter().all(|error| error < 5.0));
    }

    #[test]
    fn the_main_model_and_its_variants() {
        let server = server();
        let variants = server.variants();
        let found = |index: usize| gains(&server, |line| server.eeca(line, variants[index]));
        all_near(&found(0), [-13.9, -4.8, 6.0, 15.8, 23.0, 27.7, 30.0, 31.4]);
        all_near(&found(2), [3.2, 10.2, 17.2, 23.4, 27.6, 30.2, 31.3, 32.1]);
        all_near(&found(5), [-14.0, -2.1, 12.4, 26.7, 37.8, 45.3, 48.9, 51.4]);
        let errors = server.lines[3..]
            .iter()
            .map(|line| gain(server.eeca(line, server.main()), line.rate(Way::Eeca)));
        let errors: Vec<f64> = errors.collect();
        all_near(&errors, [-12.5, -6.3, -1.5, -7.0, -10.8, -9.5, -9.0, -7.4]);
        let last = &server.lines[10];
        let alone = |variant| {
            gain(server.without_reconstruction(last, variant), last.rate(Way::InstructionSet))
        };
        near(alone(variants[0]), -29.9, 0.06);
        near(alone(variants[2]), 8.6, 0.06);
    }

    #[test]
    fn how_much_a_call_saves_is_not_in_the_table() {
        let server = server();
        let not_8: Vec<Line> = server.lines.iter().filter(|line| line.kb != 8).cloned().collect();
        let cells = [(&server.lines[..], 0.0), (&not_8, 0.0), (&server.lines[3..], 0.0)];
        let more = [(&server.lines[..], 1.0)];
        let found =
            cells.into_iter().chain(more).map(|(cells, more)| server.fitted_saving(cells, more));
        let wanted = [(68.0, 1.54), (65.3, 1.42), (62.8, 1.29), (31.9, -0.14)];
        for ((call, saved), wanted) in found.zip(wanted) {
            near(call, wanted.0, 0.06);
            near(saved, wanted.1, 0.006);
        }
    }

    #[test]
    fn a_page_is_several_requests_to_a_provider() {
        let counts = [1, 2, 8, 16, 32, 64, 128, 256, 512, 1024, 2048].map(|kb| {
            let all = writes(kb);
            assert_eq!(all.iter().sum::<u64>(), (kb << 10) + HEADER);
            (large_writes(kb).len(), all.len(), records(kb))
        });
        assert_eq!(
            counts,
            [
                (0, 1, 1),
                (0, 1, 1),
                (0, 1, 1),
                (1, 2, 2),
                (2, 3, 3),
                (1, 2, 5),
                (1, 2, 9),
                (2, 3, 17),
                (5, 6, 33),
                (10, 11, 65),
                (17, 18, 129),
            ]
        );
        let server = server();
        let found = gains(&server, |line| server.by_writes(line, server.call_us));
        all_near(&found, [-13.9, -19.3, 5.3, 14.9, 16.5, 15.8, 16.1, 18.5]);
    }
}
