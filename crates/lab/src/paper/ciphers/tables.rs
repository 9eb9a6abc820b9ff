//! Tables 2 and 3: the printed cells, this machine's beside them.

use wattlock_report::paper::{Row, Section, Source};

use super::model::{by_constant_power, range};
use super::printed::Cipher::{Blowfish, Rc4, Rc4a};
use super::printed::{Cipher, Platform};
use super::rows::{A_METER, Live, counted, rate};
use crate::paper::claims::told;
use crate::paper::live::NOT_MEASURED;

/// Both tables.
pub fn sections(live: Live<'_>) -> Vec<Section> {
    let mut block = cells(live, &Cipher::BLOCK);
    block.push(raw_values(&Cipher::BLOCK));
    let mut stream = cells(live, &Cipher::STREAM);
    stream.push(raw_values(&Cipher::STREAM));
    stream.extend(follow());
    vec![
        Section::new("Table 2", "Blowfish and PBlock at the default clock, here beside it", block),
        Section::new(
            "Table 3",
            "RC4, PARC4, RC4A, PARC4-I at the default clock, here beside it",
            stream,
        ),
    ]
}

/// The seconds and joules that the cells are made of, if the message is as long as is inferred.
fn raw_values(ciphers: &[Cipher]) -> Row {
    let of = |platform: Platform| {
        let each = ciphers.iter().map(|cipher| {
            let megabytes = platform.megabytes(*cipher);
            let seconds = megabytes / platform.rate(*cipher);
            format!("{cipher} {seconds:.3} s, {:.1} J", megabytes * platform.joules(*cipher))
        });
        let each: Vec<String> = each.collect();
        let megabytes = platform.megabytes(ciphers[0]);
        format!("{megabytes} MB on {}: {}", platform.name(), each.join("; "))
    };
    let why = format!(
        "inferred, as most seconds come back round: {}. {}",
        of(Platform::One),
        of(Platform::Two)
    );
    told("seconds and joules that the cells are made of", "not said", &why)
}

fn cells(live: Live<'_>, ciphers: &[Cipher]) -> Vec<Row> {
    let rows = ciphers.iter().flat_map(|cipher| {
        Platform::ALL
            .into_iter()
            .flat_map(|platform| [joules(live, platform, *cipher), speed(live, platform, *cipher)])
    });
    rows.collect()
}

fn speed(live: Live<'_>, platform: Platform, cipher: Cipher) -> Row {
    let ours = live.row(cipher).map(rate);
    let printed = platform.rate(cipher);
    let row = Row::number(cipher.name(), printed, ours.unwrap_or(f64::NAN), "MB/s", Source::Live)
        .column(&format!("{}, MB/s", platform.name()));
    if ours.is_some() { row.exempt("another machine") } else { row.not_here(NOT_MEASURED) }
}

fn joules(live: Live<'_>, platform: Platform, cipher: Cipher) -> Row {
    let row = live.row(cipher);
    let ours = row.and_then(counted).and_then(|figure| figure.best());
    let printed = platform.joules(cipher);
    let cell = Row::number(cipher.name(), printed, ours.unwrap_or(f64::NAN), "µJ/B", Source::Live)
        .column(&format!("{}, µJ/B", platform.name()));
    match (row, ours) {
        (_, Some(_)) => cell.exempt("another machine, and another meter"),
        (Some(_), None) => cell.not_here(A_METER),
        (None, None) => cell.not_here(NOT_MEASURED),
    }
}

/// What follows from the cells alone.
fn follow() -> Vec<Row> {
    let mut rows = Vec::new();
    for (one, other) in [(Rc4a, Rc4), (Blowfish, Rc4), (Blowfish, Rc4a)] {
        rows.extend(Platform::ALL.map(|platform| by_time(platform, one, other)));
    }
    let [one, two] = Platform::ALL.map(|platform| platform.watts(Blowfish) / platform.watts(Rc4));
    let watts =
        Platform::ALL.map(|platform| range(Cipher::ALL.map(|cipher| platform.watts(cipher))));
    let fails = Platform::ALL.map(|platform| {
        let (low, high) = range(by_constant_power(platform, &Cipher::ALL));
        format!("{:+.0} to {:+.0} %", 100.0 * low, 100.0 * high)
    });
    rows.extend([
        told(
            "watts, µJ/B times MB/s",
            "not said",
            &format!(
                "{:.1} to {:.1} W on platform 1, {:.2} to {:.1} W on platform 2, whose CPU is of 125 W",
                watts[0].0, watts[0].1, watts[1].0, watts[1].1
            ),
        ),
        told(
            "Blowfish's watts over RC4's",
            "not said",
            &format!(
                "{one:.2} on platform 1 and {two:.2} on platform 2: no model with one constant for each cipher fits both"
            ),
        ),
        told(
            "one power for serial and one for parallel ciphers gives the joules",
            "not said",
            &format!(
                "it does not: off by {} on platform 1 and {} on platform 2",
                fails[0], fails[1]
            ),
        ),
    ]);
    rows
}

/// The joules of two serial ciphers, if one power were common to both.
fn by_time(platform: Platform, one: Cipher, other: Cipher) -> Row {
    let from_cells = platform.joules(one) / platform.joules(other);
    let by_time = platform.rate(other) / platform.rate(one);
    let item = format!("joules of {one} over {other}, from the cells, beside the time");
    Row::number(&item, from_cells, by_time, "ratio", Source::Model)
        .column(platform.name())
        .exempt("no claim of the paper: one power for all serial ciphers, which fails for Blowfish")
}
