//! `wattlock protect` and `unprotect` with `--format sefps`: a study's format, under a raw key.

use std::fs::File;
use std::io::Read;

use anyhow::Context;
use wattlock_engine::crypto::{AesKey, Algorithm, Mode as AesMode};
use wattlock_engine::{Direction, Engine};
use wattlock_file::sefps::{Mode, Sefps, Variant, tasks};
use wattlock_file::{Outcome, Shown, expect_all};
use zeroize::Zeroizing;

use crate::args;
use crate::cipher::{hex, kernel};
use crate::exit::{self, Ended, usage};
use crate::files::{Invocation, Road, not_to_a_terminal, road};
use crate::{accelerators, progress, signals};

/// Said at every use.
const WARNING: &str = "wattlock: warning: the format sefps is for study, and protects nothing that \
matters: its digest has no key, so whoever knows the plaintext of a container under CTR can forge \
another, and ECB shows which blocks are equal. The default format, wattlock, has neither fault";

/// `wattlock protect --format sefps`.
pub fn protect(args: &args::Protect) -> Ended {
    let other = !args.recipients.recipients.is_empty()
        || !args.recipients.recipients_files.is_empty()
        || !args.identities.is_empty()
        || args.passphrase.is_given()
        || args.no_metadata;
    let asked = Asked {
        command: "protect",
        direction: Direction::Encrypt,
        sefps: &args.sefps,
        variant: args.variant.as_deref(),
        places: &args.places,
        batch: &args.batch,
        run: &args.run,
    };
    asked.answer(other)
}

/// `wattlock unprotect --format sefps`.
pub fn unprotect(args: &args::Unprotect) -> Ended {
    let other = !args.identities.identities.is_empty()
        || args.passphrase.is_given()
        || args.range.is_some()
        || args.restore_name;
    let asked = Asked {
        command: "unprotect",
        direction: Direction::Decrypt,
        sefps: &args.sefps,
        variant: args.variant.as_deref(),
        places: &args.places,
        batch: &args.batch,
        run: &args.run,
    };
    asked.answer(other)
}

/// Refuses what only this format takes.
///
/// # Errors
/// Which flag it is.
pub fn refuse_its_flags(sefps: &args::Sefps, variant: Option<&String>) -> anyhow::Result<()> {
    let flag = match sefps {
        args::Sefps { key_file: Some(_), .. } => "--key-file",
        args::Sefps { cipher: Some(_), .. } => "--cipher",
        args::Sefps { iv: Some(_), .. } => "--iv",
        args::Sefps { kernel: Some(_), .. } => "--kernel",
        _ if variant.is_some() => "--variant",
        _ => return Ok(()),
    };
    Err(usage(format!("{flag} is for --format sefps")))
}

/// What both commands were asked for.
struct Asked<'a> {
    command: &'static str,
    direction: Direction,
    sefps: &'a args::Sefps,
    variant: Option<&'a str>,
    places: &'a args::Places,
    batch: &'a args::Batch,
    run: &'a args::Run,
}

impl Asked<'_> {
    /// Does it, unless there are flags of `other` formats.
    fn answer(&self, other: bool) -> Ended {
        tell!("{WARNING}");
        self.refuse(other)?;
        signals::clean_up_when_ended()?;
        let (key, mode) = self.keyed()?;
        let road = road(self.places, self.batch)?;
        let invocation = Invocation::with_engine(self.run, self.engine()?);
        let how = Sefps {
            engine: &invocation.engine,
            key: &key,
            mode,
            variant: self.variant(),
            overwrite: self.places.force,
            progress: &invocation.progress,
        };
        match road {
            Road::One(input, output) => {
                invocation.one(self.command, &input, output.as_deref(), |target| {
                    if self.direction == Direction::Encrypt {
                        not_to_a_terminal(output.as_deref())?;
                    }
                    how.run(self.direction, &input, target).map(|made| made.done)
                })
            }
            Road::Many => self.many(&invocation, &how),
        }
    }

    /// Refuses what only other formats take.
    fn refuse(&self, other: bool) -> anyhow::Result<()> {
        if other {
            return Err(usage(
                "sefps knows a --key-file and nothing else: no recipients, identities, passphrases, \
                 metadata or ranges",
            ));
        }
        if self.batch.recursive || self.batch.replace || self.batch.resume {
            return Err(usage(
                "--recursive, --replace and --resume are for formats that keep what is given to \
                 them; sefps takes files one by one, and leaves them",
            ));
        }
        Ok(())
    }

    fn many(&self, invocation: &Invocation, how: &Sefps<'_>) -> Ended {
        let tasks = tasks(self.direction, &self.places.files, self.places.out_dir.as_deref())?;
        expect_all(&invocation.progress, &tasks);
        let shown = progress::show(&invocation.progress, invocation.quiet);
        let ran = how.run_many(self.direction, &tasks, |task, ended| {
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
        let spread = &self.run.spread;
        let name = self.variant().name(self.direction);
        match self.variant() {
            variant if variant.needs_accelerator() => {
                let policy = match variant {
                    Variant::HybridRatio => args::PolicyName::HybridRatio,
                    _ => args::PolicyName::Gpu,
                };
                let spread = args::Spread { policy: Some(policy), ..spread.clone() };
                accelerators::engine_with_accelerator(threads, &spread)
                    .with_context(|| format!("--variant {name}"))
            }
            Variant::Overlapped => accelerators::engine(threads, spread),
            _ if spread.devices.is_empty() && spread.policy.is_none() => Ok(Engine::new(threads)),
            _ => Err(usage(format!("--variant {name} is the CPU's; no --device, no --policy"))),
        }
    }

    fn variant(&self) -> Variant {
        let is_asked_for = |variant: &Variant| Some(variant.name(self.direction)) == self.variant;
        Variant::ALL.into_iter().find(is_asked_for).unwrap_or_default()
    }

    /// The key and the mode, whose lengths fit the cipher.
    fn keyed(&self) -> anyhow::Result<(AesKey, Mode)> {
        let name = self.sefps.cipher.as_deref().ok_or_else(|| {
            usage("--format sefps needs --cipher: aes-256-ecb as in the study, or aes-256-ctr")
        })?;
        let algorithm = match name.parse() {
            Ok(algorithm @ Algorithm::Aes { mode: AesMode::Ecb | AesMode::Ctr, .. }) => algorithm,
            _ => {
                return Err(usage(exit::redact(&format!(
                    "--cipher {name}: sefps knows aes-128, aes-192 and aes-256, each with -ecb or \
                     -ctr"
                ))));
            }
        };
        let kernel = kernel(self.sefps.kernel.as_deref(), algorithm)?;
        let mode = match (&self.sefps.iv, algorithm.iv_len()) {
            (None, 0) => Mode::Ecb,
            (Some(_), 0) => return Err(usage(format!("{algorithm} takes no --iv"))),
            (None, _) => {
                return Err(usage(format!(
                    "{algorithm} needs --iv: 16 bytes, never the same twice with one key"
                )));
            }
            (Some(digits), expected) => {
                let iv = hex("--iv", digits)?;
                let wrong = format!("--iv is {} bytes, and {algorithm} takes {expected}", iv.len());
                Mode::Ctr { iv: iv.as_slice().try_into().map_err(|_| usage(wrong))? }
            }
        };
        let key = self.key()?;
        let (expected, _) = algorithm.key_len();
        if key.len() != expected {
            return Err(usage(format!(
                "the key file holds {} bytes, and {algorithm} takes {expected}",
                if key.len() > LONGEST_KEY { "more than 32".into() } else { key.len().to_string() }
            )));
        }
        Ok((AesKey::new(kernel, &key)?, mode))
    }

    fn key(&self) -> anyhow::Result<Zeroizing<Vec<u8>>> {
        let path = self.sefps.key_file.as_deref().ok_or_else(|| {
            usage("--format sefps needs --key-file: 16, 24 or 32 bytes, as `openssl rand 32` makes")
        })?;
        let failed = || format!("cannot read the key file {}", Shown(path));
        let limit = LONGEST_KEY as u64 + 1;
        // Room enough that the key is never moved and left behind.
        let mut key = Zeroizing::new(Vec::with_capacity(2 * LONGEST_KEY));
        let file = File::open(path).with_context(failed)?;
        file.take(limit).read_to_end(&mut key).with_context(failed)?;
        Ok(key)
    }
}

const LONGEST_KEY: usize = 32;
