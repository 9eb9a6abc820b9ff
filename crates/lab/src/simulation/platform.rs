//! A model of the paper's machine, an NVIDIA Tesla K20M and two Xeon E5-2640 v2: constants fitted
//! to the printed numbers, and what each of them is.

use wattlock_stream::{Ladder, Rung, Velocity};

use super::machine::{Calls, Machine};
use super::run::Producer;

/// Bytes of a megabyte, as the paper counts: "MBps" there are MiB/s.
pub const MIB: f64 = 1_048_576.0;

/// Bytes of the window that the paper's programs had; it does not say. 9 MiB fit as well.
pub const WINDOW: u64 = 8 << 20;

/// What a sleep takes beyond what was asked for.
const SLEEP_NS: u64 = 62_000;
/// The same before a message is put, while the CPUs' threads are all busy.
const SLEEP_BESIDE_THREADS_NS: u64 = 150_000;

/// How long the GPU's first batch waits for its driver.
const STALL_NS: u64 = 240_000_000;
/// To start a kernel and to wait for it.
const LAUNCH_NS: u64 = 30_000;
/// `nvmlDeviceSetApplicationsClocks`.
const CLOCK_CALL_NS: u64 = 1_000_000;

/// Core and memory clock in MHz: Table 1.
pub const CLOCKS: [(u32, u32); 6] =
    [(324, 324), (614, 2600), (640, 2600), (666, 2600), (705, 2600), (758, 2600)];
/// The second highest is the default.
pub const DEFAULT_CLOCK: usize = 4;
/// Rate at the default clock.
const DEFAULT_RATE: f64 = 312.0 * MIB;
/// What part of the rate follows the core clock; the rest follows transfers and memory.
const CORE_SHARE: f64 = 0.3;
/// Rate at the pair 324/324.
const LOW_RATE: f64 = 135.0 * MIB;
/// Watts of GPU and CPUs at rest, at the pairs whose memory clock is 2600 MHz.
const FLOOR: f64 = 74.8;
/// The same at the pair 324/324.
const LOW_FLOOR: f64 = 50.7;
/// For a byte, at any clock.
const GPU_JOULES_PER_BYTE: f64 = 0.098 / MIB;

/// The producer's two sleeps for a latency, on the CPU of such a machine.
pub fn producer(latency_ns: u64, machine: &Machine) -> Producer {
    let late = if machine.lanes > 1 { SLEEP_BESIDE_THREADS_NS } else { SLEEP_NS };
    Producer { pause_ns: latency_ns + late, retry_ns: 2 * latency_ns + SLEEP_NS }
}

/// One thread of the CPUs.
pub fn serial() -> Machine {
    cpus("1 thread", 1, 5.55 * MIB, 53.9, 0.0)
}

/// All cores of the CPUs, each with whole messages. The paper starts 32 threads, two on each of its 16
/// cores; threads t and t + 16 on one core are what is a lane here.
pub fn parallel() -> Machine {
    parallel_of(16, 88.6e6)
}

/// The same with as many lanes, which do `rate` bytes a second together.
pub fn parallel_of(lanes: usize, rate: f64) -> Machine {
    cpus(&format!("{lanes} lanes"), lanes, rate, 47.2, 0.394 / MIB)
}

/// The GPU under a velocity policy, whose clocks are set as `calls` says.
pub fn gpu(velocity: Velocity, calls: Calls) -> Machine {
    Machine {
        ladder: k20m(),
        first_rung: DEFAULT_CLOCK,
        velocity,
        calls,
        lanes: 1,
        stall_ns: STALL_NS,
        batch_ns: LAUNCH_NS,
        batch_most: u64::MAX,
    }
}

/// The GPU at its default clock.
pub fn gpu_at_default() -> Machine {
    gpu(Velocity::Fixed(DEFAULT_CLOCK), Calls::Aside { ns: CLOCK_CALL_NS })
}

/// Clocks that are set before each batch, which waits for it.
pub const INLINE: Calls = Calls::Inline { ns: CLOCK_CALL_NS };

/// Clocks that another thread sets, when they change.
pub const ASIDE: Calls = Calls::Aside { ns: CLOCK_CALL_NS };

/// The K20M's clocks with the machine's power around them.
pub fn k20m() -> Ladder {
    let rungs = CLOCKS.map(|(core, memory)| {
        let is_low = memory < 2600;
        let scaled = 1.0 - CORE_SHARE + CORE_SHARE * f64::from(core) / 705.0;
        Rung {
            name: format!("{core}/{memory} MHz"),
            speed: core.into(),
            rate: if is_low { LOW_RATE } else { DEFAULT_RATE * scaled },
            floor: if is_low { LOW_FLOOR } else { FLOOR },
            joules_per_byte: GPU_JOULES_PER_BYTE,
        }
    });
    Ladder::new(rungs.into()).expect("clocks and rates are above zero")
}

/// What the model is made of: name, value, unit, and what it was fitted to.
pub fn constants() -> [(&'static str, f64, &'static str, &'static str); 17] {
    let mib = |joules_per_byte: f64| joules_per_byte * MIB;
    let (serial, parallel) = (serial(), parallel());
    let [cs, cp] = [&serial, &parallel].map(|machine| &machine.ladder.rungs()[0]);
    [
        ("window", WINDOW as f64 / MIB, "MiB", "Figure 9 and Table 7 at 100 and 500 µs"),
        ("a sleep takes longer by", SLEEP_NS as f64 / 1e3, "µs", "Figure 9 at 1500 to 3000 µs"),
        (
            "the same while CP's threads are busy",
            SLEEP_BESIDE_THREADS_NS as f64 / 1e3,
            "µs",
            "Figure 9, CP",
        ),
        ("CS: rate", cs.rate / MIB, "MiB/s", "Figure 9, CS"),
        ("CS: power", cs.floor, "W", "Figure 8, CS"),
        (
            "CP: cores, with two of the paper's 32 threads on each",
            parallel.lanes as f64,
            "",
            "printed; Table 7 at 100 and 500 µs",
        ),
        ("CP: rate of all threads", cp.rate / MIB, "MiB/s", "Figure 9, CP; Table 7"),
        ("CP: power at rest", cp.floor, "W", "Figure 8, CP"),
        ("CP: energy of a MiB", mib(cp.joules_per_byte), "J", "Figure 8, CP"),
        ("GPU: rate at 705/2600 MHz", DEFAULT_RATE / MIB, "MiB/s", "Figure 9, GP at 100 µs"),
        (
            "GPU: share of the rate that follows the core clock",
            CORE_SHARE,
            "",
            "Figure 9, LECPAES at 100 µs",
        ),
        ("GPU: power at rest, pairs with 2600 MHz", FLOOR, "W", "Figure 8, GP"),
        ("GPU: energy of a MiB", mib(GPU_JOULES_PER_BYTE), "J", "Figure 8, GP"),
        (
            "GPU: start of the first batch",
            STALL_NS as f64 / 1e6,
            "ms",
            "Table 3, GP at 500 to 2000 µs",
        ),
        ("GPU: rate at 324/324 MHz", LOW_RATE / MIB, "MiB/s", "Figure 8, LECPAES"),
        (
            "GPU: power at rest, pair 324/324 MHz",
            LOW_FLOOR,
            "W",
            "Figure 8, LECPAES at 1000 to 3000 µs",
        ),
        (
            "GPU: a call that sets clocks",
            CLOCK_CALL_NS as f64 / 1e6,
            "ms",
            "Figures 8 and 9, LECPAES at 100 µs",
        ),
    ]
}

fn cpus(name: &str, lanes: usize, rate: f64, floor: f64, joules_per_byte: f64) -> Machine {
    let rung = Rung { name: name.into(), speed: 2000.0, rate, floor, joules_per_byte };
    Machine {
        ladder: Ladder::new(vec![rung]).expect("a rate above zero"),
        first_rung: 0,
        velocity: Velocity::Fixed(0),
        calls: Calls::Aside { ns: 0 },
        lanes,
        stall_ns: 0,
        batch_ns: 0,
        batch_most: u64::MAX,
    }
}
