//! File names as they may be shown: a name is anybody's text, and a terminal obeys some of it.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine as _};

/// What the system says of an error, without " (os error N)": the number says nothing more.
pub fn without_error_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(NUMBER) {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        plain += before;
        rest = match after[digits..].strip_prefix(')') {
            Some(rest) if digits > 0 => rest,
            _ => {
                plain += NUMBER;
                after
            }
        };
    }
    plain + rest
}

/// What stands before the number of an error.
const NUMBER: &str = " (os error ";

/// The text without characters that a terminal obeys: controls but line feed and tab, and those that
/// turn the direction of writing. Each becomes `\uXXXX`, which means the same in a string of JSON.
pub fn without_controls(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && c != '\n' && c != '\t' || turns_direction(c);
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_obeyed(c) {
            true => plain += &format!("\\u{:04x}", u32::from(c)),
            false => plain.push(c),
        }
    }
    plain.into()
}

/// The bytes of a name in base64, if they are not UTF-8: what a JSON document says next to the name,
/// whose text is then the same for several names.
pub fn name_bytes(name: &Path) -> Option<String> {
    let bytes = name.as_os_str().as_bytes();
    std::str::from_utf8(bytes).is_err().then(|| BASE64_STANDARD.encode(bytes))
}

/// Shows a path on one line: escapes characters that move the cursor or change the writing
/// direction, and shows bytes that are not UTF-8 as `\\xNN`.
pub struct Shown<'a>(pub &'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if holds_key(&self.0.to_string_lossy()) {
            return f.write_str("(a private key, where a file is expected)");
        }
        for chunk in self.0.as_os_str().as_bytes().utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    c if c.is_control() || turns_direction(c) => {
                        write!(f, "{}", c.escape_default())?;
                    }
                    c => f.write_char(c)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// True for text with one of age's private keys in it, even if its first letters are lost.
pub fn holds_key(text: &str) -> bool {
    text.contains("AGE-SECRET-KEY-")
        || text.split("SECRET-KEY-").skip(1).any(|rest| {
            let data = rest.strip_prefix("PQ-").unwrap_or(rest).strip_prefix('1');
            let is_data = |c: &char| c.is_ascii_uppercase() || c.is_ascii_digit();
            data.is_some_and(|data| data.chars().take_while(is_data).count() >= SHORTEST_KEY)
        })
}

/// Characters that are taken for a part of a key.
const SHORTEST_KEY: usize = 20;

/// The bidirectional controls of Unicode, which make a name look like another.
fn turns_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn keys_are_hidden_and_names_are_not() {
        let key = "SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L";
        let post_quantum = "-SECRET-KEY-PQ-1HZLGZUPT4ETPKDEV8HSGFDCYZ";
        for hidden in [key, post_quantum, "AGE-SECRET-KEY-", &format!("GE-{key}")] {
            assert!(holds_key(hidden), "{hidden}");
        }
        for name in ["MY-SECRET-KEY-1.txt", "SECRET-KEY-backup", "SECRET-KEY-"] {
            assert!(!holds_key(name), "{name}");
        }
    }

    #[test]
    fn names_stay_on_their_line() {
        let evil = b"a\x1b[31mb\nwattlock: fake ok \xff \xe2\x80\xae caf\xc3\xa9";
        let shown = Shown(Path::new(OsStr::from_bytes(evil))).to_string();
        assert_eq!(shown, "a\\u{1b}[31mb\\nwattlock: fake ok \\xff \\u{202e} caf\u{e9}");
    }
}
