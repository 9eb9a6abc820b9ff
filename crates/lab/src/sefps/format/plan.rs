//! Which file becomes which: by the suffix, since nothing in a container says what it is.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use wattlock_engine::Direction;
use wattlock_file::Error;
use wattlock_file::Shown;
use wattlock_file::Task;

/// The suffix that containers get, without its dot.
pub const SUFFIX: &str = "sefps";

/// The tasks of `inputs`, whose outputs go into the same folder or into `out_dir`.
///
/// # Errors
/// [`Error::Usage`] for a container whose name does not end in the suffix and for two inputs with
/// the same output, [`Error::Directory`], [`Error::Io`] for an input that cannot be read.
pub fn tasks(
    direction: Direction,
    inputs: &[PathBuf],
    out_dir: Option<&Path>,
) -> Result<Vec<Task>, Error> {
    let tasks: Vec<Task> =
        inputs.iter().map(|input| task(direction, input, out_dir)).collect::<Result<_, _>>()?;
    let mut makers: HashMap<&Path, &Path> = HashMap::new();
    for task in &tasks {
        if let Some(other) = makers.insert(&task.output, &task.input) {
            return Err(Error::usage(format!(
                "{} and {} would both become {}",
                Shown(other),
                Shown(&task.input),
                Shown(&task.output)
            )));
        }
    }
    Ok(tasks)
}

fn task(direction: Direction, input: &Path, out_dir: Option<&Path>) -> Result<Task, Error> {
    let status = fs::metadata(input).map_err(Error::io("read", input))?;
    if status.is_dir() {
        return Err(Error::Directory(input.to_owned()));
    }
    let name = input
        .file_name()
        .ok_or_else(|| Error::usage(format!("{} has no file name", Shown(input))))?;
    let place = out_dir.map_or_else(|| input.to_owned(), |dir| dir.join(name));
    let output = match direction {
        Direction::Encrypt => {
            let mut name = place.into_os_string();
            name.push(".");
            name.push(SUFFIX);
            name.into()
        }
        Direction::Decrypt if place.extension().is_some_and(|suffix| suffix == SUFFIX) => {
            place.with_extension("")
        }
        Direction::Decrypt => {
            return Err(Error::usage(format!(
                "{} does not end with .{SUFFIX}; name its output with -o",
                Shown(input)
            )));
        }
    };
    Ok(Task::new(input.to_owned(), output, status.len()))
}
