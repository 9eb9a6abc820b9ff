//! Section 5 of the SEFPS paper: its platforms, files and method.

use wattlock_report::paper::{Row, Section, Source};

use super::printed::{FILES, PLATFORMS, Platform, files, number, quoted};
use super::rows::{count, false_in_print, untested};

pub fn sections() -> Vec<Section> {
    vec![
        Section::new("Section 5.1", "platforms and files", environment()),
        Section::new("Table 1", "the platforms", table_1()),
        Section::new(
            "Table 2",
            "the files; ours are random bytes, KB and MB powers of 1024",
            table_2(),
        ),
        Section::new("Section 5.2", "method", method()),
    ]
}

fn environment() -> Vec<Row> {
    vec![
        count("files", quoted("S5.1-files"), files().len() as f64, "files"),
        count("platforms", 2.0, PLATFORMS.lines().count() as f64, "platforms"),
        false_in_print(
            "which platform is high-end",
            "platform 1",
            "section 8 says low-end and high-end, respectively; and platform 2 hashes 7.9 % faster",
        ),
    ]
}

fn table_1() -> Vec<Row> {
    [1, 2].into_iter().flat_map(platform).collect()
}

/// Cells that have to agree with each other; the others are inputs of Eq. 1, or names.
fn platform(number: u8) -> Vec<Row> {
    let Platform { multiprocessors, gpu_mhz, gpu_cores, cores, cpu_ghz, .. } =
        Platform::printed(number);
    // Cores of a multiprocessor: Kepler (GK110) and Fermi (GF104).
    let each = if number == 1 { 192.0 } else { 48.0 };
    let [cpus, cores_each] =
        ["cpus", "cores-per-cpu"].map(|what| quoted(&format!("T1-p{number}-{what}")));
    let column = format!("platform {number}");
    let derived = |item: &str, printed, ours| {
        Row::number(item, printed, ours, "cores", Source::Print).near(0.0).column(&column)
    };
    let input = |item: &str, printed: f64, unit: &str| {
        let row = Row::number(item, printed, f64::NAN, unit, Source::Print);
        Row { ours: None, error: None, ..row }.column(&column).exempt("an input of Eq. 1")
    };
    let line = PLATFORMS.lines().find(|line| line.first() == number.to_string());
    let cell = |name| line.as_ref().map(|line| line.text(name)).unwrap_or_default();
    let name = |item: &str, text: &str, why: &str| untested(item, text, why).column(&column);
    let disk_why = if number == 1 {
        "a name; its cache is 64 MB"
    } else {
        "a name; a cache of 0 MB is doubtful, and cannot be checked here"
    };
    vec![
        derived("GPU cores: multiprocessors by cores of each", gpu_cores, multiprocessors * each),
        derived("CPU cores: CPUs by cores of each", cores, cpus * cores_each),
        input("multiprocessors", multiprocessors, ""),
        input("clock of the GPU", gpu_mhz, "MHz"),
        input("clock of the CPU", cpu_ghz, "GHz"),
        name("GPU", cell("gpu"), "a name"),
        name("CPU", cell("cpu"), "a name"),
        name("hard disk", cell("disk"), disk_why),
    ]
}

fn table_2() -> Vec<Row> {
    let names = FILES.lines().map(|line| line.text("name"));
    let rows = files().into_iter().zip(names).map(|(file, name)| {
        let unit = file.name.split(' ').nth(1).unwrap_or_default();
        let scale = if unit == "KB" { 1024.0 } else { 1024.0 * 1024.0 };
        let printed = number(&file.name).unwrap_or(f64::NAN);
        // A byte at most is lost by rounding.
        Row::number(name, printed, file.bytes as f64 / scale, unit, Source::Exact).within(2e-4)
    });
    rows.collect()
}

fn method() -> Vec<Row> {
    let text = |item: &str, printed: f64, ours: f64, why: &str| {
        Row::number(item, printed, ours, "", Source::Exact).exempt(why)
    };
    vec![
        text(
            "runs of each file",
            quoted("S5.2-runs"),
            f64::from(crate::args::PaperSefps::ROUNDS),
            "ours by default (--rounds), and their median rather than their mean",
        ),
        untested(
            "what is timed",
            "total, AES and hash",
            "live: wall_ns, cipher_ns (transfers included) and hash_ns of each row",
        ),
        untested(
            "what a speed of unprotecting is of",
            "FileSize / time",
            "ambiguous: the container is 1.1 % longer at 5.61 KB, 0.3 % at 20.4 KB; ours is of the plain file",
        ),
    ]
}
