//! A file takes another's place, if that is still the other's.
//!
//! A rename replaces the file that has the name by then. An exchange of two names loses nothing:
//! the other file can be checked, and put back.

use std::ffi::OsStr;
use std::io;

use rustix::fs::{RenameFlags, renameat, renameat_with};
use rustix::io::Errno;

use crate::file_state::State;
use crate::folder::{Folder, Location, is_final};
use crate::shown::Shown;

/// Puts the file at `temporary` in the place of the file `target` of the same `folder`, which is
/// removed; returns false if something else was there, which then stays. `own` and `expected` are the
/// states of the two files. Either way there is no file at `temporary` any more.
///
/// A file system that cannot exchange names gets a rename, which replaces what came just before.
///
/// # Errors
/// Those of the system. If another program's file cannot be put back, it stays at `temporary`,
/// which the error names.
pub(crate) fn take_place(
    folder: &Folder,
    temporary: &Location,
    target: &OsStr,
    (own, expected): (&State, &State),
) -> io::Result<bool> {
    let name = temporary.name();
    let swapped = swap_in(own, expected, || {
        renameat_with(folder, name, folder, target, RenameFlags::EXCHANGE)?;
        let out = folder.look(name)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(out.state)
    });
    let is_own =
        || folder.look(name).is_ok_and(|entry| entry.is_some_and(|e| e.state.is_same_file(own)));
    let taken = match swapped {
        Err(error) if cannot_exchange(&error) && is_own() => {
            return renameat(folder, name, folder, target).map(|()| true).map_err(|error| {
                let _ = folder.remove(name);
                error.into()
            });
        }
        // The place is empty, and what was in it before is here: it goes back.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_own() => {
            let back = renameat_with(folder, name, folder, target, RenameFlags::NOREPLACE);
            back.map(|()| false).map_err(io::Error::from)
        }
        swapped => swapped,
    };
    if taken.is_ok() || is_own() {
        let _ = folder.remove(name);
        return taken;
    }
    taken.map_err(|error| {
        let path = Shown(temporary.path());
        io::Error::new(error.kind(), format!("{error}; the file that was there is now {path}"))
    })
}

/// Puts the file `own` into a place by swaps, each of which returns the file that came out. Unless
/// that is `expected`, unchanged, the newest of the others is in the place afterwards.
fn swap_in(
    own: &State,
    expected: &State,
    mut swap: impl FnMut() -> io::Result<State>,
) -> io::Result<bool> {
    let mut held = swap()?;
    if held.is_same_content(expected) {
        return Ok(true);
    }
    let mut last = *own;
    loop {
        // What comes out should be what went in last. If it is not, it is newer than both.
        let out = swap()?;
        if out.is_same_file(&last) {
            return Ok(false);
        }
        (last, held) = (held, out);
    }
}

/// True if `error` may say that the file system cannot exchange names.
fn cannot_exchange(error: &io::Error) -> bool {
    let error = error.raw_os_error().map(Errno::from_raw_os_error);
    error.is_some_and(|error| !is_final(error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        /// The target holds "old", the temporary file "own".
        fn new() -> (Self, State, State) {
            let folder = Self(tempfile::tempdir().unwrap());
            let states = [("target", "old"), ("temporary", "own")].map(|(name, text)| {
                fs::write(folder.path(name), text).unwrap();
                folder.state(name)
            });
            (folder, states[0], states[1])
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            self.0.path().join(name)
        }

        fn state(&self, name: &str) -> State {
            State::of(&fs::symlink_metadata(self.path(name)).unwrap())
        }

        fn exchange(&self) {
            let (one, other) = (self.path("temporary"), self.path("target"));
            renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, RenameFlags::EXCHANGE)
                .unwrap();
        }

        fn take(&self, own: &State, expected: &State) -> io::Result<bool> {
            let at = Location::named(&self.path("temporary"));
            take_place(&at.folder().unwrap(), &at, OsStr::new("target"), (own, expected))
        }

        /// Renames a new file into the place.
        fn newer(&self, text: &str) {
            fs::write(self.path("new"), text).unwrap();
            fs::rename(self.path("new"), self.path("target")).unwrap();
        }

        fn left(&self) -> Vec<String> {
            let entries = fs::read_dir(self.0.path()).unwrap();
            let read = |entry: io::Result<fs::DirEntry>| {
                let entry = entry.unwrap();
                let text = fs::read_to_string(entry.path()).unwrap();
                format!("{} {text}", entry.file_name().to_str().unwrap())
            };
            let mut left: Vec<_> = entries.map(read).collect();
            left.sort();
            left
        }
    }

    #[test]
    fn it_takes_the_place_of_what_is_expected_only() {
        let (folder, expected, own) = Folder::new();
        let take = || folder.take(&own, &expected);
        assert!(take().unwrap());
        assert_eq!(folder.left(), ["target own"]);

        let (folder, expected, own) = Folder::new();
        let take = || folder.take(&own, &expected);
        folder.newer("new");
        assert!(!take().unwrap());
        assert_eq!(folder.left(), ["target new"]);

        let (folder, expected, own) = Folder::new();
        let take = || folder.take(&own, &expected);
        fs::write(folder.path("target"), "written in place").unwrap();
        assert!(!take().unwrap());
        assert_eq!(folder.left(), ["target written in place"]);

        let (folder, expected, own) = Folder::new();
        let take = || folder.take(&own, &expected);
        fs::remove_file(folder.path("target")).unwrap();
        assert_eq!(take().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(folder.left().is_empty());
    }

    /// Newer files come before the first swap and before some of those that put things back.
    #[test]
    fn the_newest_of_several_newer_files_stays() {
        for comes in 0..16 {
            let (folder, expected, own) = Folder::new();
            let mut swaps = 0;
            let taken = swap_in(&own, &expected, || {
                if swaps < 4 && comes & (1 << swaps) != 0 {
                    folder.newer(&format!("newer {swaps}"));
                }
                swaps += 1;
                folder.exchange();
                Ok(folder.state("temporary"))
            });
            let newest = (0..swaps.min(4)).rev().find(|n| comes & (1 << n) != 0);
            let in_place = fs::read_to_string(folder.path("target")).unwrap();
            match newest {
                None => assert!(taken.unwrap() && in_place == "own", "{comes}"),
                Some(n) => {
                    assert!(!taken.unwrap(), "{comes}");
                    assert_eq!(in_place, format!("newer {n}"), "{comes}");
                }
            }
        }
    }
}
