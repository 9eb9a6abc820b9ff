//! Sections 3.2 to 3.4 of the SEFPS paper: what Algorithms 1 to 6 and Eq. 1 do, counted for its 14
//! files.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::equations::ratio;
use super::model::Split;
use super::printed::{AVERAGE, CASES, Platform, Stage, files, quoted};
use super::rows::{by_print, count, exact, false_in_print, untested};
use super::security::Victim;
use crate::sefps::format::{Variant, container_len};

/// # Errors
/// A file that cannot be written.
pub fn sections(victim: &Victim<'_>) -> anyhow::Result<Vec<Section>> {
    let mut cpu = cpu();
    cpu.push(exact(
        Rule::Value,
        "Algorithm 2, line 33: if digests differ, there is no plaintext",
        "report and exit",
        "of an altered container nothing is released",
        victim.releases_nothing_altered()?,
    ));
    Ok(vec![
        Section::new("Algorithms 1 and 2", "CPP and CPUP: all CPU threads", cpu),
        Section::new("Algorithms 3 and 4", "GPP and GPUP: the GPU", gpu()),
        Section::new(
            "Equation 1",
            "how much more of the work the GPU gets than the CPU",
            equation_1(),
        ),
        Section::new("Algorithms 5 and 6", "HPP and HPUP: both", hybrid()),
    ])
}

/// Bytes of all containers.
fn containers() -> Vec<u64> {
    files().iter().map(|file| container_len(file.bytes)).collect()
}

/// Lines 16 to 31 of Algorithm 1: the bytes of each thread.
fn shares(len: u64, threads: u64) -> Vec<u64> {
    let (mean, more) = (len / 16 / threads * 16, len / 16 % threads);
    (0..threads).map(|thread| mean + if more > thread { 16 } else { 0 }).collect()
}

fn cpu() -> Vec<Row> {
    let len = |len: u64| len + 16 + (16 - len % 16) + 32;
    let lengths = files().iter().all(|file| container_len(file.bytes) == len(file.bytes));
    let cases = containers().into_iter().flat_map(|len| [16, 8].map(|threads| (len, threads)));
    let even = |(len, threads): (u64, u64)| {
        let shares = shares(len, threads);
        let spread = shares.iter().max().zip(shares.iter().min()).map(|(most, least)| most - least);
        shares.iter().sum::<u64>() == len && spread.is_some_and(|spread| spread <= 16)
    };
    vec![
        exact(
            Rule::Value,
            "line 4: bytes of the container",
            "len + 16 + (16 - len mod 16) + 32",
            "the same for all 14 files: 5,745 bytes become 5,808",
            lengths,
        ),
        exact(
            Rule::Value,
            "lines 16 to 31: even shares of whole groups",
            "the first threads get 16 bytes more",
            "for 14 files by 16 and by 8 threads: the shares add up, and differ by 16 bytes at most",
            { cases }.all(even),
        ),
        untested(
            "line 35: a key schedule for each thread",
            "AesTTableUnroll(..., key)",
            "ours expands the key once a file, on purpose",
        ),
        untested(
            "line 37: the result replaces the input in place",
            "rewind and write",
            "ours writes another file and renames it, so that a crash leaves a whole one",
        ),
        false_in_print(
            "line 2: how the file is opened, in all six listings",
            "fopen(fileName, \"wb+\")",
            "\"wb+\" empties the file: there is nothing to read; \"rb+\" is meant",
        ),
        false_in_print(
            "line 3: its length",
            "ftell after fopen",
            "that is 0 at the start of any file; it lacks an fseek to the end",
        ),
        false_in_print(
            "line 11: the last bytes of the file",
            "one byte by one byte, says the text",
            "fread(.., rm, 1, ..) reads one item of rm bytes",
        ),
        false_in_print(
            "Algorithm 2, line 15: the shares",
            "StLenCPU",
            "declared as CtLenCPU: it does not compile",
        ),
        false_in_print(
            "Algorithm 2, line 30: bytes that are cut",
            "cipher[cipherLen - 1]",
            "that is in the digest; the count ends 33 bytes before the end, and section 3.1 has a third place",
        ),
        false_in_print(
            "Algorithm 2, line 31: the file after unprotecting",
            "write cipherLen bytes",
            "nothing shortens the file: 49 to 64 bytes of the container stay behind the data",
        ),
    ]
}

fn gpu() -> Vec<Row> {
    let blocks = |len: u64, threads: u64| (len >> 4).div_ceil(threads);
    let wide =
        |threads| containers().into_iter().filter(|len| blocks(*len, threads) >= 1 << 16).count();
    let covers = containers().into_iter().all(|len| {
        let blocks = blocks(len, 256);
        blocks < 1 << 16 || blocks.div_ceil(1 << 15) << 15 >= blocks
    });
    let copies = |case: super::printed::Case| {
        let both = 2.0 / Platform::printed(case.platform).copy_gbps;
        100.0 * both * case.gbps(Stage::Aes, AVERAGE, Variant::Gpu)
    };
    vec![
        exact(
            Rule::Value,
            "line 18: threads of a block",
            "a multiple of 64",
            "256 in the study's kernel as we have it",
            256_u32.is_multiple_of(quoted("S3.3.1-bk") as u32),
        ),
        exact(
            Rule::Value,
            "line 19: a group of 16 bytes for each thread",
            "(groups + BK - 1) / BK blocks",
            &format!(
                "{} to {} blocks for the 14 files, BK = 256",
                blocks(containers()[0], 256),
                blocks(containers()[13], 256)
            ),
            containers().into_iter().all(|len| blocks(len, 256) * 256 * 16 >= len),
        ),
        exact(
            Rule::Value,
            "lines 21 to 24: from 65536 blocks on, a grid of two dimensions",
            "32768 by as many as it takes",
            &format!(
                "{} of 14 files, BK = 256; {} with BK = 64. Up to 32,767 blocks have nothing to do",
                wide(256),
                wide(64)
            ),
            covers && quoted("A3-21-limit") == 65536.0 && quoted("A3-22-x") == 32768.0,
        ),
        untested(
            "65536, the limitation of a dimension",
            "65536",
            "half true: 65535 on the GTX 460, 2^31 - 1 in x on the K20M",
        ),
        by_print(
            Rule::Value,
            "copies are a part of the time of AES",
            "transferred in series",
            &format!(
                "at the printed bandwidths copies both ways are {:.0} % and {:.0} % of GPP's AES",
                copies(CASES[0]),
                copies(CASES[2])
            ),
            copies(CASES[0]) < 100.0 && copies(CASES[2]) < 100.0,
        ),
        false_in_print(
            "section 3.3.1: what GPP is given",
            "the file to be unprotected",
            "GPP protects; the same slip stands in 3.4.1",
        ),
        false_in_print(
            "Algorithm 4, line 23: where the plaintext goes",
            "pPlainFile",
            "the file was opened as pCipherFile",
        ),
    ]
}

fn equation_1() -> Vec<Row> {
    let ratios = [1, 2].map(|number| ratio(Platform::printed(number)));
    let row = |number: usize| {
        let ratio = ratios[number - 1];
        Row::claim(
            Rule::Value,
            &format!("ratio of platform {number}"),
            &format!(
                "{ratio:.4}: the GPU gets {:.2} %, the CPU {:.2} %",
                100.0 * ratio / (ratio + 1.0),
                100.0 / (ratio + 1.0)
            ),
            true,
            Source::Print,
        )
        .printed("Gmp x Ws x Gf / ((Cc - 1) x Cf), with Table 1")
        .exempt("its value is not printed")
    };
    let late = CASES.map(|case| {
        let Split { gpu, cpu, .. } = Split::of(case);
        format!("{:.1}", cpu / gpu)
    });
    let balanced = CASES.map(|case| {
        let Split { gpu_rate, cpu_rate, .. } = Split::of(case);
        format!("{:.2}", gpu_rate / cpu_rate)
    });
    vec![
        row(1),
        row(2),
        false_in_print(
            "any other ratio imbalances the work",
            "a greater or less value will lead to imbalanced workload",
            &format!(
                "Eq. 1 itself does: by the printed AES speeds the GPU's part takes {} times as long as the CPU's; {} would \
                 balance them",
                late.join(", "),
                balanced.join(", ")
            ),
        ),
    ]
}

fn hybrid() -> Vec<Row> {
    // Line 18: without rounding before the multiplication.
    let cpu_bytes = |len: u64, ratio: f64| (len as f64 * 1.0 / (ratio + 1.0) / 16.0 * 16.0) as u64;
    let ratios = [1, 2].map(|number| ratio(Platform::printed(number)));
    let cases = containers().into_iter().flat_map(|len| ratios.map(|ratio| cpu_bytes(len, ratio)));
    let whole = { cases }.filter(|bytes| bytes % 16 == 0).count();
    vec![
        untested(
            "lines 20 to 22: one of the threads serves the GPU",
            "the others encrypt",
            "ours encrypts with all, and a thread more serves the GPU",
        ),
        false_in_print(
            "lines 18 and 9: the CPU's bytes",
            "plainLen * 1.0 / (ratio + 1) / 16 * 16",
            &format!(
                "in floating point / 16 * 16 rounds nothing: whole groups in {whole} of 28 cases (14 files, 2 ratios)"
            ),
        ),
        false_in_print(
            "lines 19 and 10: what PG is",
            "\"PC is the number of bytes ... on GPUs\"",
            "PG is; PC is the CPU's",
        ),
        count("bits of line 23's shift", quoted("A3-23-shift"), 15.0, "bits"),
    ]
}

#[cfg(test)]
mod tests {
    use wattlock_report::paper::Verdict;

    use super::*;

    #[test]
    fn counts_of_the_listings() {
        assert_eq!(shares(5808, 16)[0], 368);
        assert_eq!(shares(5808, 16)[15], 352);
        let directory = tempfile::tempdir().unwrap();
        let sections = sections(&Victim::new(directory.path()).unwrap()).unwrap();
        let rows = sections.iter().flat_map(|section| &section.rows);
        assert!(rows.clone().all(|row| row.verdict != Verdict::Missed));
        let text = format!("{:?}", rows.collect::<Vec<_>>());
        assert!(text.contains("whole groups in 0 of 28 cases"), "{text}");
        assert!(text.contains("5 of 14 files, BK = 256; 7 with BK = 64"), "{text}");
        assert!(text.contains("3.5, 3.9, 7.2, 7.4 times as long"), "{text}");
    }
}
