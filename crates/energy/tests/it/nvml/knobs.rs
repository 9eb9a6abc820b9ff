//! What was set on a GPU, as its driver saw it.

use wattlock_energy::{Error, Gpu, Knob, Setting, knobs};

use super::machine::{Machine, OTHER_UUID, UUID};

/// Clocks of cores and memory.
fn pairs(gpu: &Gpu) -> Vec<(u32, u32)> {
    let pairs = gpu.clock_pairs().unwrap();
    pairs.iter().map(|pair| (pair.core.0, pair.memory.0)).collect()
}

/// The lock of the first GPU's cores.
fn locked_clocks(machine: &Machine) -> Box<dyn Knob> {
    knobs::by_id(&machine.root(), &format!("nvml/{UUID}/locked-clocks")).unwrap()
}

fn word(word: &str) -> Setting {
    Setting::new(word).unwrap_or_else(|| panic!("{word} is no word"))
}

#[test]
fn a_journal_finds_them_by_name() {
    let machine = Machine::new().gpu(0, &[]);
    for name in ["locked-clocks", "locked-memory-clocks", "applications-clocks", "power-limit"] {
        let id = format!("nvml/{UUID}/{name}");
        assert_eq!(knobs::by_id(&machine.root(), &id).unwrap().id(), id);
        assert!(knobs::by_id(&machine.root(), &format!("nvml/../{name}")).is_none());
    }
}

#[test]
fn the_doctor_lists_them_and_sets_nothing() {
    let machine = Machine::new().gpu(0, &[]);
    let found = knobs::found(&machine.root());
    let gpu: Vec<_> = found.iter().filter(|found| found.source == "nvml").collect();
    assert_eq!(gpu.len(), 2, "{found:?}");
    assert!(gpu[0].why.contains("345/1593 MHz to 1980/3201 MHz"), "{found:?}");
    assert!(gpu[1].why.contains("600 W"), "{found:?}");
    assert_eq!(machine.settings(), Vec::<String>::new());
}

#[test]
fn reading_sets_nothing() {
    let machine = Machine::new().package().gpu(0, &[("energy_mj", "rises 100")]);
    machine.measure(|| ());
    let gpu = &Gpu::all(&machine.root()).unwrap()[0];
    gpu.clock_pairs().unwrap();
    gpu.observed_clock().unwrap();
    locked_clocks(&machine).read().unwrap();
    knobs::by_id(&machine.root(), &format!("nvml/{UUID}/power-limit")).unwrap().read().unwrap();
    assert_eq!(machine.settings(), Vec::<String>::new());
}

#[test]
fn clocks_are_locked_and_unlocked() {
    let machine = Machine::new().gpu(0, &[]);
    let gpu = &Gpu::all(&machine.root()).unwrap()[0];
    assert_eq!(gpu.name().unwrap(), "NVIDIA H200");
    assert_eq!(pairs(gpu), [(345, 1593), (1410, 3201), (1965, 3201), (1980, 3201)]);
    let knob = locked_clocks(&machine);
    assert_eq!(knob.id(), format!("nvml/{UUID}/locked-clocks"));
    let before = knob.read().unwrap();
    assert_eq!(before, word("unlocked"));
    knob.write(&word("1410")).unwrap();
    assert_eq!((knob.read().unwrap().as_str(), gpu.observed_clock().unwrap().0), ("1410", 1410));
    knob.write(&word("345,1965")).unwrap();
    assert_eq!(knob.read().unwrap(), word("345,1965"));
    // Nothing that is no setting reaches the driver.
    for none in ["fast", "1410,345", "-1"] {
        assert!(matches!(knob.write(&word(none)), Err(Error::NoSetting { .. })), "{none}");
        assert!(matches!(knob.check(&word(none)), Err(Error::NoSetting { .. })), "{none}");
    }
    knob.write(&before).unwrap();
    assert_eq!(
        (knob.read().unwrap().as_str(), gpu.observed_clock().unwrap().0),
        ("unlocked", 1980)
    );
    assert_eq!(machine.settings(), ["lock 0 1410 1410", "lock 0 345 1965", "unlock 0"]);
}

#[test]
fn the_power_limit_goes_back_to_what_it_was() {
    let machine = Machine::new().gpu(0, &[]).gpu(1, &[("limit_mw", "500000")]);
    let name = format!("nvml/{OTHER_UUID}/power-limit");
    let knob = knobs::by_id(&machine.root(), &name).unwrap();
    // A name opens nothing.
    assert_eq!((knob.id(), machine.log().len()), (name.as_str(), 0));
    let before = knob.read().unwrap();
    knob.write(&word("350000")).unwrap();
    assert_eq!(knob.read().unwrap(), word("350000"));
    for none in ["-1", "350000.0", "199999", "700001", "unlocked"] {
        assert!(matches!(knob.write(&word(none)), Err(Error::NoSetting { .. })), "{none}");
    }
    for end in ["200000", "700000"] {
        knob.write(&word(end)).unwrap();
    }
    knob.write(&before).unwrap();
    assert_eq!(knob.read().unwrap(), word("500000"));
    let set = ["350000", "200000", "700000", "500000"].map(|limit| format!("limit 1 {limit}"));
    assert_eq!(machine.settings(), set);
}

#[test]
fn a_knob_that_may_not_be_set_stays_as_it_was() {
    let machine = Machine::new().gpu(0, &[("settable", "error 4")]);
    let clocks = locked_clocks(&machine);
    let refused = clocks.write(&word("1410")).unwrap_err().to_string();
    assert!(refused.contains("nvmlDeviceSetGpuLockedClocks") && refused.contains(UUID));
    assert!(refused.contains("permission"), "{refused}");
    assert_eq!(clocks.read().unwrap(), word("unlocked"));
    let limit = knobs::by_id(&machine.root(), &format!("nvml/{UUID}/power-limit")).unwrap();
    assert!(limit.write(&word("350000")).is_err());
    assert_eq!(limit.read().unwrap(), word("600000"));
    assert_eq!(machine.settings(), Vec::<String>::new());
    // One that is gone is an error, too.
    let gone = knobs::by_id(&machine.root(), &format!("nvml/{OTHER_UUID}/locked-clocks"));
    assert!(matches!(gone.unwrap().write(&word("1410")), Err(Error::Nvml { .. })));
}

#[test]
fn a_long_ladder_has_no_clock_of_zero() {
    let clocks: Vec<_> = (0..194).map(|step| (3105 - step * 15).to_string()).collect();
    let machine = Machine::new().gpu(0, &[("graphics_mhz", &clocks.join(" "))]);
    let pairs = pairs(&Gpu::all(&machine.root()).unwrap()[0]);
    assert!(pairs.iter().map(|(core, _)| *core).eq((210..=3105).step_by(15)), "{pairs:?}");
}
