//! What the tests of several ciphers share: vectors, hex, and OpenSSL as a second opinion.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// The lines of a file of vectors, in words; comments and empty lines left out.
pub(super) fn vectors(folder: &str, file: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(wattlock_vectors::folder(folder).join(file)).unwrap();
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect()
}

/// Data in which shifted or swapped pieces never look alike.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// Zeros of the sum of `lens`, treated by `treat` piece by piece.
pub(super) fn in_cuts(lens: &[usize], mut treat: impl FnMut(&mut [u8])) -> Vec<u8> {
    let mut whole = vec![0; lens.iter().sum()];
    let mut rest = &mut whole[..];
    for len in lens {
        let (now, later) = rest.split_at_mut(*len);
        treat(now);
        rest = later;
    }
    whole
}

/// Lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that `hex` names.
pub(super) fn unhex(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "{hex}");
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// What `openssl enc` makes of `message`, which a pipe must be able to hold (64 KiB).
///
/// `None`, after a line that says why, where there is no OpenSSL or none with such old ciphers.
pub(super) fn openssl(args: &[&str], message: &[u8]) -> Option<Vec<u8>> {
    let run = || {
        let mut child = Command::new("openssl")
            .arg("enc")
            .args(args)
            .args(["-provider", "legacy", "-provider", "default"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // A child that has refused its arguments closes the pipe; its own words say more.
        let written = child.stdin.take().unwrap().write_all(message);
        let output = child.wait_with_output()?;
        if output.status.success() {
            written.map(|()| output.stdout)
        } else {
            Err(std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
        }
    };
    run()
        .inspect_err(|why| {
            wattlock_testing::skip("openssl", format_args!("openssl enc {}: {why}", args[0]));
        })
        .ok()
}
