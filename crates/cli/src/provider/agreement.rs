//! The program openssl with and without the provider: what one encrypts, the other decrypts.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail};
use serde::Serialize;
use wattlock_host::exit::unavailable;
use wattlock_host::program;
use wattlock_provider::configuration::Configuration;
use wattlock_provider::statistics::{Counts, Loaded, Path as Way, SharedTable};

/// An OpenSSL, as its program.
pub struct OpenSsl {
    /// For files; private to the check.
    pub directory: PathBuf,
    /// The first line of `openssl version`.
    pub version: String,
    program: PathBuf,
    module: PathBuf,
    configuration: PathBuf,
    statistics: SharedTable,
    /// What was counted when it was asked the last time.
    before: Cell<Counts>,
    /// Whether a process found its own records of many at once to be wrong.
    disagreed: Cell<bool>,
}

/// Whose ciphers a process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Wattlock,
    OpenSsl,
}

/// What was found out of one cipher or suite.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// The cipher or suite, by OpenSSL's name.
    pub name: String,
    /// By which commands.
    pub how: &'static str,
    /// What the provider's counters say of its part.
    pub counted: Counts,
    /// Bytes that it should have counted.
    pub expected_bytes: u64,
    /// Why it does not agree with OpenSSL's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
}

impl Checked {
    /// True if all of it ran in the provider and agreed.
    pub fn is_right(&self) -> bool {
        self.differs.is_none() && self.counted.bytes >= self.expected_bytes
    }

    /// For people.
    pub fn verdict(&self) -> String {
        match &self.differs {
            Some(why) => format!("WRONG: {why}"),
            None if self.counted.bytes == 0 => {
                "NOT USED: it agrees, but the provider counted nothing".into()
            }
            None if !self.is_right() => {
                let Counts { bytes, .. } = self.counted;
                format!("NOT USED by all: {bytes} of {} bytes counted", self.expected_bytes)
            }
            None => format!("agrees, {} bytes in Wattlock", self.counted.bytes),
        }
    }
}

impl OpenSsl {
    /// Looks for the program, by default the system's, and writes a configuration with the provider.
    ///
    /// # Errors
    /// That there is no such program, or what it says about the provider.
    pub fn with(asked: Option<&Path>, module: &Path, directory: &Path) -> anyhow::Result<Self> {
        // It runs in another directory.
        let program = match asked {
            None => "openssl".into(),
            Some(program) => program.canonicalize().map_err(|error| {
                let program = program.display();
                unavailable(format!("no program at {program}: {error}; --openssl names its file"))
            })?,
        };
        program::let_children_open_files();
        let statistics = SharedTable::new().context("cannot make a memory file")?;
        let configuration = directory.join("openssl.cnf");
        let setting = statistics.setting();
        let settings =
            Configuration { module, statistics: Some(&setting), settings: &[], system: None };
        fs::write(&configuration, settings.text().map_err(unavailable)?)?;
        let (directory, module) = (directory.to_owned(), module.to_owned());
        let (version, before, disagreed) =
            (String::new(), Cell::new(Counts::default()), Cell::new(false));
        let mut openssl = Self {
            directory,
            version,
            program,
            module,
            configuration,
            statistics,
            before,
            disagreed,
        };
        openssl.version = first_line(&openssl.run(By::OpenSsl, &["version"])?);
        if !openssl.version.contains("SSL") {
            let program = asked.unwrap_or(Path::new("openssl")).display();
            return Err(unavailable(format!("{program} is not an openssl program")));
        }
        Ok(openssl)
    }

    /// The program, with the provider or without, in the check's directory.
    pub fn command(&self, by: By) -> Command {
        // Limits its run time.
        let mut command = Command::new("timeout");
        command.arg(LONGEST_S).arg(&self.program).current_dir(&self.directory);
        command.env_remove("OPENSSL_MODULES").env_remove("OPENSSL_CONF_INCLUDE");
        command.env(
            "OPENSSL_CONF",
            match by {
                By::Wattlock => self.configuration.as_path(),
                By::OpenSsl => Path::new("/dev/null"),
            },
        );
        command
    }

    fn run<S: AsRef<OsStr>>(&self, by: By, args: &[S]) -> anyhow::Result<Output> {
        let ran = self.command(by).args(args).output();
        let ran = ran.map_err(|error| unavailable(format!("cannot run openssl: {error}")))?;
        if ran.status.code() == Some(NOT_FOUND) {
            return Err(unavailable("openssl is not installed, and it loads the provider"));
        }
        Ok(ran)
    }

    /// Runs it to its end.
    fn must(&self, by: By, args: &[&str]) -> anyhow::Result<Output> {
        let ran = self.run(by, args)?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr).trim().replace('\n', "; ");
            bail!("openssl {} failed: {said}", args.first().unwrap_or(&""));
        }
        Ok(ran)
    }

    /// The ciphers that OpenSSL takes from the provider, by their names in capitals.
    ///
    /// # Errors
    /// That OpenSSL does not load it.
    pub fn ciphers(&self) -> anyhow::Result<Vec<String>> {
        let listed = self.must(By::Wattlock, &["list", "-providers"])?;
        if !String::from_utf8_lossy(&listed.stdout).lines().any(|line| line.trim() == "wattlock") {
            let said = String::from_utf8_lossy(&listed.stderr);
            let why = match said.trim() {
                "" => self.why_not_loaded()?,
                said => said.to_owned(),
            };
            bail!("{} does not load the provider: {why}", self.version);
        }
        let listed = self.must(By::Wattlock, &["list", "-cipher-algorithms"])?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        let ours = listed.lines().filter_map(|line| line.trim().strip_suffix("@ wattlock"));
        let mut names: Vec<String> = ours.filter_map(name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Why the provider is not loaded. From a configuration, OpenSSL leaves out what it cannot load
    /// and says nothing; a provider that an option names it has to explain.
    fn why_not_loaded(&self) -> anyhow::Result<String> {
        let mut args = ["list", "-providers", "-provider"].map(OsStr::new).to_vec();
        args.push(self.module.as_os_str());
        let ran = self.run(By::OpenSsl, &args)?;
        let said = String::from_utf8_lossy(&ran.stderr);
        // "…:could not load the shared library:…:filename(FILE): FILE: file too short"
        let of_loader =
            said.lines().find_map(|line| line.split_once("filename(")?.1.split_once("): "));
        let why = of_loader.map(|(_, why)| why).or_else(|| said.lines().next());
        Ok(why.unwrap_or("it is another provider").trim().to_owned())
    }

    /// Encrypts and decrypts some lengths by both, and compares. `None` of a cipher that only TLS
    /// has a use for.
    ///
    /// # Errors
    /// That files cannot be written.
    pub fn check(&self, cipher: &str) -> anyhow::Result<Option<Checked>> {
        let parts: Vec<&str> = cipher.split('-').collect();
        let &[_, bits, mode] = parts.as_slice() else { return Ok(None) };
        let Ok(bits) = bits.parse::<usize>() else { return Ok(None) };
        let is_gcm = mode == "GCM";
        let how = if is_gcm { "openssl cms" } else { "openssl enc" };
        self.counted()?;
        let mut expected_bytes = 0;
        let mut differs = None;
        for len in LENGTHS {
            let plain: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            fs::write(self.directory.join("plain"), &plain)?;
            // The last block of these is OpenSSL's call for the end, which counts no bytes.
            let counted = if matches!(mode, "ECB" | "CBC") { len / 16 * 16 } else { len };
            expected_bytes += 2 * counted as u64;
            let agreed = if is_gcm { self.cms(cipher) } else { self.enc(cipher, bits, mode) };
            if let Err(why) = agreed {
                differs.get_or_insert(format!("{len} bytes: {why:#}"));
            }
        }
        let counted = self.counted()?;
        let name = cipher.to_owned();
        Ok(Some(Checked { name, how, counted, expected_bytes, differs }))
    }

    /// What the provider counted since it was asked the last time.
    ///
    /// # Errors
    /// Statistics that cannot be read.
    pub fn counted(&self) -> anyhow::Result<Counts> {
        let all = self.statistics.read()?;
        let failed = all.iter().any(|one| one.counts(Way::SelfCheckFailed).calls > 0);
        self.disagreed.set(self.disagreed.get() || failed);
        let now = all.iter().fold(Counts::default(), |sum, process| sum.plus(process.sum()));
        Ok(now.minus(self.before.replace(now)))
    }

    /// The OpenSSL that loaded the provider, and whether that offered it many records; `None` before a
    /// program loaded it.
    ///
    /// # Errors
    /// Statistics that cannot be read.
    pub fn loaded(&self) -> anyhow::Result<Option<Loaded>> {
        Ok(self.statistics.loaded()?.into_iter().next())
    }

    /// True if the provider's self-check failed in any process that was asked so far: then it seals
    /// records one by one.
    pub fn disagreed(&self) -> bool {
        self.disagreed.get()
    }

    /// `openssl enc`: the same ciphertext by both, and back.
    fn enc(&self, cipher: &str, bits: usize, mode: &str) -> anyhow::Result<()> {
        let option = format!("-{}", cipher.to_lowercase());
        let key = &KEY[..bits / 4];
        let run = |by, direction, from, to| {
            let mut args = vec!["enc", direction, &option, "-K", key, "-in", from, "-out", to];
            if mode != "ECB" {
                args.extend(["-iv", IV]);
            }
            self.must(by, &args)
        };
        run(By::Wattlock, "-e", "plain", "ours")?;
        run(By::OpenSsl, "-e", "plain", "theirs")?;
        self.same("ours", "theirs").context("ciphertexts")?;
        run(By::Wattlock, "-d", "theirs", "back")?;
        self.same("plain", "back").context("decrypted")
    }

    /// `openssl cms`, which has the only GCM among the program's commands: each opens the other's.
    fn cms(&self, cipher: &str) -> anyhow::Result<()> {
        let option = format!("-{}", cipher.to_lowercase());
        let key = ["-secretkey", &KEY[..64], "-secretkeyid", "01"];
        for (seals, opens) in [(By::Wattlock, By::OpenSsl), (By::OpenSsl, By::Wattlock)] {
            let seal =
                ["cms", "-encrypt", "-binary", &option, "-in", "plain", "-outform", "DER", "-out"];
            self.must(seals, &[&seal[..], &["sealed"], &key].concat())?;
            let open = ["cms", "-decrypt", "-binary", "-in", "sealed", "-inform", "DER", "-out"];
            self.must(opens, &[&open[..], &["back"], &key].concat())?;
            self.same("plain", "back").with_context(|| format!("sealed by {seals:?}"))?;
        }
        Ok(())
    }

    fn same(&self, one: &str, other: &str) -> anyhow::Result<()> {
        if fs::read(self.directory.join(one))? != fs::read(self.directory.join(other))? {
            bail!("differ");
        }
        Ok(())
    }
}

/// Of the names in a line of `openssl list`, that with the mode: `{ 2.16…, AES-128-CBC, AES128 }`.
fn name(line: &str) -> Option<String> {
    let names = line.trim().trim_start_matches('{').trim_end_matches('}').split(',');
    let mut upper = names.map(|name| name.trim().to_uppercase());
    upper.find(|name| name.starts_with("AES-") && name.split('-').count() >= 3)
}

fn first_line(ran: &Output) -> String {
    String::from_utf8_lossy(&ran.stdout).lines().next().unwrap_or("unknown").trim().to_owned()
}

/// Lengths of messages: below a block, one block, more than the program's buffer.
const LENGTHS: [usize; 3] = [1, 16, 100_003];

/// The key and IV of what is checked. They protect nothing.
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const IV: &str = "fffffffffffffffffffffffffffffffe";

/// Seconds after which a process is ended.
const LONGEST_S: &str = "30";

/// What `timeout` exits with where there is no such program.
const NOT_FOUND: i32 = 127;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ciphers_are_found_in_lists() {
        assert_eq!(
            name("{ 2.16.1.46, aes-256-gcm, id-aes256-GCM } ").as_deref(),
            Some("AES-256-GCM")
        );
        assert_eq!(name("AES-128-CTR ").as_deref(), Some("AES-128-CTR"));
        assert_eq!(name("{ 2.16.1, AES192 } "), None);
    }

    #[test]
    fn only_what_was_counted_is_right() {
        let mut checked = Checked {
            name: "AES-128-CBC".into(),
            how: "openssl enc",
            counted: Counts { calls: 1, records: 1, bytes: 9 },
            expected_bytes: 10,
            differs: None,
        };
        assert!(!checked.is_right());
        checked.counted.bytes = 10;
        assert!(checked.is_right());
        checked.differs = Some("differ".into());
        assert!(!checked.is_right());
    }
}
