//! The file of profiles: whole, damaged, foreign, and where it cannot be.

use serde_json::{Value, json};
use wattlock_energy::{Caveat, Energy, Microjoules, Watts};

use super::*;
use crate::case::Case;
use crate::profile::tests::profile;
use crate::profile::{Joules, Residency};

fn processor(cpu: &str) -> Processor {
    let cpu_id = "family 6 model 143 stepping 8".into();
    Processor { cpu: cpu.into(), cpu_id, cpus: 8, virtual_machine: false }
}

/// A cache directory, and the store in it.
fn cache() -> (tempfile::TempDir, Store) {
    let place = tempfile::tempdir().unwrap();
    let store = Store::new(&place.path().join("a/b"), processor("this one"));
    (place, store)
}

fn change(store: &Store, change: impl FnOnce(&mut Value)) {
    let mut document = serde_json::from_slice(&fs::read(store.path()).unwrap()).unwrap();
    change(&mut document);
    fs::write(store.path(), document.to_string()).unwrap();
}

#[test]
fn what_is_saved_is_loaded() {
    let (_place, store) = cache();
    assert!(matches!(store.load(), Err(Uncalibrated::Missing)));
    let energy = Energy::measured("package-0", Microjoules(5_000_000), Microjoules(70_000))
        + Energy::measured("dram", Microjoules(1_000_000), Microjoules(30_000));
    let mut with_joules = profile("aes-256-gcm seal", 8, 20);
    with_joules.joules = Joules::new(energy.with_caveat(Caveat::WholeMachine), 1 << 30)
        .map(|joules| joules.with_idle(Some(Watts(31.25))));
    assert!(with_joules.joules.is_some());
    let saved = vec![profile("aes-256-gcm seal", 1, 2), with_joules];
    assert_eq!(store.save(&saved).unwrap(), None);
    assert_eq!(store.load().unwrap(), saved.into_iter().collect());
    let names: Vec<_> = fs::read_dir(store.path().parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "no temporary file is left: {names:?}");
}

#[test]
fn profiles_of_several_machines_are_kept() {
    let (place, store) = cache();
    let other = Store::new(&place.path().join("a/b"), processor("another one"));
    other.save(&[profile("aes-128-ctr", 1, 7)]).unwrap();
    let reason = store.load().unwrap_err();
    assert!(matches!(reason, Uncalibrated::OtherMachine(_)));
    assert!(reason.to_string().contains("another one (family 6"), "{reason}");
    store.save(&[profile("aes-128-ctr", 1, 1), profile("aes-256-ctr", 1, 3)]).unwrap();
    store.save(&[profile("aes-128-ctr", 1, 2)]).unwrap();
    let startup = |store: &Store, case: &str| {
        let found = store.load().unwrap();
        let found =
            found.find("cpu", Case::named(case).unwrap(), 1, Residency::Host).map(|p| p.time(0));
        found.map(|startup| startup.as_micros())
    };
    assert_eq!(startup(&store, "aes-128-ctr"), Some(2), "the newer one");
    assert_eq!(startup(&store, "aes-256-ctr"), Some(3), "what was not measured again stays");
    assert_eq!(startup(&other, "aes-128-ctr"), Some(7), "what others measured stays");
}

#[test]
fn what_this_version_does_not_know_stays() {
    let (_place, store) = cache();
    store.save(&[profile("aes-128-ctr", 1, 1)]).unwrap();
    change(&store, |document| document["machines"][0]["profiles"][0]["operation"] = "sm4".into());
    assert!(store.load().unwrap().is_empty());
    store.save(&[profile("aes-128-ctr", 1, 2)]).unwrap();
    assert_eq!(store.load().unwrap().iter().count(), 1);
    assert!(fs::read_to_string(store.path()).unwrap().contains("sm4"));
}

#[test]
fn damaged_files_are_reported_and_kept() {
    let energy = |class: &str, key: &str| json!({"class": class, key: {"lo": 1, "best": 2, "hi": 3}, "covers": ["a"], "bytes": 9});
    let entries = [
        ("bytes_per_s", json!(0)),
        ("bytes_per_s", json!(-1)),
        ("workers", json!(0)),
        ("residency", json!("nowhere")),
        ("energy", energy("modelled", "energy_uj")),
        ("energy", energy("measured", "energy_model_uj")),
        (
            "energy",
            json!({"class": "measured", "energy_uj": {"lo": 3, "best": 2, "hi": 1},
            "covers": ["a"], "bytes": 9}),
        ),
    ];
    for (key, value) in entries {
        let (_place, store) = cache();
        store.save(&[profile("aes-128-ctr", 1, 1)]).unwrap();
        change(&store, |document| {
            document["machines"][0]["profiles"][0][key] = value.clone();
        });
        let loaded = store.load();
        assert!(matches!(loaded, Err(Uncalibrated::Damaged(_))), "{key} {value}: {loaded:?}");
    }
    let (_place, store) = cache();
    store.prepare().unwrap();
    for (n, damaged) in ["", "{", "[]", "{\"schema\": 1}", "\u{0}"].iter().enumerate() {
        fs::write(store.path(), damaged).unwrap();
        assert!(matches!(store.load(), Err(Uncalibrated::Damaged(_))), "{damaged:?}");
        let aside = store.save(&[profile("aes-128-ctr", 1, 1)]).unwrap().unwrap();
        assert_eq!(aside.file_name().unwrap(), format!("profiles.{}.json", n + 1).as_str());
        assert_eq!(fs::read_to_string(aside).unwrap(), *damaged);
        assert_eq!(store.load().unwrap().iter().count(), 1);
    }
    fs::write(store.path(), [0xff; 100]).unwrap();
    assert!(matches!(store.load(), Err(Uncalibrated::Damaged(_))), "no UTF-8");
}

#[test]
fn an_entry_that_is_damaged_is_replaced() {
    let (_place, store) = cache();
    store.save(&[profile("aes-128-ctr", 1, 1)]).unwrap();
    change(&store, |document| document["machines"][0]["profiles"][0]["workers"] = 0.into());
    store.load().unwrap_err();
    let aside = store.save(&[profile("aes-128-ctr", 1, 2)]).unwrap();
    assert!(aside.is_some(), "it is kept");
    assert_eq!(store.load().unwrap().iter().count(), 1, "and another calibration is of use");
}

#[test]
fn a_newer_schema_is_reported_and_kept() {
    let (_place, store) = cache();
    store.save(&[profile("aes-128-ctr", 1, 1)]).unwrap();
    change(&store, |document| document["schema"] = "wattlock-profiles/2".into());
    let newer = fs::read(store.path()).unwrap();
    let reason = store.load().unwrap_err();
    assert!(matches!(&reason, Uncalibrated::Schema(schema) if schema == "wattlock-profiles/2"));
    let aside = store.save(&[profile("aes-128-ctr", 1, 1)]).unwrap().unwrap();
    assert_eq!(fs::read(aside).unwrap(), newer);
}

#[test]
fn where_nothing_can_be_written() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), "").unwrap();
    let store = Store::new(&place.path().join("file/below"), processor("this one"));
    for error in [store.prepare().unwrap_err(), store.save(&[]).unwrap_err()] {
        let text = error.to_string();
        assert!(text.starts_with("cannot keep profiles in ") && text.contains("file/below"));
    }
    fs::create_dir_all(place.path().join("profiles.json")).unwrap();
    let store = Store::new(place.path(), processor("this one"));
    assert!(matches!(store.load(), Err(Uncalibrated::Unreadable(_))), "a directory");
    store.save(&[profile("aes-128-ctr", 1, 1)]).unwrap_err();
}

#[test]
fn where_the_file_is() {
    let directory = |pairs: &[(&str, &str)]| {
        let find = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
        directory(find).map(|path| path.display().to_string())
    };
    let home = ("HOME", "/home/a");
    assert_eq!(directory(&[home]).as_deref(), Some("/home/a/.cache/wattlock"));
    let xdg = ("XDG_CACHE_HOME", "/cache");
    assert_eq!(directory(&[home, xdg]).as_deref(), Some("/cache/wattlock"));
    let relative = ("XDG_CACHE_HOME", "cache");
    assert_eq!(directory(&[home, relative]).as_deref(), Some("/home/a/.cache/wattlock"));
    let ours = ("WATTLOCK_CACHE", "here");
    assert_eq!(directory(&[home, xdg, ours]).as_deref(), Some("here"));
    let empty = ("WATTLOCK_CACHE", "");
    assert_eq!(directory(&[home, xdg, empty]).as_deref(), Some("/cache/wattlock"));
    assert_eq!(directory(&[relative]), None);
}
