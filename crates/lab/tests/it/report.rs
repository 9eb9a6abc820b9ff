//! `wattlock-lab report`: what its pages hold, what they never hold, and which inputs it refuses. How
//! they look in a browser is in `report_looks.rs`; of measurements, in the tests of `wattlock`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use wattlock_testing::results::{counted, document, modelled, row, with_energy};
use wattlock_testing::{assert_exit, names, stderr, stdout};

use crate::lab;

const MODEL: &str = "model, not measured";

/// The page of documents.
fn page(documents: &[&Value]) -> String {
    let place = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = documents
        .iter()
        .enumerate()
        .map(|(index, document)| {
            let path = place.path().join(format!("{index}.json"));
            fs::write(&path, document.to_string()).unwrap();
            path
        })
        .collect();
    let made = lab().args(["report", "-o", "-"]).args(paths).output().unwrap();
    assert_exit(&made, 0);
    stdout(&made)
}

/// What people see of a page: all but the data.
fn seen(page: &str) -> &str {
    page.split("<script").next().unwrap()
}

/// The pieces of a page between one tag and the next of its end.
fn pieces<'a>(page: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    page.split(from).skip(1).map(|piece| piece.split(to).next().unwrap()).collect()
}

fn data(page: &str) -> Vec<Value> {
    let data = pieces(page, "<script type=\"application/json\"", "</script>");
    data.iter().map(|data| serde_json::from_str(data.split_once('>').unwrap().1).unwrap()).collect()
}

fn results() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    assert!(paths.len() >= 3);
    paths
}

#[test]
fn all_results_of_the_repository_in_one_page() {
    let run = || lab().args(["report", "-o", "-"]).args(results()).output().unwrap();
    let made = run();
    assert_exit(&made, 0);
    let page = stdout(&made);
    // Not "http" alone: that is in the name of a bench.
    for outside in ["://", "src=", "@import", "<link", "<script>", "javascript"] {
        assert!(!seen(&page).contains(outside), "{outside}");
    }
    for reference in seen(&page).split("url(").skip(1) {
        assert!(reference.starts_with('#'), "a reference to elsewhere");
    }
    assert_eq!(page.matches("<script").count(), page.matches("application/json").count());
    let given: Vec<Value> = results()
        .iter()
        .map(|path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
        .collect();
    assert_eq!(data(&page), given);
    for figure in pieces(&page, "<figure", "</figure>") {
        for part in ["<b>Machine</b>", "<b>Date</b> 20", "<b>Versions</b>", "<b>Joules</b>"] {
            assert!(figure.contains(part), "{part} in {figure}");
        }
    }
    for text in ["MISSED", "Where wattlock is slower", "Skipped", ": SLOWER"] {
        assert!(seen(&page).contains(text), "{text}");
    }
    assert_eq!(page, stdout(&run()), "the same input gives the same page");
}

#[test]
fn printed_numbers_of_papers_are_on_the_page() {
    for (paper, printed) in [
        ("blocks", ["an NVIDIA GT9500", "<h3>Table I</h3>", ", printed</th>"]),
        ("ciphers", ["platform 1", "<h3>Table 3</h3>", ", printed</th>"]),
    ] {
        let compared = lab().args(["paper", paper, "--no-live", "--json", "-"]).output().unwrap();
        assert_exit(&compared, 0);
        let page = page(&[&serde_json::from_str(&stdout(&compared)).unwrap()]);
        for text in printed {
            assert!(seen(&page).contains(text), "{text}: {page}");
        }
    }
}

#[test]
fn every_row_is_in_the_page() {
    let given = document("ciphers", &[row("wattlock", "x", 100), row("openssl", "x", 50)]);
    let page = page(&[&given]);
    let rows = page.split("All rows (2)").nth(1).unwrap();
    assert!(rows.contains("openssl") && rows.contains("wattlock"));
    // The other is twice as fast, and that is said.
    assert!(seen(&page).contains("2.00 ×"), "{page}");
}

#[test]
fn what_was_counted_has_bars_and_no_hatching() {
    let rows = vec![with_energy(row("wattlock", "rc4", 100), &counted("measured", 2_000_000))];
    let page = page(&[&document("energy", &rows)]);
    assert!(!page.contains("hatching") && !page.contains(MODEL));
    assert!(seen(&page).contains("2.00 nJ/B ± 0.04, measured"), "{page}");
    assert!(page.contains("class=\"whisker\""));
    assert!(seen(&page).contains("package-0"));
}

#[test]
fn what_was_modelled_is_hatched_and_never_a_point() {
    let mut rows = ["rc4", "parc4", "rc4a"]
        .map(|case| with_energy(row("wattlock", case, 100), &modelled(200_000, 5_000_000)))
        .to_vec();
    rows.push(with_energy(row("openssl", "rc4", 90), &modelled(200_000, 5_000_000)));
    rows[0]["energy_window_uj"] = json!({"median": 424_242, "min": 424_242, "max": 424_242});
    let page = page(&[&document("energy", &rows)]);
    let figures = pieces(&page, "<figure", "</figure>");
    let joules: Vec<_> =
        figures.iter().filter(|figure| figure.contains("Joules per byte")).collect();
    assert_eq!(joules.len(), 2, "gross and net");
    for figure in joules {
        assert_eq!(figure.matches("url(#hatching)").count(), 4 + 1, "four rows and the key");
        assert!(!figure.contains("class=\"bar "));
        assert!(figure.contains("~0.20–5.0 nJ/B (model, not measured)"), "{figure}");
    }
    assert!(!seen(&page).contains("424242"), "a point of a model");
    let without = seen(&page).replace(MODEL, "");
    assert!(!without.contains("measured,") && !without.contains(", measured"));
    assert!(seen(&page).contains("ranks nothing"));
    assert!(!seen(&page).contains("the first takes"));
    // In the order of the document.
    let places =
        ["rc4, ", "parc4, ", "rc4a, "].map(|case| page.find(&format!("<b>{case}")).unwrap());
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn classes_never_share_an_axis_or_a_quotient() {
    let rows = vec![
        with_energy(row("wattlock", "rc4", 100), &counted("measured", 2_000_000)),
        with_energy(row("openssl", "rc4", 100), &modelled(200_000, 5_000_000)),
        with_energy(row("rustcrypto", "rc4", 100), &counted("integrated", 3_000_000)),
        with_energy(row("aws-lc", "rc4", 100), &json!({"class": "unavailable", "covers": []})),
    ];
    let page = page(&[&document("energy", &rows)]);
    for figure in pieces(&page, "<figure", "</figure>") {
        assert!(!(figure.contains("hatching") && figure.contains("class=\"bar ")), "{figure}");
    }
    for why in ["measured and modelled", "measured and integrated", "measured and unavailable"] {
        assert!(seen(&page).contains(&format!("their classes differ: {why}")), "{why}");
    }
    assert!(!seen(&page).contains("the first takes"));
    assert!(!seen(&page).contains(">0 J") && seen(&page).contains(">unavailable<"));
}

#[test]
fn joules_are_compared_only_with_equal_coverage() {
    let mut narrow = counted("measured", 1_000_000);
    narrow["covers"] = json!(["package-0"]);
    let rows = vec![
        with_energy(row("wattlock", "rc4", 100), &counted("measured", 2_000_000)),
        with_energy(row("openssl", "rc4", 100), &narrow),
        with_energy(row("rustcrypto", "rc4", 100), &counted("measured", 1_000_000)),
    ];
    let page = page(&[&document("energy", &rows)]);
    assert!(seen(&page).contains("their coverage differs"), "{page}");
    assert!(seen(&page).contains("<td>MORE</td>"), "a loss is a loss: {page}");
}

#[test]
fn kinds_and_keys_of_later_are_shown() {
    let mut later = row("wattlock", "get 1 MiB", 100);
    later["requests_per_s"] = json!(4321);
    later["latency_ns"] = json!({"median": 500, "min": 400, "max": 900, "mad": 3});
    let page = page(&[&document("later", &[later])]);
    for text in ["Results of kind later", "requests_per_s", "4321", "500 (400–900)", "GB/s"] {
        assert!(seen(&page).contains(text), "{text}");
    }
}

#[test]
fn names_cannot_become_markup() {
    let evil = "</script><script>alert(1)</script><!--<svg onload='x'>\"&\u{1b}[31m\u{202e}";
    let mut attack = document(evil, &[row(evil, evil, 100), row("wattlock", evil, 200)]);
    attack["machine"]["cpu"] = evil.into();
    attack["tools"] = json!({ evil: evil });
    attack["settings"] = json!({ evil: evil });
    attack["skipped"] = json!([evil]);
    attack["advice"] = json!({ evil: evil });
    attack["ratios"] = json!([{ "name": evil, "value": 1.5, "target": evil, "met": false }]);
    attack["rows"][0]["kernel"] = evil.into();
    attack["rows"][0]["clocks"] = evil.into();
    attack["rows"][0][evil] = evil.into();
    let page = page(&[&attack]);
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("</script").count(), 1);
    assert!(!page.contains("<!--") && !page.contains("<svg onload"));
    assert!(!seen(&page).contains('\u{1b}') && !seen(&page).contains('\u{202e}'));
    assert_eq!(data(&page), [attack]);
}

/// A document in which the last value of a key is another.
fn changed(key: &str, value: &str) -> String {
    let text = document("files", &[row("wattlock", "x", 777)]).to_string();
    let at = text.rfind(&format!("\"{key}\":")).unwrap() + key.len() + 3;
    let end = at + text[at..].find([',', '}']).unwrap();
    format!("{}{value}{}", &text[..at], &text[end..])
}

/// A report of that text, and where its page would be.
fn report_of(place: &Path, text: &[u8]) -> (Output, PathBuf) {
    let (path, output) = (place.join("hostile.json"), place.join("page.html"));
    fs::write(&path, text).unwrap();
    (lab().arg("report").arg(&path).arg("-o").arg(&output).output().unwrap(), output)
}

#[test]
fn hostile_inputs_are_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let refused = [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("\u{0}", "not JSON"),
        ("[1, 2]", "no schema"),
        ("null", "no schema"),
        (r#"{"schema": 5}"#, "no schema"),
        (r#"{"schema": "else/1"}"#, "no report can be made"),
        (r#"{"schema": "wattlock-doctor/1"}"#, "no report can be made"),
        (r#"{"schema": "wattlock-results/2", "rows": []}"#, "newer"),
        (r#"{"schema": "wattlock-results/1"}"#, "no rows"),
        (r#"{"schema": "wattlock-results/1", "rows": []}"#, "no rows"),
        (
            r#"{"schema": "wattlock-results/1", "rows": {}}"#,
            "rows: invalid type: map, expected a sequence",
        ),
        (
            r#"{"schema": "wattlock-results/1", "rows": [7]}"#,
            "rows[0] is 7: invalid type: integer `7`",
        ),
        (r#"{"schema": "wattlock-measure/1", "runs": []}"#, "no rows"),
        (&changed("median", "-5"), "rows[0].wall_ns.median is -5"),
        (&changed("median", "1e308"), "rows[0].wall_ns.median is 1e"),
        (&changed("median", "1e400"), "not JSON"),
        (&changed("median", "18446744073709551615"), "not a whole number"),
        (&changed("min", "800"), "not between min and max"),
        (&changed("bytes", "\"many\""), "rows[0].bytes is many"),
        (&changed("tool", "7"), "rows[0].tool is 7: invalid type: integer `7`, expected a string"),
        (&"[".repeat(100_000), "not JSON"),
    ];
    for (text, why) in refused {
        let (made, output) = report_of(place.path(), text.as_bytes());
        assert_exit(&made, 1);
        assert!(stderr(&made).contains("hostile.json"), "{why}: {}", stderr(&made));
        assert!(stderr(&made).contains(why), "{why}: {}", stderr(&made));
        assert!(!output.exists(), "{why}");
    }
    assert_exit(&report_of(place.path(), b"\xff\xfe{}").0, 1);
    let many: Vec<Value> = (0..5001).map(|_| row("wattlock", "x", 1)).collect();
    let many = document("files", &many).to_string();
    assert_exit(&report_of(place.path(), many.as_bytes()).0, 1);
}

#[test]
fn odd_numbers_are_drawn_soundly() {
    let place = tempfile::tempdir().unwrap();
    for (key, value) in [
        ("median", "0"),
        ("mad", "999999999999999999"),
        ("max", "999999999999999999"),
        ("bytes", "0"),
    ] {
        for kind in ["files", "ciphers", "blocks", "energy", "measure"] {
            let text = changed(key, value).replace("\"min\":777", "\"min\":0");
            let text = text.replace("\"files\"", &format!("\"{kind}\""));
            let (made, output) = report_of(place.path(), text.as_bytes());
            assert_exit(&made, 0);
            let page = fs::read_to_string(&output).unwrap();
            assert!(!seen(&page).contains("NaN") && !seen(&page).contains("inf"), "{key}");
        }
    }
}

#[test]
fn classes_that_contradict_their_numbers_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("lie.json");
    let interval = json!({"lo": 1, "best": 2, "hi": 3});
    for (lie, why) in [
        (json!({"class": "modelled", "energy_uj": interval}), "energy_model_uj"),
        (json!({"class": "measured", "energy_model_uj": interval}), "no energy_uj"),
        (
            json!({"class": "modelled", "energy_uj": interval, "energy_model_uj": interval}),
            "modelled and has energy_uj",
        ),
        (json!({"class": "unavailable", "energy_uj": interval}), "unavailable and has energy_uj"),
        (json!({"class": "sworn", "energy_uj": interval}), "unknown variant `sworn`"),
        (json!({"energy_uj": interval}), "missing field `class`"),
        (
            json!({"class": "measured", "energy_uj": {"lo": 3, "best": 2, "hi": 1}}),
            "not an interval",
        ),
        (json!({"class": "modelled", "energy_model_uj": {"lo": 3, "hi": 1}}), "not an interval"),
    ] {
        let lie = document("energy", &[with_energy(row("wattlock", "x", 1), &lie)]);
        fs::write(&path, lie.to_string()).unwrap();
        let made = lab().args(["report", "-o", "-"]).arg(&path).output().unwrap();
        assert_exit(&made, 1);
        assert!(stderr(&made).contains(why), "{why}: {}", stderr(&made));
        assert!(stdout(&made).is_empty());
    }
}

#[test]
fn the_page_is_written_whole_or_not_at_all() {
    let place = tempfile::tempdir().unwrap();
    let [input, output, wrong] =
        ["in.json", "page.html", "wrong.json"].map(|name| place.path().join(name));
    fs::write(&input, document("files", &[row("wattlock", "x", 5)]).to_string()).unwrap();
    fs::write(&wrong, "{}").unwrap();
    let run = |input: &Path, output: &Path| {
        lab().arg("report").arg(input).arg("-o").arg(output).output().unwrap()
    };
    assert_exit(&run(&input, &output), 0);
    let page = fs::read(&output).unwrap();
    assert_exit(&run(&input, &output), 0);
    assert_exit(&run(&wrong, &output), 1);
    assert_eq!(fs::read(&output).unwrap(), page, "it is as it was");
    assert_exit(&run(&input, place.path()), 2);
    assert_exit(&run(&input, Path::new("/dev/null")), 2);
    assert_exit(&run(&input, &input), 2);
    assert_exit(&run(&input, &place.path().join("not/there.html")), 1);
    assert_exit(&run(&place.path().join("none.json"), &output), 1);
    assert_exit(&lab().args(["report", "-o", "-"]).output().unwrap(), 2);
    assert_exit(&lab().arg("report").arg(&input).output().unwrap(), 2);
    assert_eq!(names(place.path()), ["in.json", "page.html", "wrong.json"]);
    assert!(fs::read_to_string(&input).unwrap().contains("wattlock-results/1"));
}
