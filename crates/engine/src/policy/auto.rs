//! Chooses among the other policies: least time, energy or energy-delay by what was measured.

use std::time::Duration;

use super::cost::{Cost, Power};
use super::{Devices, Doubt, Load, Policy};

/// What [`Policy::Auto`] makes as small as it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// How long it takes.
    #[default]
    Time,
    /// Joules of all devices, those at rest included.
    Energy,
    /// Joules times seconds.
    Edp,
}

/// What a policy would cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// The policy.
    pub policy: Policy,
    /// How long it would take.
    pub time: Duration,
    /// Joules of all devices, those at rest included; `None` if they were not counted.
    pub joules: Option<f64>,
}

/// The policy that comes nearest to `goal`, and why it may not be the best.
pub(super) fn choose(goal: Goal, load: &Load, devices: &Devices) -> (Policy, Option<Doubt>) {
    let unmeasured = if devices.accelerators.is_empty() {
        Policy::Parallel
    } else if devices.cpu_workers == 0 {
        Policy::Gpu
    } else {
        Policy::Hybrid
    };
    let Some(estimates) = estimates(load, devices) else {
        return (unmeasured, Some(Doubt::NoProfiles));
    };
    let counted = estimates.iter().all(|estimate| estimate.joules.is_some());
    let doubt = (goal != Goal::Time && !counted).then_some(Doubt::NoJoules);
    let goal = if doubt.is_some() { Goal::Time } else { goal };
    let least = estimates.iter().min_by(|a, b| a.of(goal).total_cmp(&b.of(goal)));
    (least.map_or(unmeasured, |estimate| estimate.policy), doubt)
}

/// What each policy would cost; `None` if something that takes part in one was not measured.
pub(crate) fn estimates(load: &Load, devices: &Devices) -> Option<Vec<Estimate>> {
    let bytes = load.plain_bytes().unwrap_or(ENDLESS);
    let accelerators =
        devices.accelerators.iter().map(|a| a.cost.as_ref()).collect::<Option<Vec<_>>>()?;
    let mut estimates = Vec::new();
    let mut add = |policy, busy: &[&Cost], rest: &[&Cost]| {
        let time = together(busy, bytes);
        estimates.push(Estimate { policy, time, joules: joules(time, busy, rest) });
    };
    if devices.cpu_workers == 0 {
        add(Policy::Gpu, &accelerators, &[]);
        return Some(estimates);
    }
    let cpu = devices.all_workers.as_ref()?;
    if let Some(one) = &devices.one_worker {
        add(Policy::Serial, &[one], &accelerators);
    }
    add(Policy::Parallel, &[cpu], &accelerators);
    if !accelerators.is_empty() {
        add(Policy::Gpu, &accelerators, &[cpu]);
        let everything: Vec<_> = std::iter::once(cpu).chain(accelerators).collect();
        add(Policy::Hybrid, &everything, &[]);
    }
    Some(estimates)
}

impl Estimate {
    fn of(&self, goal: Goal) -> f64 {
        let seconds = self.time.as_secs_f64();
        let joules = self.joules.unwrap_or(f64::INFINITY);
        match goal {
            Goal::Time => seconds,
            Goal::Energy => joules,
            Goal::Edp => joules * seconds,
        }
    }
}

/// How long devices that end together take for `bytes`: each works from the end of its start-up
/// on, and one whose start-up takes longer than the others need has no part in it.
pub(super) fn together(devices: &[&Cost], bytes: u64) -> Duration {
    let mut devices = devices.to_vec();
    devices.sort_by_key(|cost| cost.startup);
    let (mut rate, mut head_start, mut best) = (0.0, 0.0, Duration::MAX);
    for cost in devices {
        if cost.startup >= best {
            break;
        }
        rate += cost.bytes_per_second;
        head_start += cost.bytes_per_second * cost.startup.as_secs_f64();
        let seconds = (bytes as f64 + head_start) / rate;
        best = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).min(best);
    }
    best
}

/// Sum over devices of P_active x t_busy + P_idle x (T - t_busy), where those that take part are
/// busy all the time. `None` where a power was not counted, or where a domain would count twice.
fn joules(time: Duration, busy: &[&Cost], rest: &[&Cost]) -> Option<f64> {
    let watts = if one_counter(busy, rest) { of_machine(busy) } else { of_each(busy, rest) };
    Some(watts? * time.as_secs_f64())
}

/// True if the same counters saw every device at work, so that each power is the whole machine's
/// and the others' rest is in it.
fn one_counter(busy: &[&Cost], rest: &[&Cost]) -> bool {
    let mut active = busy.iter().chain(rest).map(|cost| cost.active.as_ref());
    let Some(Some(first)) = active.next() else { return false };
    active.all(|power| power.is_some_and(|power| power.is_of_the_same(first)))
}

/// Watts of a machine whose devices were each measured with the others at rest: the idle power plus
/// what each device adds to it.
fn of_machine(busy: &[&Cost]) -> Option<f64> {
    let active = busy.iter().map(|cost| Some(cost.active.as_ref()?.watts().0));
    let active = active.sum::<Option<f64>>()?;
    let others = busy.len().checked_sub(1)?;
    if others == 0 {
        return Some(active);
    }
    let same = |cost: &&Cost| {
        let idle = cost.idle.as_ref()?;
        cost.active.as_ref()?.is_of_the_same(idle).then_some(idle.watts().0)
    };
    Some(active - others as f64 * busy.iter().find_map(same)?)
}

/// Watts of devices that have counters of their own.
fn of_each(busy: &[&Cost], rest: &[&Cost]) -> Option<f64> {
    let active = busy.iter().map(|cost| cost.active.as_ref());
    let idle = rest.iter().map(|cost| {
        // Idle and active power must come from the same counters.
        let idle = cost.idle.as_ref()?;
        cost.active.as_ref().is_none_or(|active| active.is_of_the_same(idle)).then_some(idle)
    });
    let powers = active.chain(idle).collect::<Option<Vec<&Power>>>()?;
    let twice = |(i, power): (usize, &&Power)| powers[i + 1..].iter().any(|p| p.overlaps(power));
    if powers.iter().enumerate().any(twice) {
        return None;
    }
    Some(powers.iter().map(|power| power.watts().0).sum())
}

/// Bytes at which start-up no longer shows: what a run of unknown length is taken for.
const ENDLESS: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::super::Accelerator;
    use super::super::cost::tests::power;
    use super::*;

    const GB: u64 = 1_000_000_000;

    fn load(bytes: u64) -> Load {
        Load { bytes: Some(bytes), slot_len: 1000, chunk_len: 1000, in_order: false }
    }

    /// Of that start-up in ms, GB/s, and W of a domain at work and at rest.
    fn cost(startup_ms: u64, rate: f64, watts: Option<(&str, f64, f64)>) -> Cost {
        Cost {
            startup: Duration::from_millis(startup_ms),
            bytes_per_second: rate * 1e9,
            active: watts.map(|(domain, active, _)| power(domain, active)),
            idle: watts.map(|(domain, _, idle)| power(domain, idle)),
        }
    }

    /// One worker with 2 GB/s and 20 W, all with 8 GB/s and 100 W, and a GPU after 10 ms.
    fn devices(gpu_rate: f64, gpu_active: f64, gpu_idle: f64) -> Devices {
        let gpu = cost(10, gpu_rate, Some(("gpu-0", gpu_active, gpu_idle)));
        Devices {
            cpu_workers: 8,
            one_worker: Some(cost(0, 2.0, Some(("package-0", 20.0, 10.0)))),
            all_workers: Some(cost(0, 8.0, Some(("package-0", 100.0, 10.0)))),
            accelerators: vec![Accelerator { slots: 3, cost: Some(gpu) }],
        }
    }

    #[test]
    fn the_least() {
        let slow = devices(1.0, 300.0, 60.0);
        let fast = devices(32.0, 300.0, 60.0);
        let frugal = devices(32.0, 30.0, 5.0);
        let resting = devices(0.1, 400.0, 0.0);
        let table = [
            (Goal::Time, 10 * GB, &slow, Policy::Hybrid),
            (Goal::Time, GB / 100, &slow, Policy::Parallel),
            (Goal::Time, 10 * GB, &fast, Policy::Hybrid),
            // 160 J/s for 1/8 s, 400 for 1/9, 310 for 1, and 80 for 1/2, for each GB.
            (Goal::Energy, 10 * GB, &slow, Policy::Parallel),
            // 160/8, 400/40, 310/32 and 80/2.
            (Goal::Energy, 100 * GB, &fast, Policy::Gpu),
            (Goal::Energy, 100 * GB, &frugal, Policy::Gpu),
            // 100/8 for all and 20/2 for one.
            (Goal::Energy, 10 * GB, &resting, Policy::Serial),
            // 100/8 x 1/8 against 20/2 x 1/2.
            (Goal::Edp, 10 * GB, &resting, Policy::Parallel),
            (Goal::Edp, 100 * GB, &fast, Policy::Hybrid),
            (Goal::Edp, 100 * GB, &frugal, Policy::Gpu),
        ];
        for (goal, bytes, devices, policy) in table {
            let chosen = choose(goal, &load(bytes), devices);
            let all = estimates(&load(bytes), devices);
            assert_eq!(chosen, (policy, None), "{goal:?} {bytes} {all:#?}");
        }
    }

    #[test]
    fn no_joules_without_counters() {
        let mut uncounted = devices(32.0, 30.0, 5.0);
        uncounted.accelerators[0].cost = Some(cost(10, 32.0, None));
        let mut idle_unknown = devices(32.0, 30.0, 5.0);
        idle_unknown.all_workers.as_mut().unwrap().idle = None;
        let mut twice = devices(32.0, 30.0, 5.0);
        let both = Some(power("package-0", 9.0).and(power("gpu-0", 30.0)));
        twice.accelerators[0].cost.as_mut().unwrap().active = both;
        for devices in [uncounted, idle_unknown, twice] {
            for goal in [Goal::Energy, Goal::Edp] {
                let chosen = choose(goal, &load(GB), &devices);
                assert_eq!(chosen, (Policy::Hybrid, Some(Doubt::NoJoules)));
            }
            assert_eq!(choose(Goal::Time, &load(GB), &devices).1, None);
        }
    }

    #[test]
    fn the_cpu_alone_needs_no_idle_power() {
        let mut devices = devices(32.0, 30.0, 5.0);
        devices.accelerators.clear();
        for cost in [&mut devices.one_worker, &mut devices.all_workers] {
            cost.as_mut().unwrap().idle = None;
        }
        assert_eq!(choose(Goal::Energy, &load(GB), &devices), (Policy::Serial, None));
    }

    #[test]
    fn one_counter_of_the_whole_machine() {
        let cpu = cost(0, 8.0, Some(("outlet", 160.0, 70.0)));
        let gpu = cost(0, 32.0, Some(("outlet", 310.0, 70.0)));
        let second = Duration::from_secs(1);
        assert_eq!(joules(second, &[&cpu], &[&gpu]), Some(160.0), "the GPU's rest is in it");
        assert_eq!(joules(second, &[&gpu], &[&cpu]), Some(310.0));
        assert_eq!(joules(second, &[&cpu, &gpu], &[]), Some(400.0), "rest counts once");
        let no_idle = |cost: &Cost| Cost { idle: None, ..cost.clone() };
        assert_eq!(joules(second, &[&no_idle(&cpu), &no_idle(&gpu)], &[]), None);
        assert_eq!(joules(second, &[&no_idle(&cpu)], &[&no_idle(&gpu)]), Some(160.0));
    }

    #[test]
    fn what_was_not_measured() {
        let measured = devices(32.0, 30.0, 5.0);
        let accelerators = vec![Accelerator { slots: 3, cost: None }];
        let new_gpu = Devices { accelerators, ..measured.clone() };
        let new_cpu = Devices { all_workers: None, ..measured.clone() };
        let cpu_alone = Devices { all_workers: None, accelerators: Vec::new(), ..measured.clone() };
        let no_cpu = Devices { cpu_workers: 0, ..new_gpu.clone() };
        let table = [
            (new_gpu, Policy::Hybrid),
            (new_cpu, Policy::Hybrid),
            (cpu_alone, Policy::Parallel),
            (no_cpu, Policy::Gpu),
        ];
        for (devices, policy) in table {
            let chosen = choose(Goal::Time, &load(GB), &devices);
            assert_eq!(chosen, (policy, Some(Doubt::NoProfiles)));
        }
        let no_cpu = Devices { cpu_workers: 0, ..measured };
        assert_eq!(choose(Goal::Time, &load(GB), &no_cpu), (Policy::Gpu, None));
    }

    #[test]
    fn devices_that_end_together() {
        let (slow, fast) = (cost(0, 1.0, None), cost(500, 3.0, None));
        let ms = |devices: &[&Cost], bytes| together(devices, bytes).as_millis();
        assert_eq!(ms(&[&slow], GB), 1000);
        // One has done half of it when the other begins.
        assert_eq!(ms(&[&fast, &slow], GB), 625);
        assert_eq!(ms(&[&fast, &slow], GB / 4), 250, "the other would come too late");
        assert_eq!(ms(&[&fast], GB), 833);
    }
}
