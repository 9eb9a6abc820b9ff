//! Numbers that the paper's text quotes from Figures 8 and 9.

use wattlock_report::paper::{Amount, Row, Rule, Source};

use super::numbers::{Numbers, Unit};
use super::printed::{CENT, MORE_THAN_ARRIVES, TABLE_4, TRANSPOSED, difference, kind, quote, text};
use crate::simulation::Algorithm;
use Algorithm::{Cp, Gp, Lecpaes};

/// A number of the text against print and the model: within half of its last digit, and within a
/// share.
pub fn quoted(
    numbers: &[&Numbers<'_>],
    item: &str,
    printed: f64,
    of: impl Fn(&Numbers<'_>) -> f64,
    (digit, share, unit): (f64, f64, &str),
) -> Vec<Row> {
    let row = |numbers: &&Numbers<'_>| {
        let row =
            Row::number(item, printed, of(numbers), unit, numbers.source).column(numbers.name());
        if numbers.source == Source::Print { row.near(digit) } else { row.within(share) }
    };
    numbers.iter().map(row).collect()
}

/// A number of the text: against what the paper's tables give without it, and against the model.
pub fn at(numbers: &[&Numbers<'_>], who: Algorithm, us: u64, unit: Unit) -> Vec<Row> {
    let Some(printed) = quote(kind(unit), who, &us.to_string()) else { return Vec::new() };
    let item = format!("{who} at {us} µs");
    let share = match (who, unit) {
        (_, Unit::Joules) => 0.05,
        (Cp, _) => 0.10,
        _ => 0.03,
    };
    let row = |numbers: &&Numbers<'_>| {
        let row = if numbers.source == Source::Print {
            in_print(&item, printed, (who, us, unit))
        } else {
            let ours = numbers.of(who, us, unit);
            Row::number(&item, printed, ours, unit.name(), numbers.source).within(share)
        };
        let row = row.column(numbers.name());
        match (who, us, unit) {
            (Cp, 100, Unit::Joules) => row.exempt(TRANSPOSED),
            (Gp, 3000, Unit::Mib) if row.source != Source::Print => row.exempt(MORE_THAN_ARRIVES),
            _ => row,
        }
    };
    numbers.iter().map(row).collect()
}

fn in_print(item: &str, printed: f64, (who, us, unit): (Algorithm, u64, Unit)) -> Row {
    match implied(who, us, unit) {
        Some(Implied { value, limit, from }) => {
            Row::number(item, printed, value, unit.name(), Source::Print).note(from).near(limit)
        }
        None => base(item, printed, unit),
    }
}

/// A number of the text that nothing else in print gives.
pub fn base(item: &str, printed: f64, unit: Unit) -> Row {
    Row {
        printed: Some(Amount::Number(printed)),
        unit: unit.name().to_owned(),
        ..Row::printed_only(Rule::Value, item, Source::Print)
    }
    .exempt("nothing else in print gives it: those of CS, CP and GP are compared with it")
}

/// What the paper's tables give for a number of the text.
struct Implied {
    value: f64,
    /// How far rounding lets it be off.
    limit: f64,
    from: &'static str,
}

fn implied(who: Algorithm, us: u64, unit: Unit) -> Option<Implied> {
    let line = us.to_string();
    let less = |other| difference(other, unit, &line);
    // The joules of another: LECPAES' difference to it over what LECPAES saves of it.
    let over = |other, saving: &str| {
        let saved = TABLE_4.number(&line, saving)?;
        let limit = 0.0051 + 5e-6 * less(other).abs() / (saved * saved);
        Some((-less(other) / saved, (1e4 * limit).ceil() / 1e4))
    };
    match (unit, who, us) {
        (Unit::Joules, Lecpaes, 3000) => {
            let (gp, limit) = over(Gp, "L2G")?;
            Some(Implied { value: gp + less(Gp), limit, from: "from Tables 4 and 6" })
        }
        (Unit::Joules, Lecpaes, _) => {
            let (cp, limit) = over(Cp, "L2CP")?;
            Some(Implied { value: cp + less(Cp), limit, from: "from Tables 4 and 7" })
        }
        (Unit::Joules, Gp, 1500) => {
            let (value, limit) = over(Gp, "L2G")?;
            Some(Implied { value, limit, from: "from Tables 4 and 6" })
        }
        (Unit::Joules, Cp, 1500) => {
            let (value, limit) = over(Cp, "L2CP")?;
            Some(Implied { value, limit, from: "from Tables 4 and 7" })
        }
        (_, Lecpaes, _) => None,
        _ => {
            let value = text(Lecpaes, us, unit) - less(who);
            Some(Implied { value, limit: CENT, from: "from LECPAES' of the text and Table 6 or 7" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_text_follow_from_tables_without_them() {
        let off = |who, us, unit| {
            let Implied { value, limit, .. } = implied(who, us, unit).unwrap();
            (value - text(who, us, unit)).abs() / limit
        };
        for (who, us) in [
            (Cp, 1500),
            (Cp, 3000),
            (Gp, 100),
            (Gp, 500),
            (Gp, 1500),
            (Gp, 3000),
            (Lecpaes, 100),
            (Lecpaes, 500),
            (Lecpaes, 3000),
        ] {
            assert!(off(who, us, Unit::Joules) <= 1.0, "{who} at {us} µs");
        }
        assert!(off(Cp, 100, Unit::Joules) > 100.0, "its digits are transposed");
        for (who, us) in [(Gp, 100), (Gp, 3000), (Cp, 100), (Cp, 3000)] {
            assert!(off(who, us, Unit::Mib) <= 1.0, "{who} at {us} µs");
        }
        assert!(implied(Lecpaes, 100, Unit::Mib).is_none());
    }
}
