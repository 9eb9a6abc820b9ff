//! Programs that are run to their end.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Runs a command that shows what it does.
///
/// # Errors
/// That it cannot be run, or has failed.
pub fn ran(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// Runs a command, and returns what it says.
///
/// # Errors
/// As [`ran`], with what it said.
pub fn said(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {command:?}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        let said = text(&output.stdout) + &text(&output.stderr);
        bail!("{command:?} ended with {}:\n{}", output.status, said.trim_end());
    }
    Ok(text(&output.stdout))
}
