//! Section 5 of the SEFPS paper: its platforms, files and method.

use wattlock_report::paper::{Row, Section, Source};

use super::printed::{CASES, FILES, PLATFORMS, Platform, files, number, quoted};
use super::rows::{given, untested};

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
    // The text's number against the lines of the paper's own table.
    let listed = |item: &str, printed: f64, lines: usize| {
        Row::number(item, printed, lines as f64, item, Source::Print).near(0.0)
    };
    let hash = 100.0 * (CASES[2].hash() / CASES[0].hash() - 1.0);
    vec![
        listed("files", quoted("S5.1-files"), files().len()).column("in Table 2"),
        listed("platforms", quoted("S5.1-platforms"), PLATFORMS.lines().count())
            .column("in Table 1"),
        untested(
            "which platform is high-end",
            "platform 1",
            &format!("names; by the printed speeds platform 2 hashes {hash:.1} % faster"),
        ),
        untested(
            "SEFPS is universal if it works well on both platforms",
            "it can be said that SEFPS is universal for users",
            "\"well\" has no measure, and two machines are no proof; section 3.1 tests all kinds of files",
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
        "a name".to_owned()
    } else {
        format!("a name; a cache of {} MB is doubtful", quoted("T1-p2-cache"))
    };
    vec![
        derived("GPU cores: multiprocessors by cores of each", gpu_cores, multiprocessors * each)
            .note(&format!("{each} cores of a multiprocessor are its maker's number")),
        derived("CPU cores: CPUs by cores of each", cores, cpus * cores_each),
        input("multiprocessors", multiprocessors, ""),
        input("clock of the GPU", gpu_mhz, "MHz"),
        input("clock of the CPU", cpu_ghz, "GHz"),
        name("GPU", cell("gpu"), "a name"),
        name("CPU", cell("cpu"), "a name"),
        name("hard disk", cell("disk"), &disk_why),
    ]
}

fn table_2() -> Vec<Row> {
    let names = FILES.lines().map(|line| line.text("name"));
    let rows = files().into_iter().zip(names).map(|(file, name)| {
        let unit = file.name.split(' ').nth(1).unwrap_or_default();
        let printed = number(&file.name).unwrap_or(f64::NAN);
        given(name, printed, unit, "a definition: the file is made of this size")
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
            "total, AES and hash; EncTime includes transferring data time (Figure 4's caption)",
            "a definition; live: wall_ns, cipher_ns (transfers included) and hash_ns of each row",
        ),
        untested(
            "files that were protected are recovered and verified",
            "to recover and verify the original files",
            "live, the first file that comes back from each algorithm is compared with the original",
        ),
        untested(
            "what a speed of unprotecting is of",
            "FileSize / time",
            "ambiguous: the container is 1.1 % longer at 5.61 KB, 0.3 % at 20.4 KB; ours is of the plain file",
        ),
    ]
}
