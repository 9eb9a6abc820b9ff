//! The tables of `wattlock-lab bench https` for people, and its quotients.

use std::fmt::Write;

use wattlock_report::columns::Columns;
use wattlock_report::results::{Joules, Ratio, Results, Row};

use super::contenders::{Contender, OTHER_VERSIONS, Release};
use super::primitive;
use crate::args::Suite;

/// Pages by suite, and the cipher alone.
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    let (pages, alone): (Vec<&Row>, Vec<&Row>) =
        results.rows.iter().partition(|row| row.requests.is_some());
    let suite = |row: &Row| row.case.split_once(", ").map_or("", |(suite, _)| suite).to_owned();
    for pages in pages.chunk_by(|one, other| suite(one) == suite(other)) {
        let mut table = Columns::new("<<>>>>><");
        let heads = ["page", "served by", "requests/s", "(mad)", "MB/s", "CPU µs/request"];
        table.row(heads.into_iter().chain(Joules::HEADS));
        for row in pages {
            let (_, page) = row.case.split_once(", ").unwrap_or((&row.case, ""));
            let per_second = 1e9 / row.wall_ns.median.max(1) as f64;
            let mad = 100.0 * row.wall_ns.mad as f64 / row.wall_ns.median.max(1) as f64;
            let cells = [
                page.to_owned(),
                row.tool.clone(),
                format!("{per_second:.1}"),
                format!("{mad:.1} %"),
                format!("{:.1}", 1e3 * row.rate()),
                format!("{:.1}", row.cpu_ns.median as f64 / 1e3),
            ];
            table.row(cells.into_iter().chain(row.joules.cells()).chain([clocks(row)]));
        }
        let _ = write!(text, "\n{}\n{table}", suite(pages[0]));
    }
    if !text.is_empty() {
        text += "CPU time is the server's; joules are the machine's, its client's included\n";
    }
    if !alone.is_empty() {
        let _ = writeln!(
            text,
            "\nAES-256-CBC without a server: one message after the other, and {} in flight as \
             records of 16 KiB",
            primitive::IN_FLIGHT,
        );
        let mut table = Columns::new("<<>>><");
        let heads = ["message", "encrypted by", "threads", "MB/s"];
        table.row(heads.into_iter().chain(Joules::HEADS));
        for row in alone {
            let (_, size) = row.case.split_once(", ").unwrap_or(("", &row.case));
            let cells = [
                size.to_owned(),
                format!("{} {}", row.tool, row.kernel.as_deref().unwrap_or_default()),
                row.threads.unwrap_or(1).to_string(),
                format!("{:.1}", 1e3 * row.rate()),
            ];
            table.row(cells.into_iter().chain(row.joules.cells()).chain([clocks(row)]));
        }
        text += &table.to_string();
    }
    text
}

fn clocks(row: &Row) -> String {
    row.clocks.as_ref().map_or_else(String::new, |clocks| format!("clocks {clocks}"))
}

fn count(threads: usize) -> String {
    if threads == 1 { "1 thread".into() } else { format!("{threads} threads") }
}

/// What was aimed at: CPU time of the server for a page, ours over theirs.
const TARGETS: [(Suite, u64, Contender, f64); 5] = [
    (Suite::Gcm, 512 << 10, Contender::InstructionSet(Release::Installed), 0.45),
    (Suite::Gcm, 64 << 10, Contender::InstructionSet(Release::Installed), 0.65),
    (Suite::CbcSha256, 512 << 10, Contender::LargeBuffers(Release::Installed), 0.85),
    (Suite::CbcSha256, 512 << 10, Contender::InstructionSet(Release::Installed), 0.45),
    (Suite::CbcSha384, 512 << 10, Contender::InstructionSet(Release::Installed), 0.3),
];

/// The same with OpenSSL 3.5 in both.
const TARGETS_3_5: [(Suite, u64, f64); 2] =
    [(Suite::Gcm, 512 << 10, 0.7), (Suite::CbcSha256, 512 << 10, 0.68)];

/// Who is compared with whom: in each OpenSSL, large buffers with large buffers and everything with the default; and
/// what a user would switch to, with the installed OpenSSL.
fn pairs(results: &Results) -> Vec<(Contender, Contender)> {
    let others = results.settings.get(OTHER_VERSIONS).and_then(|others| others.as_array());
    let others = (0..others.map_or(0, Vec::len)).map(Release::Other);
    let mut pairs = Vec::new();
    for of in std::iter::once(Release::Installed).chain(others.clone()) {
        pairs.extend([
            (Contender::Single(of), Contender::InstructionSet(of)),
            (Contender::Reconstruction(of), Contender::InstructionSet(of)),
            (Contender::Reconstruction(of), Contender::LargeBuffers(of)),
        ]);
    }
    let today = Contender::InstructionSet(Release::Installed);
    pairs.extend(others.map(|of| (Contender::InstructionSet(of), today)));
    pairs.extend([(Contender::Rustls, today), (Contender::Go, today)]);
    pairs
}

/// The quotient that was aimed at, if one was.
fn target(results: &Results, suite: Suite, size: u64, pair: (Contender, Contender)) -> Option<f64> {
    let (ours, theirs) = pair;
    let Contender::Reconstruction(of) = ours else { return None };
    if of.version(results).is_some_and(|version| version.starts_with("3.5.")) {
        let found = TARGETS_3_5.iter().find(|(on, bytes, _)| (*on, *bytes) == (suite, size));
        return found.filter(|_| theirs == Contender::InstructionSet(of)).map(|(.., most)| *most);
    }
    let found = TARGETS.iter().find(|(on, bytes, peer, _)| {
        (*on, *bytes, *peer, Release::Installed) == (suite, size, theirs, of)
    });
    found.map(|(.., most)| *most)
}

/// CPU time of the server, and rates of the cipher.
pub fn ratios(results: &Results) -> Vec<Ratio> {
    let (mut ratios, pairs) = (Vec::new(), pairs(results));
    let suites = [Suite::CbcSha384, Suite::CbcSha256, Suite::Gcm, Suite::Tls13];
    let sizes = results.settings.get("page_bytes").and_then(|sizes| sizes.as_array());
    let sizes: Vec<u64> = sizes.into_iter().flatten().filter_map(|size| size.as_u64()).collect();
    for suite in suites {
        for &size in &sizes {
            let case = super::case(suite, size, super::Load::Wrk);
            let cpu = |contender: Contender| {
                results.row(&contender.tool(results), &case).map(|row| row.cpu_ns.median as f64)
            };
            for &(ours, theirs) in &pairs {
                let Some((one, other)) = cpu(ours).zip(cpu(theirs)) else { continue };
                let value = one / other.max(1.0);
                let name =
                    format!("{case}: CPU of {} / {}", ours.tool(results), theirs.tool(results));
                ratios.push(match target(results, suite, size, (ours, theirs)) {
                    Some(limit) => Ratio::at_most(name, value, limit),
                    None => Ratio::told(name, value),
                });
            }
        }
    }
    for row in results.rows.iter().filter(|row| row.tool == primitive::ENGINE) {
        let Some(speed) = results.row(primitive::SPEED, &row.case) else { continue };
        let threads = row.threads.unwrap_or(1);
        let value = row.rate() / speed.rate();
        let name = format!("{}: engine, {} / openssl speed", row.case, count(threads));
        let is_held = row.case == primitive::case(64 << 10) && threads == 1;
        ratios.push(if is_held {
            Ratio::at_least(name, value, 5.0)
        } else {
            Ratio::told(name, value)
        });
    }
    ratios
}
