//! GPUs of a library that stands for NVIDIA's: readings, reasons for refusals, and settings.
//! Nothing here sets anything on a real GPU.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod governor;
mod knobs;
mod machine;
mod refusals;

use std::time::{Duration, Instant};

use wattlock_energy::{
    Caveat, Class, Domain, Gpu, Metered, Microjoules, Root, Sources, Status, Watts,
};

use wattlock_testing::wait_until;

use machine::{Machine, UUID};

fn gpu(window: &Metered) -> &Domain {
    window.domains.iter().find(|domain| domain.source == "nvml").unwrap()
}

fn has(window: &Metered, caveat: Caveat) -> bool {
    window.sum().caveats().any(|found| found == caveat)
}

#[test]
fn a_gpu_is_added_to_the_packages() {
    let machine = Machine::new().package().gpu(0, &[("energy_mj", "rises 250")]);
    let found = &machine.found()[0];
    assert_eq!((found.domain.as_str(), found.status), ("gpu-0 NVIDIA H200", Status::Used));
    let mut sources = machine.sources();
    assert!(sources.can_measure());
    let from = machine.log().len();
    let (_, window) = sources.measure(|| machine.joules(0.7)).unwrap();
    let counted = machine.counted(0, from);
    assert!(counted >= 250_000, "{counted}");
    assert_eq!(gpu(&window).energy.best().unwrap().0, counted);
    assert_eq!(gpu(&window).energy.class(), Class::Measured);
    assert_eq!(window.sum().best().unwrap().0, 700_000 + counted);
    assert!(window.is_measured() && has(&window, Caveat::OtherRoot));
    assert!(window.sum().covers().eq(["gpu-0 NVIDIA H200", "package-0"]));
}

#[test]
fn a_gpu_that_psys_cannot_hold_is_added_to_it() {
    let psys = "sys/class/powercap/intel-rapl:1";
    let machine = Machine::new().package().gpu(0, &[("energy_mj", "0")]);
    machine.file(&format!("{psys}/name"), "psys");
    machine.file(&format!("{psys}/max_energy_range_uj"), "262143328850");
    machine.file(&format!("{psys}/energy_uj"), "0");
    let window = machine.measure(|| {
        machine.joules(0.1);
        machine.file(&format!("{psys}/energy_uj"), "130000");
        machine.says("gpu0/energy_mj", "600");
    });
    assert_eq!(window.sum().best().unwrap().0, 730_000);
    assert!(window.sum().covers().eq(["gpu-0 NVIDIA H200", "psys"]));
    assert!(!has(&window, Caveat::GpuOverlapUnknown));
    // Where psys may hold it, the sum spans both.
    let window = machine.measure(|| {
        machine.file(&format!("{psys}/energy_uj"), "1130000");
        machine.says("gpu0/energy_mj", "700");
    });
    let (lo, hi) = window.sum().interval().unwrap();
    assert!(lo.0 <= 1_000_000 && hi.0 >= 1_100_000, "{lo:?} {hi:?}");
    assert!(has(&window, Caveat::GpuOverlapUnknown));
}

#[test]
fn every_gpu_is_a_domain() {
    let machine =
        Machine::new().package().gpu(0, &[("energy_mj", "5")]).gpu(1, &[("energy_mj", "7")]);
    let window = machine.measure(|| {
        machine.joules(0.1);
        machine.says("gpu0/energy_mj", "25");
        machine.says("gpu1/energy_mj", "37");
    });
    let domains = window.domains.iter().filter(|domain| domain.source == "nvml");
    let energies = domains.map(|domain| (domain.name.as_str(), domain.energy.best().unwrap().0));
    assert!(energies.eq([("gpu-0 NVIDIA H200", 20_000), ("gpu-1 NVIDIA H200", 30_000)]));
    assert_eq!(window.sum().best().unwrap().0, 150_000);
}

#[test]
fn without_the_packages_a_gpu_is_measured_and_the_sum_is_not() {
    let machine = Machine::new().gpu(0, &[("energy_mj", "1000")]);
    assert!(!machine.sources().can_measure());
    let window = machine.measure(|| {
        machine.says("gpu0/energy_mj", "1050");
    });
    assert_eq!(gpu(&window).energy.best().unwrap().0, 50_000);
    assert_eq!(gpu(&window).energy.class(), Class::Measured);
    assert_eq!((window.sum().class(), window.sum().interval()), (Class::Unavailable, None));
    assert!(has(&window, Caveat::DomainMissing));
}

#[test]
fn without_a_counter_power_is_sampled() {
    let machine = Machine::new().package().gpu(0, &[("power_mw", "250000")]);
    let mut inside = Duration::ZERO;
    let window = machine.measure(|| {
        let start = Instant::now();
        machine.wait_for_reads(2);
        machine.joules(0.7);
        inside = start.elapsed();
    });
    if gpu(&window).energy.caveats().any(|caveat| caveat == Caveat::Ambiguous) {
        wattlock_testing::skip("timing", "the guard did not run for 2 s");
        return;
    }
    let energy = &gpu(&window).energy;
    assert_eq!((energy.class(), window.sum().class()), (Class::Integrated, Class::Integrated));
    assert!(energy.caveats().any(|caveat| caveat == Caveat::Sampled));
    let best = energy.best().unwrap();
    let of_250_watts = |time: Duration| Microjoules((250e6 * time.as_secs_f64()).round() as u64);
    let (least, most) = (of_250_watts(inside), of_250_watts(window.wall));
    assert!(least <= best && best <= most, "{best:?} {most:?}");
    assert!(!machine.sources().can_measure());
}

#[test]
fn a_gpu_that_is_lost_meanwhile_is_a_gap() {
    for (kind, before, after) in
        [("energy_mj", "1000", "error 15"), ("power_mw", "250000", "error 15")]
    {
        let machine = Machine::new().package().gpu(0, &[(kind, before)]);
        let window = machine.measure(|| {
            machine.joules(0.7);
            machine.says(&format!("gpu0/{kind}"), after);
        });
        let energy = &gpu(&window).energy;
        assert_eq!((energy.class(), energy.interval()), (Class::Unavailable, None));
        assert!(energy.caveats().any(|caveat| caveat == Caveat::Gap));
        assert!(energy.gaps()[0].contains(UUID) && energy.gaps()[0].contains("bus"));
        // The package's joules are left, and are not the whole.
        let sum = window.sum();
        assert_eq!(sum.best().unwrap().0, 700_000);
        assert!(sum.missing().eq(["gpu-0 NVIDIA H200"]) && !window.is_measured());
    }
}

#[test]
fn a_counter_that_jumps_or_goes_back_is_not_believed() {
    for (after, why) in [("999999999", Caveat::Implausible), ("3", Caveat::Reset)] {
        let machine = Machine::new().package().gpu(0, &[("energy_mj", "1000")]);
        let window = machine.measure(|| {
            machine.joules(0.7);
            machine.says("gpu0/energy_mj", after);
        });
        assert_eq!(gpu(&window).energy.interval(), None);
        assert!(gpu(&window).energy.caveats().any(|caveat| caveat == why), "{after}");
    }
}

#[test]
fn the_library_is_shut_down_as_often_as_it_was_opened() {
    let machine = Machine::new().gpu(0, &[("energy_mj", "1")]);
    let mut sources = machine.sources();
    let gpus = Gpu::all(&machine.root()).unwrap();
    let count = |what: &str| machine.log().iter().filter(|line| *line == what).count();
    assert_eq!((count("init"), count("shutdown")), (2, 0));
    drop(gpus);
    assert_eq!(count("shutdown"), 1);
    // Others still read.
    sources.measure(|| machine.says("gpu0/energy_mj", "2")).unwrap();
    drop(sources);
    assert_eq!((count("init"), count("shutdown")), (2, 2));
}

/// Reads the NVIDIA GPUs of this machine, if it has any.
#[test]
fn a_real_gpu_is_read() {
    let gpus = match Gpu::all(&Root::default()) {
        Ok(gpus) if !gpus.is_empty() => gpus,
        Ok(_) => {
            wattlock_testing::skip("nvidia", "no NVIDIA GPU");
            return;
        }
        Err(why) => {
            wattlock_testing::skip("nvidia", format_args!("no NVIDIA GPU: {why}"));
            return;
        }
    };
    for gpu in &gpus {
        let clock = gpu.observed_clock().map(|clock| clock.to_string());
        println!("{} {:?} at {clock:?}", gpu.uuid(), gpu.name());
        println!("  clocks {:?}", gpu.clock_pairs());
        let limit = wattlock_energy::knobs::by_id(
            &Root::default(),
            &format!("nvml/{}/power-limit", gpu.uuid()),
        );
        println!("  power limit {:?}", limit.unwrap().read());
    }
    let mut sources = Sources::open(&Root::default());
    let found: Vec<_> =
        sources.found().iter().filter(|found| found.source == "nvml").cloned().collect();
    println!("{found:#?}");
    assert!(found.len() >= gpus.len());
    // Reading its clocks is work too, and the window is long enough to measure its power.
    let start = Instant::now();
    let work = || {
        wait_until("two seconds of readings are over", || {
            gpus.iter().for_each(|gpu| drop(gpu.observed_clock()));
            start.elapsed() > Duration::from_secs(2)
        });
    };
    let (_, window) = sources.measure(work).unwrap();
    for found in found.iter().filter(|found| found.status == Status::Used) {
        let domain = window.domains.iter().find(|domain| domain.name == found.domain).unwrap();
        println!("{}: {} in {:?}", domain.name, domain.energy, window.wall);
        let power = domain.energy.best().unwrap().over(window.wall);
        assert!(power > Watts(0.5) && power < Watts(2000.0), "{power:?}");
    }
}
