//! The name of the program that runs.

use std::sync::OnceLock;

static NAME: OnceLock<&str> = OnceLock::new();

/// Sets the name that messages begin with; call it first in `main`.
pub fn set_name(name: &'static str) {
    let _ = NAME.set(name);
}

/// Returns the name of the program.
pub fn name() -> &'static str {
    NAME.get().copied().unwrap_or("wattlock")
}
