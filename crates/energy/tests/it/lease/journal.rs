//! Journals that no lease of this user wrote, or not like this: nothing is changed, and they stay.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use wattlock_energy::{Error, Lease, Replay, restore};

use super::machine::{Machine, guardian};

/// What a lease leaves that has set 1 GHz on the first policy, and died.
const GOOD: &str = r#"{
    "version": 1,
    "boot_id": "first",
    "pid": 4294967295,
    "started_ticks": 1,
    "lock_inode": null,
    "entries": [
        {
            "id": "cpufreq/policy0/scaling_max_freq",
            "old": "3000000",
            "new": "1000000",
            "read_back": "1000000"
        }
    ]
}"#;

/// A machine at 1 GHz, with that journal.
fn left(journal: &str) -> Machine {
    let machine = Machine::new();
    fs::write(machine.file(0, "scaling_max_freq"), "1000000\n").unwrap();
    let directory = machine.journal().parent().unwrap().to_owned();
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(machine.journal(), journal).unwrap();
    fs::set_permissions(machine.journal(), fs::Permissions::from_mode(0o600)).unwrap();
    machine
}

/// Neither a replay nor a new lease obeys the journal: what the replay says.
fn refused(machine: &Machine) -> Error {
    let text = fs::read(machine.journal());
    let replayed = restore::replay(&machine.root()).unwrap_err();
    let acquired = Lease::acquire(&machine.root(), guardian(&machine.root())).err().unwrap();
    assert_eq!(acquired.to_string(), replayed.to_string());
    assert_eq!(machine.clocks(), (1_000_000, 2_000_000), "{replayed}");
    assert!(fs::symlink_metadata(machine.journal()).is_ok(), "it stays");
    assert_eq!(fs::read(machine.journal()).ok(), text.ok());
    replayed
}

#[test]
fn the_good_one_is_obeyed() {
    let machine = left(GOOD);
    let replayed = restore::replay(&machine.root()).unwrap();
    assert!(matches!(replayed, Replay::Restored(_)));
    assert_eq!(machine.clocks(), (3_000_000, 2_000_000));
}

#[test]
fn one_that_was_cut_off_is_refused() {
    for length in [0, 1, GOOD.len() / 3, GOOD.len() / 2, GOOD.len() - 1] {
        let error = refused(&left(&GOOD[..length]));
        assert!(matches!(error, Error::Journal { .. }), "{error}");
        assert!(error.to_string().contains("EOF while parsing"), "{error}");
    }
}

#[test]
fn one_that_was_edited_is_refused() {
    let entry = &GOOD[GOOD.find("        {").unwrap()..GOOD.find("\n    ]").unwrap()];
    for (from, to, why) in [
        ("{", "[", "invalid"),
        ("\"old\"", "\"older\"", "unknown field `older`"),
        ("\"version\": 1", "\"version\": 2", "its version is 2"),
        ("\"version\": 1,", "", "missing field `version`"),
        ("\"3000000\"", "3000000", "invalid type"),
        ("\"3000000\"", "\"much too fast\"", "is no setting"),
        ("\"3000000\"", "\"performance\"", "\"performance\" is no setting of"),
        ("\"3000000\"", "\"99999999999\"", "\"99999999999\" is no setting of"),
        ("\"3000000\"", "\"\"", "is no setting"),
        ("\"new\": \"1000000\"", "\"new\": \"0\"", "\"0\" is no setting of"),
        ("\"read_back\": \"1000000\"", "\"read_back\": \"-1\"", "\"-1\" is no setting of"),
        ("cpufreq/policy0", "cpufreq/../../etc", "there is no knob"),
        ("cpufreq/policy0/scaling_max_freq", "/etc/passwd", "there is no knob"),
        ("scaling_max_freq", "scaling_governor", "there is no knob"),
        ("\n    ]", &format!(",\n{entry}\n    ]"), "two entries"),
        ("\n    ]\n}", "\n    ]\n}}", "trailing characters"),
    ] {
        let edited = GOOD.replacen(from, to, 1);
        assert_ne!(edited, GOOD);
        let error = refused(&left(&edited));
        assert!(matches!(error, Error::Journal { .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn one_good_entry_does_not_excuse_a_forged_one() {
    let forged = r#",{"id":"cpufreq/policy0/../../x","old":"1","new":"2","read_back":null}]"#;
    let error = refused(&left(&GOOD.replacen("\n    ]", forged, 1)));
    assert!(error.to_string().contains("there is no knob"), "{error}");
}

#[test]
fn one_that_others_can_write_is_refused() {
    for mode in [0o620, 0o602, 0o666] {
        let machine = left(GOOD);
        fs::set_permissions(machine.journal(), fs::Permissions::from_mode(mode)).unwrap();
        let error = refused(&machine);
        assert!(matches!(error, Error::Untrusted { .. }), "{error}");
        assert!(error.to_string().contains("others can write it"), "{error}");
    }
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    let machine = left(GOOD);
    let directory = machine.journal().parent().unwrap().to_owned();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    let error = refused(&machine);
    assert!(matches!(&error, Error::Untrusted { path, .. } if *path == directory), "{error}");
}

#[test]
fn one_of_another_user_is_refused() {
    let machine = left(GOOD);
    if chown(machine.journal(), Some(12345), None).is_err() {
        wattlock_testing::skip("root", "only root can give a file away");
        return;
    }
    let error = refused(&machine);
    assert!(matches!(error, Error::Untrusted { .. }), "{error}");
    assert!(error.to_string().contains("it belongs to user 12345"), "{error}");
}

#[test]
fn a_link_in_its_place_is_refused() {
    let machine = left(GOOD);
    let elsewhere = machine.journal().with_file_name("elsewhere");
    fs::rename(machine.journal(), &elsewhere).unwrap();
    symlink(&elsewhere, machine.journal()).unwrap();
    let error = refused(&machine);
    assert!(matches!(error, Error::Untrusted { .. }), "{error}");
    assert!(error.to_string().contains("symbolic link"), "{error}");
    fs::remove_file(elsewhere).unwrap();
    assert!(refused(&machine).to_string().contains("symbolic link"));
}

#[test]
fn a_directory_in_its_place_is_refused() {
    let machine = left(GOOD);
    fs::remove_file(machine.journal()).unwrap();
    fs::create_dir(machine.journal()).unwrap();
    assert!(refused(&machine).to_string().contains("it is not a plain file"));
}

#[test]
fn a_machine_that_never_had_a_lease_has_nothing_to_restore() {
    let machine = Machine::new();
    assert!(matches!(restore::replay(&machine.root()), Ok(Replay::Nothing)));
    assert!(!machine.journal().parent().unwrap().exists());
}
