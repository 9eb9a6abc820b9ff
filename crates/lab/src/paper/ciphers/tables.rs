//! Tables 2 and 3: the printed cells, this machine's beside them.

use wattlock_report::paper::{Row, Section, Source};

use super::model::{by_constant_power, range};
use super::printed::Cipher::{Blowfish, PBlock, Rc4, Rc4a};
use super::printed::{Cipher, Platform};
use super::rows::{A_METER, Live, counted, rate, told};
use crate::paper::live::NOT_MEASURED;

/// Both tables.
pub fn sections(live: Live<'_>) -> Vec<Section> {
    let mut block = cells(live, &Cipher::BLOCK);
    block.push(told("raw values come back round", "not said", "inferred: 32 MB on platform 1 (29 s, 391 J; 16.5 s, 401 J), 128 MB on platform 2 (69 s, 19.8 J; 24 s, 36.5 J)"));
    let mut stream = cells(live, &Cipher::STREAM);
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
        .column(platform.name());
    if ours.is_some() { row.exempt("another machine") } else { row.not_here(NOT_MEASURED) }
}

fn joules(live: Live<'_>, platform: Platform, cipher: Cipher) -> Row {
    let row = live.row(cipher);
    let ours = row.and_then(counted).and_then(|figure| figure.best());
    let printed = platform.joules(cipher);
    let cell = Row::number(cipher.name(), printed, ours.unwrap_or(f64::NAN), "µJ/B", Source::Live)
        .column(platform.name());
    match (row, ours) {
        (_, Some(_)) => cell.exempt("another machine, and another meter"),
        (Some(_), None) => cell.not_here(A_METER),
        (None, None) => cell.not_here(NOT_MEASURED),
    }
}

/// What follows from the cells alone.
fn follow() -> Vec<Row> {
    let mut rows = Vec::new();
    for platform in Platform::ALL {
        let printed = platform.joules(Rc4a) / platform.joules(Rc4);
        let by_time = platform.rate(Rc4) / platform.rate(Rc4a);
        let row = Row::number(
            "joules of RC4A over RC4, by time",
            printed,
            by_time,
            "ratio",
            Source::Print,
        );
        rows.push(row.column(platform.name()).within(0.10));
    }
    let [one, two] = Platform::ALL.map(|platform| platform.watts(Blowfish) / platform.watts(Rc4));
    let watts =
        Platform::ALL.map(|platform| range(Cipher::ALL.map(|cipher| platform.watts(cipher))));
    let fails = Platform::ALL.map(|platform| {
        let (low, high) = range(by_constant_power(platform, &Cipher::ALL));
        format!("{:+.0} to {:+.0} %", 100.0 * low, 100.0 * high)
    });
    rows.extend([
        told("raw values come back round", "not said", "inferred: 512 MB on both platforms: 20.7 s and 144.9 J for RC4 on platform 1, 16 s and 18.9 J on platform 2"),
        told("watts, µJ/B times MB/s", "not said", &format!("{:.1} to {:.1} W on platform 1, {:.2} to {:.1} W on platform 2, whose CPU is of 125 W", watts[0].0, watts[0].1, watts[1].0, watts[1].1)),
        told("Blowfish's watts over RC4's", "not said", &format!("{one:.2} on platform 1 and {two:.2} on platform 2: no model with one constant for each cipher fits both")),
        told("one power for serial and one for parallel ciphers gives the joules", "not said", &format!("it does not: off by {} on platform 1 and {} on platform 2", fails[0], fails[1])),
        told("PBlock is faster than Blowfish by", "in the text", &format!("{:.2} on platform 1, {:.3} on platform 2: under Section IV", Platform::One.rate(PBlock) / Platform::One.rate(Blowfish), Platform::Two.rate(PBlock) / Platform::Two.rate(Blowfish))),
    ]);
    rows
}
