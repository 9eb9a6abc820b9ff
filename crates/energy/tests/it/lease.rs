//! Leases in processes that end in every way: which settings are restored, and by which process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod journal;
pub mod machine;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use machine::{Holder, MAX_0, MAX_1, Machine, guardian, process, runs, send};
use rustix::process::Signal;
use wattlock_energy::{Error, Lease, Replay, restore};
use wattlock_testing::{Watched, wait_until};

/// The processes that the tests start: this program once more, controlled by its environment.
#[test]
#[ignore = "it is the processes of the other tests, and no test"]
fn process_of_a_test() {
    process();
}

#[test]
fn a_normal_end_restores() {
    for end in ["restore", "drop", "panic"] {
        let machine = Machine::new();
        let mut holder = Holder::start(&machine);
        assert_eq!(machine.clocks(), (1_000_000, 1_200_000));
        assert!(machine.journal().exists());
        holder.order(end);
        if end == "restore" {
            let (first, second) = (holder.hear(), holder.hear());
            assert_eq!(first, format!("{MAX_1}: restored to 2000000"));
            assert_eq!(second, format!("{MAX_0}: restored to 3000000"));
        }
        let stderr = holder.end();
        assert_eq!(machine.clocks(), (3_000_000, 2_000_000), "{end}");
        assert!(!machine.journal().exists());
        assert!(!stderr.contains("guardian"), "{stderr}");
        wait_until("the guardian is gone", || !runs(holder.guardian));
    }
}

#[test]
fn after_sigkill_the_guardian_restores() {
    let machine = Machine::new();
    let mut holder = Holder::start(&machine);
    send(holder.pid(), Signal::KILL);
    machine.eventually_restored();
    let stderr = holder.end();
    assert!(stderr.contains(&format!("guardian: {MAX_1}: restored to 2000000")), "{stderr}");
    assert!(!machine.journal().exists());
}

#[test]
fn sigkill_at_any_moment_leaves_nothing_changed() {
    for moment in 0..12 {
        let machine = Machine::new();
        let mut holder = Holder::start(&machine);
        let writes = Watched::writes_of(&machine.file(moment % 2, "scaling_max_freq"));
        holder.order("spin");
        assert_eq!(holder.hear(), "spinning");
        writes.wait_for(5 * moment as usize);
        send(holder.pid(), Signal::KILL);
        machine.eventually_restored();
        let stderr = holder.end();
        assert!(!stderr.contains("left alone"), "{stderr}");
    }
}

#[test]
fn after_sigkill_of_the_whole_group_too() {
    let machine = Machine::new();
    let mut holder = Holder::start(&machine);
    holder.send_to_group(Signal::KILL);
    machine.eventually_restored();
    holder.end();
}

#[test]
fn the_guardian_reports_settings_that_a_drop_cannot_restore() {
    let machine = Machine::new();
    let mut holder = Holder::start(&machine);
    fs::remove_file(machine.file(1, "scaling_max_freq")).unwrap();
    holder.order("drop");
    let stderr = holder.end();
    assert!(stderr.contains("guardian: not all settings could be put back"), "{stderr}");
    assert!(stderr.contains(&format!("{MAX_1}: not restored to 2000000: cannot read")), "{stderr}");
    assert_eq!(machine.clock(0), 3_000_000);
    assert!(machine.journal().exists());
}

#[test]
fn after_an_exit_that_drops_nothing_the_guardian_restores() {
    let machine = Machine::new();
    let mut holder = Holder::start(&machine);
    holder.order("exit");
    machine.eventually_restored();
    holder.end();
}

#[test]
fn signals_that_end_programs_do_not_end_the_guardian() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let machine = Machine::new();
        let mut holder = Holder::start(&machine);
        // As a terminal does, and as systemd does, which knows every process by its number.
        send(holder.guardian, signal);
        assert!(runs(holder.guardian));
        holder.send_to_group(signal);
        machine.eventually_restored();
        let stderr = holder.end();
        assert!(stderr.contains("guardian: "), "{stderr}");
    }
}

#[test]
fn after_the_death_of_both_the_next_start_restores() {
    let machine = Machine::new();
    machine.kill_with_guardian();
    let lease = Lease::acquire(&machine.root(), guardian(&machine.root())).unwrap();
    assert_eq!(machine.clocks(), (3_000_000, 2_000_000));
    let Replay::Restored(restored) = lease.leftover() else { panic!("nothing was left") };
    assert_eq!(restored.knobs.len(), 2);
    assert!(lease.restore().unwrap().knobs.is_empty());
}

#[test]
fn after_the_death_of_both_a_replay_restores() {
    let machine = Machine::new();
    machine.kill_with_guardian();
    let replayed = restore::replay(&machine.root()).unwrap();
    assert_eq!(machine.clocks(), (3_000_000, 2_000_000));
    let expected = format!("{MAX_1}: restored to 2000000\n{MAX_0}: restored to 3000000");
    assert_eq!(replayed.to_string(), expected);
    assert!(matches!(restore::replay(&machine.root()), Ok(Replay::Nothing)));
}

#[test]
fn a_replay_tries_all_and_the_journal_keeps_what_is_left() {
    let machine = Machine::new();
    machine.kill_with_guardian();
    let missing = machine.file(1, "scaling_max_freq");
    fs::remove_file(&missing).unwrap();
    let error = restore::replay(&machine.root()).unwrap_err();
    assert!(matches!(error, Error::NotRestored { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("{MAX_1}: not restored to 2000000")), "{text}");
    assert!(text.contains(&format!("{MAX_0}: restored to 3000000")), "{text}");
    let refused = Lease::acquire(&machine.root(), guardian(&machine.root())).err().unwrap();
    assert!(matches!(refused, Error::NotRestored { .. }), "{refused}");
    fs::write(missing, "1200000\n").unwrap();
    restore::replay(&machine.root()).unwrap();
    assert_eq!(machine.clocks(), (3_000_000, 2_000_000));
    assert!(!machine.journal().exists());
}

#[test]
fn after_another_boot_the_journal_is_discarded() {
    let machine = Machine::new();
    machine.kill_with_guardian();
    machine.boot("another");
    let replayed = restore::replay(&machine.root()).unwrap();
    assert!(matches!(&replayed, Replay::OtherBoot { boot_id } if boot_id == "first"));
    assert!(replayed.to_string().contains("an earlier boot, and was discarded"));
    assert_eq!(machine.clocks(), (1_000_000, 1_200_000));
    assert!(!machine.journal().exists());
}

#[test]
fn a_second_lease_learns_the_process_of_the_first() {
    let machine = Machine::new();
    let mut holder = Holder::start(&machine);
    let refused = Lease::acquire(&machine.root(), guardian(&machine.root())).err().unwrap();
    let Error::Held { pid, .. } = &refused else { panic!("{refused}") };
    assert_eq!(*pid, Some(holder.pid()));
    assert!(refused.to_string().contains(&format!("process {}", holder.pid())), "{refused}");
    let refused = restore::replay(&machine.root()).unwrap_err();
    assert!(matches!(refused, Error::Held { pid, .. } if pid == Some(holder.pid())), "{refused}");
    assert_eq!(machine.clocks(), (1_000_000, 1_200_000));
    // With its lock removed from under it, its process shows that it is there.
    fs::remove_file(machine.journal().with_file_name("lock")).unwrap();
    let refused = restore::replay(&machine.root()).unwrap_err();
    assert!(matches!(refused, Error::Held { pid, .. } if pid == Some(holder.pid())), "{refused}");
    holder.order("drop");
    holder.end();
    assert_eq!(machine.clocks(), (3_000_000, 2_000_000));
}

#[test]
fn a_setting_of_another_program_outlives_the_lease() {
    let machine = Machine::new();
    let mut holder = Holder::start(&machine);
    fs::write(machine.file(0, "scaling_max_freq"), "2222000\n").unwrap();
    send(holder.pid(), Signal::KILL);
    wait_until("the guardian restores", || !machine.journal().exists());
    assert_eq!(machine.clocks(), (2_222_000, 2_000_000));
    let stderr = holder.end();
    assert!(stderr.contains("changed to 2222000 by another program, left alone"), "{stderr}");
}

#[test]
fn a_knob_that_cannot_be_set_has_the_others_put_back() {
    let machine = Machine::new();
    // The kernel's own, that even root cannot write.
    let read_only = Path::new("/proc/sys/kernel/ngroups_max");
    let writable = fs::OpenOptions::new().write(true).open(read_only).is_ok();
    if !read_only.exists() || writable {
        wattlock_testing::skip("procfs", "no file that root cannot write");
        return;
    }
    let refuses = machine.file(1, "scaling_max_freq");
    fs::remove_file(&refuses).unwrap();
    symlink(read_only, &refuses).unwrap();
    let mut lease = Lease::acquire(&machine.root(), guardian(&machine.root())).unwrap();
    lease.set(MAX_0, &1_000_000.into()).unwrap();
    assert_eq!(machine.clock(0), 1_000_000);
    let error = lease.set(MAX_1, &1_200_000.into()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write "), "{error}");
    drop(lease);
    assert_eq!(machine.clock(0), 3_000_000);
    assert!(!machine.journal().exists());
}

#[test]
fn a_child_of_the_owner_that_goes_on_delays_nothing() {
    let machine = Machine::new();
    let mut holder = Holder::start(&machine);
    holder.order("child");
    let child = holder.hear().parse().unwrap();
    send(holder.pid(), Signal::KILL);
    machine.eventually_restored();
    assert!(runs(child));
    // Nor does it keep the lock.
    Lease::acquire(&machine.root(), guardian(&machine.root())).unwrap();
    assert!(runs(child));
    send(child, Signal::KILL);
    holder.end();
}

#[test]
fn without_its_guardian_a_lease_changes_nothing() {
    let machine = Machine::new();
    let mut holder = Holder::start(&machine);
    send(holder.guardian, Signal::KILL);
    wait_until("the guardian is dead", || !runs(holder.guardian));
    holder.order(&format!("set {MAX_0} 900000"));
    let said = holder.hear();
    assert!(said.starts_with("no guardian") && said.contains("it has ended"), "{said}");
    assert_eq!(machine.clocks(), (1_000_000, 1_200_000));
    holder.order("drop");
    holder.end();
    assert_eq!(machine.clocks(), (3_000_000, 2_000_000));
}

#[test]
fn a_guardian_that_does_not_start_leaves_all_as_it_was() {
    let machine = Machine::new();
    let refused = Lease::acquire(&machine.root(), std::process::Command::new("true"));
    assert!(matches!(refused.err().unwrap(), Error::Guardian(_)));
    // And the lock is free.
    Lease::acquire(&machine.root(), guardian(&machine.root())).unwrap();
}
