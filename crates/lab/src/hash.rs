//! `wattlock-lab hash`: digests in the form of `sha3sum`, and their check.

mod digest;
mod tree;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use wattlock_engine::Engine;
use wattlock_engine::crypto::tree_hash::TreeHash;
use wattlock_engine::crypto::{self, KeccakKernel, ShaKernel};
use wattlock_file::{Input, Shown};
use wattlock_host::exit::{self, Ended, usage};

use crate::args::{self, HashAlgorithm};
use crate::cipher::list;
use digest::DIGEST_LEN;

pub use digest::{DigestAlgorithm, digests};
pub use tree::TreeStream;

/// `wattlock-lab hash`.
pub fn run(args: &args::Hash) -> Ended {
    let hasher = Hasher::new(args)?;
    exit::check_stdin()?;
    if !args.check {
        exit::check_stdout()?;
    }
    let stdin = [PathBuf::from("-")];
    let files = if args.files.is_empty() { &stdin[..] } else { &args.files };
    if files.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err(usage("standard input can be read only once"));
    }
    if args.check { hasher.check(files, args.quiet) } else { hasher.print(files) }
}

/// The largest block of ParallelHash256; eight of them are in memory for each thread.
const MOST_BLOCK: u64 = 64 << 20;

/// Files that are hashed before their digests are printed.
const BATCH: usize = 1024;

/// Bytes of a list: names for some hundred thousand files.
const MOST_LIST: u64 = 64 << 20;

struct Hasher {
    engine: Engine,
    algorithm: DigestAlgorithm,
}

impl Hasher {
    fn new(args: &args::Hash) -> anyhow::Result<Self> {
        if args.block_size.is_some() && args.alg != HashAlgorithm::ParallelHash256 {
            return Err(usage("--block-size requires --alg parallelhash256"));
        }
        let block_size = args.block_size.unwrap_or(8192);
        let block_len = NonZeroUsize::new(block_size as usize).filter(|_| block_size <= MOST_BLOCK);
        let Some(block_len) = block_len else {
            return Err(usage("--block-size must be 1 byte to 64M"));
        };
        let keccak = || kernel(args, KeccakKernel::best, KeccakKernel::named, &KeccakKernel::NAMES);
        let algorithm = match args.alg {
            HashAlgorithm::Sha3_256 => DigestAlgorithm::Sha3_256(keccak()?),
            HashAlgorithm::Sha256 => {
                let sha = kernel(args, ShaKernel::best, ShaKernel::named, &ShaKernel::NAMES)?;
                DigestAlgorithm::Sha256(sha)
            }
            HashAlgorithm::Kt128 => DigestAlgorithm::Tree(TreeHash::Kt128, keccak()?),
            HashAlgorithm::ParallelHash256 => {
                DigestAlgorithm::Tree(TreeHash::ParallelHash256 { block_len }, keccak()?)
            }
        };
        let engine = Engine::new(args::threads(args.threads));
        Ok(Self { engine, algorithm })
    }

    fn digests(&self, files: &[PathBuf]) -> anyhow::Result<Vec<io::Result<[u8; DIGEST_LEN]>>> {
        let inputs: Vec<_> = files.iter().map(|file| input(file)).collect();
        Ok(digests(&self.engine, self.algorithm, &inputs)?)
    }

    fn print(&self, files: &[PathBuf]) -> Ended {
        let mut failed = false;
        for batch in files.chunks(BATCH) {
            let mut lines = Vec::new();
            for (file, digest) in batch.iter().zip(self.digests(batch)?) {
                match digest {
                    Ok(digest) => lines.extend(line(&digest, file)),
                    Err(error) => {
                        say!("{}: {error}", Shown(file));
                        failed = true;
                    }
                }
            }
            exit::print_bytes(&lines)?;
        }
        Ok(if failed { exit::FAILURE.into() } else { ExitCode::SUCCESS })
    }

    fn check(&self, lists: &[PathBuf], quiet: bool) -> Ended {
        let (mut right, mut wrong, mut unread, mut failed) = (0_usize, 0_usize, 0_usize, false);
        let mut stdin_used = lists.iter().any(|list| is_stdin(list));
        for list in lists {
            let (expected, unparsed) = parse(&read(list)?);
            if unparsed > 0 {
                say!("{}: skipped {} without a digest", Shown(list), count(unparsed, "line"));
                failed = true;
            }
            for (_, file) in &expected {
                if is_stdin(file) && std::mem::replace(&mut stdin_used, true) {
                    return Err(usage("standard input can be read only once"));
                }
            }
            if expected.is_empty() {
                say!("{}: no digests found", Shown(list));
                failed = true;
            }
            for batch in expected.chunks(BATCH) {
                let files: Vec<_> = batch.iter().map(|(_, file)| file.clone()).collect();
                let mut report = String::new();
                for ((expected, file), found) in batch.iter().zip(self.digests(&files)?) {
                    let verdict = match found {
                        Ok(digest) if digest == *expected => {
                            right += 1;
                            if quiet {
                                continue;
                            }
                            "OK"
                        }
                        Ok(_) => {
                            wrong += 1;
                            "FAILED"
                        }
                        Err(error) => {
                            say!("{}: {error}", Shown(file));
                            unread += 1;
                            "FAILED open or read"
                        }
                    };
                    let _ = writeln!(report, "{}: {verdict}", Shown(file));
                }
                exit::print(&report)?;
            }
        }
        if unread > 0 {
            say!("WARNING: {} could not be read", count(unread, "listed file"));
        }
        if wrong > 0 {
            say!("WARNING: {} did NOT match", count(wrong, "computed digest"));
            if right == 0 {
                say!("no digest matched: were they made with another --alg?");
            }
        }
        let all_match = wrong == 0 && unread == 0 && !failed;
        Ok(if all_match { ExitCode::SUCCESS } else { exit::FAILURE.into() })
    }
}

/// The kernel that was asked for, or the best.
fn kernel<K>(
    args: &args::Hash,
    best: fn() -> K,
    named: fn(&str) -> Result<K, crypto::Error>,
    names: &[&str],
) -> anyhow::Result<K> {
    let Some(name) = &args.kernel else { return Ok(best()) };
    named(name).map_err(|error| {
        let why = match list::is_kernel(name) && !names.contains(&name.as_str()) {
            true => {
                let alg = args.alg.to_possible_value();
                let alg = alg.as_ref().map_or("this algorithm", PossibleValue::get_name);
                format!("{alg} cannot use the kernel {name}")
            }
            false => error.to_string(),
        };
        usage(format!("{why}; the kernels are {}", names.join(", ")))
    })
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn input(file: &Path) -> Input {
    if is_stdin(file) { Input::Stdin } else { Input::Path(file.to_owned()) }
}

fn read(list: &Path) -> anyhow::Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", Shown(list));
    let reader: Box<dyn Read> = if is_stdin(list) {
        Box::new(io::stdin().lock())
    } else {
        Box::new(fs::File::open(list).with_context(cannot)?)
    };
    let mut text = Vec::new();
    reader.take(MOST_LIST + 1).read_to_end(&mut text).with_context(cannot)?;
    if text.len() as u64 > MOST_LIST {
        anyhow::bail!("{} is too long for a list of digests (limit: 64M)", Shown(list));
    }
    Ok(text)
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// One line of output. A name with a newline or a backslash is escaped, and the line then starts
/// with a backslash, as coreutils do it.
fn line(digest: &[u8; DIGEST_LEN], file: &Path) -> Vec<u8> {
    let name = file.as_os_str().as_bytes();
    let mut line = Vec::new();
    if name.iter().any(|byte| matches!(byte, b'\n' | b'\r' | b'\\')) {
        line.push(b'\\');
    }
    for byte in digest {
        line.extend(format!("{byte:02x}").bytes());
    }
    line.extend(b"  ");
    for byte in name {
        match byte {
            b'\n' => line.extend(b"\\n"),
            b'\r' => line.extend(b"\\r"),
            b'\\' => line.extend(b"\\\\"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\n');
    line
}

/// The digests and names of a list, and how many lines are neither.
fn parse(text: &[u8]) -> (Vec<([u8; DIGEST_LEN], PathBuf)>, usize) {
    let lines = text.split(|byte| *byte == b'\n').map(|l| l.strip_suffix(b"\r").unwrap_or(l));
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let mut unparsed = 0;
    let entries = lines.filter_map(|line| {
        let entry = parse_line(line);
        unparsed += usize::from(entry.is_none());
        entry
    });
    let entries = entries.collect();
    (entries, unparsed)
}

fn parse_line(line: &[u8]) -> Option<([u8; DIGEST_LEN], PathBuf)> {
    let (escaped, line) = match line.strip_prefix(b"\\") {
        Some(line) => (true, line),
        None => (false, line),
    };
    let (digits, name) = line.split_at_checked(2 * DIGEST_LEN)?;
    let mut digest = [0; DIGEST_LEN];
    for (byte, pair) in digest.iter_mut().zip(digits.as_chunks::<2>().0) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    // A star marks a file read as binary, which is the only way here.
    let name = name.strip_prefix(b"  ").or_else(|| name.strip_prefix(b" *"))?;
    if name.is_empty() {
        return None;
    }
    let name = if escaped { unescape(name)? } else { name.to_vec() };
    Some((digest, std::ffi::OsString::from_vec(name).into()))
}

fn unescape(name: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    let mut bytes = name.iter();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            byte => *byte,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_parsed() {
        for name in ["a", "two words", " leading", "new\nline", "back\\slash", "*", "-"] {
            let digest = std::array::from_fn(|i| i as u8);
            let (entries, unparsed) = parse(&line(&digest, Path::new(name)));
            assert_eq!(entries, [(digest, PathBuf::from(name))]);
            assert_eq!(unparsed, 0);
        }
        let text = b"# remark\n\nnonsense\n00  short\n";
        assert_eq!(parse(text), (vec![], 2));
    }
}
