//! A report in a browser: that there is something to see, and where.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Output};

use wattlock_testing::results::{counted, document, modelled, row, with_energy};
use wattlock_testing::{assert_exit, has_program, stderr, stdout};

use crate::lab;

type Colour = [u8; 3];

/// Of the cards on which figures stand, of wattlock's bars, and of the hatching, in `style.css`.
const CARD: Colour = [0xf6, 0xf8, 0xfa];
const OURS: Colour = [0x3d, 0x8f, 0xc4];
const HATCH: Colour = [0x7a, 0x4a, 0x00];

struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
}

impl Picture {
    fn read(path: &Path) -> Self {
        let decoder = png::Decoder::new(BufReader::new(File::open(path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut bytes).unwrap();
        assert_eq!(frame.bit_depth, png::BitDepth::Eight);
        let pixels = bytes[..frame.buffer_size()].chunks_exact(frame.color_type.samples());
        let pixels = pixels.map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        Self { width: frame.width as usize, height: frame.height as usize, pixels }
    }

    /// How often each colour is on the first card: the rows in which its left margin is seen.
    fn colours_of_first_figure(&self) -> BTreeMap<Colour, usize> {
        let margin = 48;
        let mut colours = BTreeMap::new();
        let is_card = |row: &&[Colour]| row[margin] == CARD;
        let rows = self.pixels.chunks_exact(self.width).skip_while(|row| !is_card(row));
        for row in rows.take_while(is_card) {
            row[margin..self.width - margin]
                .iter()
                .for_each(|colour| *colours.entry(*colour).or_insert(0) += 1);
        }
        colours
    }
}

fn chromium(place: &Path, flags: &[&str], page: &Path) -> Output {
    let ran = Command::new("timeout")
        .args(["100", "chromium", "--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--hide-scrollbars", "--force-color-profile=srgb"])
        .arg(format!("--user-data-dir={}", place.join("profile").display()))
        .args(flags)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    ran
}

fn drawn(document: &serde_json::Value) -> (Picture, String) {
    let place = tempfile::tempdir().unwrap();
    let [input, page, picture] =
        ["in.json", "page.html", "page.png"].map(|name| place.path().join(name));
    fs::write(&input, document.to_string()).unwrap();
    let made = lab().arg("report").arg(&input).arg("-o").arg(&page).output().unwrap();
    assert_exit(&made, 0);
    let screenshot = format!("--screenshot={}", picture.display());
    chromium(place.path(), &[&screenshot, "--window-size=1200,3000"], &page);
    let dom = stdout(&chromium(place.path(), &["--dump-dom"], &page));
    (Picture::read(&picture), dom)
}

#[test]
fn a_browser_draws_bars_and_bands() {
    if !has_program("chromium") {
        return;
    }
    let rows = vec![row("wattlock", "x", 100), row("openssl", "x", 150)];
    let (picture, dom) = drawn(&document("later", &rows));
    assert_eq!((picture.width, picture.height), (1200, 3000));
    let colours = picture.colours_of_first_figure();
    let all: usize = colours.values().sum();
    let written: usize = all - colours[&CARD];
    assert!(written * 100 > all && written * 2 < all, "{written} of {all} pixels");
    assert!(colours.len() > 16, "{} colours", colours.len());
    assert!(colours[&OURS] > 1000, "{} pixels of bars", colours[&OURS]);
    assert!(!colours.contains_key(&HATCH));
    assert!(dom.matches("<svg").count() >= 3, "{dom}");

    // Without a time there is no other figure than that of joules.
    let mut rows = vec![with_energy(row("wattlock", "x", 100), &modelled(1_000_000, 9_000_000))];
    rows[0].as_object_mut().unwrap().remove("wall_ns");
    let (picture, dom) = drawn(&document("later", &rows));
    let colours = picture.colours_of_first_figure();
    assert!(colours[&HATCH] > 100, "{} pixels of hatching", colours[&HATCH]);
    assert!(!colours.contains_key(&OURS), "a model has no bar");
    assert!(dom.contains("<pattern id=\"hatching\""));

    rows[0] = with_energy(rows[0].take(), &counted("measured", 2_000_000));
    let (picture, _) = drawn(&document("later", &rows));
    let colours = picture.colours_of_first_figure();
    assert!(colours[&OURS] > 1000 && !colours.contains_key(&HATCH));
}
