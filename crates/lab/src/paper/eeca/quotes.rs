//! Numbers of the paper's text, outside its tables.

use crate::paper::table::Table;

const QUOTES: Table = Table(include_str!("../../../papers/eeca_quotes.csv"));

/// The printed number with that name.
pub fn quote(id: &str) -> f64 {
    QUOTES.number(id, "printed").unwrap_or(f64::NAN)
}

/// The printed words with that name.
pub fn words(id: &str) -> &'static str {
    QUOTES.lines().find(|line| line.first() == id).map_or("", |line| line.text("printed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<&str> = QUOTES.lines().map(|line| line.first()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!((quote("abstract-speed-hw"), quote("S5.1-threshold")), (966.23, 8.0));
    }
}
