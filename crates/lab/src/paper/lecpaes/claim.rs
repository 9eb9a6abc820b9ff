//! Claims of the text, looked at in the printed numbers, in the model's and in those measured here.

use wattlock_report::paper::{Row, Rule, Source};

use super::numbers::Numbers;
use crate::simulation::Experiment;

/// What the numbers say of a claim.
pub struct Found {
    /// In words.
    pub text: String,
    /// Whether they agree with it.
    pub holds: bool,
}

/// A claim of the text about numbers.
pub struct Claim {
    item: &'static str,
    printed: &'static str,
    rule: Rule,
    bound: &'static str,
    check: fn(&Numbers<'_>) -> Found,
    why_exempt: &'static str,
    why_of_model: &'static str,
    note: &'static str,
}

impl Claim {
    /// What is claimed in a few words of ours, how the paper says it, and what finds out.
    pub const fn new(
        rule: Rule,
        item: &'static str,
        printed: &'static str,
        check: fn(&Numbers<'_>) -> Found,
    ) -> Self {
        Self { item, printed, rule, bound: "", check, why_exempt: "", why_of_model: "", note: "" }
    }

    /// With its bound in words.
    pub const fn bound(self, bound: &'static str) -> Self {
        Self { bound, ..self }
    }

    /// Not held to it, for that reason.
    pub const fn exempt(self, why_exempt: &'static str) -> Self {
        Self { why_exempt, ..self }
    }

    /// The model is not held to it, for that reason.
    pub const fn model_exempt(self, why_of_model: &'static str) -> Self {
        Self { why_of_model, ..self }
    }

    /// With what has to be known of it.
    pub const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    /// What these numbers say of it.
    pub fn row(&self, numbers: &Numbers<'_>) -> Row {
        let Found { text, holds } = (self.check)(numbers);
        let row = Row::claim(self.rule, self.item, &text, holds, numbers.source)
            .printed(self.printed)
            .column(numbers.name())
            .bound(self.bound)
            .note(self.note);
        let why = match numbers.source {
            Source::Model if !self.why_of_model.is_empty() => self.why_of_model,
            _ => self.why_exempt,
        };
        if why.is_empty() { row } else { row.exempt(why) }
    }

    /// A row for each of them.
    pub fn rows(&self, numbers: &[&Numbers<'_>]) -> Vec<Row> {
        numbers.iter().map(|numbers| self.row(numbers)).collect()
    }
}

/// A row of each claim for each of the numbers.
pub fn rows_of(claims: &[Claim], numbers: &[&Numbers<'_>]) -> Vec<Row> {
    claims.iter().flat_map(|claim| claim.rows(numbers)).collect()
}

/// At how many of the paper's latencies it holds, and at which it does not; all have to.
pub fn at_each(holds: impl Fn(u64) -> bool) -> Found {
    among(&Experiment::LATENCIES_US, holds)
}

/// The same of some latencies.
pub fn among(latencies_us: &[u64], holds: impl Fn(u64) -> bool) -> Found {
    let not: Vec<String> =
        latencies_us.iter().filter(|us| !holds(**us)).map(|us| format!("{us} µs")).collect();
    let all = latencies_us.len();
    let text = format!("at {} of {all} latencies", all - not.len());
    let text = if not.is_empty() { text } else { format!("{text}; not at {}", not.join(", ")) };
    Found { text, holds: not.is_empty() }
}

/// Whether values by latency never fall, by more than `slack`.
pub fn rises(values: &[f64], slack: f64, digits: usize) -> Found {
    let holds = values.windows(2).all(|pair| pair[1] >= pair[0] - slack);
    Found { text: series(values, digits), holds }
}

/// Whether they never rise, by more than `slack`.
pub fn falls(values: &[f64], slack: f64, digits: usize) -> Found {
    let holds = values.windows(2).all(|pair| pair[1] <= pair[0] + slack);
    Found { text: series(values, digits), holds }
}

/// Whether they never rise by more than a tie: by 2.5 %, less than the numbers themselves are held to.
pub fn falls_but_ties(values: &[f64], digits: usize) -> Found {
    let holds = values.windows(2).all(|pair| pair[1] <= 1.025 * pair[0]);
    Found { text: series(values, digits), holds }
}

/// Values in a line.
pub fn series(values: &[f64], digits: usize) -> String {
    let shown: Vec<String> = values.iter().map(|value| format!("{value:.digits$}")).collect();
    shown.join(", ")
}

/// The two latencies between which the sign of a difference changes for the only time.
pub fn crossover(differences: &[f64; 7]) -> Option<(u64, u64)> {
    let latencies = Experiment::LATENCIES_US;
    let mut changes =
        (1..differences.len()).filter(|&at| (differences[at] > 0.0) != (differences[at - 1] > 0.0));
    let at = changes.next()?;
    changes.next().is_none().then(|| (latencies[at - 1], latencies[at]))
}

/// Whether the sign changes between those two latencies.
pub fn crosses(differences: &[f64; 7], between: (u64, u64)) -> Found {
    let found = crossover(differences);
    let text = found.map_or_else(
        || "no single change".to_owned(),
        |(low, high)| format!("between {low} and {high} µs"),
    );
    let values = series(differences, 1);
    Found { text: format!("{text} ({values})"), holds: found == Some(between) }
}

/// A number that has to be the printed one.
pub fn count(item: &str, printed: f64, ours: f64, unit: &str) -> Row {
    Row::number(item, printed, ours, unit, Source::Exact).near(0.0)
}

/// A claim that is looked at in code or in arithmetic, not in the numbers of the experiment.
pub fn fact(item: &str, printed: &str, ours: &str, holds: bool) -> Row {
    Row::claim(Rule::Value, item, ours, holds, Source::Exact).printed(printed)
}

/// How something is, which no comparison can miss: exempt, with the reason.
pub fn stated(item: &str, printed: &str, ours: &str, why: &str) -> Row {
    fact(item, printed, ours, true).exempt(why)
}

/// The reason of what is said of our program alone.
pub const BUILT: &str = "as it is built here: nothing is compared that could be missed";

/// A statement of the paper that nothing here can be held to.
pub fn told(item: &str, printed: &str, why: &str) -> Row {
    Row::printed_only(Rule::Value, item, Source::Print).printed(printed).exempt(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossover_is_the_only_change_of_sign() {
        let at = |values| crossover(&values);
        assert_eq!(at([1.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0]), Some((100, 500)));
        assert_eq!(at([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -6.0]), Some((2500, 3000)));
        assert_eq!(at([1.0; 7]), None);
        assert_eq!(at([1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), None);
        assert!(!crosses(&[f64::NAN; 7], (100, 500)).holds);
    }

    #[test]
    fn a_claim_says_where_it_fails() {
        let found = at_each(|us| us > 100);
        assert_eq!(
            (found.text.as_str(), found.holds),
            ("at 6 of 7 latencies; not at 100 µs", false)
        );
        assert!(rises(&[1.0, 1.0, 2.0], 0.0, 0).holds && !rises(&[2.0, 1.0], 0.5, 0).holds);
        assert!(falls(&[2.0, 1.0], 0.0, 0).holds && !falls(&[f64::NAN, 1.0], 0.0, 0).holds);
    }
}
