//! Reads vectors of one line each, whose long inputs are written as a rule, not as bytes.
//!
//! A rule is `-` for nothing, `hex(0a0b)`, `rep(ff,3)` for three bytes `ff`, or `ptn(17^2)` for
//! 289 bytes of RFC 9861's pattern `00 01 .. fa`, repeated.

use std::fs;
use std::path::Path;

use crate::rsp::unhex;

/// The lines of a file, split into fields; empty lines and comments (`#`) are left out.
///
/// # Panics
/// If the file cannot be read.
pub fn read(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect()
}

/// The bytes of a rule.
///
/// # Panics
/// If it is none.
pub fn bytes(rule: &str) -> Vec<u8> {
    if rule == "-" {
        return Vec::new();
    }
    let (name, argument) = rule
        .strip_suffix(')')
        .and_then(|rest| rest.split_once('('))
        .unwrap_or_else(|| panic!("no rule: {rule}"));
    match name {
        "hex" => unhex(argument),
        "ptn" => (0..length(argument)).map(|at| (at % 251) as u8).collect(),
        "rep" => {
            let (byte, count) = argument.split_once(',').expect("rep has two arguments");
            unhex(byte).repeat(length(count))
        }
        _ => panic!("no rule: {rule}"),
    }
}

/// A number, or a power such as `17^2`.
///
/// # Panics
/// If it is neither.
pub fn length(digits: &str) -> usize {
    let number = |digits: &str| -> usize {
        digits.parse().unwrap_or_else(|error| panic!("no length: {digits}: {error}"))
    };
    match digits.split_once('^') {
        Some((base, power)) => number(base).pow(power.parse().expect("a power")),
        None => number(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_makes_its_bytes() {
        assert_eq!(bytes("-"), []);
        assert_eq!(bytes("hex(0aff)"), [10, 255]);
        assert_eq!(bytes("rep(ff,3)"), [255; 3]);
        assert_eq!(bytes("ptn(17^2)").len(), 289);
        assert_eq!(bytes("ptn(253)")[249..], [249, 250, 0, 1]);
    }
}
