//! How a run is split between the CPU and accelerators: by a ratio, or as it comes.

use std::time::Duration;

use super::cost::Cost;
use super::{Accelerator, Devices, Load, auto};

/// SEFPS Eq. 1: the ratio of a GPU's computing power to that of the machine's CPU.
///
/// `multiprocessors` (Gmp) of `warp_size` threads (Ws) at `gpu_mhz` (Gf), against `cores` (Cc), one
/// of which serves the GPU, at `cpu_mhz` (Cf). Nothing in it knows how bytes reach the GPU, so that
/// for data in host memory it promises a GPU far too much: kept for comparison.
pub fn sefps_ratio(
    multiprocessors: u32,
    warp_size: u32,
    gpu_mhz: f64,
    cores: u32,
    cpu_mhz: f64,
) -> f64 {
    let gpu = f64::from(multiprocessors) * f64::from(warp_size) * gpu_mhz;
    gpu / (f64::from(cores.saturating_sub(1)) * cpu_mhz)
}

/// Chunks that the CPU gets of `chunks` when accelerators get `ratio` times as much (the listings of
/// SEFPS, lines 18 and 9): rounded down.
pub(super) fn cpu_share(ratio: f64, chunks: u64) -> u64 {
    if ratio.is_nan() || ratio <= 0.0 {
        return chunks;
    }
    // A float is inexact from 2^53 chunks on, which no run has.
    (chunks as f64 / (ratio + 1.0)) as u64
}

/// What an accelerator may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Chunks of a piece while there are plenty.
    pub full: u64,
    /// Chunks of the smallest piece that is worth the trip.
    pub least: u64,
    /// Pieces that it keeps in flight.
    pub slots: u64,
    /// True if the CPU does the rest, so that the accelerator may leave it.
    pub may_decline: bool,
    /// How fast both are, if that was measured.
    pub times: Option<ChunkTimes>,
}

/// How long an accelerator and the CPU take for a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChunkTimes {
    /// What the accelerator takes before its first chunk.
    pub startup: Duration,
    /// What it takes for each after that, in seconds.
    pub accelerator_s: f64,
    /// What all CPU workers together take for each, in seconds.
    pub cpu_s: f64,
}

impl Terms {
    /// The terms of `accelerator` for this load.
    pub(super) fn new(
        load: &Load,
        accelerator: &Accelerator,
        cpu: Option<&Cost>,
        may_decline: bool,
    ) -> Self {
        let slots = accelerator.slots.max(1) as u64;
        let largest = if load.in_order { IN_ORDER } else { LARGEST };
        let smallest = if load.in_order { LEAST } else { SMALLEST };
        let suits = load.bytes.map_or(smallest, |bytes| bytes / (8 * slots));
        let chunks = |bytes: u64| (bytes / load.slot_len as u64).max(1);
        let times = accelerator.cost.as_ref().zip(cpu).map(|(accelerator, cpu)| ChunkTimes {
            startup: accelerator.startup,
            accelerator_s: load.chunk_len as f64 / accelerator.bytes_per_second,
            cpu_s: load.chunk_len as f64 / cpu.bytes_per_second,
        });
        let full = chunks(suits.clamp(smallest, largest));
        Self { full, least: chunks(LEAST).min(full), slots, may_decline, times }
    }

    /// Chunks of the next piece when `left` are left (`None`: unknown) and the accelerator has
    /// `in_flight`. `None` if the CPU would finish sooner.
    ///
    /// Pieces shrink to left / (2 x slots), so that all slots end at about the same time, but not so
    /// far that start-up shows, and so that the CPU has enough to end with the accelerator. A
    /// piece that the CPU would finish first is declined; without profiles, only one that is
    /// smaller than the smallest piece.
    pub fn wanted(&self, left: Option<u64>, in_flight: u64) -> Option<u64> {
        let Some(left) = left else { return Some(self.full) };
        let least = self.times.map_or(0, |times| times.hiding_startup(self.slots));
        let least = least.clamp(self.least, self.full);
        let wanted = (left / (2 * self.slots)).clamp(least, self.full).min(left);
        if wanted == 0 {
            return None;
        }
        if !self.may_decline {
            return Some(wanted);
        }
        let Some(times) = self.times else { return (wanted >= self.least).then_some(wanted) };
        let wanted = wanted.min(times.fair(left, in_flight).max(self.least));
        (wanted <= times.in_time(left, in_flight)).then_some(wanted)
    }
}

impl ChunkTimes {
    /// The least chunks of a piece for which an accelerator with `slots` pieces in flight never
    /// idles.
    fn hiding_startup(&self, slots: u64) -> u64 {
        let others = slots.saturating_sub(1).max(1) as f64;
        (self.startup.as_secs_f64() / self.accelerator_s / others) as u64
    }

    /// Chunks that the accelerator finishes, behind those `in_flight`, when the CPU finishes the
    /// others that are `left`.
    fn fair(&self, left: u64, in_flight: u64) -> u64 {
        // The cast of a negative value or NaN is zero.
        (self.free_s(left, in_flight) / (self.accelerator_s + self.cpu_s)) as u64
    }

    /// Chunks that the accelerator finishes, behind those `in_flight`, before the CPU could have
    /// done all that are `left`.
    fn in_time(&self, left: u64, in_flight: u64) -> u64 {
        (self.free_s(left, in_flight) / self.accelerator_s) as u64
    }

    /// Seconds that are left to the accelerator once it can begin, while the CPU does all that are
    /// `left`. A piece gets ready while those before it are worked on.
    fn free_s(&self, left: u64, in_flight: u64) -> f64 {
        let ready_s = self.startup.as_secs_f64().max(in_flight as f64 * self.accelerator_s);
        left as f64 * self.cpu_s - ready_s
    }
}

/// Chunks of a CPU worker's piece while accelerators work, 0.5 to 2 MiB: larger in large runs, to
/// ask less often. Smaller if the accelerators would wait for it at the end, by measured rates, and
/// `None` if they would finish sooner alone.
pub(super) fn cpu_piece(load: &Load, devices: &Devices) -> Option<u64> {
    let workers = devices.cpu_workers.max(1) as u64;
    let chunks = |bytes: u64| (bytes / load.slot_len as u64).max(1);
    let suits = load.bytes.map_or(CPU_SMALLEST, |bytes| bytes / (64 * workers));
    let piece = chunks(suits.clamp(CPU_SMALLEST, CPU_LARGEST));
    let accelerators = devices.accelerators.iter().map(|a| a.cost.as_ref());
    let accelerators = accelerators.collect::<Option<Vec<_>>>();
    let measured = load.plain_bytes().zip(devices.all_workers.as_ref()).zip(accelerators);
    let Some(((bytes, cpu), accelerators)) = measured else { return Some(piece) };
    let chunk_s = (load.chunk_len as u64 * workers) as f64 / cpu.bytes_per_second;
    let alone = auto::together(&accelerators, bytes);
    let all: Vec<_> = accelerators.into_iter().chain([cpu]).collect();
    let together = auto::together(&all, bytes);
    let least = chunks(CPU_LEAST);
    let late = Duration::try_from_secs_f64(least as f64 * chunk_s).unwrap_or(Duration::MAX);
    if alone <= together.saturating_add(late) {
        return None;
    }
    let on_time = (LATE * together.as_secs_f64() / chunk_s) as u64;
    Some(on_time.clamp(least.min(piece), piece))
}

const MIB: u64 = 1 << 20;
/// Below this, asking for pieces shows.
const CPU_LEAST: u64 = 64 * 1024;
/// How much of a run one piece of a CPU worker may take.
const LATE: f64 = 0.02;
const CPU_SMALLEST: u64 = MIB / 2;
const CPU_LARGEST: u64 = 2 * MIB;
const SMALLEST: u64 = 16 * MIB;
const LARGEST: u64 = 64 * MIB;
/// Where order matters: more would let the CPU's finished pieces wait behind it.
const IN_ORDER: u64 = 4 * MIB;
const LEAST: u64 = 2 * MIB;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratios_of_the_paper() {
        // Its Table 1: multiprocessors, MHz, cores, MHz.
        let table = [(13, 706.0, 16, 2000.0, 9.790), (7, 1500.0, 8, 2130.0, 22.535)];
        for (multiprocessors, gpu_mhz, cores, cpu_mhz, printed) in table {
            let ratio = sefps_ratio(multiprocessors, 32, gpu_mhz, cores, cpu_mhz);
            assert!((ratio - printed).abs() < 0.001, "{ratio} instead of {printed}");
        }
        assert_eq!(sefps_ratio(13, 32, 706.0, 1, 2000.0), f64::INFINITY, "one core serves the GPU");
    }

    #[test]
    fn shares_of_the_cpu() {
        let table = [
            // ratio, chunks, of the CPU
            (1.0, 100, 50),
            (9.790, 1000, 92),
            (22.535, 1000, 42),
            (0.4, 1000, 714),
            (3.0, 3, 0),
            (0.0, 77, 77),
            (-1.0, 77, 77),
            (f64::NAN, 77, 77),
            (f64::INFINITY, 77, 0),
        ];
        for (ratio, chunks, cpu) in table {
            assert_eq!(cpu_share(ratio, chunks), cpu, "{ratio}, {chunks} chunks");
        }
    }

    /// Chunks of 1 MiB, so that figures are MiB.
    fn load(mib: Option<u64>, in_order: bool) -> Load {
        let bytes = mib.map(|mib| mib * MIB);
        Load { bytes, slot_len: MIB as usize, chunk_len: MIB as usize, in_order }
    }

    fn terms(mib: Option<u64>, in_order: bool, slots: usize) -> Terms {
        Terms::new(&load(mib, in_order), &Accelerator { slots, cost: None }, None, true)
    }

    #[test]
    fn full_pieces() {
        let table = [
            // MiB of the run, in order, slots, MiB of a piece
            (Some(10), false, 3, 16),
            (Some(600), false, 3, 25),
            (Some(1 << 20), false, 3, 64),
            (None, false, 3, 16),
            (Some(1 << 20), true, 3, 4),
            (None, true, 3, 2),
        ];
        for (mib, in_order, slots, full) in table {
            assert_eq!(terms(mib, in_order, slots).full, full, "{mib:?} {in_order} {slots}");
        }
    }

    #[test]
    fn pieces_shrink_and_the_last_are_left() {
        let terms = terms(Some(1 << 20), false, 4);
        let table = [
            (None, Some(64)),
            (Some(1 << 20), Some(64)),
            (Some(512), Some(64)),
            (Some(400), Some(50)),
            (Some(80), Some(10)),
            (Some(10), Some(2)),
            (Some(2), Some(2)),
            (Some(1), None),
            (Some(0), None),
        ];
        for (left, wanted) in table {
            assert_eq!(terms.wanted(left, 0), wanted, "{left:?} left");
        }
        let alone = Terms { may_decline: false, ..terms };
        assert_eq!(alone.wanted(Some(1), 0), Some(1), "no other device would do it");
        assert_eq!(alone.wanted(Some(0), 0), None);
    }

    #[test]
    fn what_the_cpu_finishes_sooner_is_declined() {
        // The CPU takes 1 ms for a MiB. What the accelerator takes, and what it is given:
        let table = [
            // start-up in ms, ms for a MiB, left, in flight, wanted
            (0, 0.1, 1000, 0, Some(64)),
            (0, 0.1, 10, 0, Some(2)),
            (9, 0.1, 10, 0, Some(2)),
            (10, 0.1, 10, 0, None),
            (0, 0.1, 10, 98, Some(2)),
            (0, 0.1, 10, 99, None),
            (0, 100.0, 1000, 0, Some(9)),
            (20, 1.0, 1000, 0, Some(64)),
            (20, 1.0, 50, 0, Some(6)),
            (90, 1.0, 160, 0, Some(30)),
            (0, 100.0, 1000, 7, Some(2)),
            (0, 100.0, 1000, 9, None),
            (0, 100.0, 199, 0, None),
            (5000, 0.1, 1000, 0, None),
        ];
        for (startup, accelerator_ms, left, in_flight, wanted) in table {
            let times = ChunkTimes {
                startup: Duration::from_millis(startup),
                accelerator_s: accelerator_ms / 1e3,
                cpu_s: 1e-3,
            };
            let terms = Terms { times: Some(times), ..terms(Some(1 << 20), false, 4) };
            let said = format!("{startup} {accelerator_ms} {left} {in_flight}");
            assert_eq!(terms.wanted(Some(left), in_flight), wanted, "{said}");
        }
    }

    #[test]
    fn a_cpu_piece_does_not_keep_accelerators_waiting() {
        let cost = |bytes_per_second| {
            let startup = Duration::from_micros(50);
            Some(Cost { startup, bytes_per_second, active: None, idle: None })
        };
        let load = Load { slot_len: 1024, chunk_len: 1024, ..load(Some(1000), false) };
        let table = [
            // MB/s of the CPU, of the accelerator, KiB of a piece
            (4000.0, 400.0, Some(2048)),
            (4000.0, 40_000.0, Some(932)),
            (800.0, 40_000.0, Some(201)),
            (400.0, 40_000.0, None),
            (30.0, 40_000.0, None),
        ];
        for (cpu, accelerator, kib) in table {
            let accelerators = vec![Accelerator { slots: 3, cost: cost(accelerator * 1e6) }];
            let all_workers = cost(cpu * 1e6);
            let devices = Devices { cpu_workers: 2, one_worker: None, all_workers, accelerators };
            assert_eq!(cpu_piece(&load, &devices), kib, "{cpu} with {accelerator}");
        }
    }

    #[test]
    fn pieces_of_the_cpu() {
        let table =
            [(None, 2, 512), (Some(10), 2, 512), (Some(128), 2, 1024), (Some(1024), 2, 2048)];
        for (mib, cpu_workers, kib) in table {
            let load = Load { slot_len: 1024, chunk_len: 1024, ..load(mib, false) };
            let devices = Devices { cpu_workers, ..Devices::default() };
            assert_eq!(cpu_piece(&load, &devices), Some(kib), "{mib:?}");
        }
    }
}
