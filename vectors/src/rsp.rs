//! Reads NIST's response files: sections in brackets, lines `NAME = value`, vectors set apart by
//! empty lines. A file whose name ends in `.gz` is gzipped. The line `FAIL` of a vector says that a
//! message must be refused.

use std::fs;
use std::io::Read;
use std::path::Path;

/// One vector of a response file.
#[derive(Debug)]
pub struct Record {
    /// What stood in the last brackets before it.
    pub section: String,
    fields: Vec<(String, String)>,
}

impl Record {
    /// The value of `name`.
    ///
    /// # Panics
    /// If the vector has none.
    pub fn text(&self, name: &str) -> &str {
        let field = self.fields.iter().find(|(key, _)| key == name);
        field.map_or_else(|| panic!("{self:?} has no {name}"), |(_, value)| value)
    }

    /// The value of `name`, which is hexadecimal.
    ///
    /// # Panics
    /// If the vector has none, or it is not.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        unhex(self.text(name))
    }

    /// True if the vector's message must be refused.
    pub fn fails(&self) -> bool {
        self.fields.iter().any(|(key, _)| key == FAIL)
    }
}

/// A line that has no value.
const FAIL: &str = "FAIL";

/// The text of a response file.
///
/// # Panics
/// If the file cannot be read.
pub fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzipped text");
        return text;
    }
    String::from_utf8(bytes).expect("a response file is text")
}

/// The vectors in the text of a response file.
///
/// # Panics
/// If a line has no meaning.
pub fn records(text: &str) -> Vec<Record> {
    let mut section = String::new();
    let mut records: Vec<Record> = Vec::new();
    let mut open = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if line.is_empty() {
            open = false;
        } else if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else {
            let field = line.split_once('=').or_else(|| (line == FAIL).then_some((FAIL, "")));
            let (name, value) = field.unwrap_or_else(|| panic!("a line: {line}"));
            if !open {
                records.push(Record { section: section.clone(), fields: Vec::new() });
                open = true;
            }
            let field = (name.trim().to_owned(), value.trim().to_owned());
            records.last_mut().expect("just pushed").fields.push(field);
        }
    }
    records
}

/// The bytes that hexadecimal digits stand for.
///
/// # Panics
/// If they are an odd number, or none.
pub fn unhex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "an odd number of digits: {digits}");
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16);
    let bytes: Result<Vec<u8>, _> = (0..digits.len()).step_by(2).map(byte).collect();
    bytes.unwrap_or_else(|error| panic!("{digits}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_empty_lines_set_vectors_apart() {
        let text = "# about\r\n\r\n[A]\r\n\r\nX = 1\r\nKEY = 00ff\r\n\r\nX = 2\r\nFAIL\r\n[B = 3]\r\n\r\nX = 4\r\n";
        let records = records(text);
        let seen: Vec<_> = records.iter().map(|r| (r.section.as_str(), r.text("X"))).collect();
        assert_eq!(seen, [("A", "1"), ("A", "2"), ("B = 3", "4")]);
        assert_eq!(records[0].bytes("KEY"), [0, 255]);
        assert_eq!([0, 1, 2].map(|at: usize| records[at].fails()), [false, true, false]);
    }
}
