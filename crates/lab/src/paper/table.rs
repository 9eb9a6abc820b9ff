//! The tables of CSV that hold what papers print.

/// A table with a head.
#[derive(Clone, Copy, Debug)]
pub struct Table(pub &'static str);

/// A line of a table, by the names of its columns.
#[derive(Clone, Debug)]
pub struct Line {
    heads: Vec<&'static str>,
    cells: Vec<&'static str>,
}

impl Table {
    /// The lines below the head.
    pub fn lines(self) -> impl Iterator<Item = Line> {
        let mut lines = self.0.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let heads = lines.next().unwrap_or_default();
        lines.map(move |cells| Line { heads: heads.clone(), cells })
    }

    /// The number in that column of the line that starts with `first`.
    pub fn number(self, first: &str, column: &str) -> Option<f64> {
        self.lines().find(|line| line.first() == first)?.number(column)
    }
}

impl Line {
    /// What it starts with.
    pub fn first(&self) -> &'static str {
        self.cells.first().copied().unwrap_or_default()
    }

    /// The cell of a column; empty if there is none.
    pub fn text(&self, column: &str) -> &'static str {
        let at = self.heads.iter().position(|head| *head == column);
        at.and_then(|at| self.cells.get(at)).copied().unwrap_or_default()
    }

    /// The number in a column.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_line_and_column() {
        let table = Table("us,CS,CP\n100,1.5,2\navg,3,\n");
        assert_eq!(table.number("100", "CP"), Some(2.0));
        assert_eq!(table.number("avg", "CS"), Some(3.0));
        assert_eq!((table.number("avg", "CP"), table.number("100", "GP")), (None, None));
        assert_eq!(table.lines().map(|line| line.first()).collect::<Vec<_>>(), ["100", "avg"]);
    }
}
