//! `wattlock-lab bench ciphers --paper energy`: six ciphers, serial and parallel, at the default clock
//! and a lower one, compared with the study's Tables 2 and 3.

use std::fmt::Write;

use wattlock_energy::{Class, Energy, Figure};
use wattlock_report::columns::Columns;
use wattlock_report::results::{Results, Row};

const PRINTED: &str = include_str!("../../papers/energy_study_tables2_3.csv");
const QUOTED: &str = include_str!("../../papers/energy_study_quotes.csv");

/// Serial and parallel ciphers, as the study names them.
const PAIRS: [(&str, &str); 3] = [("Blowfish", "PBlock"), ("RC4", "PARC4"), ("RC4A", "PARC4-I")];

/// Compares our results with the study's tables, and ranks the ciphers by energy.
pub fn text(results: &Results) -> String {
    let clocks = clocks(results);
    let mut text = table(results, &clocks);
    text += &match weakest(results) {
        Class::Unavailable | Class::Modelled => bands(results, &clocks),
        _ => ranking(results, &clocks),
    };
    text += &pairs(results, &clocks);
    text += &deadline(results, &clocks);
    text + "\n\
What differs: the study ran on 2 and 8 cores under Windows, and does not say its block sizes or \
how it counted time; its joules are a model's (Joulemeter), and on p2 the product of its columns is \
0.3 to 9 W for a CPU of 125 W. Its text claims 1.5 and 2.5 for PBlock where its table gives 1.76 \
and 2.875, and savings of 58, 63 and 54 % at a lowered clock whose joules it shows in figures only; \
at the default clock its own tables have every parallel cipher take more joules than its serial one. \
PARC4's key stream is serial by construction, so only the XOR is shared out: it pays for a pass over \
memory that RC4 does not need, and cannot gain what the study prints, unless one block of key stream \
is reused for all of the data, which is no encryption. PARC4-I is our reconstruction (parc4i-r1), as \
its inner order was not published.\n"
}

/// The clocks in the order in which they were measured; `None` is the default alone.
fn clocks(results: &Results) -> Vec<Option<String>> {
    let mut clocks = Vec::new();
    for row in &results.rows {
        if !clocks.contains(&row.clocks) {
            clocks.push(row.clocks.clone());
        }
    }
    if clocks.is_empty() {
        clocks.push(None);
    }
    clocks
}

/// Our row of a cipher: of a parallel one, that with the most threads.
fn row<'a>(results: &'a Results, cipher: &str, clock: &Option<String>) -> Option<&'a Row> {
    let case = match cipher {
        "Blowfish" => "blowfish-ecb".to_owned(),
        other => other.to_lowercase(),
    };
    let ours = |row: &&Row| row.case == case && row.tool == "wattlock" && row.clocks == *clock;
    results.rows.iter().rfind(ours)
}

fn ciphers() -> impl Iterator<Item = &'static str> {
    PAIRS.into_iter().flat_map(|(serial, parallel)| [serial, parallel])
}

fn printed(cipher: &str, column: usize) -> Option<f64> {
    let line = PRINTED.lines().find(|line| line.split(',').next() == Some(cipher))?;
    line.split(',').nth(column)?.parse().ok()
}

fn quoted(key: &str) -> Option<f64> {
    QUOTED.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(',')?.parse().ok())
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn per_byte(row: &Row) -> Option<Figure> {
    row.joules.per_byte("µJ/B", 1e6)
}

fn table(results: &Results, clocks: &[Option<String>]) -> String {
    let mut text = String::from(
        "\nThe study of serial and parallel ciphers, Tables 2 and 3 (p1: Core 2 Duo 1.4 GHz, p2: \
         FX-8320 3.5 GHz; their µJ/B are Joulemeter's model)\n",
    );
    let mut table = Columns::new("<>>>><>>><");
    table.row([
        "paper:",
        "p1 MB/s",
        "p1 µJ/B",
        "p2 MB/s",
        "p2 µJ/B",
        "measured:",
        "MB/s",
        "threads",
        "CPU s/GB",
        "µJ/B",
    ]);
    for cipher in ciphers() {
        let of = |column, digits| number(printed(cipher, column), digits);
        let mut first = [cipher.to_owned(), of(2, 2), of(1, 4), of(4, 2), of(3, 4)];
        for clock in clocks {
            let ours = row(results, cipher, clock);
            let threads = ours.and_then(|row| row.threads);
            let ours = [
                clock.as_deref().unwrap_or("default").to_owned(),
                number(ours.map(|row| 1000.0 * row.rate()), 1),
                threads.map_or_else(|| "-".into(), |n| n.to_string()),
                number(ours.and_then(|row| row.joules.cpu_s_per_gb), 3),
                ours.map_or_else(|| "-".into(), energy),
            ];
            table.row(std::mem::take(&mut first).into_iter().chain(ours));
        }
    }
    text += &table.to_string();
    if let (Some(rate), Some(power)) =
        (quoted("fig4_pblock_calibrated_MBps"), quoted("fig4_pblock_calibrated_J_per_s"))
    {
        let _ = writeln!(
            text,
            "at its lowered clock the study gives PBlock on p1 only: {rate:.2} MB/s and {power:.2} \
             J/s, which is {:.2} µJ/B",
            power / rate
        );
    }
    text
}

fn energy(row: &Row) -> String {
    match (per_byte(row), &row.joules.energy) {
        (Some(figure), _) if figure.class() == Class::Measured => format!("{figure}  measured"),
        (Some(figure), _) => figure.to_string(),
        (None, Some(energy)) => energy.to_string(),
        (None, None) => "-".into(),
    }
}

/// The weakest class of ours.
fn weakest(results: &Results) -> Class {
    let energies = results.rows.iter().map(|row| row.joules.energy.as_ref());
    energies
        .map(|energy| energy.map_or(Class::Unavailable, Energy::class))
        .min()
        .unwrap_or(Class::Unavailable)
}

/// Hatched from the least to the most that the models allow, and in no order.
fn bands(results: &Results, clocks: &[Option<String>]) -> String {
    let rows = ciphers().flat_map(|cipher| {
        clocks.iter().filter_map(move |clock| Some((cipher, clock, row(results, cipher, clock)?)))
    });
    let rows: Vec<_> = rows
        .filter_map(|(cipher, clock, row)| Some((cipher, clock, per_byte(row)?.interval())))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\nµJ/B, MODEL, NOT MEASURED: hatched from the least to the most that the models allow\n",
    );
    let decade = |value: f64| value.max(1e-9).log10();
    let least = rows.iter().map(|(.., (lo, _))| decade(*lo)).fold(f64::INFINITY, f64::min).floor();
    let most = rows.iter().map(|(.., (_, hi))| decade(*hi)).fold(least + 1.0, f64::max).ceil();
    let column = |value: f64| ((decade(value) - least) / (most - least) * WIDTH as f64) as usize;
    let mut scale = format!("{:<20}", "");
    for exponent in least as i32..=most as i32 {
        let at = 20 + column(10f64.powi(exponent));
        scale = format!("{scale:<at$}|{}", 10f64.powi(exponent));
    }
    text += &format!("{scale}\n");
    for (cipher, clock, (lo, hi)) in rows {
        let clock = clock.as_deref().unwrap_or("default");
        let (from, to) = (column(lo), column(hi).min(WIDTH));
        let hatched = "/".repeat((to - from).max(1));
        text += &format!("{cipher:<10}{clock:<10}{:from$}{hatched}\n", "");
    }
    text + "no order is given: a model that knows only how long CPUs were busy is time times a \
            constant, and cannot rank ciphers\n"
}

const WIDTH: usize = 60;

/// By joules, where all of them were measured alike.
fn ranking(results: &Results, clocks: &[Option<String>]) -> String {
    let rows = ciphers().flat_map(|cipher| {
        clocks.iter().filter_map(move |clock| Some((cipher, clock, row(results, cipher, clock)?)))
    });
    let rows: Vec<_> = rows.collect();
    let alike = |row: &Row| {
        row.joules
            .energy
            .as_ref()
            .map(|energy| (energy.class(), energy.covers().map(str::to_owned).collect::<Vec<_>>()))
    };
    let mut kinds: Vec<_> = rows.iter().map(|(.., row)| alike(row)).collect();
    kinds.dedup();
    if kinds.len() > 1 {
        return "\nno order is given: the joules are not of one class and of the same domains\n"
            .into();
    }
    let mut figures: Vec<_> = rows
        .iter()
        .filter_map(|(cipher, clock, row)| {
            let figure = per_byte(row)?;
            Some((figure.best()?, *cipher, clock.as_deref().unwrap_or("default"), figure))
        })
        .collect();
    figures.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut text = String::from(
        "\nµJ/B, the least first; neighbours with overlapping intervals are not distinguished\n",
    );
    let most = figures.last().map_or(1.0, |(best, ..)| *best);
    let mut table = Columns::new("<");
    for (best, cipher, clock, figure) in figures {
        let bar = "█".repeat((best / most * WIDTH as f64).round() as usize);
        table.row([cipher.to_owned(), clock.to_owned(), figure.to_string(), bar]);
    }
    text += &table.to_string();
    text
}

/// What being parallel gains in time and takes in joules.
fn pairs(results: &Results, clocks: &[Option<String>]) -> String {
    let mut table = Columns::new("<>>>><");
    table.row(["parallel / serial", "p1 MB/s", "p1 µJ/B", "p2 MB/s", "p2 µJ/B", "measured"]);
    for (serial, parallel) in PAIRS {
        let of = |column| {
            number(printed(parallel, column).zip(printed(serial, column)).map(|(a, b)| a / b), 2)
        };
        let mut first = [parallel.to_owned(), of(2), of(1), of(4), of(3)];
        for clock in clocks {
            let both = row(results, parallel, clock).zip(row(results, serial, clock));
            let rate = number(both.map(|(many, one)| many.rate() / one.rate()), 2);
            let joules = both.and_then(|(many, one)| {
                let (many, one) = (per_byte(many)?, per_byte(one)?);
                let same = many.class() == one.class();
                Some(many.best().zip(one.best().filter(|_| same)).map(|(many, one)| many / one))
            });
            let joules = match joules.flatten() {
                Some(ratio) => format!("{ratio:.2} in µJ/B"),
                None => "no ratio of modelled joules".into(),
            };
            let clock = clock.as_deref().unwrap_or("default").to_owned();
            let first = std::mem::take(&mut first).into_iter();
            table.row(first.chain([clock, format!("{rate} in MB/s, {joules}")]));
        }
    }
    format!("\n{table}")
}

/// Racing to idle against taking one's time: what a byte costs if all clocks are given the time of
/// the slowest, E(T) = P(f) t(f) + P_idle (T - t(f)).
fn deadline(results: &Results, clocks: &[Option<String>]) -> String {
    let mut table = Columns::new("<");
    if clocks.len() < 2 {
        return String::new();
    }
    for cipher in ciphers() {
        let costs: Option<Vec<_>> = clocks
            .iter()
            .map(|clock| {
                let row = row(results, cipher, clock)?;
                let bytes = row.joules.energy_bytes.filter(|bytes| *bytes > 0)? as f64;
                let best =
                    |energy: &Option<Energy>| Some(energy.as_ref()?.best()?.joules() / bytes);
                let seconds = 1e-9 / row.rate();
                let gross = best(&row.joules.energy)?;
                Some((clock, seconds, gross, (gross - best(&row.joules.net)?) / seconds))
            })
            .collect();
        let Some(costs) = costs else { continue };
        let slowest = costs.iter().map(|(_, seconds, ..)| *seconds).fold(0.0, f64::max);
        let costs = costs.iter().map(|(clock, seconds, gross, idle)| {
            let joules = gross + idle * (slowest - seconds);
            format!("{} {:.4} µJ/B", clock.as_deref().unwrap_or("default"), 1e6 * joules)
        });
        table.row([cipher.to_owned(), costs.collect::<Vec<_>>().join(", ")]);
    }
    if table.is_empty() {
        return String::new();
    }
    format!("\nIn the time of the slowest clock, idle for the rest (attributed):\n{table}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_tables_are_read() {
        let text = text(&Results::new("energy"));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("PARC4-I 51.72 0.3454 131.28 0.0678"), "{text}");
        assert!(text.contains("1.18 MB/s and 7.11 J/s, which is 6.03 µJ/B"), "{text}");
        assert!(text.contains("PBlock 1.76 1.03 2.87 1.84"), "{text}");
    }
}
