//! `--dry-run`: what a run would do.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use wattlock_file::{Found, Shown, Task, name_bytes};
use wattlock_host::exit::{Ended, FAILURE, print, say_file_error};
use wattlock_host::summary::{human, reason};

/// The JSON of a dry run.
#[derive(Serialize)]
struct Document<'a> {
    command: &'a str,
    dry_run: bool,
    in_bytes: u64,
    files: Vec<File<'a>>,
    skipped: Vec<Skipped>,
}

#[derive(Serialize)]
struct File<'a> {
    input: String,
    /// In base64, if the name is not UTF-8, as of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_name_bytes: Option<String>,
    output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_name_bytes: Option<String>,
    #[serde(skip)]
    task: &'a Task,
    in_bytes: u64,
    /// Why it would fail, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Skipped {
    input: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_name_bytes: Option<String>,
    why: &'static str,
}

/// What a run does to files that exist.
pub struct Existing {
    /// Outputs are overwritten.
    pub overwrites: bool,
    /// Outputs are verified, and kept if they are right.
    pub resumes: bool,
    /// Inputs are removed.
    pub removes: bool,
    /// The addresses of objects that exist where outputs go.
    pub objects: HashSet<PathBuf>,
}

impl Existing {
    /// True if there is something at `output`.
    fn has(&self, output: &Path) -> bool {
        self.objects.contains(output) || output.symlink_metadata().is_ok()
    }
}

/// Shows what `command` would do for what was found.
pub fn show(command: &str, found: &Found, existing: &Existing, json: bool) -> Ended {
    let obstacle = |task: &Task| {
        let keeps = existing.overwrites || existing.resumes;
        let exists = !keeps && existing.has(&task.output);
        let error = exists.then(|| wattlock_file::Error::Exists(task.output.clone()))?;
        say_file_error(&task.input, &error);
        Some(error.to_string())
    };
    let files: Vec<File<'_>> = found
        .tasks
        .iter()
        .map(|task| File {
            input: task.input.display().to_string(),
            input_name_bytes: name_bytes(&task.input),
            output: task.output.display().to_string(),
            output_name_bytes: name_bytes(&task.output),
            task,
            in_bytes: task.len,
            error: obstacle(task),
        })
        .collect();
    for (path, error) in &found.failed {
        say_file_error(path, error);
    }
    let failing = files.iter().filter(|file| file.error.is_some()).count() + found.failed.len();
    let planned = files.iter().filter(|file| file.error.is_none());
    let in_bytes = planned.map(|file| file.in_bytes).sum();
    if json {
        let skipped = found.skipped.iter();
        let skipped = skipped.map(|(path, why)| Skipped {
            input: path.display().to_string(),
            input_name_bytes: name_bytes(path),
            why: reason(*why),
        });
        let skipped = skipped.collect();
        let document = Document { command, dry_run: true, in_bytes, files, skipped };
        print(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else {
        let mut text = String::new();
        for file in files.iter().filter(|file| file.error.is_none()) {
            let Task { input, output, .. } = file.task;
            let exists = existing.has(output);
            let (input, output) = (Shown(input), Shown(output));
            let what = match (exists, existing.resumes) {
                (false, _) => "",
                (true, true) => " (exists: verified)",
                (true, false) => " (overwritten)",
            };
            let removed = if existing.removes { "; the input is removed" } else { "" };
            text += &format!("{input} → {output}{what}{removed}\n");
        }
        for (path, why) in &found.skipped {
            text += &format!("{}: skipped: {}\n", Shown(path), reason(*why));
        }
        let count = files.len() - files.iter().filter(|file| file.error.is_some()).count();
        let plural = if count == 1 { "" } else { "s" };
        text += &format!("{count} file{plural}, {}; nothing was written\n", human(in_bytes as f64));
        print(&text)?;
    }
    Ok(if failing == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILURE) })
}
