//! What the flags of `wattlock-lab bench ciphers` ask for: which cases, which files, and what of it has no
//! effect on this run.

use std::path::{Path, PathBuf};

use wattlock_host::exit::usage;
use wattlock_report::results::Results;

use crate::args;

/// True if `text` begins a word of the case's name and cuts no number short, capitals or not: "sha3" is in
/// "sha3-256", and not in "hmac-sha384".
pub fn is_in(text: &str, name: &str) -> bool {
    let (text, name) = (text.to_lowercase(), name.to_lowercase());
    name.match_indices(&text).any(|(at, _)| {
        let (before, after) = (&name[..at], &name[at + text.len()..]);
        let is_digit = |c: char| c.is_ascii_digit();
        let cuts = text.ends_with(is_digit) && after.starts_with(is_digit);
        !before.ends_with(char::is_alphanumeric) && !cuts
    })
}

/// Refuses a file for others that would not be one of its own.
///
/// # Errors
/// Exit code 2.
pub fn check_files(args: &args::BenchCiphers) -> anyhow::Result<()> {
    let Some(submit) = &args.submit else { return Ok(()) };
    if submit.as_os_str() == "-" {
        return Err(usage("--submit requires a file; --json prints the results"));
    }
    if args.json.as_deref().is_some_and(|json| place(json) == place(submit)) {
        return Err(usage("--json and --submit name the same file; choose another"));
    }
    Ok(())
}

/// Where a file is or will be.
fn place(file: &Path) -> PathBuf {
    let new = || {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(file.file_name()?))
    };
    file.canonicalize().ok().or_else(new).unwrap_or_else(|| file.to_owned())
}

/// Which part of all results the flags leave.
pub fn part(args: &args::BenchCiphers) -> Option<String> {
    let of = args.only.as_ref().map(|only| format!("the cases of --only {only:?}"));
    match (of, args.quick) {
        (None, false) => None,
        (None, true) => Some("a quick look".to_owned()),
        (Some(of), false) => Some(of),
        (Some(of), true) => Some(format!("a quick look at {of}")),
    }
}

/// The options that changed nothing in these results, each with the reason.
pub fn without_effect(args: &args::BenchCiphers, results: &Results) -> Vec<String> {
    let mut without = Vec::new();
    let spread = &args.spread;
    let alone: Vec<_> = spread.devices.iter().filter(|name| *name != "cpu").cloned().collect();
    let is_device = |kernel: &Option<String>| kernel.as_ref() == Some(&alone.join(" and "));
    if alone.is_empty() && !spread.devices.is_empty() {
        without.push("--device cpu (no effect: it is measured without that)".to_owned());
    } else if !alone.is_empty() && !results.rows.iter().any(|row| is_device(&row.kernel)) {
        without.push("--device (no effect: no case of this run uses devices)".to_owned());
    }
    let of_policies = [
        ("--policy", spread.policy.is_some()),
        ("--goal", spread.goal.is_some()),
        ("--verify none", spread.unchecked),
    ];
    for (option, _) in of_policies.into_iter().filter(|(_, is_given)| *is_given) {
        without.push(format!(
            "{option} (no effect: this bench measures each device alone and with the CPU)"
        ));
    }
    let is_parallel = results.rows.iter().any(|row| row.threads.is_some_and(|threads| threads > 1));
    if args.threads.is_some_and(|threads| threads > 1) && !is_parallel {
        without.push("--threads (no effect: no case of this run uses several threads)".to_owned());
    }
    without
}

#[cfg(test)]
mod tests {
    use super::is_in;

    #[test]
    fn words_of_names() {
        for (text, name, expected) in [
            ("sha3", "sha3-256, 8 messages", true),
            ("sha3", "hmac-sha384, 8 records", false),
            ("SHA3-256", "sha3-256", true),
            ("gcm", "aes-256-gcm seal", true),
            ("rc4", "parc4", false),
            ("rc4", "rc4a", true),
            ("aes-256-gcm key", "aes-256-gcm key and seal", true),
            ("hmac-sha256, 8 records", "hmac-sha256, 8 records", true),
            ("hmac-sha256, 1", "hmac-sha256, 16 records", false),
            ("", "rc4", true),
            ("256", "aes-256-ctr", true),
        ] {
            assert_eq!(is_in(text, name), expected, "{text} in {name}");
        }
    }
}
