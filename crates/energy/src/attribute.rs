//! Attributes: the small files in which the kernel shows one value each.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::OFlags;

use crate::error::Error;
use crate::obstacle::Obstacle;

/// What the file holds.
///
/// # Errors
/// The system's error; or that it is not a regular file (a pipe could block); or that it is longer
/// than any attribute of the kernel.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no file")));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(failed)?;
    match text.len() as u64 {
        LONGEST => Err(failed(io::Error::other("it is too long"))),
        _ => Ok(text),
    }
}

/// What the file holds, without white space around it; `None` if it is missing, empty or cannot be
/// read.
pub(crate) fn text(path: &Path) -> Option<String> {
    let text = read(path).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The number that the file holds.
///
/// # Errors
/// The system's error, or the text that is no number.
pub(crate) fn number(path: &Path) -> Result<i64, Error> {
    parsed(path)
}

/// The same, of any kind.
///
/// # Errors
/// The same.
pub(crate) fn parsed<T: FromStr>(path: &Path) -> Result<T, Error> {
    let text = read(path)?;
    let text = text.trim();
    text.parse().map_err(|_| Error::NotANumber {
        path: path.to_owned(),
        text: text.chars().take(40).collect(),
    })
}

/// The same where less than nothing is no value.
///
/// # Errors
/// The same.
pub(crate) fn amount(path: &Path) -> Result<u64, Error> {
    let number = number(path)?;
    number
        .try_into()
        .map_err(|_| Error::NotANumber { path: path.to_owned(), text: number.to_string() })
}

/// The directories in `path`, in the order of their names, numbers as numbers: `hwmon2` is before
/// `hwmon10`.
pub(crate) fn directories(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.is_dir());
    paths.sort_by_key(|path| {
        let name = file_name(path);
        (name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(), name.len(), name)
    });
    paths
}

/// The last part of the path.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What is said of a file that could not be read.
pub(crate) fn unreadable(error: &Error) -> Obstacle {
    let obstacle = Obstacle::unavailable(error.to_string());
    match error {
        Error::Read { source, .. } if source.kind() == ErrorKind::PermissionDenied => obstacle.fix(
            "run as root, or let the administrator give the file to a group of people who are \
                 trusted: chgrp GROUP, chmod 0440. Not to all users: power readings leak keys",
        ),
        _ => obstacle,
    }
}

/// More than an attribute holds, and than `/proc/cpuinfo` of a large machine.
const LONGEST: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert!(read(&pipe).unwrap_err().to_string().contains("no file"));
        assert!(read(directory.path()).is_err());
    }

    #[test]
    fn advice_does_not_open_a_sensor_to_all_users() {
        let source = std::io::Error::from(ErrorKind::PermissionDenied);
        let fix = unreadable(&Error::Read { path: "energy1_input".into(), source }).fix.unwrap();
        assert!(fix.contains("root") && fix.contains("chgrp GROUP, chmod 0440"));
        for all_users in ["444", "a+r", "o+r", "644"] {
            assert!(!fix.contains(all_users));
        }
    }

    #[test]
    fn directories_are_in_the_order_of_their_numbers() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["hwmon10", "hwmon2", "hwmon0", "a1"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        fs::write(directory.path().join("hwmon1"), "a file").unwrap();
        let names: Vec<_> =
            directories(directory.path()).iter().map(|path| file_name(path)).collect();
        assert_eq!(names, ["a1", "hwmon0", "hwmon2", "hwmon10"]);
    }
}
