//! How far the messages of a folder were delivered, in a file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How far the messages of a folder were delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// The number of the first segment of which nothing was read; 0 before any was.
    pub next: u64,
    /// Segments before that which are not done, and how many of their records are.
    pub records: BTreeMap<u64, u64>,
    /// A segment that was read, and its writer, by which the folder is known.
    pub known: Option<(u64, [u8; 16])>,
}

/// The file of a position.
pub(super) struct PositionFile {
    path: PathBuf,
    /// Another process that uses it would deliver everything once more.
    _lock: File,
    saved: Position,
}

impl PositionFile {
    /// Reads the file at `path`, which need not be there.
    ///
    /// # Errors
    /// That it cannot be read, is no such file, or that another process uses it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let lock = File::create(path.with_added_extension("lock"))?;
        match lock.try_lock() {
            Err(fs::TryLockError::WouldBlock) => {
                let why = "another process delivers from this position";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
            }
            // A file system without locks does without.
            Ok(()) | Err(fs::TryLockError::Error(_)) => {}
        }
        let saved = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Position::default(),
            text => Position::from_text(&text?).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "it is not a position of wattlock")
            })?,
        };
        Ok(Self { path: path.to_owned(), _lock: lock, saved })
    }

    /// What was saved last.
    pub fn saved(&self) -> &Position {
        &self.saved
    }

    /// Saves a position: all of it, or nothing.
    ///
    /// # Errors
    /// That it cannot be written.
    pub fn save(&mut self, position: Position) -> io::Result<()> {
        if position == self.saved {
            return Ok(());
        }
        let new = self.path.with_added_extension("new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(position.to_text().as_bytes())?;
            file.sync_data()?;
            fs::rename(&new, &self.path)
        };
        if let Err(error) = write() {
            // Half of one is of no use.
            let _ = fs::remove_file(&new);
            return Err(error);
        }
        self.saved = position;
        Ok(())
    }

    /// Its path, for messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }
}

impl Position {
    /// `wattlock-position/v1`, then lines: `NUMBER RECORDS` for each segment that is not done, `NUMBER by WRITER` for one
    /// that was read, and `NUMBER next`.
    fn to_text(&self) -> String {
        let mut text = format!("{FORM}\n");
        for (number, records) in &self.records {
            text += &format!("{number} {records}\n");
        }
        if let Some((number, writer)) = self.known {
            let writer: String = writer.iter().map(|byte| format!("{byte:02x}")).collect();
            text += &format!("{number} by {writer}\n");
        }
        text + &format!("{} next\n", self.next)
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix("\n")?.lines();
        if lines.next()? != FORM {
            return None;
        }
        let mut position = Self::default();
        loop {
            let (number, what) = lines.next()?.split_once(' ')?;
            let number = number.parse().ok()?;
            match what.strip_prefix("by ") {
                Some(writer) => position.known = Some((number, from_hex(writer)?)),
                None if what == "next" => position.next = number,
                None => drop(position.records.insert(number, what.parse().ok()?)),
            }
            if what == "next" {
                break;
            }
        }
        let is_after = position.records.keys().all(|segment| *segment < position.next);
        (lines.next().is_none() && is_after).then_some(position)
    }
}

fn from_hex(digits: &str) -> Option<[u8; 16]> {
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    let mut bytes = [0; 16];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

const FORM: &str = "wattlock-position/v1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_and_half_of_one_does_not() {
        let position =
            Position { next: 12, records: [(9, 5), (11, 0)].into(), known: Some((11, [0xa5; 16])) };
        let text = position.to_text();
        assert_eq!(Position::from_text(&text), Some(position));
        for len in 0..text.len() {
            assert_eq!(Position::from_text(&text[..len]), None, "{len}");
        }
        assert_eq!(Position::from_text("wattlock-position/v1\n12 4\n9 next\n"), None);
    }
}
