//! The page: a head that sums up, a section for each document, and the documents as data.

use crate::compared;
use crate::document::Document;
use crate::energy;
use crate::html::Html;
use crate::kinds;
use crate::paper::Paper;
use crate::reading::Amount;
use crate::simulated;
use crate::svg;
use crate::table;

/// The whole page. Of the same documents it is the same, byte for byte.
pub fn page(documents: &[Document]) -> String {
    let mut html = Html::default();
    html.doctype();
    html.element("html", &[("lang", "en")], |html| {
        html.element("head", &[], head);
        html.line();
        html.element("body", &[], |html| {
            if documents.iter().any(is_modelled) {
                svg::hatching(html);
            }
            html.element("header", &[], |html| summary(html, documents));
            html.line();
            for (index, document) in documents.iter().enumerate() {
                let id = format!("section-{}", index + 1);
                html.element("section", &[("id", &id)], |html| section(html, document));
                html.line();
            }
            for (index, document) in documents.iter().enumerate() {
                html.data(&format!("document-{}", index + 1), &document.text);
            }
        });
    });
    html.line();
    html.into_text()
}

fn head(html: &mut Html) {
    html.empty("meta", &[("charset", "utf-8")]);
    html.empty("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    html.empty("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    html.leaf("title", &[], "wattlock report");
    html.style(include_str!("style.css"));
}

fn summary(html: &mut Html, documents: &[Document]) {
    html.leaf("h1", &[], "wattlock report");
    html.element("ul", &[], |html| {
        for (index, document) in documents.iter().enumerate() {
            html.element("li", &[], |html| {
                let link = format!("#section-{}", index + 1);
                html.leaf("a", &[("href", &link)], &title(document));
                html.text(&format!(" ({}): {}", document.name, counts(document)));
            });
        }
    });
}

fn section(html: &mut Html, document: &Document) {
    html.leaf("h2", &[], &title(document));
    html.element("dl", &[], |html| {
        let date = document.created_unix_s.map(crate::date::utc);
        let unknown = || "not in the document".to_owned();
        let mut entry = |name: &str, text: &str| {
            html.leaf("dt", &[], name);
            html.leaf("dd", &[], text);
        };
        entry("file", &document.name);
        entry("machine", &document.machine.clone().unwrap_or_else(unknown));
        entry("date", &date.unwrap_or_else(unknown));
        for (name, value) in document.settings.iter().filter(|(_, value)| value.len() <= LONG) {
            entry(name, value);
        }
        if let Some(paper) = &document.paper {
            entry("paper", &paper.title);
            entry("compared", &paper.counts.text());
        }
        if document.energy_rows().next().is_none() && !is_modelled(document) {
            entry("joules", "none in this document");
        }
        for (name, value) in document.settings.iter().filter(|(_, value)| value.len() > LONG) {
            html.leaf("dt", &[], name);
            html.element("dd", &[], |html| {
                html.element("details", &[], |html| {
                    html.leaf("summary", &[], "as it is in the document");
                    html.leaf("p", &[], value);
                });
            });
        }
    });
    table::write_ratios(html, document);
    table::write_losses(html, document);
    for figure in kinds::figures(document) {
        figure.write(html, document);
    }
    if document.energy_rows().next().is_some() {
        energy::write_table(html, document);
        compared::write(html, document);
    }
    simulated::write_cells(html, document);
    if let Some(paper) = &document.paper {
        paper.write_rows(html);
        paper.write_models(html);
    }
    table::write_skipped(html, document);
    table::write_rows(html, document);
}

/// Bytes of a setting above which it is folded away.
const LONG: usize = 500;

fn title(document: &Document) -> String {
    if let Some(paper) = &document.paper {
        return format!("A paper compared: {}", paper.paper);
    }
    let known = match document.kind.as_str() {
        "ciphers" => "Ciphers, modes and digests",
        "blocks" => "Extended blocks",
        "files" => "Files",
        "stream" => "Streams of many users",
        "gateway" => "Gateways",
        "https" => "Pages by HTTPS",
        "provider" => "Calls into libcrypto",
        "energy" => "Joules of six ciphers",
        "sefps" => "Files, as a study protected them (SEFPS)",
        "measure" => "One command",
        "simulation" => "The LECPAES experiment, simulated",
        other => return format!("Results of kind {other}"),
    };
    known.to_owned()
}

/// What a reader should know who reads nothing else.
fn counts(document: &Document) -> String {
    let judged = |met| document.ratios.iter().filter(|ratio| ratio.met == Some(met)).count();
    let mut parts = match &document.paper {
        Some(paper) => vec![paper.counts.text()],
        None => vec![format!("{} rows", document.rows.len())],
    };
    match (judged(true), judged(false)) {
        (0, 0) => {}
        (met, missed) => parts.push(format!("{met} targets met, {missed} MISSED")),
    }
    match table::losses(document).len() {
        0 => {}
        losses => parts.push(format!("another tool is faster {losses} times")),
    }
    match document.skipped.len() {
        0 => {}
        skipped => parts.push(format!("{skipped} skipped")),
    }
    parts.push(energy_in_a_word(document).to_owned());
    parts.join(", ")
}

fn energy_in_a_word(document: &Document) -> &'static str {
    let mut amounts = document.energy_rows().filter_map(|row| row.gross.as_ref());
    let counted = |amount: &Amount| matches!(amount, Amount::Counted { .. });
    if amounts.any(|reading| counted(&reading.amount)) {
        "joules by sensors"
    } else if is_modelled(document) {
        "joules by a model, not measured"
    } else {
        "no joules"
    }
}

fn is_modelled(document: &Document) -> bool {
    if document.simulation.is_some() || document.paper.as_ref().is_some_and(Paper::is_modelled) {
        return true;
    }
    let readings = document.rows.iter().flat_map(|row| [&row.gross, &row.net]).flatten();
    readings.into_iter().any(|reading| matches!(reading.amount, Amount::Modelled { .. }))
}
