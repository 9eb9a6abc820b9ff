//! Results that earlier versions left: each of them makes a report.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::Value;
use wattlock_testing::frozen::corpora;
use wattlock_testing::{assert_exit, stderr, stdout};

use crate::lab;

#[test]
fn results_make_a_report() {
    for corpus in corpora() {
        let files = corpus.files(&["results"]);
        assert!(files.len() >= 10);
        let mut report = lab();
        report.current_dir(&corpus.folder).args(["report", "-o", "-"]);
        let made = report.args(files.iter().map(|file| file.name)).output().unwrap();
        assert_exit(&made, 0);
        let page = stdout(&made);
        let pieces = page.split("<script type=\"application/json\"").skip(1);
        let data = pieces.map(|piece| {
            let (_, piece) = piece.split_once('>').unwrap();
            serde_json::from_str(piece.split("</script>").next().unwrap()).unwrap()
        });
        let data: Vec<Value> = data.collect();
        for file in &files {
            assert!(data.contains(&corpus.document(file.name)), "{}", file.name);
            let mut alone = lab();
            alone.args(["report", "-o", "-"]).arg(corpus.folder.join(file.name));
            let made = alone.output().unwrap();
            assert_exit(&made, 0);
            assert!(stdout(&made).contains("<figure"), "{}: {}", file.name, stderr(&made));
        }
    }
}
