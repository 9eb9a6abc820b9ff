//! What errors say: what the user gave, what is wrong with it, and what to do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::process::Output;

use crate::support::{Place, assert_exit, stderr, wattlock, with_input};

/// `wattlock ARGS…` in `place`.
fn run(place: &Place, args: &[&str]) -> Output {
    wattlock().args(args).current_dir(place.path("")).output().unwrap()
}

#[test]
fn a_number_is_repeated_and_a_key_is_not() {
    let place = Place::new();
    let number = "20000000000000000000";
    let key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    for flag in ["--window", "--threads", "--retry", "--max-message"] {
        let refused = run(&place, &["stream", flag, number]);
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains(number), "{}", stderr(&refused));
        let refused = run(&place, &["stream", flag, "0xfeed"]);
        assert!(stderr(&refused).contains("0xfeed"), "{}", stderr(&refused));
        for key in [key.to_owned(), format!("0x{key}")] {
            let refused = run(&place, &["stream", flag, &key]);
            assert_exit(&refused, 2);
            assert!(!stderr(&refused).contains("8899aabb"), "{}", stderr(&refused));
        }
    }
    let refused = run(&place, &["stream", "--window", number]);
    assert!(stderr(&refused).contains("too large"), "{}", stderr(&refused));
    // The key where its file is to be named.
    let refused = run(&place, &["stream", "--key-file", key]);
    assert!(!stderr(&refused).contains("8899aabb"), "{}", stderr(&refused));
    let refused = run(&place, &["stream", "--window", "age-secret-key-1qqqqqqq"]);
    assert_exit(&refused, 2);
    assert!(!stderr(&refused).to_lowercase().contains("key-1qqq"), "{}", stderr(&refused));
}

#[test]
fn a_number_out_of_range_is_told_its_range() {
    let place = Place::new();
    for (args, range) in [
        (&["protect", "--threads", "300"][..], "from 1 to 256"),
        (&["protect", "--threads", "many"], "from 1 to 256"),
        (&["protect", "--work-factor", "9"], "from 10 to 22"),
        (&["unprotect", "--max-recipients", "0"], "from 1 to 100000"),
        (&["measure", "--repeat", "0", "--", "true"], "from 1 to 65535"),
        (&["stream", "--idle-timeout", "5000000000"], "from 0 to 4294967295"),
        (&["stream", "--retry=-1"], "from 0 to 4294967295"),
        (&["stream", "--rotate-time", "0"], "from 1 to 4294967295"),
    ] {
        let refused = run(&place, args);
        assert_exit(&refused, 2);
        let said = stderr(&refused);
        assert!(said.contains(&format!("give a whole number {range}")), "{args:?}: {said}");
        assert!(said.contains(args[1].split('=').next().unwrap()), "{args:?}: {said}");
    }
}

/// The same cause ends every command with the same code; the table is in `docs/start.md`.
#[test]
fn equal_causes_have_equal_exit_codes() {
    let place = Place::new();
    let to = place.recipient.clone();
    for name in ["f", "exists"] {
        place.write(name, b"no container, no stream and no key\n");
    }
    place.write("key", &[7; 32]);
    let (key, to) = (["-i", "key.txt"], ["-r", to.as_str()]);
    assert_exit(&run(&place, &[&["protect", "-of.wlk", "f"], &to[..]].concat()), 0);
    let from = |input: &str, args: &[&str]| {
        let input = fs::read(place.path(input)).unwrap();
        with_input(wattlock().args(args).current_dir(place.path("")), &input)
    };
    let stream = from("f", &["stream", "--key-file=key"]);
    assert_exit(&stream, 0);
    place.write("f.wls", &stream.stdout);
    let check = |code: i32, said: &str, ended: Output| {
        assert_exit(&ended, code);
        assert!(stderr(&ended).contains(said), "{said}: {}", stderr(&ended));
    };
    // What cannot be read fails.
    let missing = "no such";
    for command in ["protect", "unprotect", "verify", "inspect"] {
        check(1, missing, run(&place, &[command, "-i", "nope", "f.wlk"]));
        check(1, missing, run(&place, &[command, "--passphrase-file=nope", "f.wlk"]));
    }
    for command in ["unprotect", "verify", "inspect"] {
        check(1, missing, run(&place, &[&[command][..], &key, &["nope"]].concat()));
    }
    check(1, missing, run(&place, &["protect", "-R", "nope", "f"]));
    check(1, missing, run(&place, &[&["protect"][..], &to, &["nope"]].concat()));
    check(1, missing, from("f.wls", &["stream", "--open", "-i", "nope"]));
    check(1, missing, from("f.wls", &["stream", "--open", "--key-file=nope"]));
    check(1, missing, from("f", &["stream", "-R", "nope"]));
    // What can be read and holds no key is the wrong file.
    check(2, "", run(&place, &["protect", "-i", "f", "-o-", "f"]));
    check(2, "", run(&place, &["protect", "-R", "f", "-o-", "f"]));
    for command in ["unprotect", "verify", "inspect"] {
        check(2, "f holds no age or SSH identity", run(&place, &[command, "-i", "f", "f.wlk"]));
    }
    check(2, "neither 32 bytes", from("f.wls", &["stream", "--open", "--key-file=f"]));
    // An output that exists.
    let exists = "exists already";
    check(1, exists, run(&place, &[&["protect", "-oexists", "f"][..], &to].concat()));
    check(1, exists, run(&place, &[&["unprotect", "-oexists", "f.wlk"][..], &key].concat()));
    check(1, exists, run(&place, &["keygen", "-oexists"]));
    check(1, exists, from("f.wls", &["stream", "--open", "--key-file=key", "-oexists"]));
    // An input that is none of Wattlock's.
    for command in ["unprotect", "verify", "inspect"] {
        let args = [&[command][..], &key, &["f"]].concat();
        check(3, "not a container", run(&place, &args));
    }
    let args = [&["rekey"][..], &key, &to, &["f"]].concat();
    check(3, "not a container", run(&place, &args));
    check(3, "not a sealed stream", from("f", &["stream", "--open", "--key-file=key"]));
}

#[test]
fn a_stream_and_a_container_name_the_command_that_opens_them() {
    let place = Place::new();
    let stream = with_input(wattlock().args(["stream", "-r", &place.recipient]), b"text");
    assert_exit(&stream, 0);
    let stream = place.write("d/stream", &stream.stdout);
    let refused = place.open("unprotect", &[stream.as_os_str(), "-o-".as_ref()]);
    assert_exit(&refused, 3);
    let said = stderr(&refused);
    assert!(said.contains("a sealed stream, and not a container"), "{said}");
    assert!(said.contains("wattlock stream --open -i IDENTITY <FILE"), "{said}");
    let plain = place.write("d/plain", b"text");
    for format in ["wattlock", "age"] {
        let made = place.protect(&["--format", format, "-o-", plain.to_str().unwrap()]);
        assert_exit(&made, 0);
        let mut command = wattlock();
        let key = place.path("key.txt");
        let refused = with_input(command.args(["stream", "--open", "-i"]).arg(key), &made.stdout);
        assert_exit(&refused, 3);
        let said = stderr(&refused);
        assert!(said.contains("a container of a file, and not a sealed stream"), "{said}");
        assert!(said.contains("`wattlock unprotect`"), "{said}");
    }
}

#[test]
fn a_wrong_key_of_a_stream_is_said_of_a_stream() {
    let place = Place::new();
    place.keygen("other.txt");
    let made = with_input(wattlock().args(["stream", "-r", &place.recipient]), b"text");
    let open = |more: &[&str]| {
        let mut command = wattlock();
        command.args(["stream", "--open", "-i", "other.txt"]).args(more);
        with_input(command.current_dir(place.path("")), &made.stdout)
    };
    let refused = open(&[]);
    assert_exit(&refused, 3);
    let said = stderr(&refused);
    assert!(
        said.contains(
            "no given identity opens this stream; it is encrypted to an age key (X25519)"
        ),
        "{said}"
    );
    assert!(!said.contains("container"), "{said}");
}

#[test]
fn a_public_key_in_the_place_of_an_identity() {
    let place = Place::new();
    let sealed = place.container("f", b"text");
    let sealed = sealed.to_str().unwrap();
    place.write("public", format!("# mine\n{}\n", place.recipient).as_bytes());
    place.write("id.pub", b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGxh me@here\n");
    for identity in [place.recipient.as_str(), "public", "id.pub"] {
        for args in [
            &["unprotect", "-i", identity, "-o-", sealed][..],
            &["protect", "-i", identity, "-o-", "public"],
            &["inspect", "-i", identity, sealed],
        ] {
            let refused = run(&place, args);
            assert_exit(&refused, 2);
            let said = stderr(&refused);
            assert!(said.contains("recipient (public key)"), "{args:?}: {said}");
            assert!(said.contains("identity (private key)"), "{args:?}: {said}");
        }
    }
    // The reverse: an identity in the place of a recipient.
    let secret = fs::read_to_string(place.path("key.txt")).unwrap();
    let secret = secret.lines().last().unwrap();
    for args in [["-r", secret], ["-R", "key.txt"]] {
        let refused = run(&place, &[&["protect"][..], &args, &["-o-", "public"]].concat());
        assert_exit(&refused, 2);
        let said = stderr(&refused);
        assert!(said.contains("wattlock keygen -y FILE"), "{said}");
        assert!(!said.contains(secret), "{said}");
    }
}

#[test]
fn a_meter_that_does_not_answer_is_said_to() {
    let place = Place::new();
    let meters = [
        ("http://127.0.0.1:1/", "it did not answer", "tried to ask http://127.0.0.1:1;"),
        (
            "no-such-meter 7",
            "failed with exit code 127",
            "run the command by itself: `no-such-meter …`",
        ),
    ];
    for (meter, why, tried) in meters {
        let refused = run(&place, &["measure", "--meter", meter, "--", "true"]);
        assert_exit(&refused, 4);
        let said = stderr(&refused);
        assert!(said.contains(why) && said.contains(tried), "{said}");
        assert!(!said.contains("231.5 W"), "{said}");
    }
    let refused = run(&place, &["measure", "--meter", "echo 5", "--", "true"]);
    assert!(stderr(&refused).contains("231.5 W"), "{}", stderr(&refused));
}

#[test]
fn a_goal_without_figures_says_what_is_done_instead() {
    let place = Place::new();
    place.write("f", b"text");
    // Long enough that there is something to choose.
    place.write("g", &[7; 3 << 20]);
    let cache = place.path("cache");
    let protect = |args: &[&str]| {
        let mut command = wattlock();
        command.args(["protect", "-f", "-i", "key.txt", "f", "g", "--out-dir=out"]).args(args);
        command.args(["--device=cpu"]).env("WATTLOCK_CACHE", &cache);
        let ran = command.current_dir(place.path("")).output().unwrap();
        stderr(&ran)
    };
    let mut calibrate = wattlock();
    calibrate.args(["calibrate", "--quick", "--device=cpu", "--only=aes-256-gcm seal"]);
    calibrate.env("WATTLOCK_CACHE", &cache);
    for goal in ["time", "energy", "edp"] {
        let said = protect(&["--goal", goal]);
        assert!(said.contains(&format!("--goal {goal}: not all devices were measured")), "{said}");
        assert!(said.contains("all may take part: run `wattlock calibrate`"), "{said}");
        assert_eq!(said.matches("--goal").count(), 1, "{said}");
        assert_eq!(protect(&["-q", "--goal", goal]), "");
    }
    assert_eq!(protect(&[]), "");
    assert_exit(&calibrate.output().unwrap(), 0);
    assert_eq!(protect(&["--goal=time"]), "");
    // No energy is measured by a quick calibration.
    let said = protect(&["--goal=energy"]);
    assert!(said.contains("--goal energy: no joules were counted here yet"), "{said}");
    assert!(said.contains("the least time was chosen"), "{said}");
}

#[test]
fn the_seconds_of_an_idle_baseline_stand_after_an_equals_sign() {
    let place = Place::new();
    for args in [&["10", "--", "true"][..], &["0.5", "true"], &["10s", "--", "true"], &["10"]] {
        let refused = run(&place, &[&["measure", "--idle-baseline"][..], args].concat());
        assert_exit(&refused, 2);
        let said = stderr(&refused);
        assert!(said.contains(&format!("--idle-baseline={} --", args[0])), "{said}");
    }
    let refused = run(&place, &["measure", "--idle-baseline=x", "--", "true"]);
    assert!(stderr(&refused).contains("\"x\" is not a number of seconds"), "{}", stderr(&refused));
    // A program may have any name.
    let ran = run(&place, &["measure", "--idle-baseline=0.1", "--", "10"]);
    assert_exit(&ran, 127);
    let help = run(&place, &["measure", "--help"]);
    let help = crate::support::stdout(&help);
    assert!(help.contains("--idle-baseline[=<SECONDS>]"), "{help}");
    assert!(help.contains("for 3 s, or for SECONDS after `=`"), "{help}");
}

#[test]
fn what_was_skipped_and_that_nothing_was_left_is_said_plainly() {
    let place = Place::new();
    for name in ["empty", "plain"] {
        fs::create_dir(place.path(name)).unwrap();
    }
    place.write("plain/a", b"text");
    place.write("plain/b", b"text");
    std::os::unix::fs::symlink("a", place.path("plain/link")).unwrap();
    let said = |code, args: &[&str]| {
        let ended =
            run(&place, &[&args[..1], &["-i", "key.txt", "--recursive"], &args[1..]].concat());
        assert_exit(&ended, code);
        stderr(&ended)
    };
    assert_eq!(
        said(0, &["protect", "empty"]),
        "wattlock: found no file to protect: the given folders hold none\n"
    );
    for command in ["unprotect", "verify"] {
        let none = format!(
            "wattlock: skipped 1 symbolic link: to include them, name the files that they lead to\n\
             wattlock: skipped 2 files that are not containers: only what `wattlock protect` or age \
             made can be opened\n\
             wattlock: found no container to {command}: the given folders hold none; name a folder \
             that does, or the containers themselves\n"
        );
        assert_eq!(said(1, &[command, "plain"]), none);
    }
    fs::remove_file(place.path("plain/link")).unwrap();
    said(0, &["protect", "--replace", "plain"]);
    let all = said(0, &["protect", "plain"]);
    assert!(all.contains("hold containers only, which are left as they are"), "{all}");
}

#[test]
fn a_setting_of_the_provider_is_named_by_its_flag() {
    let place = Place::new();
    place.write("provider.so", b"");
    for (flag, value, rest) in [
        ("--threshold", "x", "is neither auto nor a number of bytes"),
        ("--accelerator", "gpu", "is neither none, nor a device such as cuda:0"),
    ] {
        let config = ["provider", "config", "--provider=provider.so", flag, value];
        let refused = run(&place, &config);
        assert_exit(&refused, 2);
        let said = stderr(&refused);
        assert!(said.contains(&format!("{flag} \"{value}\" {rest}")), "{said}");
        assert!(!said.contains("setting"), "{said}");
    }
}

/// Part of a file, in JSON and on a terminal.
#[test]
fn a_range_is_summed_up_by_what_came_out() {
    let place = Place::new();
    let len = 5 << 20;
    let sealed = place.container("f", &vec![7; len]);
    let sealed = sealed.to_str().unwrap();
    let opened = ["unprotect", "-i", "key.txt", "-fo", "part", "--range", "100000..100300"];
    let summary = run(&place, &[&opened[..], &["--json", sealed]].concat());
    assert_exit(&summary, 0);
    let summary: serde_json::Value = serde_json::from_slice(&summary.stdout).unwrap();
    for counted in [&summary, &summary["files"][0]] {
        assert_eq!(counted["out_bytes"], 300);
        // The header and one chunk.
        let read = counted["in_bytes"].as_u64().unwrap();
        assert!((16 << 10..20 << 10).contains(&read), "{read}");
    }
    // To the end: all but the first chunk.
    let whole = run(&place, &["unprotect", "-i", "key.txt", "-o-", "--range", "16384..", sealed]);
    assert_eq!(whole.stdout.len(), len - 16384);
    if !crate::support::installed("script") {
        return;
    }
    let program = env!("CARGO_BIN_EXE_wattlock");
    let command = format!("'{program}' {} '{sealed}'", opened.join(" "));
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(place.path(""));
    let screen = script.stdin(std::process::Stdio::null()).output().unwrap();
    let screen = crate::support::stdout(&screen);
    assert!(screen.contains("done, 300 B in "), "{screen}");
}

#[test]
fn what_is_wrong_with_a_recipient() {
    let place = Place::new();
    let short = &place.recipient[..place.recipient.len() - 1];
    for (recipient, why) in [
        (short, "it starts like an age recipient, and a character is missing"),
        ("ssh-ed25519 AAAA", "it starts like an SSH key"),
        ("", "it is empty"),
        ("key.txt", "it is the name of a file; -R takes a file of public keys"),
        ("alice", "it is no public key"),
    ] {
        let refused = run(&place, &["protect", "-r", recipient, "-o-", "key.txt"]);
        assert_exit(&refused, 2);
        let said = stderr(&refused);
        assert!(said.contains(why), "{recipient}: {said}");
        assert!(said.contains("-r takes age1…, ssh-ed25519 … or ssh-rsa …"), "{said}");
    }
    place.write("list", b"# friends\nalice\n");
    let refused = run(&place, &["protect", "-R", "list", "-o-", "key.txt"]);
    assert!(stderr(&refused).contains("line 2: it is no public key"), "{}", stderr(&refused));
}
