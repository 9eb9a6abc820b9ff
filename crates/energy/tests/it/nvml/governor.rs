//! Both clocks of a GPU, set on lease: by locks where the GPU has them, by applications clocks on a
//! K20M.

use wattlock_energy::{ClockPair, Gpu, GpuGovernor, Lease};

use super::machine::Machine;
use crate::lease::machine::guardian;

fn governor(machine: &Machine) -> Result<GpuGovernor, wattlock_energy::Error> {
    let lease = Lease::acquire(&machine.root(), guardian(&machine.root())).unwrap();
    GpuGovernor::new(&Gpu::all(&machine.root()).unwrap()[0], lease)
}

fn pairs(governor: &GpuGovernor) -> Vec<String> {
    governor.pairs().iter().map(ToString::to_string).collect()
}

/// Sets each pair, the lowest first.
fn climb(governor: &mut GpuGovernor) {
    let pairs: Vec<ClockPair> = governor.pairs().to_vec();
    pairs.into_iter().for_each(|pair| governor.apply(pair).unwrap());
}

#[test]
fn a_k20m_has_the_papers_pairs_and_gets_its_clocks_back() {
    let machine = Machine::new().k20m();
    let mut governor = governor(&machine).unwrap();
    let table_1 = [
        "324/324 MHz",
        "614/2600 MHz",
        "640/2600 MHz",
        "666/2600 MHz",
        "705/2600 MHz",
        "758/2600 MHz",
    ];
    assert_eq!(pairs(&governor), table_1);
    climb(&mut governor);
    governor.restore().unwrap();
    let set = ["324 324", "2600 614", "2600 640", "2600 666", "2600 705", "2600 758", "2600 705"];
    assert_eq!(machine.settings(), set.map(|pair| format!("applications 0 {pair}")));
}

#[test]
fn where_clocks_can_be_locked_both_are() {
    let machine = Machine::new().gpu(0, &[("graphics_mhz", "1980 345")]);
    let mut governor = governor(&machine).unwrap();
    assert_eq!(pairs(&governor), ["345/1593 MHz", "1980/3201 MHz"]);
    climb(&mut governor);
    // What dies without a word is put back, too.
    drop(governor);
    let set = [
        // Whether there are locks is found out by unlocking.
        "unlock 0",
        "unlock memory 0",
        "lock memory 0 1593 1593",
        "lock 0 345 345",
        "lock memory 0 3201 3201",
        "lock 0 1980 1980",
        "unlock 0",
        "unlock memory 0",
    ];
    assert_eq!(machine.settings(), set);
}

#[test]
fn without_a_lock_for_the_memory_its_clock_is_no_rung() {
    let lacks = [("no_memory_lock", ""), ("graphics_mhz", "1980 345")];
    let machine = Machine::new().gpu(0, &lacks);
    let mut governor = governor(&machine).unwrap();
    assert_eq!(pairs(&governor), ["1980/3201 MHz"]);
    climb(&mut governor);
    governor.restore().unwrap();
    assert_eq!(machine.settings(), ["unlock 0", "lock 0 1980 1980", "unlock 0"]);
}

#[test]
fn a_gpu_of_one_memory_clock_is_locked_at_its_cores_alone() {
    let machine = Machine::new().gpu(0, &[("memory_mhz", "877"), ("graphics_mhz", "1530 135")]);
    let mut governor = governor(&machine).unwrap();
    assert_eq!(pairs(&governor), ["135/877 MHz", "1530/877 MHz"]);
    climb(&mut governor);
    governor.restore().unwrap();
    let set = ["unlock 0", "lock 0 135 135", "lock 0 1530 1530", "unlock 0"];
    assert_eq!(machine.settings(), set);
}

#[test]
fn who_may_not_set_clocks_gets_no_governor() {
    for machine in [
        Machine::new().gpu(0, &[("settable", "error 4")]),
        Machine::new().gpu(0, &[("no_locks", ""), ("no_memory_lock", "")]),
    ] {
        assert!(governor(&machine).is_err());
        assert_eq!(machine.settings(), Vec::<String>::new());
    }
}
