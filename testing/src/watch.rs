//! Waits for what others do with a file.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;

use crate::wait::{DEADLINE, is_ready_within};

/// A file that is watched.
pub struct Watched {
    inotify: OwnedFd,
}

impl Watched {
    /// Watches how a file is opened.
    ///
    /// # Panics
    /// If the file is missing.
    #[must_use]
    pub fn opens_of(file: &Path) -> Self {
        Self::new(file, WatchFlags::OPEN)
    }

    /// Watches how a file is read.
    ///
    /// # Panics
    /// If the file is missing.
    #[must_use]
    pub fn reads_of(file: &Path) -> Self {
        Self::new(file, WatchFlags::ACCESS)
    }

    /// Watches how a file is written.
    ///
    /// # Panics
    /// If the file is missing.
    #[must_use]
    pub fn writes_of(file: &Path) -> Self {
        Self::new(file, WatchFlags::MODIFY)
    }

    fn new(file: &Path, what: WatchFlags) -> Self {
        let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("inotify is there");
        add_watch(&inotify, file, what)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        Self { inotify }
    }

    /// Waits until it has been done at least this many more times; earlier ones do not count.
    ///
    /// # Panics
    /// If that takes longer than two minutes.
    #[track_caller]
    pub fn wait_for(&self, times: usize) {
        self.seen();
        let start = Instant::now();
        let mut seen = 0;
        while seen < times {
            let left = DEADLINE.saturating_sub(start.elapsed());
            assert!(
                is_ready_within(&self.inotify, left),
                "{seen} of {times} times in {DEADLINE:?}"
            );
            seen += self.seen();
        }
    }

    /// How many times it has been done since the last call. The kernel merges events that were not
    /// read yet, so there may have been more.
    pub fn seen(&self) -> usize {
        let mut buffer = [const { MaybeUninit::uninit() }; 4096];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut seen = 0;
        loop {
            match reader.next() {
                Ok(_) => seen += 1,
                Err(Errno::WOULDBLOCK) => return seen,
                Err(Errno::INTR) => {}
                Err(error) => panic!("reading what was done with a file: {error}"),
            }
        }
    }
}
