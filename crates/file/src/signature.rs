//! Detached signatures of payloads, in the form of OpenSSH (`ssh-keygen -Y sign`).
//!
//! What is signed are the bytes behind the header: salt, commitment and all ciphertext. The commitment
//! binds the data key, so these bytes have one plaintext. The header is not signed, so that recipients
//! can change; its metadata are therefore anybody's who is a recipient. See
//! `docs/spec/signatures.md`.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use globset::GlobBuilder;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256, Sha512};
use signature::{Signer as _, Verifier as _};
use ssh_key::public::KeyData;
use ssh_key::{Algorithm, HashAlg, LineEnding, PrivateKey, PublicKey, SshSig};

use crate::container::Sealed;
use crate::error::Error;
use crate::folder::Location;
use crate::folders::umask;
use crate::format::Format;
use crate::input::Input;
use crate::keys::Passphrase;
use crate::staging::{Attributes, NewOutput, Planned, Staged};

/// The namespace of signatures of payloads, for `ssh-keygen -n`.
pub const NAMESPACE: &str = "wattlock-payload-v1";

/// What is added to a container's name for its signature.
pub const SIGNATURE_SUFFIX: &str = "sig";

/// An ssh-ed25519 key that signs.
pub struct Signer(PrivateKey);

impl Signer {
    /// Reads an OpenSSH private key; `passphrase` is called if the key needs one.
    ///
    /// # Errors
    /// [`Error::Usage`] for another kind of key or none; [`Error::WrongPassphrase`]; what
    /// `passphrase` returns.
    pub fn from_openssh<E: From<Error>>(
        text: &[u8],
        passphrase: impl FnOnce() -> Result<Passphrase, E>,
    ) -> Result<Self, E> {
        let key = PrivateKey::from_openssh(text)
            .map_err(|_| Error::usage("it is no ssh-ed25519 private key of OpenSSH"))?;
        let key = if key.is_encrypted() {
            let passphrase = passphrase()?;
            key.decrypt(passphrase.expose()).map_err(|_| Error::WrongPassphrase)?
        } else {
            key
        };
        match key.algorithm() {
            Algorithm::Ed25519 => Ok(Self(key)),
            other => {
                Err(Error::usage(format!("it is a key of type {other}, and ssh-ed25519 is needed"))
                    .into())
            }
        }
    }

    /// The signature of the payload that stands in `range` of `file`, as text.
    pub(crate) fn sign(&self, file: &File, range: Range<u64>) -> Result<String, SignError> {
        let digest = digest::<Sha256>(file, range).map_err(SignError::Read)?;
        let data = signed_data("sha256", &digest);
        let made = self.0.try_sign(&data).map_err(|_| SignError::Key)?;
        let key = self.0.public_key().key_data().clone();
        let signature =
            SshSig::new(key, NAMESPACE, HashAlg::Sha256, made).map_err(|_| SignError::Key)?;
        signature.to_pem(LineEnding::LF).map_err(|_| SignError::Key)
    }
}

/// Why a payload could not be signed.
pub(crate) enum SignError {
    Read(io::Error),
    Key,
}

/// Who may sign, by the lines of an `allowed_signers` file of OpenSSH.
pub struct AllowedSigners {
    lines: Vec<Allowed>,
    /// The numbers of the lines that were left out, and why.
    pub skipped: Vec<(usize, &'static str)>,
}

struct Allowed {
    principals: String,
    namespaces: Option<Vec<String>>,
    valid: Range<Timestamp>,
    key: KeyData,
}

impl AllowedSigners {
    /// Reads the lines of `text`: principals, options, a key. Keys of other types than ssh-ed25519,
    /// certificate authorities and unknown options are left out.
    ///
    /// # Errors
    /// [`Error::Usage`] for a line that is malformed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (mut lines, mut skipped) = (Vec::new(), Vec::new());
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match allowed(line) {
                Ok(line) => lines.push(line),
                Err(Line::Skipped(why)) => skipped.push((index + 1, why)),
                Err(Line::Wrong(why)) => {
                    return Err(Error::usage(format!("line {}: {why}", index + 1)));
                }
            }
        }
        Ok(Self { lines, skipped })
    }

    /// The principals of `key`, if it may sign payloads at the time `now`.
    fn find(&self, key: &KeyData, now: Timestamp) -> Option<&str> {
        let mut lines = self.lines.iter();
        let found = lines.find(|line| {
            let namespaces = line.namespaces.as_ref();
            line.key == *key
                && line.valid.contains(&now)
                && namespaces.is_none_or(|patterns| allow_the_namespace(patterns))
        });
        found.map(|line| line.principals.as_str())
    }
}

/// Checks the signature of the container `input`, which is in the file with `.sig` after its name.
/// Returns who signed it.
///
/// # Errors
/// [`Error::NotSigned`], [`Error::WrongSigner`], [`Error::WrongSignature`]; those of reading the
/// header.
pub fn check_signature(input: &Input, signers: &AllowedSigners) -> Result<String, Error> {
    let Input::Path(path) = input else {
        return Err(Error::usage("a signature is checked for a file, not for standard input"));
    };
    let sealed = Sealed::read(input)?;
    let range = sealed.payload_range().filter(|_| sealed.header.format() == Format::WattlockV1);
    let range = range.ok_or_else(|| Error::usage("only wattlock v1 containers have signatures"))?;
    let place = signature_path(path);
    let pem = match read(&place) {
        Ok(pem) => pem,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::NotSigned(place));
        }
        Err(error) => return Err(Error::io("read", &place)(error)),
    };
    let wrong = || Error::WrongSignature(path.clone());
    let signature = SshSig::from_pem(&pem).map_err(|_| wrong())?;
    if signature.namespace() != NAMESPACE {
        return Err(wrong());
    }
    let signer = signers.find(signature.public_key(), now());
    let signer = signer.ok_or_else(|| Error::WrongSigner {
        path: path.clone(),
        key: PublicKey::from(signature.public_key().clone())
            .fingerprint(HashAlg::Sha256)
            .to_string(),
    })?;
    let file = &sealed.opened.file()?.file;
    let data = match signature.hash_alg() {
        HashAlg::Sha256 => digest::<Sha256>(file, range).map(|hash| signed_data("sha256", &hash)),
        HashAlg::Sha512 => digest::<Sha512>(file, range).map(|hash| signed_data("sha512", &hash)),
        _ => return Err(wrong()),
    };
    let data = data.map_err(Error::io("read", path))?;
    sealed.opened.check_unchanged()?;
    signature.public_key().verify(&data, signature.signature()).map_err(|_| wrong())?;
    Ok(signer.to_owned())
}

/// Where the signature of a container is.
fn signature_path(container: &Path) -> PathBuf {
    let mut path = container.as_os_str().to_owned();
    path.push(".");
    path.push(SIGNATURE_SUFFIX);
    path.into()
}

/// Where the signature of a container is.
fn signature_location(container: &Location) -> Location {
    container.with_name(signature_path(Path::new(container.name())).as_os_str())
}

/// All of a signature's file, which is short and a file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let status = std::fs::metadata(path)?;
    if !status.is_file() || status.len() > MAX_SIGNATURE_LEN {
        return Err(io::Error::other("it is no signature"));
    }
    read_all(File::open(path)?)
}

/// As much of a file as a signature can be.
fn read_all(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_SIGNATURE_LEN).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Bytes of the longest signature that is read.
const MAX_SIGNATURE_LEN: u64 = 1 << 16;

/// True for a file that holds a signature.
pub(crate) fn is_signature(path: &Path) -> bool {
    read(path).is_ok_and(|bytes| bytes.starts_with(b"-----BEGIN SSH SIGNATURE-----"))
}

/// The text of the signature of a payload that `container` has, if it has one.
pub(crate) fn signature_of(container: &Path) -> Option<Vec<u8>> {
    payload_signature(&read(&signature_path(container)).ok()?)
}

/// The bytes, if they are the signature of a payload.
fn payload_signature(pem: &[u8]) -> Option<Vec<u8>> {
    let signature = SshSig::from_pem(pem).ok()?;
    (signature.namespace() == NAMESPACE).then(|| pem.to_vec())
}

/// Removes the signature of the payload that `container` had, and nothing else that has its name.
/// Returns its path.
pub(crate) fn remove_signature(container: &Location) -> Option<PathBuf> {
    let signature = signature_location(container);
    let folder = signature.folder().ok()?;
    if !folder.look(signature.name()).ok()??.kind.is_file() {
        return None;
    }
    payload_signature(&read_all(signature.open().ok()?).ok()?)?;
    // One that stays matches nothing.
    folder.remove(signature.name()).ok().map(|()| signature.path().to_owned())
}

/// Writes `text` as the signature that `container` will have, durable and without a name.
pub(crate) fn stage_signature(
    container: &Location,
    text: &[u8],
    overwrite: bool,
) -> Result<Staged, Error> {
    let at = signature_location(container);
    let signature =
        Staged::begin(&NewOutput { at: at.clone(), overwrite, planned: Planned::NotYet })?;
    signature.file().write_all_at(text, 0).map_err(at.failed("write"))?;
    signature.settle(&Attributes { mode: Some(0o666 & !umask()), ..Attributes::default() })?;
    Ok(signature)
}

fn digest<H: Digest>(file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let mut hash = H::new();
    let mut buffer = vec![0; 1 << 18];
    let mut at = range.start;
    while at < range.end {
        let len = (range.end - at).min(buffer.len() as u64) as usize;
        file.read_exact_at(&mut buffer[..len], at)?;
        hash.update(&buffer[..len]);
        at += len as u64;
    }
    Ok(hash.finalize().to_vec())
}

/// What the key signs, by OpenSSH's `PROTOCOL.sshsig`: `SSHSIG`, the namespace, nothing, the name of
/// the hash, the hash.
fn signed_data(hash: &str, digest: &[u8]) -> Vec<u8> {
    let mut data = b"SSHSIG".to_vec();
    for field in [NAMESPACE.as_bytes(), b"", hash.as_bytes(), digest] {
        data.extend_from_slice(&(field.len() as u32).to_be_bytes());
        data.extend_from_slice(field);
    }
    data
}

/// Why a line allows nobody.
enum Line {
    Skipped(&'static str),
    Wrong(&'static str),
}

fn allowed(line: &str) -> Result<Allowed, Line> {
    let (principals, rest) = word(line).ok_or(Line::Wrong("there is no key"))?;
    let (mut namespaces, mut valid) = (None, Timestamp::MIN..Timestamp::MAX);
    let mut rest = rest;
    if !is_key_type(rest) {
        let (options, key) = word(rest).ok_or(Line::Wrong("there is no key"))?;
        for option in options_of(options) {
            let (name, value) = option.split_once('=').unwrap_or((option.as_str(), ""));
            let value = value.trim_matches('"');
            match name.to_ascii_lowercase().as_str() {
                "namespaces" => namespaces = Some(value.split(',').map(str::to_owned).collect()),
                "valid-after" => valid.start = time(value)?,
                "valid-before" => valid.end = time(value)?,
                "cert-authority" => {
                    return Err(Line::Skipped("certificate authorities are not supported"));
                }
                _ => {
                    return Err(Line::Skipped(
                        "unknown option, or no principal; expected: PRINCIPAL ssh-ed25519 KEY",
                    ));
                }
            }
        }
        rest = key;
    }
    if !rest.starts_with("ssh-ed25519 ") {
        return Err(match is_key_type(rest) {
            true => Line::Skipped("only keys of type ssh-ed25519 are supported"),
            false => Line::Wrong("there is no key"),
        });
    }
    let key = PublicKey::from_openssh(rest).map_err(|_| Line::Wrong("the key is malformed"))?;
    Ok(Allowed {
        principals: principals.to_owned(),
        namespaces,
        valid,
        key: key.key_data().clone(),
    })
}

/// True if [`NAMESPACE`] matches one of `patterns`, and none behind a `!`.
fn allow_the_namespace(patterns: &[String]) -> bool {
    let matches = |pattern: &str| {
        // `*` and `?` alone are special for OpenSSH.
        let class = |c: char| if "[]{}".contains(c) { format!("[{c}]") } else { c.to_string() };
        let glob: String = pattern.chars().map(class).collect();
        GlobBuilder::new(&glob)
            .backslash_escape(false)
            .build()
            .is_ok_and(|glob| glob.compile_matcher().is_match(NAMESPACE))
    };
    let (refused, allowed): (Vec<_>, Vec<_>) =
        patterns.iter().map(String::as_str).partition(|pattern| pattern.starts_with('!'));
    allowed.into_iter().any(matches) && !refused.iter().any(|pattern| matches(&pattern[1..]))
}

fn is_key_type(text: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"].iter().any(|start| text.starts_with(start))
}

/// The first word, in which quoted spaces end nothing, and what follows it.
fn word(text: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    })?;
    Some((&text[..end], text[end..].trim_start()))
}

/// Options that commas separate, outside of quotes.
fn options_of(text: &str) -> Vec<String> {
    let mut options = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        quoted ^= c == '"';
        match c {
            ',' if !quoted => options.push(String::new()),
            c => options.last_mut().expect("there is one").push(c),
        }
    }
    options
}

/// A time in UTC as `YYYYMMDDZ`, `YYYYMMDDHHMMZ` or `YYYYMMDDHHMMSSZ`.
fn time(text: &str) -> Result<Timestamp, Line> {
    let wrong = || Line::Wrong("a time is malformed");
    let digits = text.strip_suffix(['Z', 'z']);
    let digits = digits.ok_or(Line::Skipped("a time without Z (UTC) is not supported"))?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) || ![8, 12, 14].contains(&digits.len()) {
        return Err(wrong());
    }
    let number = |range: Range<usize>| digits.get(range).and_then(|text| text.parse().ok());
    let year = digits[..4].parse().map_err(|_| wrong())?;
    let [month, day, hour, minute, second] =
        [4, 6, 8, 10, 12].map(|at| number(at..at + 2).unwrap_or(0));
    let at = DateTime::new(year, month, day, hour, minute, second, 0).map_err(|_| wrong())?;
    Ok(at.to_zoned(TimeZone::UTC).map_err(|_| wrong())?.timestamp())
}

/// The time now, as far as the system knows.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_second(since.as_secs().try_into().unwrap_or(i64::MAX)).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsKLqeplhpW+uObz5dvMgjz1OxfM/XXUB+VHtZ6isGN";

    fn at(text: &str) -> Timestamp {
        time(text).ok().unwrap()
    }

    fn names(line: &str, now: Timestamp) -> Option<String> {
        let key = PublicKey::from_openssh(KEY).unwrap();
        let signers = AllowedSigners::parse(&format!("# comment\n\n{line}\n")).unwrap();
        signers.find(key.key_data(), now).map(str::to_owned)
    }

    #[test]
    fn lines_of_allowed_signers() {
        let now = at("20260301Z");
        for (options, allowed) in [
            ("", true),
            ("namespaces=\"git,wattlock-payload-v1\" ", true),
            ("namespaces=\"git\" ", false),
            ("namespaces=\"git,wattlock-*-v?\" ", true),
            ("namespaces=\"*\" ", true),
            ("namespaces=\"wattlock-payload-v[1]\" ", false),
            ("namespaces=\"{wattlock-payload-v1}\" ", false),
            ("namespaces=\"*,!wattlock-payload-v1\" ", false),
            ("namespaces=\"!git\" ", false),
            ("valid-after=\"20260101Z\",valid-before=\"202604011200Z\" ", true),
            ("valid-after=\"20260302Z\" ", false),
            ("valid-before=\"20260228235959Z\" ", false),
            ("cert-authority ", false),
            ("some-option=\"a b\" ", false),
            ("valid-before=\"20300101\" ", false),
        ] {
            let found = names(&format!("a@b.example,c {options}{KEY} a comment"), now);
            assert_eq!(found.as_deref(), allowed.then_some("a@b.example,c"), "{options}");
        }
        for wrong in ["alone", "a@b ssh-ed25519 AAAA", "a@b valid-after=\"2026Z\" ssh-ed25519 A"] {
            assert!(AllowedSigners::parse(wrong).is_err(), "{wrong}");
        }
        let ecdsa = AllowedSigners::parse("a ecdsa-sha2-nistp256 AAAA").unwrap();
        assert_eq!(ecdsa.skipped.len(), 1);
    }
}
