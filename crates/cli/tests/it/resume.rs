//! `--resume`: what is kept, what is made again, and what is left alone and reported.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::{
    Place, Plugin, assert_exit, installed, pattern, stderr, stdout, wattlock, with_input,
};

const FORMATS: [&str; 2] = ["wattlock", "age"];

/// A place with identities of some people in files of their names.
struct People {
    place: Place,
    file: PathBuf,
    sealed: PathBuf,
    format: &'static str,
}

impl People {
    fn new(format: &'static str) -> Self {
        let place = Place::new();
        let file = place.write("d/f", &pattern(100_000));
        let suffix = if format == "age" { "age" } else { "wlk" };
        let sealed = place.path(format!("d/f.{suffix}"));
        Self { place, file, sealed, format }
    }

    /// The recipient NAME, whose identity is made if it is new.
    fn recipient(&self, name: &str) -> String {
        if self.place.path(name).exists() {
            let shown = wattlock().args(["keygen", "-y"]).arg(self.place.path(name)).output();
            return stdout(&shown.unwrap()).trim().to_owned();
        }
        self.place.keygen(name)
    }

    /// `protect`, where "-r NAME" and "-i NAME" stand for the key of that person.
    fn protect(&self, words: &str) -> Output {
        let mut command = wattlock();
        command.args(["protect", "--format", self.format]).current_dir(self.place.path(""));
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            command.arg(word);
            match word {
                "-r" => command.arg(self.recipient(words.next().unwrap())),
                "-i" => {
                    let name = words.next().unwrap();
                    self.recipient(name);
                    command.arg(name)
                }
                _ => &mut command,
            };
        }
        command.arg(&self.file).output().unwrap()
    }

    fn opens(&self, name: &str) -> bool {
        self.recipient(name);
        let mut verify = wattlock();
        verify.args(["verify", "-i"]).arg(self.place.path(name)).arg(&self.sealed);
        verify.status().unwrap().success()
    }

    /// Asserts that the run reported the container and left everything as it was.
    #[track_caller]
    fn refused(&self, words: &str) {
        let before = fs::read(&self.sealed).unwrap();
        let made = self.protect(words);
        assert_exit(&made, 1);
        let name = self.sealed.to_str().unwrap();
        assert!(stderr(&made).contains(name) && stderr(&made).contains("--force"), "{words}");
        assert!(fs::read(&self.sealed).unwrap() == before, "{words}");
        assert!(self.file.exists(), "{words}");
    }

    #[track_caller]
    fn kept(&self, words: &str) {
        let before = fs::read(&self.sealed).unwrap();
        let made = self.protect(&format!("--json {words}"));
        assert_exit(&made, 0);
        assert!(stdout(&made).contains("\"kept\""), "{words}: {}", stdout(&made));
        assert!(fs::read(&self.sealed).unwrap() == before, "{words}");
    }
}

#[test]
fn a_container_for_others_is_reported_and_changed_by_force_only() {
    for format in FORMATS {
        let people = People::new(format);
        assert_exit(&people.protect("-r alice"), 0);
        people.refused("-r bob --resume");
        people.refused("-i bob --resume");
        people.refused("-i alice -r bob --resume");
        people.refused("-i alice -r bob --resume --replace");
        assert!(people.opens("alice") && !people.opens("bob"));
        assert_exit(&people.protect("-r bob --resume --force"), 0);
        assert!(people.opens("bob") && !people.opens("alice"));
    }
}

#[test]
fn as_many_recipients_of_the_same_kind_are_not_the_same_recipients() {
    for format in FORMATS {
        let people = People::new(format);
        assert_exit(&people.protect("-r alice -r carol"), 0);
        people.refused("-i alice -r bob --resume");
        people.refused("-i alice -i bob --resume");
        people.refused("-i alice --resume");
        people.refused("-i alice -i bob -i carol --resume");
        people.kept("-i carol -i alice --resume");
        people.kept("-i carol -i alice -r alice --resume");
        assert_exit(&people.protect("-i alice -i bob --resume --force"), 0);
        assert!(people.opens("alice") && people.opens("bob") && !people.opens("carol"));
    }
}

/// Without the identities nothing shows whether a container is for Alice or for Bob.
#[test]
fn nothing_is_kept_without_a_proof_of_its_recipients() {
    for format in FORMATS {
        let people = People::new(format);
        assert_exit(&people.protect("-r alice"), 0);
        people.refused("-r alice --resume");
        people.kept("-i alice --resume");
        assert_exit(&people.protect("-r alice -r bob --force"), 0);
        people.refused("-i alice -r bob --resume");
        people.kept("-i alice -i bob --resume");
    }
}

#[test]
fn ssh_keys_prove_themselves_when_their_identity_is_given() {
    if !installed("ssh-keygen") {
        return;
    }
    let people = People::new("wattlock");
    let path = |name: &str| people.place.path(name).into_os_string();
    let made = |args: &[&str], files: &[&OsStr]| {
        wattlock().arg("protect").args(args).args(files).arg(&people.file).output().unwrap()
    };
    for name in ["one", "two"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-N", "", "-t", "ed25519", "-f"]).arg(path(name));
        assert!(keygen.status().unwrap().success());
    }
    let (one, two) = (path("one"), path("two"));
    let public = fs::read_to_string(path("one.pub")).unwrap();
    assert_exit(&made(&["-r", public.trim()], &[]), 0);
    let before = fs::read(&people.sealed).unwrap();
    assert_exit(&made(&["--resume", "-r", public.trim()], &[]), 1);
    assert_exit(&made(&["--resume", "-i"], &[&two]), 1);
    assert_exit(&made(&["--resume", "-i"], &[&one]), 0);
    // The same key, named twice.
    assert_exit(&made(&["--resume", "-r", public.trim(), "-i"], &[&one]), 0);
    assert!(fs::read(&people.sealed).unwrap() == before);
}

#[test]
fn a_passphrase_proves_itself() {
    for format in FORMATS {
        let people = People::new(format);
        let made = |passphrase: &str, words: &[&str]| {
            let mut protect = wattlock();
            protect.args(["protect", "--work-factor=10", "--passphrase-env=S", "--format", format]);
            protect.args(words).arg(&people.file).env("S", passphrase).output().unwrap()
        };
        assert_exit(&made("correct", &[]), 0);
        let before = fs::read(&people.sealed).unwrap();
        let kept = made("correct", &["--resume", "--json"]);
        assert_exit(&kept, 0);
        assert!(stdout(&kept).contains("\"kept\""));
        assert_exit(&made("wrong", &["--resume"]), 1);
        people.refused("-i alice --resume");
        assert!(fs::read(&people.sealed).unwrap() == before);
    }
}

/// A plugin may open what was wrapped for another recipient, as that of the tests does.
#[test]
fn a_plugin_proves_nothing() {
    if !installed("python3") {
        return;
    }
    let people = People::new("wattlock");
    let plugin = Plugin::new(&people.place);
    let protect = |extra: &[&str]| {
        let mut protect = plugin.wattlock();
        protect.args(["protect", "-i"]).arg(&plugin.identity).args(extra).arg(&people.file);
        protect.output().unwrap()
    };
    assert_exit(&protect(&[]), 0);
    let before = fs::read(&people.sealed).unwrap();
    assert_exit(&protect(&["--resume"]), 1);
    assert!(fs::read(&people.sealed).unwrap() == before);
    assert_exit(&protect(&["--resume", "--force"]), 0);
}

#[test]
fn damage_is_made_good_only_in_a_payload_of_proven_recipients() {
    for format in FORMATS {
        let people = People::new(format);
        assert_exit(&people.protect("-i alice"), 0);
        let sound = fs::read(&people.sealed).unwrap();
        let mut flipped = sound.clone();
        flipped[50_000] ^= 1;
        let header_len = sound.windows(4).position(|four| four == b"--- ").unwrap();
        let mut forged = sound.clone();
        forged[header_len + 4] ^= 1;
        fs::write(&people.sealed, &forged).unwrap();
        people.refused("-i alice --resume");
        // One that holds fewer bytes is another container.
        fs::write(&people.sealed, &sound[..60_000]).unwrap();
        people.refused("-i alice --resume");
        for damaged in [&flipped[..], &sound[..header_len + 60]] {
            fs::write(&people.sealed, damaged).unwrap();
            people.refused("-r alice --resume");
            assert_exit(&people.protect("-i alice --resume"), 0);
            assert!(people.opens("alice"));
        }
    }
}

#[test]
fn replace_and_resume_finish_what_an_earlier_run_began() {
    for format in FORMATS {
        let people = People::new(format);
        let names = || people.place.names();
        let sealed = people.sealed.file_name().unwrap().to_str().unwrap();
        assert_exit(&people.protect("-i alice"), 0);
        assert_eq!(names(), ["f", sealed]);
        people.kept("-i alice --replace --resume");
        assert_eq!(names(), [sealed]);
        let unprotect = |words: &[&str]| {
            let mut unprotect = wattlock();
            unprotect.arg("unprotect").args(words).arg("-i").arg(people.place.path("alice"));
            unprotect.arg(&people.sealed).output().unwrap()
        };
        assert_exit(&unprotect(&[]), 0);
        // Something else is not kept, and neither file is lost.
        let plain = fs::read(&people.file).unwrap();
        fs::write(&people.file, b"something else").unwrap();
        assert_exit(&unprotect(&["--replace", "--resume"]), 1);
        assert_eq!(names(), ["f", sealed]);
        fs::write(&people.file, &plain).unwrap();
        assert_exit(&unprotect(&["--replace", "--resume"]), 0);
        assert_eq!(names(), ["f"]);
        assert!(fs::read(&people.file).unwrap() == pattern(100_000));
    }
}

#[test]
fn a_sealed_name_is_resumed_too() {
    let place = Place::new();
    let sealed = place.container("report", &pattern(100_000));
    let container = place.path("d/renamed");
    fs::rename(sealed, &container).unwrap();
    let run = |words: &[&str]| {
        let words: Vec<&OsStr> =
            words.iter().map(OsStr::new).chain([container.as_os_str()]).collect();
        place.open("unprotect", &words)
    };
    assert_exit(&run(&["-N"]), 0);
    assert_eq!(place.names(), ["renamed", "report"]);
    assert_exit(&run(&["-N"]), 1);
    assert_exit(&run(&["-N", "--resume"]), 0);
    assert_eq!(place.names(), ["renamed", "report"]);
    assert_exit(&run(&["-N", "--resume", "--replace"]), 0);
    assert_eq!(place.names(), ["report"]);
}

/// A link is nothing that an earlier run made: what it points to may be gone tomorrow.
#[test]
fn nothing_is_removed_for_the_sake_of_a_link() {
    let people = People::new("wattlock");
    assert_exit(&people.protect("-i alice"), 0);
    let elsewhere = people.place.path("elsewhere");
    fs::rename(&people.sealed, &elsewhere).unwrap();
    symlink(&elsewhere, &people.sealed).unwrap();
    assert_exit(&people.protect("-i alice --replace --resume"), 1);
    assert!(people.file.exists());
    fs::remove_file(&people.sealed).unwrap();
    fs::rename(&elsewhere, &people.sealed).unwrap();
    fs::rename(&people.file, &elsewhere).unwrap();
    symlink(&elsewhere, &people.file).unwrap();
    let mut unprotect = wattlock();
    unprotect.args(["unprotect", "--replace", "--resume", "-i"]).arg(people.place.path("alice"));
    assert_exit(&unprotect.arg(&people.sealed).output().unwrap(), 1);
    assert!(people.sealed.exists());
}

/// A container that came from standard input is compared like any other.
#[test]
fn a_container_without_metadata_is_kept() {
    let people = People::new("wattlock");
    let mut protect = wattlock();
    protect.args(["protect", "-r", &people.recipient("alice")]);
    let made = with_input(&mut protect, &pattern(100_000));
    fs::write(&people.sealed, &made.stdout).unwrap();
    people.kept("-i alice --resume");
}

/// A name that is not to be sealed is not kept sealed.
#[test]
fn a_container_with_metadata_is_not_kept_for_one_without() {
    let people = People::new(FORMATS[0]);
    assert_exit(&people.protect("-i alice"), 0);
    people.refused("-i alice --no-metadata --resume");
    people.kept("-i alice --resume");
    assert_exit(&people.protect("-i alice --no-metadata --resume --force"), 0);
    people.kept("-i alice --no-metadata --resume");
}

/// A container that opens to other rights than the file has now is not what would be made of it.
#[test]
fn a_container_that_seals_another_mode_or_time_is_made_again() {
    let people = People::new(FORMATS[0]);
    let mode = |mode| fs::set_permissions(&people.file, fs::Permissions::from_mode(mode)).unwrap();
    let old = fs::metadata(&people.file).unwrap().modified().unwrap();
    mode(0o644);
    assert_exit(&people.protect("-i alice"), 0);
    people.kept("-i alice --resume");
    let opened = || {
        let mut unprotect = wattlock();
        unprotect.args(["unprotect", "-f", "-o"]).arg(people.place.path("opened"));
        unprotect.arg("-i").arg(people.place.path("alice")).arg(&people.sealed);
        assert_exit(&unprotect.output().unwrap(), 0);
        let status = fs::metadata(people.place.path("opened")).unwrap();
        (status.permissions().mode() & 0o777, status.modified().unwrap())
    };
    mode(0o600);
    assert_exit(&people.protect("-i alice --resume"), 0);
    assert_eq!(opened(), (0o600, old));
    let newer = old + std::time::Duration::from_secs(3600);
    fs::File::options().write(true).open(&people.file).unwrap().set_modified(newer).unwrap();
    assert_exit(&people.protect("-i alice --resume"), 0);
    assert_eq!(opened(), (0o600, newer));
    people.kept("-i alice --resume");
    // What holds other bytes is refused as before, whatever its mode.
    fs::write(&people.file, b"something else").unwrap();
    mode(0o640);
    people.refused("-i alice --resume");
}
