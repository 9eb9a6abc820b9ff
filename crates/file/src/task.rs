//! One file of a run: what is read, what is made, and what it may replace.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::folder::Within;
use crate::input::Input;
use crate::staging::{NewOutput, Planned};

/// One file of a run.
#[derive(Clone, Debug)]
pub struct Task {
    /// The file to read.
    pub input: PathBuf,
    /// The file to make.
    pub output: PathBuf,
    /// Bytes of the input.
    pub len: u64,
    /// What was named of the input's path, and of the output's.
    read_within: Within,
    write_within: Within,
    /// What stood at the output's name before the run began its work.
    planned: OnceLock<Planned>,
}

impl Task {
    /// A task for files that were named outright.
    pub fn new(input: PathBuf, output: PathBuf, len: u64) -> Self {
        let (read_within, write_within) = (Within::default(), Within::default());
        Self { input, output, len, read_within, write_within, planned: OnceLock::new() }
    }

    /// The same; links are followed as far as these say.
    pub(crate) fn within(self, read: Within, write: Within) -> Self {
        Self { read_within: read, write_within: write, ..self }
    }

    /// How far links of the output's path are followed.
    pub(crate) fn write_within(&self) -> &Within {
        &self.write_within
    }

    /// The input, if it is a file of this machine that is named by `input`.
    pub(crate) fn located(&self, input: &Input) -> Input {
        match input {
            Input::Path(path) if *path == self.input => Input::Located(self.read_within.file(path)),
            input => input.clone(),
        }
    }

    /// The output, and what it may replace.
    pub(crate) fn new_output(&self, overwrite: bool) -> NewOutput {
        let planned = self.planned.get().copied().unwrap_or(Planned::NotYet);
        NewOutput { at: self.write_within.file(&self.output), overwrite, planned }
    }

    /// Looks at what stands at the output's name: another output of the run may come there.
    pub(crate) fn look(&self) {
        let there = self.write_within.file(&self.output).look();
        let planned = match there {
            Ok(Some(there)) => Planned::There(there.state),
            Ok(None) => Planned::Absent,
            // Comes out when the output is begun.
            Err(_) => Planned::NotYet,
        };
        let _ = self.planned.set(planned);
    }
}
