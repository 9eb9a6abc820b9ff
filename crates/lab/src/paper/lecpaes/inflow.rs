//! Section 3.3 of the paper: the sliding window, Eq. 2 to 6, and its examples.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::claim::{count, fact, told};
use super::ring::Ring;

/// Section 3.3, Figure 4, and Equations 2 to 6.
pub fn sections() -> Vec<Section> {
    vec![
        Section::new("Section 3.3", "the sliding window", text()),
        Section::new("Figure 4", "head and tail", figure_4()),
        Section::new(
            "Equations 2 to 6",
            "the window of the examples: 20 to 29, head 23, tail 26",
            equations(),
        ),
    ]
}

fn text() -> Vec<Row> {
    vec![
        told(
            "the server's profile gives the window's size",
            "can be set by the profile",
            "the size that the experiments had is not printed; 8 MiB fit (see the model)",
        ),
        burst(),
    ]
}

/// Head and tail of a ring through a thousand messages, against counters that never wrap.
fn burst() -> Row {
    let mut ring = Ring::new(20, 10);
    let (mut came, mut went) = (0, 0);
    let mut agree = true;
    for step in 0..1000_u64 {
        let len = 1 + step % 7;
        if came - went + len < ring.size && ring.put(len) {
            came += len;
        } else if ring.take(1 + step % 3) {
            went += 1 + step % 3;
        }
        agree &= (ring.tail, ring.head) == (20 + came % 10, 20 + went % 10);
        agree &= ring.buffered() == came - went && ring.available() == 10 - (came - went);
    }
    let ours = format!("{} turns of the window, as the bytes that came and went say", came / 10);
    fact("head and tail move in a cycle", "will change cyclically", &ours, agree && came > 100)
}

fn figure_4() -> Vec<Row> {
    let ring = Ring::PAPER;
    let (first, behind) = (ring.head, ring.tail);
    let ours = format!("head {first}, tail {behind}: {} bytes from 23 to 25", ring.buffered());
    vec![fact(
        "head is the first buffered byte, tail the next behind the last",
        "head … start byte, tail … next byte to the end",
        &ours,
        ring.buffered() == 3,
    )]
}

fn equations() -> Vec<Row> {
    let ring = Ring::PAPER;
    let mut rows = vec![
        fact(
            "Eq. 2: bs of the example",
            "bs = tail - head, head 23, tail 26",
            &format!("{} bytes", ring.buffered()),
            ring.buffered() == 26 - 23,
        ),
        full(),
        fact(
            "Eq. 3: as of the example",
            "as = size - bs, size 10",
            &format!("{} bytes", ring.available()),
            ring.available() == 10 - ring.buffered(),
        ),
        fact(
            "Eq. 4: 6 bytes flow in",
            "true",
            if ring.fits(6) { "true" } else { "false" },
            ring.fits(6),
        ),
    ];
    let (end, last) = (ring.tail + 6, ring.parts(6).and_then(|parts| Some(*parts.last()?.end())));
    rows.push(count("6 bytes: tail + len, beyond win + size", 32.0, end as f64, ""));
    rows.push(count("6 bytes: win + size", 30.0, (ring.base + ring.size) as f64, ""));
    let last = last.map_or(f64::NAN, |last| last as f64);
    rows.push(count("6 bytes: tail + len - size - 1", 21.0, last, ""));
    for (len, printed, tail) in
        [(6, "[26, 29] [20, 21]", 22.0), (3, "[26, 28]", 29.0), (4, "[26, 29]", 20.0)]
    {
        let ours = parts(&ring, len);
        rows.push(fact(&format!("Eq. 5: {len} bytes lie in"), printed, &ours, ours == printed));
        let mut after = ring;
        after.put(len);
        rows.push(count(&format!("Eq. 6: tail behind {len} bytes"), tail, after.tail as f64, ""));
    }
    rows
}

fn parts(ring: &Ring, len: u64) -> String {
    let parts = ring.parts(len).unwrap_or_default();
    let shown: Vec<String> =
        parts.iter().map(|part| format!("[{}, {}]", part.start(), part.end())).collect();
    shown.join(" ")
}

/// What Eq. 2 says of a window that Eq. 4 let fill.
fn full() -> Row {
    let mut ring = Ring::PAPER;
    let fits = ring.put(7);
    let ours = format!(
        "7 bytes fit into 7 ({fits}), tail becomes {}, head is {}, and bs {} of 10",
        ring.tail,
        ring.head,
        ring.buffered()
    );
    Row::claim(Rule::Value, "Eq. 2 of all windows that Eq. 4 allows", &ours, false, Source::Exact)
        .printed("bs = tail - head if tail ≥ head")
        .exempt("false in print: a full window looks empty; ours leaves one byte free")
}
