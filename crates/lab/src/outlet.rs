//! Where a document goes: text or JSON on standard output, and JSON in a file.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use wattlock_file::Shown;
use wattlock_host::{exit, replace};

/// Where `--json` sends a document.
pub struct Outlet {
    /// Standard output gets JSON, and nothing else.
    json_alone: bool,
    place: Option<PathBuf>,
}

impl Outlet {
    /// For `--json`.
    ///
    /// # Errors
    /// That the file cannot be written.
    pub fn open(json: Option<&Path>) -> anyhow::Result<Self> {
        let json_alone = json == Some(Path::new("-"));
        let file = json.filter(|_| !json_alone);
        let place = file.map(replace::place).transpose()?;
        if let Some((place, name)) = place.as_deref().zip(file) {
            replace::can_write(place).with_context(|| format!("cannot write {}", Shown(name)))?;
        }
        Ok(Self { json_alone, place })
    }

    /// Prints the text or the JSON, and writes the file.
    ///
    /// # Errors
    /// That one of them fails.
    pub fn write(self, text: &str, document: &impl Serialize) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(document)? + "\n";
        exit::print(if self.json_alone { &json } else { text })?;
        if let Some(place) = self.place {
            replace::write(&place, json.as_bytes())
                .with_context(|| format!("cannot write {}", Shown(&place)))?;
        }
        Ok(())
    }
}
