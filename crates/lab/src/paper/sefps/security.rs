//! Section 4 of the SEFPS paper: its three attacks and ours, on containers made here.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use wattlock_engine::crypto::sha3::Sha3_256;
use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_engine::{Direction, Engine};
use wattlock_file::{Damage, Error, Input, Progress, Target};
use wattlock_report::paper::{Row, Rule, Section, Source};

use super::printed::quoted;
use super::rows::{count, exact, false_in_print, untested};
use crate::sefps::format::{Mode, Sefps, Variant, container_len};
use crate::study::aes::{Kernel, Key};

/// All attacks, done here.
///
/// # Errors
/// A file that cannot be written, or a container that does not open.
pub fn sections(victim: &Victim<'_>) -> anyhow::Result<Vec<Section>> {
    let mut sections = Vec::new();
    for (equation, attack) in [(2, Attack::Alter), (3, Attack::Delete), (4, Attack::Add)] {
        let mut rows = Vec::new();
        for place in [Place::Data, Place::Digest, Place::Both] {
            rows.push(victim.attacked(attack, place)?);
        }
        match attack {
            Attack::Alter => {
                rows.push(victim.forged_by_known_plaintext()?);
                rows.push(victim.substituted()?);
            }
            Attack::Delete => rows.push(victim.cut_from_chosen_plaintext()?),
            Attack::Add => {}
        }
        let title = format!("{} attacks on data, digest and both", attack.name());
        sections.push(Section::new(&format!("Equation {equation}"), &title, rows));
    }
    sections.push(Section::new("Section 4.1", "proof of integrity", integrity()));
    sections.push(Section::new(
        "Section 4.2",
        "proof of confidentiality",
        victim.confidentiality()?,
    ));
    Ok(sections)
}

/// Protects nothing.
const KEY: [u8; 16] = [0x37; 16];

const CTR: Mode = Mode::Ctr { iv: [0x11; 16] };

#[derive(Clone, Copy, PartialEq, Eq)]
enum Attack {
    Alter,
    Delete,
    Add,
}

impl Attack {
    fn name(self) -> &'static str {
        match self {
            Self::Alter => "altering",
            Self::Delete => "deleting",
            Self::Add => "adding",
        }
    }

    /// The bytes after the attack at these places.
    fn on(self, bytes: &[u8], places: &[usize]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for &at in places.iter().rev() {
            match self {
                Self::Alter => bytes[at] ^= 1,
                Self::Delete => drop(bytes.drain(at..at + 16)),
                Self::Add => drop(bytes.splice(at..at, [0x5a; 16])),
            }
        }
        bytes
    }
}

#[derive(Clone, Copy)]
enum Place {
    Data,
    Digest,
    Both,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Data => "c(m)",
            Self::Digest => "c(d)",
            Self::Both => "both",
        }
    }

    fn of(self, container: usize) -> Vec<usize> {
        match self {
            Self::Data => vec![16],
            Self::Digest => vec![container - 16],
            Self::Both => vec![16, container - 32],
        }
    }
}

/// Someone who protects files with one key.
pub struct Victim<'a> {
    directory: &'a Path,
    key: Key,
}

impl<'a> Victim<'a> {
    /// One whose files are in that directory.
    ///
    /// # Errors
    /// That there is no kernel for AES.
    pub fn new(directory: &'a Path) -> anyhow::Result<Self> {
        Ok(Self { directory, key: Key::new(Kernel::best(), &KEY)? })
    }

    /// Whether a container is AES of data, padding and the digest of both, as worked out without the
    /// code that makes containers.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn holds_data_padding_and_digest(&self) -> anyhow::Result<bool> {
        let plain = [0x62; 123];
        let mut container = self.protect(Mode::Ecb, Variant::Serial, &plain)?;
        AesKey::new(AesKernel::Soft, &KEY)?.ecb_decrypt(&mut container)?;
        Ok(container == content(&plain))
    }

    /// Whether nothing is left of a container that was altered.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn releases_nothing_altered(&self) -> anyhow::Result<bool> {
        let mut container = self.protect(CTR, Variant::Serial, &[0x63; 100])?;
        container[20] ^= 1;
        let found = self.unprotect(CTR, &container)?.is_none();
        Ok(found && fs::read_dir(self.directory)?.next().is_none())
    }

    fn protect(&self, mode: Mode, variant: Variant, plain: &[u8]) -> anyhow::Result<Vec<u8>> {
        self.run(Direction::Encrypt, mode, variant, plain)?.context("protecting failed")
    }

    /// The content of a container, or nothing if it was found to be altered.
    fn unprotect(&self, mode: Mode, container: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
        self.run(Direction::Decrypt, mode, Variant::Serial, container)
    }

    fn run(
        &self,
        direction: Direction,
        mode: Mode,
        variant: Variant,
        input: &[u8],
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let [from, to] = ["attacked", "made"].map(|name| self.directory.join(name));
        fs::write(&from, input)?;
        let (engine, progress) = (Engine::new(2), Progress::default());
        let how = Sefps {
            engine: &engine,
            key: &self.key,
            mode,
            variant,
            overwrite: true,
            progress: &progress,
        };
        let made = match how.run(direction, &Input::Path(from.clone()), Target::File(to.clone())) {
            Ok(_) => Some(fs::read(&to)?),
            Err(Error::Damaged(Damage::Altered)) => None,
            Err(error) => bail!(error),
        };
        fs::remove_file(from)?;
        if made.is_some() {
            fs::remove_file(to)?;
        }
        Ok(made)
    }

    /// One of the paper's nine cases, in both modes.
    fn attacked(&self, attack: Attack, place: Place) -> anyhow::Result<Row> {
        let mut found = 0;
        for mode in [Mode::Ecb, CTR] {
            let sealed = self.protect(mode, Variant::Serial, &[0x61; 100])?;
            let attacked = attack.on(&sealed, &place.of(sealed.len()));
            found += usize::from(self.unprotect(mode, &attacked)?.is_none());
        }
        Ok(exact(
            Rule::Sign,
            &format!("{} {} is found", attack.name(), place.name()),
            "found",
            &format!("found in {found} of 2 modes, with bytes chosen at random"),
            found == 2,
        ))
    }

    /// The key stream is the container XOR its content: no key is needed to put another in.
    fn forged_by_known_plaintext(&self) -> anyhow::Result<Row> {
        let (known, wanted) =
            (b"Pay 100 EUR to Alice. Thank you.", b"Pay 999 EUR to Mallory! Goodbye.");
        let sealed = self.protect(CTR, Variant::Serial, known)?;
        let flips = content(known).into_iter().zip(content(wanted)).map(|(old, new)| old ^ new);
        let forged: Vec<u8> = sealed.iter().zip(flips).map(|(byte, flip)| byte ^ flip).collect();
        let opened = self.unprotect(CTR, &forged)?;
        Ok(refuted(
            "no altering passes without the key",
            "cannot forge the suitable altering",
            "in CTR, whoever knows the content put another of its length in its place",
            opened.as_deref() == Some(wanted),
        ))
    }

    /// Nothing in a container says which file it is of.
    fn substituted(&self) -> anyhow::Result<Row> {
        let mut opens = true;
        for mode in [Mode::Ecb, CTR] {
            let other = self.protect(mode, Variant::Serial, b"an older file under the same key")?;
            opens &= self.unprotect(mode, &other)?.is_some();
        }
        Ok(refuted(
            "no other content passes for the file",
            "attacks of altering data will be found",
            "in both modes, another whole container of the same key opens in its place",
            opens,
        ))
    }

    /// A container within the data of another, cut out of it.
    fn cut_from_chosen_plaintext(&self) -> anyhow::Result<Row> {
        let inner = content(b"Pay Mallory.");
        let chosen = [&inner[..], b" and this is the rest of the letter"].concat();
        let mut opened = Vec::new();
        for mode in [Mode::Ecb, CTR] {
            let sealed = self.protect(mode, Variant::Serial, &chosen)?;
            opened.push(self.unprotect(mode, &sealed[..inner.len()])?);
        }
        let passes = opened.iter().all(|opened| opened.as_deref() == Some(b"Pay Mallory."));
        Ok(refuted(
            "no deleting passes without the key",
            "cannot forge the suitable altering",
            "in both modes, data that hold a container's content were cut to it; adding is the same from the other side",
            passes,
        ))
    }

    fn confidentiality(&self) -> anyhow::Result<Vec<Row>> {
        let plain: Vec<u8> = (0..100_003_u32).map(|i| (i % 251) as u8).collect();
        let mut same = true;
        for mode in [Mode::Ecb, CTR] {
            let serial = self.protect(mode, Variant::Serial, &plain)?;
            for variant in [Variant::Parallel, Variant::Overlapped] {
                same &= self.protect(mode, variant, &plain)? == serial;
            }
        }
        let repeated = self.protect(Mode::Ecb, Variant::Serial, &[7; 48])?;
        Ok(vec![
            exact(
                Rule::Value,
                "parallel AES is as strong as serial AES",
                "the same strong security",
                "its containers are the same byte for byte, in both modes",
                same,
            ),
            refuted(
                "ECB keeps the contents hidden",
                "ECB or CTR",
                "three equal blocks of data are three equal blocks of the container",
                repeated[..16] == repeated[16..32] && repeated[16..32] == repeated[32..48],
            ),
            untested(
                "AES survives all known and unknown attacks",
                "K-secure and Hermetic",
                "no test can show that",
            ),
        ])
    }
}

/// What a container holds before it is encrypted.
fn content(data: &[u8]) -> Vec<u8> {
    let padded_len = container_len(data.len() as u64) as usize - 32;
    let zeros = padded_len - 16 - data.len();
    let mut content = data.to_vec();
    content.resize(padded_len - 16, 0);
    content.extend([zeros as u8; 16]);
    let mut hash = Sha3_256::default();
    hash.update(&content);
    content.extend(hash.finish());
    content
}

/// A claim that an attack done here shows to be false.
fn refuted(item: &str, printed: &str, how: &str, shown: bool) -> Row {
    let row = Row::claim(Rule::Sign, item, how, false, Source::Exact).printed(printed);
    if shown { row.exempt("false: the attack was done here, and is not found") } else { row }
}

fn integrity() -> Vec<Row> {
    vec![
        count("attacks", quoted("S4.1-attacks"), 3.0, "altering, deleting, adding"),
        false_in_print(
            "deleting, first case: what the digest is of",
            "d = h(c(m))",
            "it was defined as d = h(m), of the plaintext",
        ),
    ]
}
