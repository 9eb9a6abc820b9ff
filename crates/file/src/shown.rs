//! File names as they may be shown: a name is anybody's text, and a terminal obeys some of it.

use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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

/// Shows a path on one line: escapes characters that move the cursor or change the writing
/// direction, and shows bytes that are not UTF-8 as `\\xNN`.
pub struct Shown<'a>(pub &'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.to_string_lossy().contains("SECRET-KEY-") {
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

/// The bidirectional controls of Unicode, which make a name look like another.
fn turns_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn names_stay_on_their_line() {
        let evil = b"a\x1b[31mb\nwattlock: fake ok \xff \xe2\x80\xae caf\xc3\xa9";
        let shown = Shown(Path::new(OsStr::from_bytes(evil))).to_string();
        assert_eq!(shown, "a\\u{1b}[31mb\\nwattlock: fake ok \\xff \\u{202e} caf\u{e9}");
    }
}
