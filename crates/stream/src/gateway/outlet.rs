//! Outputs that take bytes in order: standard output, and files one after the other.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::retry::{FailureStreak, is_full, named};
use super::{Counters, Retry};

/// Takes bytes, in order. Writing blocks; that is what fills the window.
pub trait Outlet: Send {
    /// Writes a whole frame or whole messages, or keeps them until [`Outlet::flush`].
    ///
    /// # Errors
    /// That it could not be written: the stream is over.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// What is written, be it nothing, takes the place of what was there. The first write does the
    /// same.
    ///
    /// # Errors
    /// As [`Outlet::write`].
    fn start(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Writes what was kept.
    ///
    /// # Errors
    /// As [`Outlet::write`].
    fn flush(&mut self) -> io::Result<()>;

    /// Makes what was flushed durable, where that can be.
    ///
    /// # Errors
    /// As [`Outlet::write`].
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Calls of [`Outlet::write`] whose bytes are kept.
    fn kept(&self) -> u64;

    /// One stream ends, and another begins. Where they cannot be apart they follow each other.
    ///
    /// # Errors
    /// As [`Outlet::write`].
    fn turn(&mut self) -> io::Result<()> {
        self.flush()
    }

    /// Nothing follows.
    ///
    /// # Errors
    /// As [`Outlet::write`]; a file may not be on the disk.
    fn finish(&mut self) -> io::Result<()>;
}

/// Small pieces are written together, up to this many bytes; longer ones are not copied.
const KEPT: usize = 64 << 10;

/// A file that small pieces are joined for, and that waits while its disk is full.
struct Joined {
    file: File,
    name: String,
    retry: Retry,
    /// The length of the file up to its last whole piece; `None` if bytes that were written to it
    /// cannot be taken back.
    whole: Option<u64>,
    kept: Vec<u8>,
    /// Where the pieces end in what is kept.
    ends: Vec<usize>,
    /// `None` once something was written, or is known to be all there is.
    before: Option<Before>,
}

/// What an output was before anything was written to it, and is again if nothing is.
enum Before {
    /// A file, which is emptied before the first write.
    Old,
    /// Nothing at this path.
    Nothing(PathBuf),
}

impl Joined {
    fn new(file: File, name: String, whole: Option<u64>, retry: Retry) -> Self {
        Self { file, name, retry, whole, kept: Vec::new(), ends: Vec::new(), before: None }
    }

    /// The same, where there was `before`.
    fn over(mut self, before: Before) -> Self {
        self.before = Some(before);
        self
    }

    fn start(&mut self) -> io::Result<()> {
        match self.before.take() {
            Some(Before::Old) if self.whole.is_some() => {
                self.file.set_len(0).map_err(|error| named(&self.name, &error))
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_long = bytes.len() > KEPT / 2;
        if is_long || self.kept.len() + bytes.len() > KEPT {
            self.flush()?;
        }
        if is_long {
            return self.write_out(bytes, &[bytes.len()]);
        }
        self.kept.extend_from_slice(bytes);
        self.ends.push(self.kept.len());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let (kept, ends) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.ends));
        let written = self.write_out(&kept, &ends);
        (self.kept, self.ends) = (kept, ends);
        self.kept.clear();
        self.ends.clear();
        written
    }

    /// Writes pieces that end at `ends`. While the disk is full the file holds whole pieces only.
    fn write_out(&mut self, bytes: &[u8], ends: &[usize]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.start()?;
        let mut episode = FailureStreak::default();
        let mut done = 0;
        while done < bytes.len() {
            match self.file.write(&bytes[done..]) {
                Ok(0) => return Err(named(&self.name, &io::ErrorKind::WriteZero.into())),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    done = self.cut_to_whole(done, ends)?;
                    if !is_full(&error) {
                        return Err(named(&self.name, &error));
                    }
                    self.retry.wait(&mut episode, &self.name, &error)?;
                }
            }
        }
        self.whole = self.whole.map(|whole| whole + bytes.len() as u64);
        self.retry.end(&mut episode, &self.name, true);
        Ok(())
    }

    /// Takes a torn piece back. Returns how many bytes stay written.
    fn cut_to_whole(&mut self, done: usize, ends: &[usize]) -> io::Result<usize> {
        let Some(whole) = self.whole else { return Ok(done) };
        let stays = ends.iter().copied().take_while(|end| *end <= done).last().unwrap_or(0);
        let len = whole + stays as u64;
        let cut = self.file.set_len(len).and_then(|()| self.file.seek(SeekFrom::Start(len)));
        cut.map_err(|error| named(&self.name, &error))?;
        Ok(stays)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let Some(Before::Nothing(path)) = &self.before else { return };
        let is_same = |ours: &Metadata, there: &Metadata| {
            (ours.dev(), ours.ino(), ours.len()) == (there.dev(), there.ino(), 0)
        };
        let both = self.file.metadata().ok().zip(std::fs::symlink_metadata(path).ok());
        if both.is_some_and(|(ours, there)| is_same(&ours, &there)) {
            // What cannot be removed is an empty file.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Standard output, or another output that is never replaced.
pub struct Stdout(Joined);

impl Stdout {
    /// Writes to `file`, which errors call `name`.
    pub fn new(file: File, name: String, retry: Retry) -> Self {
        Self(Joined::new(file, name, None, retry))
    }
}

impl Outlet for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn kept(&self) -> u64 {
        self.0.ends.len() as u64
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A file, or numbered files one after the other. None is ever overwritten, unless that was asked
/// for.
pub struct Files {
    path: PathBuf,
    segments: Segments,
    /// The number of the last segment; 0 before there is one.
    number: u64,
    file: Option<Joined>,
    retry: Retry,
}

/// How the files of an output are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segments {
    /// `PATH`, which must not exist.
    Single,
    /// `PATH`, which is replaced.
    Replace,
    /// `PATH`, or the next segment if it exists: `PATH.000001` and so on.
    Continue,
    /// `PATH.000001` and so on.
    Numbered,
}

impl Files {
    /// Makes the first file.
    ///
    /// # Errors
    /// That it cannot be made.
    pub fn create(path: &Path, segments: Segments, retry: Retry) -> io::Result<Self> {
        let number = last_segment(path);
        let mut files = Self { path: path.to_owned(), segments, number, file: None, retry };
        files.file = Some(files.open_patiently()?);
        Ok(files)
    }

    /// Makes the next file; waits for it while the disk is full or no file can be opened.
    fn open_patiently(&mut self) -> io::Result<Joined> {
        let (retry, before) = (self.retry.clone(), self.number);
        retry.persist(&self.name(), || {
            self.number = before;
            self.open_next()
        })
    }

    fn name(&self) -> String {
        self.path.to_string_lossy().escape_debug().to_string()
    }

    /// The file that is written now.
    pub fn current(&self) -> Option<&str> {
        self.file.as_ref().map(|file| file.name.as_str())
    }

    fn open_next(&mut self) -> io::Result<Joined> {
        let mut options = OpenOptions::new();
        options.write(true);
        let mut is_new = true;
        let is_first = self.file.is_none() && self.segments != Segments::Numbered;
        let first = match (is_first, self.segments) {
            (false, _) => None,
            (true, Segments::Replace) => match options.clone().create_new(true).open(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    is_new = false;
                    Some(options.open(&self.path))
                }
                opened => Some(opened),
            },
            (true, _) => Some(options.clone().create_new(true).open(&self.path)),
        };
        let (file, path) = match first {
            Some(Ok(file)) => (file, self.path.clone()),
            Some(Err(error))
                if error.kind() != io::ErrorKind::AlreadyExists
                    || self.segments != Segments::Continue =>
            {
                return Err(error);
            }
            _ => self.open_segment(options.create_new(true))?,
        };
        // After the first, every file is a segment.
        if self.segments != Segments::Single {
            self.segments = Segments::Numbered;
        }
        let name = path.to_string_lossy().escape_debug().to_string();
        // Only a regular file can be cut.
        let whole = file.metadata()?.is_file().then_some(0);
        // A file system without locks gives no warning.
        if whole.is_some() && matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            let why = "another process is writing to it";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        let before = if is_new { Before::Nothing(path) } else { Before::Old };
        let file = Joined::new(file, name, whole, self.retry.clone());
        Ok(file.over(before))
    }

    fn open_segment(&mut self, options: &OpenOptions) -> io::Result<(File, PathBuf)> {
        loop {
            self.number += 1;
            let path = segment(&self.path, self.number);
            match options.open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => return Ok((opened?, path)),
            }
        }
    }

    /// The file that is written now, or the next.
    fn file(&mut self) -> io::Result<&mut Joined> {
        if self.file.is_none() {
            let opened = self.open_patiently().map_err(|error| named(&self.name(), &error))?;
            self.file = Some(opened);
        }
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.flush()?;
        file.file.sync_data().map_err(|error| named(&file.name, &error))?;
        self.file = None;
        Counters::add(&self.retry.counters().files, 1);
        Ok(())
    }
}

impl Outlet for Files {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file()?.write(bytes)
    }

    fn start(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Joined::start)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Joined::flush)
    }

    fn sync(&mut self) -> io::Result<()> {
        let Some(Joined { file, name, .. }) = &self.file else { return Ok(()) };
        file.sync_data().map_err(|error| named(name, &error))
    }

    fn kept(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.ends.len() as u64)
    }

    /// The next file is made when there is something to write.
    fn turn(&mut self) -> io::Result<()> {
        if self.segments == Segments::Numbered { self.close() } else { self.flush() }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.close()
    }
}

/// `PATH.000001` and so on.
fn segment(path: &Path, number: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number:06}"));
    name.into()
}

/// The highest number among the segments of `path`; 0 if there is none.
fn last_segment(path: &Path) -> u64 {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new(".")));
    let (Some(name), Ok(entries)) = (path.file_name(), entries) else { return 0 };
    let mut prefix = OsString::from(name);
    prefix.push(".");
    let mut last = 0;
    for entry in entries.flatten() {
        let entry = entry.file_name();
        let digits = entry.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        let digits = digits.filter(|digits| digits.len() >= 6);
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        last = last.max(number.unwrap_or(0));
    }
    last
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn pieces_of_any_length_leave_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let retry = Retry::new(None, Arc::default(), |_| {});
        let mut files = Files::create(&path, Segments::Single, retry).unwrap();
        let mut all = Vec::new();
        for (index, len) in
            [1, 50_000, 3, KEPT, KEPT / 2, KEPT / 2, 2, KEPT / 2 + 1, 7].iter().enumerate()
        {
            let piece = vec![index as u8; *len];
            files.write(&piece).unwrap();
            all.extend(piece);
        }
        assert_eq!(files.kept(), 1);
        files.finish().unwrap();
        assert_eq!(std::fs::read(path).unwrap(), all);
    }
}
