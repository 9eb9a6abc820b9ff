//! Both rules played in virtual time: clients that each have one request at a time, as a server's
//! workers do.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;

/// A machine: its CPUs, and an accelerator on whose line requests go one after the other.
#[derive(Clone, Copy, Debug)]
struct Machine {
    cpu_workers: usize,
    lines: LaneTimes,
    slots: usize,
}

/// How a machine is used.
#[derive(Clone, Copy, Debug)]
struct Use {
    threshold: Threshold,
    migration: Migration,
    /// True if the rule knows what lanes take.
    measured: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Played {
    bytes_per_second: f64,
    /// Parts of the time of all CPUs, and of the accelerator's line.
    cpu: f64,
    accelerator: f64,
    to_cpu: u64,
    to_accelerator: u64,
    /// What a request took from its coming on, on average.
    latency_s: f64,
}

/// A request that is worked on.
#[derive(Clone, Copy)]
struct Flying {
    done_s: f64,
    came_s: f64,
    bytes: u64,
}

#[derive(Default)]
struct Side {
    waiting: Vec<Waiting>,
    flying: Vec<Flying>,
    busy_s: f64,
    /// When the accelerator's line is free.
    free_s: f64,
}

impl Side {
    fn backlog(&self, capacity: usize) -> Backlog<'_> {
        Backlog {
            waiting: &self.waiting,
            in_flight: self.flying.len(),
            in_flight_bytes: self.flying.iter().map(|flying| flying.bytes).sum(),
            capacity,
        }
    }
}

impl Machine {
    /// Plays requests of these sizes, from `clients` clients that send one at a time.
    fn play(&self, how: Use, clients: usize, sizes: &[u64]) -> Played {
        let (mut cpu, mut device) = (Side::default(), Side::default());
        let (mut now, mut latency_s) = (0.0f64, 0.0);
        let (mut to_cpu, mut to_accelerator) = (0, 0);
        let mut came = Vec::new();
        let mut idle = clients;
        let mut next = sizes.iter();
        loop {
            for &bytes in next.by_ref().take(idle) {
                let request = Waiting { ticket: came.len() as u64, bytes };
                came.push(now);
                match how.threshold.allocate(bytes) {
                    Lane::Cpu => cpu.waiting.push(request),
                    Lane::Accelerator => device.waiting.push(request),
                }
            }
            loop {
                self.begin(&mut cpu, &mut device, &came, now);
                let (here, there) = (cpu.backlog(self.cpu_workers), device.backlog(self.slots));
                let lines = how.measured.then_some(&self.lines);
                let step = how.migration.next(how.threshold, lines, &here, &there);
                let Some(step) = step else { break };
                match step.from {
                    Lane::Cpu => {
                        device.waiting.push(cpu.waiting.remove(step.index));
                        to_accelerator += 1;
                    }
                    Lane::Accelerator => {
                        cpu.waiting.push(device.waiting.remove(step.index));
                        to_cpu += 1;
                    }
                }
            }
            let flying = cpu.flying.iter().chain(&device.flying);
            let first = flying.map(|flying| flying.done_s).fold(f64::MAX, f64::min);
            if first == f64::MAX {
                break;
            }
            now = first;
            idle = 0;
            for side in [&mut cpu, &mut device] {
                side.flying.retain(|flying| {
                    let done = flying.done_s <= now;
                    if done {
                        idle += 1;
                        latency_s += now - flying.came_s;
                    }
                    !done
                });
            }
        }
        assert!(cpu.waiting.is_empty() && device.waiting.is_empty(), "the last request is done");
        Played {
            bytes_per_second: sizes.iter().sum::<u64>() as f64 / now,
            cpu: cpu.busy_s / now / self.cpu_workers as f64,
            accelerator: device.busy_s / now,
            to_cpu,
            to_accelerator,
            latency_s: latency_s / sizes.len() as f64,
        }
    }

    fn begin(&self, cpu: &mut Side, device: &mut Side, came: &[f64], now: f64) {
        let flying = |request: Waiting, done_s| Flying {
            done_s,
            came_s: came[request.ticket as usize],
            bytes: request.bytes,
        };
        while cpu.flying.len() < self.cpu_workers && !cpu.waiting.is_empty() {
            let request = cpu.waiting.remove(0);
            let takes_s = self.lines.cpu.time(request.bytes).as_secs_f64();
            cpu.busy_s += takes_s;
            cpu.flying.push(flying(request, now + takes_s));
        }
        while device.flying.len() < self.slots && !device.waiting.is_empty() {
            let request = device.waiting.remove(0);
            let line = &self.lines.accelerator;
            let takes_s = request.bytes as f64 / line.bytes_per_second;
            device.free_s = device.free_s.max(now + line.startup.as_secs_f64()) + takes_s;
            device.busy_s += takes_s;
            device.flying.push(flying(request, device.free_s));
        }
    }

    /// Every way of using it, the default last.
    fn uses(&self) -> [(&'static str, Use); 6] {
        let crossing = Threshold::crossing(&self.lines.cpu, &self.lines.accelerator);
        let way = |threshold, migration, measured| Use { threshold, migration, measured };
        [
            ("CPU only", way(Threshold::CPU_ONLY, Migration::Never, false)),
            ("accelerator only", way(Threshold(0), Migration::Never, false)),
            ("threshold", way(crossing, Migration::Never, false)),
            ("threshold and migration of the paper", way(crossing, Migration::Paper, false)),
            ("default, unmeasured", way(crossing, Migration::Sooner, false)),
            ("default", way(crossing, Migration::Sooner, true)),
        ]
    }
}

/// What EECA's Table 1 says of its machine: see the test of its threshold.
fn paper() -> Machine {
    let fit = |ns, bytes_per_second| Fit {
        startup: Duration::from_nanos(ns),
        bytes_per_second,
        spread: 0.0,
    };
    let lines = LaneTimes { cpu: fit(31, 756.3e6), accelerator: fit(14_500, 6.1e9) };
    Machine { cpu_workers: 8, lines, slots: 8 }
}

/// The pages of EECA's Table 2, in kB.
const PAGES: [u64; 11] = [1, 2, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];

/// Pages in a fixed order without a pattern: each as often as the others, or in the inverse of its
/// size, so that each size brings the same bytes.
fn pages(count: usize, same_bytes: bool) -> Vec<u64> {
    let weight = |kb: u64| if same_bytes { 2048 / kb } else { 1 };
    let whole: u64 = PAGES.iter().map(|&kb| weight(kb)).sum();
    let mut state = 1u64;
    let mut draw = || {
        // Knuth's MMIX generator; its high bits are good enough for a mix.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut left = (state >> 33) % whole;
        for kb in PAGES {
            match left.checked_sub(weight(kb)) {
                Some(rest) => left = rest,
                None => return kb * 1024,
            }
        }
        1024
    };
    (0..count).map(|_| draw()).collect()
}

#[test]
fn the_machine_of_the_paper() {
    for (same_bytes, clients) in [(false, 24), (false, 64), (true, 24), (true, 64)] {
        let sizes = pages(20_000, same_bytes);
        println!("{clients} clients, the same bytes of each size: {same_bytes}");
        let played = paper().uses().map(|(name, how)| {
            let played = paper().play(how, clients, &sizes);
            println!(
                "{name:34} {:6.0} MB/s, CPU {:3.0} %, accelerator {:3.0} %, {:5.0} µs, moved {} {}",
                played.bytes_per_second / 1e6,
                played.cpu * 100.0,
                played.accelerator * 100.0,
                played.latency_s * 1e6,
                played.to_cpu,
                played.to_accelerator,
            );
            played
        });
        let [cpu, accelerator, threshold, paper, unmeasured, default] = played;
        let rate = |of: Played| of.bytes_per_second;
        let alone = rate(cpu).max(rate(accelerator));
        assert!(rate(default) > 1.4 * alone, "what two lanes are for");
        assert!(rate(paper) > 1.05 * rate(threshold), "what migration is for");
        let best = [cpu, accelerator, threshold, paper, unmeasured].map(rate);
        let best = best.into_iter().fold(0.0, f64::max);
        assert!(rate(default) > 0.97 * best, "{default:?} instead of {best}");
        let moved = |of: Played| (of.to_cpu, of.to_accelerator);
        assert_eq!([cpu, accelerator, threshold].map(moved), [(0, 0); 3]);
        assert_eq!(default.to_accelerator, 0, "nothing is sent away too soon");
        if clients == 64 {
            assert!(paper.to_accelerator > 0, "the letter fetches back what it has sent away");
        }
        if clients == 64 && same_bytes {
            assert!(rate(default) > 1.05 * rate(paper), "small ones at the head keep large ones");
        }
    }
}

/// Eight callers never fill eight slots, so that nothing waits and nothing moves: what Algorithm 2 can
/// do depends on what "full" means.
#[test]
fn as_many_slots_as_callers_leave_the_threshold_alone() {
    let sizes = [64 * 1024; 4000];
    let rate = |machine: Machine, way: usize| {
        let (_, how) = machine.uses()[way];
        machine.play(how, 8, &sizes).bytes_per_second
    };
    let (threshold, paper, default) = (2, 3, 5);
    let full = Machine { slots: 2, ..self::paper() };
    assert_eq!(rate(self::paper(), paper), rate(self::paper(), threshold));
    assert_eq!(rate(self::paper(), default), rate(self::paper(), threshold));
    assert!(rate(full, paper) > 1.3 * rate(full, threshold), "two slots are full soon");
}

/// A core does 30 MB/s to 16 GB/s; an accelerator 100 MB/s to 60 GB/s after 1 µs to 2 ms.
fn machines() -> impl Strategy<Value = Machine> {
    (1usize..33, 7.5..10.2f64, 8.0..10.8f64, -6.0..-2.7f64, 1usize..33).prop_map(
        |(cpu_workers, cpu, accelerator, startup, slots)| {
            let fit = |startup, rate: f64| Fit {
                startup,
                bytes_per_second: 10f64.powf(rate),
                spread: 0.0,
            };
            let startup = Duration::from_secs_f64(10f64.powf(startup));
            let lines =
                LaneTimes { cpu: fit(Duration::ZERO, cpu), accelerator: fit(startup, accelerator) };
            Machine { cpu_workers, lines, slots }
        },
    )
}

/// On machines of all sorts the default is nearly as good as the best of the rules, each of the
/// others is bad on some. The threshold is the same for all: it is the rule that is compared.
#[test]
fn machines_of_all_sorts() {
    const MACHINES: usize = 200;
    // The same machines each time.
    let mut runner = TestRunner::deterministic();
    let draw = (machines(), 1usize..100, any::<bool>());
    let mut parts: [Vec<f64>; 4] = Default::default();
    for _ in 0..MACHINES {
        let (machine, clients, same_bytes) = draw.new_tree(&mut runner).unwrap().current();
        let sizes = pages(2000, same_bytes);
        let [.., a, b, c, d] = machine.uses().map(|(_, how)| machine.play(how, clients, &sizes));
        let rates = [a, b, c, d].map(|played| played.bytes_per_second);
        let best = rates.into_iter().fold(0.0, f64::max);
        parts.iter_mut().zip(rates).for_each(|(parts, rate)| parts.push(rate / best));
    }
    parts.iter_mut().for_each(|parts| parts.sort_by(f64::total_cmp));
    let quantiles = parts.map(|parts| [0, MACHINES / 20, MACHINES / 4].map(|index| parts[index]));
    let [threshold, paper, unmeasured, default] = quantiles;
    println!("worst, 5 %, 25 %: {threshold:.3?}, {paper:.3?}, {unmeasured:.3?}, {default:.3?}");
    let [worst, twentieth, quarter] = default;
    assert!(worst > 0.6 && twentieth > 0.9 && quarter > 0.99, "{quantiles:?}");
    assert!(threshold[1] < 0.6 && paper[1] < 0.6 && unmeasured[1] < 0.6, "{quantiles:?}");
}
