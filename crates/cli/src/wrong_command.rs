//! What is said of a command that does not exist, where it is plain what is meant.

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use wattlock_file::{Shown, holds_key};

/// The commands that other programs call otherwise.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("encrypt", &["enc", "e", "seal", "lock", "add", "-e", "-c", "--encrypt", "--symmetric"]),
    ("decrypt", &["dec", "d", "x", "open", "unseal", "unlock", "extract", "-d", "--decrypt"]),
    ("verify", &["check", "test", "t", "--verify", "--check"]),
    ("inspect", &["info", "show", "list", "ls", "l", "cat-header", "--list"]),
    ("keygen", &["key", "genkey", "gen-key", "generate", "init", "--keygen", "--gen-key"]),
    ("rekey", &["rotate", "change-recipients", "passwd", "edit"]),
];

/// The command that `args` mean, which the parser refused with an error of this kind.
pub fn advice(args: &[OsString], kind: ErrorKind) -> Option<String> {
    let refused = [ErrorKind::InvalidSubcommand, ErrorKind::UnknownArgument];
    let first = args.get(1).filter(|_| refused.contains(&kind))?;
    let word = first.to_str().unwrap_or_default();
    let named = |word: &str| {
        OTHER_NAMES.iter().find(|(_, names)| names.contains(&word)).map(|(command, _)| *command)
    };
    if let Some(command) = named(word) {
        return Some(format!("there is no {word:?}; use: {}", line(command, &args[2..])));
    }
    // The right file, and no command, or the other direction as an option.
    let path = Path::new(first);
    if path.is_file() {
        let command = if is_container(path) { "decrypt" } else { "encrypt" };
        return Some(format!("a command is missing; use: {}", line(command, &args[1..])));
    }
    let is_file_command = ["protect", "encrypt", "unprotect", "decrypt"].contains(&word);
    let option = args.iter().skip(2).position(|arg| {
        ["-d", "--decrypt", "-e", "--encrypt"].iter().any(|option| *arg == **option)
    });
    let option = option.filter(|_| is_file_command)? + 2;
    let command = named(args[option].to_str()?)?;
    let mut rest = args[2..].to_vec();
    rest.remove(option - 2);
    Some(format!("{word} has no {}; use: {}", args[option].display(), line(command, &rest)))
}

/// The command with the user's own arguments, if all of them may be shown.
fn line(command: &str, args: &[OsString]) -> String {
    let mut line = format!("wattlock {command}");
    let is_plain =
        |arg: &str| arg.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c));
    let words: Option<Vec<&str>> =
        args.iter().map(|arg| arg.to_str().filter(|arg| is_plain(arg))).collect();
    let hides =
        |word: &&str| holds_key(&word.to_ascii_uppercase()) || word.starts_with("--passphrase");
    match words.filter(|words| !words.iter().any(hides)) {
        Some(words) => {
            for word in words {
                line += &format!(" {}", Shown(Path::new(word)));
            }
        }
        None => line += " …",
    }
    line
}

fn is_container(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "wlk" || suffix == "age")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<String> {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        advice(&args, ErrorKind::UnknownArgument)
    }

    #[test]
    fn the_right_command_is_named_with_its_arguments() {
        for (given, use_instead) in [
            ("wattlock -d -i key.txt a.wlk", "decrypt -i key.txt a.wlk"),
            ("wattlock enc -r age1x file", "encrypt -r age1x file"),
            ("wattlock protect -d -i key.txt a.wlk", "decrypt -i key.txt a.wlk"),
            ("wattlock decrypt --encrypt file", "encrypt file"),
            ("wattlock open -i AGE-SECRET-KEY-1X f", "decrypt …"),
            ("wattlock list a.wlk", "inspect a.wlk"),
        ] {
            let said = said(given).unwrap();
            assert!(said.ends_with(&format!("use: wattlock {use_instead}")), "{said}");
        }
        assert_eq!(said("wattlock measure --nonsense"), None);
        assert_eq!(said("wattlock frobnicate"), None);
    }
}
