//! Plans, as tables of numbers.

use std::time::Duration;

use super::*;

const SLOT: usize = 16 * 1024 + 16;

fn load(bytes: Option<u64>, slot_len: usize) -> Load {
    Load { bytes, slot_len, chunk_len: slot_len - 16, in_order: false }
}

fn cpu(cpu_workers: usize) -> Devices {
    Devices { cpu_workers, ..Devices::default() }
}

fn with_gpu(cpu_workers: usize) -> Devices {
    let accelerators = vec![Accelerator { slots: 3, cost: None }];
    Devices { accelerators, ..cpu(cpu_workers) }
}

#[test]
fn plans_of_the_cpu() {
    let table = [
        // policy, bytes, available, workers, chunks a piece
        (Policy::Serial, Some(1 << 30), 8, 1, 31),
        (Policy::Serial, None, 8, 1, 31),
        (Policy::Parallel, None, 8, 8, 31),
        (Policy::Parallel, Some(0), 8, 1, 1),
        (Policy::Parallel, Some(20_000), 8, 1, 2),
        (Policy::Parallel, Some(INLINE_BYTES - 1), 8, 1, 31),
        (Policy::Parallel, Some(INLINE_BYTES), 2, 2, 16),
        (Policy::Parallel, Some(INLINE_BYTES), 8, 8, 4),
        (Policy::Parallel, Some(INLINE_BYTES), 64, 32, 1),
        (Policy::Parallel, Some(1 << 40), 2, 2, 31),
        (Policy::Parallel, Some(1 << 40), 0, 1, 31),
        (Policy::Dealt { piece_chunks: 1 }, Some(100), 4, 1, 1),
        (Policy::Dealt { piece_chunks: 2 }, Some(5 * SLOT as u64), 4, 3, 2),
        (Policy::Dealt { piece_chunks: 0 }, None, 4, 4, 1),
        (Policy::Dealt { piece_chunks: 1 << 20 }, Some(1 << 40), 1, 1, 1 << 20),
        (Policy::Hybrid, Some(1 << 40), 2, 2, 31),
        (Policy::HybridRatio { ratio: 9.79 }, Some(1 << 40), 2, 2, 31),
    ];
    for (policy, bytes, available, workers, piece_chunks) in table {
        let plan = policy.plan(&load(bytes, SLOT), &cpu(available));
        let said = format!("{policy:?} {bytes:?} {available}");
        assert_eq!((plan.workers, plan.piece_chunks), (workers, piece_chunks), "{said}");
        assert!(plan.terms.is_empty() && plan.cpu_chunks.is_none(), "{said}");
        assert_eq!(plan.chosen, Chosen { policy, doubt: None });
    }
}

#[test]
fn plans_with_an_accelerator() {
    let ratio = |ratio| Policy::HybridRatio { ratio };
    let auto = Policy::Auto { goal: Goal::Time };
    let above = |bytes| Policy::Threshold(Threshold(bytes));
    let plain = 100 * (SLOT as u64 - 16);
    let hundred = Some(100 * SLOT as u64);
    let table = [
        // policy, bytes, available, workers, chunks a piece, chunks of the CPU, accelerators
        (Policy::Serial, hundred, 4, 1, 31, None, 0),
        (Policy::Parallel, hundred, 4, 4, 25, None, 0),
        (Policy::Gpu, hundred, 4, 0, 1, Some(0), 1),
        (Policy::Gpu, None, 4, 0, 1, Some(0), 1),
        (Policy::Hybrid, hundred, 4, 4, 25, None, 1),
        (Policy::Hybrid, hundred, 0, 0, 1, Some(0), 1),
        (Policy::Hybrid, Some(1 << 30), 4, 4, 127, None, 1),
        (Policy::Hybrid, None, 4, 4, 31, None, 1),
        (ratio(9.0), hundred, 4, 4, 3, Some(10), 1),
        (ratio(99.0), hundred, 4, 1, 1, Some(1), 1),
        (ratio(101.0), hundred, 4, 0, 1, Some(0), 1),
        (ratio(9.0), None, 4, 4, 31, None, 1),
        (auto, hundred, 4, 4, 25, None, 1),
        (above(plain), hundred, 4, 4, 25, None, 0),
        (above(plain - 1), hundred, 4, 0, 1, Some(0), 1),
        (above(plain), hundred, 0, 0, 1, Some(0), 1),
        (above(u64::MAX - 1), None, 4, 0, 1, Some(0), 1),
        (above(u64::MAX), None, 4, 4, 31, None, 0),
    ];
    for (policy, bytes, available, workers, piece_chunks, cpu_chunks, accelerators) in table {
        let plan = policy.plan(&load(bytes, SLOT), &with_gpu(available));
        let said = format!("{policy:?} {bytes:?} {available}");
        assert_eq!((plan.workers, plan.piece_chunks), (workers, piece_chunks), "{said}");
        assert_eq!((plan.cpu_chunks, plan.terms.len()), (cpu_chunks, accelerators), "{said}");
        assert_eq!(
            plan.terms.iter().any(|t| t.may_decline),
            cpu_chunks.is_none() && accelerators > 0
        );
    }
}

#[test]
fn a_small_job_below_the_threshold_is_inline() {
    let table = [
        (100, 100, true),
        (101, 100, false),
        (INLINE_BYTES - 1, u64::MAX, true),
        (INLINE_BYTES, u64::MAX, false),
        (1, 0, false),
    ];
    for (bytes, threshold, inline) in table {
        let policy = Policy::Threshold(Threshold(threshold));
        assert_eq!(policy.is_inline(Some(bytes)), inline, "{bytes} {threshold}");
        assert!(!policy.is_inline(None));
    }
}

#[test]
fn doubts() {
    let doubt = |policy: Policy, bytes| policy.plan(&load(bytes, SLOT), &with_gpu(2)).chosen;
    let chosen = doubt(Policy::Auto { goal: Goal::Energy }, Some(1 << 30));
    assert_eq!((chosen.policy, chosen.doubt), (Policy::Hybrid, Some(Doubt::NoProfiles)));
    let ratio = Policy::HybridRatio { ratio: 1.0 };
    assert_eq!(doubt(ratio, None).doubt, Some(Doubt::NoLength));
    assert_eq!(doubt(ratio, Some(1)).doubt, None);
}

#[test]
fn the_plan_of_what_was_measured() {
    let cost = |startup_ms, bytes_per_second| {
        let startup = Duration::from_millis(startup_ms);
        Some(Cost { startup, bytes_per_second, active: None, idle: None })
    };
    let accelerators = vec![Accelerator { slots: 3, cost: cost(10, 1e10) }];
    let devices = Devices {
        cpu_workers: 2,
        one_worker: cost(0, 1e9),
        all_workers: cost(0, 2e9),
        accelerators,
    };
    let table = [
        (Goal::Time, 1 << 20, Policy::Parallel, None),
        (Goal::Time, 1 << 30, Policy::Hybrid, None),
        (Goal::Edp, 1 << 30, Policy::Hybrid, Some(Doubt::NoJoules)),
    ];
    for (goal, bytes, policy, doubt) in table {
        let plan = Policy::Auto { goal }.plan(&load(Some(bytes), SLOT), &devices);
        assert_eq!(plan.chosen, Chosen { policy, doubt }, "{goal:?} {bytes}");
        assert_eq!(plan.terms.iter().any(|terms| terms.times.is_some()), policy == Policy::Hybrid);
    }
}

#[test]
fn spread_is_parallel_and_below_its_threshold_too() {
    let chosen = Chosen::default();
    for bytes in [1 << 19, 1 << 20, 3 << 20, 1 << 30] {
        let load = load(Some(bytes), SLOT);
        let spread = Policy::spread(bytes.div_ceil(SLOT as u64), SLOT, 8);
        let plan = Plan { chosen, ..spread.plan(&load, &cpu(8)) };
        assert_eq!(plan, Policy::Parallel.plan(&load, &cpu(8)), "{bytes}");
    }
    let load = load(Some(2 * SLOT as u64), SLOT);
    let plan = Policy::spread(2, SLOT, 2).plan(&load, &cpu(2));
    assert_eq!((plan.workers, plan.piece_chunks), (2, 1));
}

#[test]
fn a_chunk_larger_than_a_piece_is_a_piece() {
    let large = load(Some(1 << 30), 4 << 20);
    assert_eq!(Policy::Parallel.plan(&large, &cpu(2)).piece_chunks, 1);
    let plan = Policy::Hybrid.plan(&large, &with_gpu(2));
    assert_eq!((plan.piece_chunks, plan.terms[0].full, plan.terms[0].least), (1, 10, 1));
}

#[test]
fn bytes_of_plaintext() {
    assert_eq!(load(Some(3 * SLOT as u64), SLOT).plain_bytes(), Some(3 * (SLOT as u64 - 16)));
    assert_eq!(load(Some(SLOT as u64 + 20), SLOT).plain_bytes(), Some(SLOT as u64 - 12));
    assert_eq!(load(None, SLOT).plain_bytes(), None);
}
