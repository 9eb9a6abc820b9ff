//! Sections 3.2 to 3.4 of the SEFPS paper: what Algorithms 1 to 6 and Eq. 1 do, counted for its 14
//! files.

use wattlock_gpu::opencl::OneBlock;
use wattlock_report::paper::{Row, Rule, Section, Source};

use super::equations::ratio;
use super::model::Split;
use super::printed::{CASES, Platform, files, quoted};
use super::rows::{contradicted, exact, false_in_print, untested};
use super::security::Victim;
use crate::sefps::format::container_len;

/// # Errors
/// A file that cannot be written.
pub fn sections(victim: &Victim<'_>) -> anyhow::Result<Vec<Section>> {
    let mut cpu = cpu();
    cpu.extend(done(victim)?);
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

/// What is done with containers made here.
fn done(victim: &Victim<'_>) -> anyhow::Result<[Row; 3]> {
    Ok([
        exact(
            Rule::Value,
            "Algorithm 1, lines 13 to 15: the count, the digest of data and padding, and its place",
            "memset 16 - fileLen%16; Hash(256, (plainLen - 32) * 8); memcpy to the last 32 bytes",
            "a container made here, decrypted by AES alone, is built so",
            victim.holds_data_padding_and_digest()?,
        ),
        exact(
            Rule::Value,
            "Algorithm 2, line 33: if digests differ, there is no plaintext",
            "report and exit",
            "of an altered container nothing is released",
            victim.releases_nothing_altered()?,
        ),
        exact(
            Rule::Value,
            "section 3.2.2: the right password gives the original file, another fails",
            "will get the original file; otherwise they will fail",
            "CPUP with the right key and with another, in both modes: so",
            victim.opens_with_its_key_alone()?,
        ),
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

/// As we deal it: the same number of groups to each thread in turn, and the last has what is left.
fn dealt(len: u64, threads: u64) -> (u64, u64) {
    let groups = len / 16;
    let share = groups.div_ceil(threads);
    (share, groups - share * (groups.div_ceil(share) - 1))
}

fn cpu() -> Vec<Row> {
    let mut rows = parallel();
    rows.extend(mistakes());
    rows
}

/// What Algorithms 1 and 2 do.
fn parallel() -> Vec<Row> {
    let len = |len: u64| len + 16 + (16 - len % 16) + 32;
    let lengths = files().iter().all(|file| container_len(file.bytes) == len(file.bytes));
    let first = containers()[0];
    let theirs = shares(first, 16);
    let (share, last) = dealt(first, 16);
    vec![
        exact(
            Rule::Value,
            "Algorithm 1, line 4: bytes of the container",
            "len + 16 + (16 - len mod 16) + 32",
            &format!(
                "the same for all 14 files: {} bytes become {first}, and so on",
                files()[0].bytes
            ),
            lengths,
        ),
        untested(
            "Algorithm 1, lines 16 to 31: even shares of whole groups",
            "the first threads get 16 bytes more",
            &format!(
                "a definition, and ours differs: of {first} bytes on 16 threads theirs have {} to {} bytes, ours {} and the last \
                 {}, in each window of 1 MiB a thread",
                theirs[15],
                theirs[0],
                16 * share,
                16 * last
            ),
        ),
        untested(
            "Algorithm 1, lines 32 to 36: one parallel region of WORK_THREADS threads",
            "num_threads(WORK_THREADS)",
            "ours has one for each window of 1 MiB a thread",
        ),
        untested(
            "Algorithm 1, line 35: AES by lookup tables",
            "employs T lookup tables to accelerate",
            "live, the kernel aes-ttable-vartime of CSP and CPP does so",
        ),
        untested(
            "Algorithm 1, line 35: a key schedule for each thread",
            "AesTTableUnroll(..., key)",
            "ours expands the key once a file, on purpose",
        ),
        untested(
            "Algorithm 1, line 37: the result replaces the input in place",
            "rewind and write",
            "ours writes another file and renames it, so that a crash leaves a whole one",
        ),
    ]
}

/// Where listings cannot do what the text says.
fn mistakes() -> [Row; 7] {
    [
        false_in_print(
            "line 2 of all six listings: how the file is opened",
            "fopen(fileName, \"wb+\")",
            "\"wb+\" empties the file: there is nothing to read; \"rb+\" is meant",
        ),
        false_in_print(
            "line 3 of all six listings: the file's length",
            "ftell after fopen",
            "that is 0 at the start of any file; it lacks an fseek to the end",
        ),
        contradicted(
            "Algorithms 1, 3 and 5, line 11: the last bytes of the file",
            "one byte by one byte, says the text",
            "fread(.., rm, 1, ..) reads one item of rm bytes",
        ),
        contradicted(
            "Algorithms 2, 4 and 6, line 3: the container's length",
            "CipherLen",
            "cipherLen is used: C tells them apart, so it does not compile",
        ),
        contradicted(
            "Algorithm 2, line 15: the shares",
            "StLenCPU",
            "declared as CtLenCPU: it does not compile",
        ),
        false_in_print(
            "Algorithm 2, line 30; 4, line 22; 6, line 16: bytes that are cut",
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
    let mut rows = grid();
    rows.extend(steps());
    rows.extend([
        false_in_print(
            "section 3.3.1: what GPP is given",
            "the file to be unprotected",
            "GPP protects; the same slip stands in 3.4.1",
        ),
        contradicted(
            "Algorithm 4, line 17: the kernel's name",
            "InvCipherTTable",
            "the text calls it invCipherTTable",
        ),
        contradicted(
            "Algorithm 4, line 23; 6, line 17: where the plaintext goes",
            "pPlainFile",
            "the file was opened as pCipherFile",
        ),
    ]);
    rows
}

/// Lines 18 to 24 of Algorithm 3: threads and blocks.
fn grid() -> Vec<Row> {
    let group = OneBlock::GROUP as u64;
    let [multiple, limit, x, shift] =
        ["S3.3.1-bk", "A3-21-limit", "A3-22-x", "A3-23-shift"].map(|id| quoted(id) as u64);
    let blocks = |len: u64, threads: u64| (len >> 4).div_ceil(threads);
    let wide =
        |threads| containers().into_iter().filter(|len| blocks(*len, threads) >= limit).count();
    let covers = containers().into_iter().all(|len| {
        let blocks = blocks(len, group);
        blocks < limit || ((blocks + x - 1) >> shift) * x >= blocks
    });
    vec![
        exact(
            Rule::Value,
            "Algorithm 3, line 18: threads of a block",
            "BK is multiple of 64",
            &format!("{group} in our copy of the study's kernel"),
            group.is_multiple_of(multiple),
        ),
        untested(
            "Algorithm 3, line 19: a group of 16 bytes for each thread",
            "(groups + BK - 1) / BK blocks",
            &format!(
                "a definition: {} to {} blocks for the 14 files, BK = {group}",
                blocks(containers()[0], group),
                blocks(containers()[13], group)
            ),
        ),
        exact(
            Rule::Value,
            "Algorithm 3, lines 21 to 24: from 65536 blocks on, a grid of two dimensions covers them",
            "32768 by (blocks + 32767) >> 15",
            &format!(
                "{} of 14 files, BK = {group}; {} with BK = {multiple}. The grid has up to {} blocks too many, which must do \
                 nothing",
                wide(group),
                wide(multiple),
                x - 1
            ),
            covers && x == 1_u64 << shift,
        ),
        untested(
            "section 3.3.1: the limitation of a dimension",
            &format!("{}", quoted("S3.3.1-grid")),
            "half true: 65535 on the GTX 460, 2^31 - 1 in x on the K20M",
        ),
    ]
}

/// The other lines of Algorithms 3 and 4, and what our copy of the kernel does.
fn steps() -> [Row; 4] {
    [
        untested(
            "Algorithm 3, line 16: one key schedule for all threads",
            "the key is extended in serial",
            "ours is made by the CPU, too: once a key",
        ),
        untested(
            "Algorithm 3, lines 17 and 25 to 28: memory, copies and tables for each file",
            "copy data from plain, exKey, T tables",
            "so does our copy, for each 64 MiB of a large file",
        ),
        untested(
            "Algorithm 4, lines 7, 8 and 16: other keys and tables",
            "a different sbox invBox and a different lookup table invT, whereas in GPP, sbox can be gotten by T table",
            "so does our copy: an inverse S-box of 256 bytes more, for decrypting alone",
        ),
        untested(
            "section 3.3.2: the right password gives the original file",
            "if legal users execute GPUP with the right password",
            "live, each file that GPUP opens is compared with the original; another key is tested with CPUP, above",
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
        .exempt("its value is not printed; that a warp is 32 threads is its maker's")
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
            "Algorithm 5, line 17; 6, line 8: the ratio",
            "calculated by the computing capacity",
            "ours, too, takes Eq. 1 with the device's numbers, and measures nothing",
        ),
        untested(
            "Algorithm 5, lines 20 to 22: one of the threads serves the GPU",
            "the others execute encrypting",
            "ours encrypts with all, and a thread more serves the GPU",
        ),
        untested(
            "section 3.4.1: the programming model",
            "CUDA + OpenMP",
            "ours: threads of Rust, and CUDA or OpenCL",
        ),
        false_in_print(
            "Algorithm 5, line 18; 6, line 9: the CPU's bytes",
            "plainLen * 1.0 / (ratio + 1) / 16 * 16",
            &format!(
                "computed in floating point, / 16 * 16 does not round: in {whole} of 28 cases (14 files, 2 ratios) is it a \
                 multiple of 16"
            ),
        ),
        contradicted(
            "Algorithm 5, line 19; 6, line 10: what PG is",
            "\"PC is the number of bytes ... on GPUs\"",
            "PG is; PC is the CPU's",
        ),
        contradicted(
            "section 3.4.2: whom the right password helps",
            "if legal users execute GPUP",
            "HPUP is meant. Live, each file that HPUP opens is compared with the original",
        ),
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
        assert_eq!(dealt(5808, 16), (23, 18));
        let directory = tempfile::tempdir().unwrap();
        let sections = sections(&Victim::new(directory.path()).unwrap()).unwrap();
        let rows = sections.iter().flat_map(|section| &section.rows);
        assert!(rows.clone().all(|row| row.verdict != Verdict::Missed));
        let text = format!("{:?}", rows.collect::<Vec<_>>());
        assert!(text.contains("in 0 of 28 cases (14 files, 2 ratios) is it a multiple"), "{text}");
        assert!(text.contains("5 of 14 files, BK = 256; 7 with BK = 64"), "{text}");
        assert!(text.contains("3.5, 3.9, 7.2, 7.4 times as long"), "{text}");
    }
}
