//! What is drawn of each kind of document: a reader of 700 rows wants some forty groups.

use crate::amounts::{bytes, three};
use crate::blocks;
use crate::document::{Document, Row, is_registers};
use crate::energy;
use crate::figure::{self, Figure, Pick, Scales};
use crate::simulated;

/// The figures of a document, rates and times first, then joules.
pub fn figures(document: &Document) -> Vec<Figure> {
    if let Some(simulation) = &document.simulation {
        return simulated::figures(simulation);
    }
    if let Some(paper) = &document.paper {
        return paper.figures().into_iter().chain(of_rows(document)).collect();
    }
    of_rows(document)
}

/// Of what was measured.
fn of_rows(document: &Document) -> Vec<Figure> {
    match document.kind.as_str() {
        "ciphers" => ciphers(document),
        "blocks" => with_energy(blocks::figures(document), &by_case(document)),
        "files" => files(document),
        "measure" => measure(document),
        "stream" => stream(document),
        _ => generic(document),
    }
}

fn ciphers(document: &Document) -> Vec<Figure> {
    let all = by_case(document);
    let (one, other): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|pick| pick.rows.iter().any(|row| is_one_call(row)));
    let one: Vec<Pick<'_>> = one.into_iter().map(at_16_kib).collect();
    let mut other = other;
    for pick in &mut other {
        let largest = pick.rows.iter().filter_map(|row| row.call_bytes).max();
        pick.rows.retain(|row| row.call_bytes == largest);
        pick.name += &largest.map_or_else(String::new, |size| format!(", {}", bytes(size)));
    }
    let mut figures = Vec::new();
    if !one.is_empty() {
        figures.push(figure::rates(
            "Rates of one core, 16 KiB a call",
            ONE_CORE,
            Scales::Each,
            &one,
        ));
    }
    if !other.is_empty() {
        figures.push(figure::rates("Rates of long messages", LONG, Scales::Each, &other));
    }
    with_energy(figures, &one.into_iter().chain(other).collect::<Vec<_>>())
}

/// The fastest of our kernels, the peers, the bound of that kernel, and memory.
fn at_16_kib(mut pick: Pick<'_>) -> Pick<'_> {
    pick.rows.retain(|row| is_one_call(row));
    let fastest = fastest(pick.rows.iter().copied().filter(|row| row.ours));
    let peer = fastest_peer(&pick.rows);
    pick.rows.retain(|row| match row.tool.as_str() {
        _ if row.ours => fastest.is_some_and(|fastest| fastest.kernel == row.kernel),
        tool if is_registers(tool) => fastest.is_some_and(|fastest| fastest.kernel == row.kernel),
        _ => true,
    });
    pick.rows.sort_by_key(|row| figure::look(row));
    if let Some((ours, theirs)) = fastest.zip(peer) {
        let times = ours.rate().unwrap_or(0.0) / theirs.rate().unwrap_or(f64::INFINITY);
        let slower = if times < 1.0 { ": SLOWER" } else { "" };
        pick.verdict = format!("{} × the fastest peer, {}{slower}", three(times), theirs.tool);
    }
    pick
}

fn is_one_call(row: &Row) -> bool {
    row.call_bytes == Some(16 << 10) && row.threads.unwrap_or(1) == 1
}

fn fastest<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    let rate = |row: &Row| row.rate().unwrap_or(0.0);
    rows.filter(|row| row.rate().is_some()).max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

fn fastest_peer<'a>(rows: &[&'a Row]) -> Option<&'a Row> {
    fastest(rows.iter().copied().filter(|row| !row.ours && !row.is_bound()))
}

fn files(document: &Document) -> Vec<Figure> {
    let (mut whole, mut many) = (Vec::new(), Vec::new());
    let mut start = Vec::new();
    for mut pick in by_case(document) {
        match pick.name.as_str() {
            "protect" | "unprotect" => {
                pick.rows.extend(document.rows.iter().filter(|row| row.case == "copy"));
                whole.push(pick);
            }
            "copy" => {}
            name if name.contains("many") => many.push(pick),
            _ => start.push(pick),
        }
    }
    if whole.is_empty() {
        whole.extend(by_case(document).into_iter().filter(|pick| pick.name == "copy"));
    }
    let (one_file, many_files) = sizes(document);
    let sets: [(&str, &[Pick<'_>], &str); 3] = [
        ("one file", &whole, &one_file),
        ("many small files", &many, &many_files),
        ("start", &start, "What a small piece of work takes, from start to end."),
    ];
    let mut figures = Vec::new();
    for (name, picks, about) in sets.into_iter().filter(|(_, picks, _)| !picks.is_empty()) {
        let wall = format!("Wall time, {name}");
        figures.push(figure::times(&wall, about, picks, |row| row.wall_ns));
        if name == "one file" {
            figures.push(figure::rates("Rates, one file", about, Scales::Shared, picks));
        }
        let cpu = format!("CPU time, {name}");
        figures.push(figure::times(&cpu, "User and system time of all cores.", picks, |row| {
            row.cpu_ns
        }));
    }
    with_energy(figures, &by_case(document))
}

/// What the settings say about one file, and about many.
fn sizes(document: &Document) -> (String, String) {
    let setting = |key: &str| {
        let found = document.settings.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    };
    let size = |key: &str| {
        let size = setting(key).and_then(|size| size.parse().ok());
        size.map_or_else(|| "unknown size".to_owned(), bytes)
    };
    let one = format!("One file of {}; cp only copies it.", size("size_bytes"));
    let count = setting("files").unwrap_or("Several");
    (one, format!("{count} files of {}.", size("file_size_bytes")))
}

fn measure(document: &Document) -> Vec<Figure> {
    let picks = by_case(document);
    let figures = vec![
        figure::times("Wall time", "Of the command, from its start to its end.", &picks, |row| {
            row.wall_ns
        }),
        figure::times("CPU time", "User and system time of all cores.", &picks, |row| row.cpu_ns),
    ];
    with_energy(figures, &picks)
}

/// The study's Figures 9 and 8, latency by latency, and what each message waited.
fn stream(document: &Document) -> Vec<Figure> {
    let (users, full): (Vec<_>, Vec<_>) =
        by_case(document).into_iter().partition(|pick| pick.name.starts_with("latency"));
    let p99 = |row: &Row| row.delay_p99_ns;
    let mut figures = Vec::new();
    if !users.is_empty() {
        figures.push(figure::rates("Throughput", THROUGHPUT, Scales::Shared, &users));
        figures.push(figure::times("CPU time", CPU_OF_STREAMS, &users, |row| row.cpu_ns));
        figures.push(figure::times("Delay of 99 in 100 messages", DELAY, &users, p99));
    }
    if !full.is_empty() {
        figures.push(figure::rates("Throughput at full and half load", LOAD, Scales::Each, &full));
        let loaded = full.into_iter().filter(|pick| pick.rows.iter().any(|row| p99(row).is_some()));
        let loaded: Vec<_> = loaded.collect();
        figures.push(figure::times("Delay at full and half load", DELAY, &loaded, p99));
    }
    figures.extend(energy::figures(&users));
    figures
}

/// Of a kind that this program does not know, or that needs nothing of its own.
fn generic(document: &Document) -> Vec<Figure> {
    let picks = by_case(document);
    let mut figures = Vec::new();
    if document.rows.iter().any(|row| row.rate().is_some()) {
        figures.push(figure::rates("Rates", "Of plaintext.", Scales::Each, &picks));
    }
    if document.rows.iter().any(|row| row.wall_ns.is_some() && row.rate().is_none()) {
        figures.push(figure::times("Wall time", "Of one repetition.", &picks, |row| row.wall_ns));
    }
    with_energy(figures, &picks)
}

/// All rows, by case and size of call, in the order of the document.
fn by_case(document: &Document) -> Vec<Pick<'_>> {
    let by_size = document.kind != "ciphers";
    let mut picks: Vec<Pick<'_>> = Vec::new();
    for row in &document.rows {
        let mut name = row.case.clone();
        if let Some(size) = row.call_bytes.filter(|_| by_size) {
            name += &format!(", {}", bytes(size));
        }
        match picks.iter_mut().find(|pick| pick.name == name) {
            Some(pick) => pick.rows.push(row),
            None => picks.push(Pick { name, verdict: String::new(), rows: vec![row] }),
        }
    }
    picks
}

fn with_energy(mut figures: Vec<Figure>, picks: &[Pick<'_>]) -> Vec<Figure> {
    figures.extend(energy::figures(picks));
    figures
}

const THROUGHPUT: &str = "Of all users' messages, from the first sleep of the producer to the last message handed \
                          on: what arrives bounds it. Figure 9 of LECPAES, redrawn.";
const CPU_OF_STREAMS: &str = "User and system time of all threads, the producer's too. Where no sensor counts joules, \
                              this stands for Figure 8 of LECPAES.";
const DELAY: &str = "From when a message was put into the window until it was handed on.";
const LOAD: &str = "Messages of 92 KiB under AES-256-GCM, and the same without a window. Every group has an axis \
                    of its own.";
const ONE_CORE: &str = "Of wattlock, the fastest kernel. \u{201c}rounds on registers\u{201d} is its rounds without \
                        memory or mode, \u{201c}memory only\u{201d} a pass over the same memory. Every group \
                        has an axis of its own.";
const LONG: &str = "One message, or its next part, split among several threads. \u{201c}memory only\u{201d} is a \
                    pass over the same memory. Every group has an axis of its own.";
