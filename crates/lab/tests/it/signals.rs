//! Programs that are ended in the middle.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use wattlock_testing::{Place, assert_leaves_no_core_file, pattern, signal, stderr};

use crate::lab;

#[test]
fn an_interrupted_study_leaves_nothing() {
    let place = Place::new();
    let key = place.write("key", &[7; 16]);
    for variant in ["csp", "cpp", "overlapped"] {
        let mut child = lab()
            .args(["sefps", "protect", "--cipher", "aes-128-ecb", "--variant", variant])
            .arg("--key-file")
            .arg(&key)
            .arg("-o")
            .arg(place.path("d/out"))
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // More than the pipe and the program's buffers hold: when this returns, it has written.
        stdin.write_all(&pattern(20 << 20)).unwrap();
        signal(&child, "-INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(2), "{}", stderr(&output));
        assert!(place.names().is_empty(), "{variant}: {:?}", place.names());
        drop(stdin);
    }
}

#[test]
fn no_program_that_has_a_key_leaves_a_core_file() {
    let place = Place::new();
    let key = place.write("key", &[7; 16]);
    let raw = "00112233445566778899aabbccddeeff";
    let mut cipher = lab();
    cipher.args(["cipher", "--alg=aes-128-ctr", "--key", raw, "--iv", raw]);
    let mut sefps = lab();
    sefps.args(["sefps", "protect", "--cipher=aes-128-ecb", "--key-file"]).arg(key);
    for mut command in [cipher, sefps] {
        assert_leaves_no_core_file(&mut command, &pattern(1 << 20));
    }
}
