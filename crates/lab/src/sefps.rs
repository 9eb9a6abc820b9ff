//! `wattlock-lab sefps protect` and `unprotect`: a study's format, under a raw key.

pub mod format;

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use wattlock_engine::{Cpu, Direction, Engine, Mode as AesMode};
use wattlock_file::{Damage, Error, Outcome, Shown, expect_all};
use wattlock_host::accelerators::{Rule, Selection};
use wattlock_host::exit::{self, Ended, usage};
use wattlock_host::invocation::{Invocation, Road, not_to_a_terminal, road};
use wattlock_host::{progress, signals};
use zeroize::Zeroizing;

use crate::args;
use crate::cipher::{hex, kernel};
use crate::study::{Algorithm, aes, iv_length};
use format::{Made, Mode, Sefps, Variant, tasks};

/// Said at every use.
const WARNING: &str = "warning: sefps is for study only: its digest has no key, so anyone who knows \
the plaintext of a CTR container can forge another, and ECB shows which blocks are equal; to keep \
data safe, use `wattlock protect`";

/// `wattlock-lab sefps protect`.
pub fn protect(args: &args::SefpsProtect) -> Ended {
    let asked = Asked {
        command: "protect",
        direction: Direction::Encrypt,
        keyed: &args.keyed,
        variant: args.variant.as_deref(),
        places: &args.places,
        run: &args.run,
    };
    asked.answer()
}

/// `wattlock-lab sefps unprotect`.
pub fn unprotect(args: &args::SefpsUnprotect) -> Ended {
    let asked = Asked {
        command: "unprotect",
        direction: Direction::Decrypt,
        keyed: &args.keyed,
        variant: args.variant.as_deref(),
        places: &args.places,
        run: &args.run,
    };
    asked.answer()
}

/// What both commands were asked for.
struct Asked<'a> {
    command: &'static str,
    direction: Direction,
    keyed: &'a args::Keyed,
    variant: Option<&'a str>,
    places: &'a args::Places,
    run: &'a args::SefpsRun,
}

impl Asked<'_> {
    /// Does it.
    fn answer(&self) -> Ended {
        say!("{WARNING}");
        if self.run.json {
            exit::check_stdout()?;
        }
        signals::clean_up_when_ended()?;
        let (key, mode) = self.key_and_mode()?;
        let road = road(self.places)?;
        let invocation = Invocation::with_engine(self.engine()?, self.run.json, self.run.quiet);
        let how = Sefps {
            engine: &invocation.engine,
            key: &key,
            mode,
            variant: self.variant(),
            overwrite: self.places.force,
            progress: &invocation.progress,
        };
        let altered = AtomicBool::new(false);
        let ended = match road {
            Road::One(input, output) => {
                invocation.one(self.command, &input, output.as_deref(), |target| {
                    if self.direction == Direction::Encrypt {
                        not_to_a_terminal(output.as_deref())?;
                    }
                    let ended = how.run(self.direction, &input, target);
                    altered.fetch_or(is_altered(&ended), Ordering::Relaxed);
                    ended.map(|made| made.done)
                })
            }
            Road::Many => self.many(&invocation, &how, &altered),
        };
        if altered.load(Ordering::Relaxed) {
            tell!("  the file is damaged, or the key, cipher or IV is wrong");
        }
        ended
    }

    fn many(&self, invocation: &Invocation, how: &Sefps<'_>, altered: &AtomicBool) -> Ended {
        let tasks = tasks(self.direction, &self.places.files, self.places.out_dir.as_deref())?;
        expect_all(&invocation.progress, &tasks);
        let shown = progress::show(&invocation.progress, invocation.quiet);
        let ran = how.run_many(self.direction, &tasks, |task, ended| {
            altered.fetch_or(is_altered(&ended), Ordering::Relaxed);
            let ended = ended.map(|made| Outcome::Made(made.done));
            invocation.summary.add(&task.input, Some(&task.output), ended);
        });
        drop(shown);
        ran?;
        invocation.summary.finish(self.command, &[], false)
    }

    /// The engine of the variant, with the paper's ratio where that is what it goes by.
    fn engine(&self) -> anyhow::Result<Engine> {
        let threads = args::threads(self.run.threads);
        let selection = self.run.spread.selection()?;
        let name = self.variant().name(self.direction);
        match self.variant() {
            variant if variant.needs_accelerator() => {
                let selection = of_variant(variant, selection);
                selection
                    .engine_with_accelerator(threads)
                    .with_context(|| format!("--variant {name}"))
            }
            Variant::Overlapped => selection.engine(threads),
            _ if selection.names.is_empty() && selection.rule == Rule::Usual => {
                Ok(Engine::new(threads))
            }
            _ => Err(usage(format!(
                "--variant {name} runs on the CPU: it takes neither --device nor --policy"
            ))),
        }
    }

    fn variant(&self) -> Variant {
        let is_asked_for = |variant: &Variant| Some(variant.name(self.direction)) == self.variant;
        Variant::ALL.into_iter().find(is_asked_for).unwrap_or_default()
    }

    /// The key and the mode, whose lengths fit the cipher.
    fn key_and_mode(&self) -> anyhow::Result<(aes::Key, Mode)> {
        let name = self.keyed.cipher.as_deref().ok_or_else(|| {
            usage("no cipher: use --cipher aes-128-ecb (the study's) or --cipher aes-128-ctr")
        })?;
        let algorithm = match Algorithm::named(name) {
            Some(algorithm @ Algorithm::Aes(aes)) if aes.mode != AesMode::Cbc => algorithm,
            _ => {
                return Err(usage(exit::redact_value(&format!(
                    "--cipher {name}: unknown; use aes-128, aes-192 or aes-256 with -ecb or -ctr"
                ))));
            }
        };
        let kernel = kernel(self.keyed.kernel.as_deref(), algorithm)?;
        let mode = match (&self.keyed.iv, algorithm.iv_len()) {
            (None, 0) => Mode::Ecb,
            (Some(_), 0) => return Err(usage(format!("{algorithm} takes no --iv"))),
            (None, _) => {
                return Err(usage(format!(
                    "{algorithm} requires --iv: 16 bytes (32 hexadecimal digits), different for each file"
                )));
            }
            (Some(digits), expected) => {
                let iv = hex("--iv", digits)?;
                let wrong = iv_length(algorithm, iv.len(), expected);
                Mode::Ctr { iv: iv.as_slice().try_into().map_err(|_| usage(wrong))? }
            }
        };
        let key = self.key()?;
        let (expected, _) = algorithm.key_len();
        if key.len() != expected {
            return Err(usage(format!(
                "the key file holds {} bytes; {algorithm} takes {expected}",
                if key.len() > LONGEST_KEY { "more than 32".into() } else { key.len().to_string() }
            )));
        }
        Ok((aes::Key::new(kernel, &key)?, mode))
    }

    fn key(&self) -> anyhow::Result<Zeroizing<Vec<u8>>> {
        let path = self.keyed.key_file.as_deref().ok_or_else(|| {
            usage("no key: use --key-file; `openssl rand 16` makes a key of 16 bytes, for aes-128")
        })?;
        let failed =
            || format!("cannot read the key file {}", exit::redact_value(&Shown(path).to_string()));
        let limit = LONGEST_KEY as u64 + 1;
        // Room enough that the key is never moved and left behind.
        let mut key = Zeroizing::new(Vec::with_capacity(2 * LONGEST_KEY));
        let file = File::open(path).with_context(failed)?;
        file.take(limit).read_to_end(&mut key).with_context(failed)?;
        Ok(key)
    }
}

/// The devices of a variant that needs a GPU, and how they share: the hybrid one always has the CPU, too,
/// named or not.
pub fn of_variant(variant: Variant, selection: Selection) -> Selection {
    let Selection { mut names, .. } = selection;
    if variant != Variant::HybridRatio {
        return Selection { names, rule: Rule::Gpu, ..selection };
    }
    if !names.is_empty() && !names.iter().any(|name| name == Cpu::NAME) {
        names.push(Cpu::NAME.to_owned());
    }
    Selection { names, rule: Rule::HybridRatio, ..selection }
}

/// True of an input that is not what was protected under this key, or no container at all.
fn is_altered(ended: &Result<Made, Error>) -> bool {
    matches!(ended, Err(Error::Damaged(Damage::Altered)))
}

const LONGEST_KEY: usize = 32;
