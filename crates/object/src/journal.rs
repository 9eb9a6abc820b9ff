//! What is acknowledged of an upload, on disk, so that it goes on after a crash.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use object_store::multipart::PartId;

/// What a store has acknowledged of an upload. One line for the upload, and one for each part.
pub(crate) struct Journal {
    file: File,
    pub begun: Option<BegunUpload>,
    pub parts: Vec<PartId>,
}

/// The upload that a journal records.
pub(crate) struct BegunUpload {
    pub id: String,
    pub part_len: u64,
}

impl Journal {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).append(true).create(true).open(path)?;
        let mut lines = BufReader::new(&file).lines();
        let first = lines.next().transpose()?;
        let begun = first.as_deref().and_then(|line| {
            let (part_len, id) = line.split_once(' ')?;
            Some(BegunUpload { id: id.to_owned(), part_len: part_len.parse().ok()? })
        });
        let mut parts = Vec::new();
        for line in lines {
            let line = line?;
            // A line that was not written to its end has no number, or another.
            let Some((number, content_id)) = line.split_once(' ') else { break };
            if number.parse() != Ok(parts.len()) || !content_id.ends_with('.') {
                break;
            }
            parts.push(PartId { content_id: content_id.trim_end_matches('.').to_owned() });
        }
        Ok(Self { file, begun, parts })
    }

    /// Begins anew, with an upload.
    pub fn begin(&mut self, id: &str, part_len: u64) -> io::Result<()> {
        self.file.set_len(0)?;
        writeln!(self.file, "{part_len} {id}")?;
        self.file.sync_data()
    }

    /// Notes that a part was acknowledged.
    pub fn add(&mut self, number: usize, part: &PartId) -> io::Result<()> {
        writeln!(self.file, "{number} {}.", part.content_id)
    }
}
