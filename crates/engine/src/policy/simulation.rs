//! Plans played in virtual time: how long the devices of given speeds would take, piece by piece.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const CHUNK: u64 = 16 * 1024;

/// A machine, in bytes a second.
#[derive(Clone, Copy, Debug)]
struct Machine {
    cpu_workers: usize,
    cpu_rate: f64,
    gpu_rate: f64,
    gpu_startup_s: f64,
    slots: usize,
}

impl Machine {
    fn devices(&self) -> Devices {
        let cost = |startup_s, bytes_per_second| {
            let startup = Duration::from_secs_f64(startup_s);
            Some(Cost { startup, bytes_per_second, active: None, idle: None })
        };
        let gpu = cost(self.gpu_startup_s, self.gpu_rate);
        Devices {
            cpu_workers: self.cpu_workers,
            one_worker: cost(0.0, self.cpu_rate / self.cpu_workers as f64),
            all_workers: cost(0.0, self.cpu_rate),
            accelerators: vec![Accelerator { slots: self.slots, cost: gpu }],
        }
    }

    /// A start-up, and what a CPU worker takes for 64 KiB: smaller differences do not count.
    fn grain_s(&self) -> f64 {
        self.gpu_startup_s + (64 << 10) as f64 * self.cpu_workers as f64 / self.cpu_rate
    }

    /// How long `plan` takes. A piece of the GPU is on its way for the start-up, while those
    /// before it are worked on.
    fn play_s(&self, plan: &Plan, bytes: u64) -> f64 {
        let chunk_s = |rate: f64| CHUNK as f64 / rate;
        let cpu_chunk_s = chunk_s(self.cpu_rate / self.cpu_workers as f64);
        let mut left = bytes.div_ceil(CHUNK);
        // When each is free, and what the GPU has in flight: chunks, and when they are done.
        let mut cpu = vec![0.0f64; plan.workers];
        let mut flight: VecDeque<(u64, f64)> = VecDeque::new();
        let (mut now, mut gpu_free, mut end) = (0.0f64, 0.0f64, 0.0f64);
        loop {
            while flight.front().is_some_and(|(_, done)| *done <= now) {
                flight.pop_front();
            }
            while flight.len() < self.slots {
                let in_flight = flight.iter().map(|(chunks, _)| chunks).sum();
                let Some(chunks) = plan.terms.first().and_then(|t| t.wanted(Some(left), in_flight))
                else {
                    break;
                };
                left -= chunks;
                gpu_free = gpu_free.max(now + self.gpu_startup_s);
                gpu_free += chunks as f64 * chunk_s(self.gpu_rate);
                flight.push_back((chunks, gpu_free));
                end = end.max(gpu_free);
            }
            for free in cpu.iter_mut().filter(|free| **free <= now) {
                let chunks = left.min(plan.piece_chunks as u64);
                left -= chunks;
                *free = if chunks == 0 { f64::MAX } else { now + chunks as f64 * cpu_chunk_s };
                end = if chunks == 0 { end } else { end.max(*free) };
            }
            let next = cpu.iter().copied().chain(flight.iter().map(|(_, done)| *done));
            now = next.fold(f64::MAX, f64::min);
            if now == f64::MAX {
                assert_eq!(left, 0, "the last chunk is done");
                return end;
            }
        }
    }
}

/// A core does 30 MB/s to 16 GB/s, and all 200 GB/s at most; an accelerator 10 MB/s to 60 GB/s,
/// which is what reaches it, after 1 µs to 2 ms.
fn machines() -> impl Strategy<Value = Machine> {
    (1usize..65, 7.5..10.2f64, 7.0..10.8f64, -6.0..-2.7f64, 3usize..9).prop_map(
        |(cpu_workers, worker, gpu, startup, slots)| Machine {
            cpu_workers,
            cpu_rate: (10f64.powf(worker) * cpu_workers as f64).min(200e9),
            gpu_rate: 10f64.powf(gpu),
            gpu_startup_s: 10f64.powf(startup),
            slots,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// The target of the design: hybrid is at most 5 % slower than the better of its parts, but
    /// for a start-up and the CPU's smallest piece.
    #[test]
    fn never_much_slower_than_the_better_part(machine in machines(), mib in 4.0..14.0f64) {
        let bytes = (2f64.powf(mib) as u64) << 20;
        let slot_len = CHUNK as usize;
        let load = Load { bytes: Some(bytes), slot_len, chunk_len: slot_len, in_order: false };
        let took = |policy: Policy| {
            machine.play_s(&policy.plan(&load, &machine.devices()), bytes)
        };
        let better = took(Policy::Parallel).min(took(Policy::Gpu));
        let hybrid = took(Policy::Hybrid);
        prop_assert!(hybrid <= 1.05 * better + machine.grain_s(), "{} s instead of {} s", hybrid, better);
    }

    /// Two that are equally fast are nearly twice as fast together.
    #[test]
    fn nearly_the_sum_of_its_parts(machine in machines(), mib in 9.0..14.0f64) {
        let bytes = (2f64.powf(mib) as u64) << 20;
        let slot_len = CHUNK as usize;
        let load = Load { bytes: Some(bytes), slot_len, chunk_len: slot_len, in_order: false };
        let cpu_rate = machine.gpu_rate;
        let machine = Machine { cpu_rate, ..machine };
        let devices = machine.devices();
        let hybrid = machine.play_s(&Policy::Hybrid.plan(&load, &devices), bytes);
        let estimate = super::auto::estimates(&load, &devices).unwrap().pop().unwrap().time.as_secs_f64();
        prop_assert!(hybrid <= 1.05 * estimate + machine.grain_s(), "{} s instead of {} s", hybrid, estimate);
    }
}
