//! Questions to the user while a run is under way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use wattlock_testing::{wait_for, wait_until};

use crate::support::{Place, Plugin, assert_exit, installed, wattlock};

/// The program on a terminal of its own, by the program `script`.
struct OnTerminal {
    script: Child,
    /// The number of the process of `wattlock`.
    program: String,
    screen: String,
}

impl OnTerminal {
    /// `wattlock ARGS…`, with `PATH` as the plugin wants it.
    fn new(place: &Place, path: Option<&Plugin>, args: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_wattlock");
        let mut script = Command::new("script");
        script.args(["-qefc", &format!("exec '{program}' {args}"), "/dev/null"]);
        script.env("TERM", "xterm").current_dir(place.path(""));
        if let Some(plugin) = path {
            script.env("PATH", plugin.path()).env("WATTLOCKTEST_ASK", "PIN of\x1b[31m the token");
        }
        let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let id = script.id();
        let children = format!("/proc/{id}/task/{id}/children");
        let program = wait_for(|| {
            let children = fs::read_to_string(&children).unwrap_or_default();
            let child = children.split_whitespace().next().ok_or("no child")?.to_owned();
            let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
            if name.trim() == "wattlock" { Ok(child) } else { Err("it is still the shell") }
        });
        assert!(script.try_wait().unwrap().is_none());
        Self { script, program, screen: String::new() }
    }

    /// Reads the terminal until it shows `text`.
    fn until(&mut self, text: &str) {
        let mut byte = [0];
        while !self.screen.contains(text) {
            let read = self.script.stdout.as_mut().unwrap().read(&mut byte).unwrap();
            assert_ne!(read, 0, "{:?}", self.screen);
            self.screen.push(char::from(byte[0]));
        }
    }

    /// Waits until the threads of the program have been woken as often as the bar is drawn in half a
    /// second.
    fn let_it_draw(&self) {
        let wakes = || -> u64 {
            let threads = fs::read_dir(format!("/proc/{}/task", self.program)).unwrap();
            let statuses = threads.flatten().map(|thread| thread.path().join("status"));
            let wakes = |status: &Path| -> Option<u64> {
                let status = fs::read_to_string(status).ok()?;
                let line = status.lines().find(|line| line.starts_with("voluntary_ctxt"))?;
                line.split_whitespace().nth(1)?.parse().ok()
            };
            statuses.filter_map(|status| wakes(&status)).sum()
        };
        let before = wakes();
        wait_until("the threads of the program have worked", || wakes() >= before + 6);
    }

    /// Types a line, and gives what the terminal showed until the end.
    fn answer(mut self, line: &str) -> String {
        let mut stdin = self.script.stdin.take().unwrap();
        writeln!(stdin, "{line}").unwrap();
        let mut rest = Vec::new();
        self.script.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        self.screen += &String::from_utf8_lossy(&rest);
        assert!(self.script.wait().unwrap().success(), "{}", self.screen);
        self.screen
    }
}

/// The bar of a run that takes longer than a tenth of a second would wipe the question.
#[test]
fn the_progress_bar_leaves_questions_alone() {
    if !installed("script") || !installed("ssh-keygen") {
        return;
    }
    let place = Place::new();
    place.write("f", b"text");
    let ssh = place.path("ssh");
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-a", "1", "-N", "pass word", "-C", "", "-f"]).arg(&ssh);
    assert!(keygen.status().unwrap().success());
    let mut seal = wattlock();
    seal.args(["protect", "-R", "ssh.pub", "-o", "ssh.wlk", "f"]).current_dir(place.path(""));
    assert_exit(&seal.output().unwrap(), 0);
    let plugin = Plugin::new(&place);
    let mut seal = plugin.wattlock();
    seal.args(["protect", "-r", &plugin.recipient, "-o", "plugin.wlk", "f"]);
    assert_exit(&seal.current_dir(place.path("")).output().unwrap(), 0);

    let of_key = "unprotect -i ssh -o out1 ssh.wlk";
    let of_token = "unprotect -i plugin-identity -o out2 plugin.wlk";
    for (plugin, args, question, answer) in [
        (None, of_key, "Type passphrase for OpenSSH key", "pass word"),
        (Some(&plugin), of_token, "PIN of", "1234"),
    ] {
        let mut terminal = OnTerminal::new(&place, plugin, args);
        terminal.until(question);
        terminal.let_it_draw();
        let screen = terminal.answer(answer);
        let asked = &screen[screen.find(question).unwrap()..];
        let line = asked.split("\r\n").next().unwrap();
        assert!(
            line.ends_with(": ")
                && !line.contains(|c: char| c.is_control() || c == '\u{2068}' || c == '\\'),
            "{screen:?}"
        );
    }
    for out in ["out1", "out2"] {
        assert_eq!(fs::read(place.path(out)).unwrap(), b"text");
    }
}
