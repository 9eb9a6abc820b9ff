//! Cells of the tables that papers print.

/// The cell of a printed table, in the line that starts with `key`.
pub fn printed(table: &str, key: &str, column: usize) -> Option<f64> {
    let line = table.lines().find(|line| line.strip_prefix(key).is_some())?;
    line.split(',').nth(column)?.parse().ok()
}
