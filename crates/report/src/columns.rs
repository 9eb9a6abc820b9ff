//! Tables of text: columns as wide as their widest cell, two spaces between them.

use std::fmt;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// A table of text; a head is its first row.
pub struct Columns {
    align: &'static str,
    indent: &'static str,
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// An empty table. Each `<` aligns a column to the left and each `>` to the right; the last
    /// stands for all columns behind it.
    pub fn new(align: &'static str) -> Self {
        Self { align, indent: "", rows: Vec::new() }
    }

    /// The same, two spaces from the left.
    #[must_use]
    pub fn indented(self) -> Self {
        Self { indent: "  ", ..self }
    }

    /// Adds a row, which may have fewer cells than others but has one; an empty one is an empty line.
    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(NOTHING);
        table.add_rows(&self.rows);
        let mut align = self.align.chars();
        let mut last = CellAlignment::Left;
        for column in table.column_iter_mut() {
            last = match align.next() {
                Some('>') => CellAlignment::Right,
                Some(_) => CellAlignment::Left,
                None => last,
            };
            column.set_padding((0, 2)).set_cell_alignment(last);
        }
        for line in table.lines() {
            writeln!(f, "{}", format!("{}{line}", self.indent).trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Columns::new("<>").indented();
        assert!(table.is_empty());
        table.row(["name", "µs", "of all"]);
        table.row(["a", "10.5", "1 %"]);
        table.row([String::new()]);
        table.row(["longer name"]);
        assert_eq!(
            table.to_string(),
            "  name           µs  of all\n  a            10.5     1 %\n\n  longer name\n"
        );
    }
}
