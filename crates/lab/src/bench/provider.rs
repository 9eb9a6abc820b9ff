//! `wattlock-lab bench provider`: each call of a program into libcrypto, with OpenSSL's own ciphers and with the
//! provider's, in turns.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::json;
use wattlock_host::exit::{Ended, unavailable, usage};
use wattlock_host::summary::process_cpu_time;
use wattlock_peers::{Calls, Providers, Whose};
use wattlock_provider::configuration;
use wattlock_report::columns::Columns;
use wattlock_report::results::{Load, LoadWatch, Ratio, Results};

use super::lab::{Lab, Windows};
use super::publish;
use super::rates::{Buffer, Case, Contender, Effort};
use crate::args;

/// Whole messages and parts, from a single block to what a file has.
const SIZES: [usize; 8] = [16, 64, 256, 1344, 4096, 16 << 10, 64 << 10, 1 << 20];
/// Of a quick look.
const FEW: [usize; 2] = [64, 16 << 10];
/// Parts of a message in parts.
const PARTS: usize = 4;
const KEY: [u8; 32] = [0x5c; 32];

/// A cipher, what is done with it, and how the case is called.
struct Subject {
    cipher: &'static str,
    key_len: usize,
    calls: Calls,
    what: &'static str,
}

impl Subject {
    fn all() -> Vec<Self> {
        let gcm = [
            (Calls::Seal(1), "seal"),
            (Calls::Open(1), "open"),
            (Calls::Seal(PARTS), "seal in 4 parts"),
            (Calls::Open(PARTS), "open in 4 parts"),
            (Calls::KeyAndSeal, "key and seal"),
        ];
        let blocks = [
            (Calls::Encrypt, "encrypt"),
            (Calls::Decrypt, "decrypt"),
            (Calls::EncryptMore, "encrypt, updates only"),
            (Calls::DecryptMore, "decrypt, updates only"),
        ];
        let mut all = Vec::new();
        let mut add = |cipher, key_len, calls: &[(Calls, &'static str)]| {
            all.extend(calls.iter().map(|&(calls, what)| Self { cipher, key_len, calls, what }));
        };
        add("AES-128-GCM", 16, &gcm[..2]);
        add("AES-256-GCM", 32, &gcm);
        add("AES-128-CBC", 16, &blocks[..2]);
        add("AES-256-CBC", 32, &blocks);
        add("AES-256-CTR", 32, &[blocks[0], blocks[2]]);
        add("AES-256-ECB", 32, &blocks[..2]);
        all
    }

    fn case(&self) -> String {
        format!("{} {}", self.cipher, self.what)
    }

    /// What is aimed at: OpenSSL's time over ours, by its version.
    fn bar(&self, version: &str, len: usize) -> Option<f64> {
        let gcm = match len {
            ..=1350 if version.starts_with("3.0.") => 2.3,
            ..=1350 => 1.35,
            0x4000 => 1.08,
            _ => 1.0,
        };
        match self.calls {
            Calls::Seal(1) | Calls::Open(1) => Some(gcm),
            Calls::Seal(_) | Calls::Open(_) => Some(1.0),
            Calls::KeyAndSeal => None,
            // One message under CBC takes the time of its rounds, one after the other, with any code.
            Calls::Encrypt | Calls::EncryptMore if self.cipher.ends_with("CBC") => Some(0.95),
            _ if len <= 64 => Some(0.95),
            _ => Some(1.0),
        }
    }
}

/// `wattlock-lab bench provider`.
pub fn run(args: &args::BenchProvider) -> Ended {
    publish::can_publish(args.json.as_deref(), &args.meters)?;
    let only = args.only.as_deref().unwrap_or_default();
    let subjects: Vec<Subject> =
        Subject::all().into_iter().filter(|subject| subject.case().starts_with(only)).collect();
    if subjects.is_empty() {
        let names: Vec<String> = Subject::all().iter().map(Subject::case).collect();
        return Err(usage(format!(
            "the cases are\n  {}\nnone starts with {only:?}, which --only asks for",
            names.join("\n  ")
        )));
    }
    let module = configuration::find(args.provider.as_deref()).map_err(|why| unavailable(&why))?;
    let mut results = Results::new("provider");
    let mut libraries = vec![None];
    libraries.extend(args.openssl.iter().map(|folder| Some(library(folder))));
    let mut opened = Vec::new();
    for library in &libraries {
        let providers = Providers::open(library.as_deref(), &module).map_err(|why| {
            let library = library.as_deref().unwrap_or(Path::new("the system's libcrypto"));
            unavailable(format!("{}: {why}", library.display()))
        })?;
        let text = providers.version();
        let version = text.split(' ').nth(1).context("an OpenSSL without a version")?.to_owned();
        if opened.iter().any(|(other, _)| *other == version) {
            bail!("OpenSSL {version} is there twice: the system's counts without --openssl");
        }
        results.tools.insert(format!("openssl {version}"), text);
        results.tools.insert(ours(&version), env!("CARGO_PKG_VERSION").into());
        opened.push((version, providers));
    }
    let effort = Effort {
        rounds: if args.quick { 3 } else { args.rounds.into() },
        sample_ns: if args.quick { 200_000 } else { 1_000_000 },
    };
    let sizes: &[usize] = if args.quick { &FEW } else { &SIZES };
    for (name, value) in [
        ("quick", json!(args.quick)),
        ("rounds", json!(effort.rounds)),
        ("sample_ns", json!(effort.sample_ns)),
        ("call_bytes", json!(sizes)),
        ("only", json!(args.only)),
    ] {
        results.settings.insert(name.into(), value);
    }
    let windows = if args.quick { Windows::QUICK } else { Windows::SHORT };
    let watch = LoadWatch::begin();
    let (began, cpu) = (Instant::now(), process_cpu_time());
    let mut lab = Lab::new(results, &args.meters, windows)?;
    lab.run(&args.clocks, |lab| {
        for (version, providers) in &opened {
            for subject in &subjects {
                for &len in sizes {
                    measure(lab, effort, version, providers, subject, len);
                }
            }
        }
        Ok(())
    })?;
    let mut results = lab.results;
    results.ratios = ratios(&results);
    results.settings.insert("took_s".into(), json!(began.elapsed().as_secs()));
    results.load_during = watch.end(process_cpu_time().saturating_sub(cpu));
    results.warnings.extend(results.load_during.as_ref().and_then(Load::warning));
    let missed = results.ratios.iter().filter(|ratio| ratio.met == Some(false)).count();
    if args.quick {
        results.only_tell();
    }
    let ended = publish::publish(&results, args.json.as_deref(), &args.meters, text)?;
    if args.gate && missed > 0 && !args.quick {
        bail!("{missed} of {} cases are below their bars", results.ratios.len());
    }
    Ok(ended)
}

/// libcrypto in the folder of an OpenSSL.
fn library(folder: &Path) -> PathBuf {
    folder.join("lib/libcrypto.so")
}

/// The row's tool.
fn ours(version: &str) -> String {
    format!("wattlock, openssl {version}")
}

/// Lets both sides take turns.
fn measure(
    lab: &mut Lab<'_>,
    effort: Effort,
    version: &str,
    providers: &Providers,
    subject: &Subject,
    len: usize,
) {
    let key = &KEY[..subject.key_len];
    let contender = |whose, tool: &str| {
        let run = providers.contender(whose, subject.cipher, subject.calls, key, len);
        run.map(|run| Contender::new(tool, run).threads(1))
    };
    let theirs = contender(Whose::OpenSsl, &format!("openssl {version}"));
    let both = theirs.zip(contender(Whose::Provider, &ours(version)));
    let case = Case { name: subject.case(), call_bytes: len };
    let Some((theirs, ours)) = both else {
        lab.results.skipped.push(format!("{}, OpenSSL {version}: no such cipher", case.name));
        return;
    };
    lab.measure(effort, &case, Buffer::new(len).bytes(), vec![theirs, ours]);
}

/// OpenSSL's CPU time over ours, for each case.
fn ratios(results: &Results) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    let subjects = Subject::all();
    for pair in results.rows.chunks_exact(2) {
        let [theirs, ours] = pair else { continue };
        let (version, len) = (theirs.tool.trim_start_matches("openssl "), theirs.call_bytes);
        let (Some(subject), Some(len)) =
            (subjects.iter().find(|subject| subject.case() == theirs.case), len)
        else {
            continue;
        };
        let value = per_byte(theirs) / per_byte(ours);
        let name = format!("{}, {len} bytes: {} / provider", theirs.case, theirs.tool);
        ratios.push(match subject.bar(version, len as usize) {
            Some(bar) => Ratio::at_least(name, value, bar),
            None => Ratio::told(name, value),
        });
    }
    ratios
}

/// CPU time.
fn per_byte(row: &wattlock_report::results::Row) -> f64 {
    row.cpu_ns.median as f64 / row.bytes.max(1) as f64
}

/// A table for each OpenSSL: its CPU time for a message, and ours. The rest says where it is faster.
fn text(results: &Results) -> String {
    let mut text = String::new();
    let rows: Vec<_> = results.rows.chunks_exact(2).collect();
    for of_version in rows.chunk_by(|one, other| one[0].tool == other[0].tool) {
        let _ = writeln!(
            text,
            "\n{}: its own ns of CPU time / the provider's = ratio",
            of_version[0][0].tool
        );
        let first = &of_version[0][0].case;
        let sizes = of_version.iter().take_while(|pair| pair[0].case == *first);
        let sizes: Vec<String> =
            sizes.map(|pair| format!("{} B", pair[0].call_bytes.unwrap_or_default())).collect();
        let mut table = Columns::new("<>>>>>>>>");
        table.row([String::new()].into_iter().chain(sizes));
        for case in of_version.chunk_by(|one, other| one[0].case == other[0].case) {
            let cells = case.iter().map(|pair| {
                let ns = |row| per_byte(row) * pair[0].call_bytes.unwrap_or_default() as f64;
                let (theirs, ours) = (ns(&pair[0]), ns(&pair[1]));
                format!("{theirs:.0}/{ours:.0}={:.2}", theirs / ours)
            });
            table.row([case[0][0].case.clone()].into_iter().chain(cells));
        }
        text += &table.to_string();
    }
    let slower: Vec<&Ratio> = results.ratios.iter().filter(|ratio| ratio.value < 1.0).collect();
    let _ = writeln!(
        text,
        "\nslower with the provider: {} of {} cases",
        slower.len(),
        results.ratios.len()
    );
    for ratio in slower {
        let _ = writeln!(text, "  {:.2}  {}", ratio.value, ratio.name);
    }
    let missed: Vec<&Ratio> =
        results.ratios.iter().filter(|ratio| ratio.met == Some(false)).collect();
    let _ = writeln!(text, "below the bar: {} of {}", missed.len(), results.ratios.len());
    for ratio in missed {
        let _ = writeln!(text, "  {:.2} {}  {}", ratio.value, ratio.target, ratio.name);
    }
    if let Some(machine) = &results.machine {
        let _ = writeln!(text, "\n{}", machine.line());
    }
    for line in results.skipped.iter().chain(&results.warnings) {
        let _ = writeln!(text, "{line}");
    }
    text
}
