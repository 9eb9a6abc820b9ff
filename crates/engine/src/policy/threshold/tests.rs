//! Both rules, as tables of numbers.

use proptest::prelude::*;

use super::*;

fn line(startup_us: u64, bytes_per_second: f64) -> Fit {
    Fit { startup: Duration::from_micros(startup_us), bytes_per_second, spread: 0.0 }
}

fn queue(bytes: &[u64]) -> Vec<Waiting> {
    (0..).zip(bytes).map(|(ticket, &bytes)| Waiting { ticket, bytes }).collect()
}

fn backlog(waiting: &[Waiting], in_flight: usize, capacity: usize) -> Backlog<'_> {
    Backlog { waiting, in_flight, in_flight_bytes: in_flight as u64 * 100_000, capacity }
}

const KB: u64 = 1024;

#[test]
fn request_allocation() {
    let table = [
        (Threshold::PAPER, 0, Lane::Cpu),
        (Threshold::PAPER, 8 * KB, Lane::Cpu),
        (Threshold::PAPER, 8 * KB + 1, Lane::Accelerator),
        (Threshold(0), 0, Lane::Cpu),
        (Threshold(0), 1, Lane::Accelerator),
        (Threshold::CPU_ONLY, u64::MAX, Lane::Cpu),
    ];
    for (threshold, bytes, lane) in table {
        assert_eq!(threshold.allocate(bytes), lane, "{threshold:?} {bytes}");
    }
}

#[test]
fn the_threshold_is_where_the_lines_cross() {
    let table = [
        // start-up in µs and bytes a µs of the CPU, of the accelerator; the threshold
        ((0, 1e9), (30, 2e9), Threshold(60_000)),
        ((10, 1e9), (30, 2e9), Threshold(40_000)),
        ((30, 1e9), (10, 2e9), Threshold(0)),
        ((0, 2e9), (30, 2e9), Threshold::CPU_ONLY),
        ((0, 20e9), (30, 2e9), Threshold::CPU_ONLY),
        ((0, 1e9), (30, f64::MAX), Threshold(30_000)),
    ];
    for ((cpu_us, cpu), (accelerator_us, accelerator), threshold) in table {
        let found = Threshold::crossing(&line(cpu_us, cpu), &line(accelerator_us, accelerator));
        assert!(found.0.abs_diff(threshold.0) <= 1, "{found:?} instead of {threshold:?}");
    }
}

#[test]
fn the_machine_of_the_paper_crosses_near_its_threshold() {
    // EECA Table 1: 8 CPUs do 6.05 GB/s together, and 5.91 GB/s in requests of 1 kB; the accelerator
    // does 6.1 GB/s at best, and 556 MB/s in requests of 1 kB: 543,013 a second, by eight callers.
    let cpu = Fit { startup: Duration::from_nanos(31), bytes_per_second: 756.3e6, spread: 0.0 };
    let request = 8.0 / 543_013.0 - 1024.0 / 6.1e9;
    let accelerator = Fit { startup: Duration::from_secs_f64(request), ..line(0, 6.1e9) };
    let Threshold(bytes) = Threshold::crossing(&cpu, &accelerator);
    assert!(
        (11 * KB..13 * KB).contains(&bytes),
        "{bytes}, where the paper takes {:?}",
        Threshold::PAPER
    );
}

#[test]
fn the_threshold_follows_from_profiles() {
    let case = Case::named("aes-256-ctr").unwrap();
    let profile = |device: &str, startup_us, bytes_per_second| Profile {
        device: device.into(),
        startup: Duration::from_micros(startup_us),
        bytes_per_second,
        ..crate::profile::tests::profile("aes-256-ctr", 1, 0)
    };
    let profiles: Profiles =
        [profile("cpu", 0, 1e9), profile("cuda", 30, 2e9)].into_iter().collect();
    let Threshold(bytes) = Threshold::measured(&profiles, "cuda", case).unwrap();
    assert!(bytes.abs_diff(60_000) <= 1, "{bytes}");
    assert_eq!(Threshold::measured(&profiles, "opencl", case), None);
}

#[test]
fn dynamic_scheduler() {
    use {Lane::*, Migration::*};
    let none: &[u64] = &[];
    let small: &[u64] = &[KB, 2 * KB];
    let small_first: &[u64] = &[KB, 64 * KB, 128 * KB];
    let large: &[u64] = &[64 * KB, 128 * KB];
    let table = [
        // rule, the CPU's queue and what two CPUs do, the accelerator's with three slots, the move
        (Never, (none, 0), (large, 3), None),
        (Never, (large, 2), (none, 0), None),
        (Paper, (none, 0), (none, 3), None),
        (Paper, (none, 0), (large, 3), Some((Accelerator, 0))),
        (Paper, (large, 2), (large, 3), Some((Accelerator, 0))),
        (Paper, (large, 2), (none, 2), Some((Cpu, 0))),
        (Paper, (small_first, 2), (none, 0), None),
        (Sooner, (none, 0), (none, 3), None),
        (Sooner, (none, 1), (large, 3), Some((Accelerator, 1))),
        (Sooner, (none, 2), (large, 3), None),
        (Sooner, (small, 1), (large, 3), None),
        (Sooner, (large, 2), (large, 3), None),
        (Sooner, (small_first, 2), (none, 2), Some((Cpu, 1))),
        (Sooner, (small, 2), (none, 0), None),
    ];
    for (rule, (cpu, on_cpus), (accelerator, on_device), expected) in table {
        let (cpu, accelerator) = (queue(cpu), queue(accelerator));
        let (cpu, accelerator) = (backlog(&cpu, on_cpus, 2), backlog(&accelerator, on_device, 3));
        let found = rule.next(Threshold::PAPER, None, &cpu, &accelerator);
        let expected = expected.map(|(from, index)| Move { from, index });
        assert_eq!(found, expected, "{rule:?} {cpu:?} {accelerator:?}");
    }
}

#[test]
fn only_who_gains_goes_to_a_free_cpu() {
    let one_gb = line(0, 1e9);
    let table: [(Fit, u64, &[u64], Option<usize>); 7] = [
        // the accelerator, bytes in flight, its queue, who goes to a CPU of 1 GB/s
        (line(30, 10e9), 0, &[20_000], Some(0)),
        (line(30, 10e9), 0, &[40_000], None),
        (line(30, 10e9), 1_000_000, &[40_000], Some(0)),
        (line(30, 10e9), 1_000_000, &[40_000, 200_000, 40_000], Some(2)),
        (line(30, 10e9), 1_000_000, &[40_000, 10_000, 200_000], Some(1)),
        (line(30, 10e9), 1_000_000, &[200_000, 2_000_000], None),
        (line(0, 1e9), 100, &[50, 50], Some(1)),
    ];
    for (accelerator, in_flight_bytes, waiting, expected) in table {
        let waiting = queue(waiting);
        let lanes = Backlog { waiting: &waiting, in_flight: 1, in_flight_bytes, capacity: 1 };
        let cpu = backlog(&[], 0, 1);
        let lines = LaneTimes { cpu: one_gb, accelerator };
        let found = Migration::Sooner.next(Threshold::PAPER, Some(&lines), &cpu, &lanes);
        assert_eq!(found.map(|m| m.index), expected, "{waiting:?} behind {in_flight_bytes}");
    }
}

/// Two lanes that begin what they can and never end anything.
#[derive(Debug)]
struct Standing {
    queues: [Vec<Waiting>; 2],
    begun: [usize; 2],
    capacity: [usize; 2],
}

impl Standing {
    fn begin(&mut self) {
        for lane in 0..2 {
            while self.begun[lane] < self.capacity[lane] && !self.queues[lane].is_empty() {
                self.queues[lane].remove(0);
                self.begun[lane] += 1;
            }
        }
    }

    fn backlog(&self, lane: usize) -> Backlog<'_> {
        backlog(&self.queues[lane], self.begun[lane], self.capacity[lane])
    }
}

proptest! {
    /// No request is lost or moves for ever, no small one is sent to the accelerator, and under a
    /// rule that moves requests, no lane idles while a request that it may have waits.
    #[test]
    fn migration_ends(
        cpu in prop::collection::vec(0..40 * KB, 0..20),
        accelerator in prop::collection::vec(8 * KB + 1..40 * KB, 0..20),
        capacity in prop::array::uniform2(1usize..9),
        rule in prop::sample::select(&[Migration::Never, Migration::Paper, Migration::Sooner]),
    ) {
        let small = cpu.iter().filter(|bytes| **bytes <= Threshold::PAPER.0).count();
        let all = cpu.len() + accelerator.len();
        let queues = [queue(&cpu), queue(&accelerator)];
        let mut lanes = Standing { queues, begun: [0; 2], capacity };
        lanes.begin();
        let mut moves = 0;
        while let Some(step) =
            rule.next(Threshold::PAPER, None, &lanes.backlog(0), &lanes.backlog(1))
        {
            let (from, to) = if step.from == Lane::Cpu { (0, 1) } else { (1, 0) };
            let request = lanes.queues[from].remove(step.index);
            prop_assert!(to == 0 || request.bytes > Threshold::PAPER.0);
            lanes.queues[to].push(request);
            lanes.begin();
            moves += 1;
            prop_assert!(moves <= 2 * all, "{:?}", lanes);
        }
        let waiting = lanes.queues[0].len() + lanes.queues[1].len();
        prop_assert_eq!(waiting + lanes.begun[0] + lanes.begun[1], all);
        if rule == Migration::Sooner {
            let cpu_free = lanes.begun[0] < capacity[0];
            prop_assert!(!cpu_free || waiting == 0, "{:?}", lanes);
            let large = |queue: &[Waiting]| queue.iter().any(|r| r.bytes > Threshold::PAPER.0);
            let accelerator_free = lanes.begun[1] < capacity[1];
            prop_assert!(!accelerator_free || !lanes.queues.iter().any(|q| large(q)));
        }
        prop_assert!(small <= lanes.begun[0] + lanes.queues[0].len());
    }

    /// At the crossing both take the same, and either side of it is as the threshold says.
    #[test]
    fn each_side_of_the_crossing(
        cpu_ns in 0..10_000u64,
        accelerator_ns in 0..1_000_000u64,
        cpu in 7.0..10.5f64,
        accelerator in 7.0..11.0f64,
        bytes in 1..1u64 << 32,
    ) {
        let fit = |ns, rate: f64| Fit {
            startup: Duration::from_nanos(ns),
            bytes_per_second: 10f64.powf(rate),
            spread: 0.0,
        };
        let (cpu, accelerator) = (fit(cpu_ns, cpu), fit(accelerator_ns, accelerator));
        let threshold = Threshold::crossing(&cpu, &accelerator);
        let seconds = |line: &Fit| line.time(bytes).as_secs_f64();
        let (here, there) = (seconds(&cpu), seconds(&accelerator));
        match threshold.allocate(bytes) {
            Lane::Accelerator => prop_assert!(there <= here * 1.000_001 + 2e-9, "{:?}", threshold),
            // Its start-up and its rate are both smaller: no threshold separates that.
            Lane::Cpu if accelerator.bytes_per_second <= cpu.bytes_per_second => {}
            Lane::Cpu => prop_assert!(here <= there * 1.000_001 + 2e-9, "{:?}", threshold),
        }
    }
}
