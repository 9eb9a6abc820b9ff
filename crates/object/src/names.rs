//! Hidden names: the keys of a tree's objects, made of their paths with a key of the tree.
//!
//! `docs/spec/hidden-names.md` has the format.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use aes_siv::KeyInit;
use aes_siv::siv::Aes256Siv;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD as BASE64, BASE64_URL_SAFE_NO_PAD as BASE64_URL};
use zeroize::Zeroizing;

/// The key that hides the paths of a tree.
pub struct HiddenNames {
    key: Zeroizing<[u8; KEY_LEN]>,
}

/// A path that a key cannot hide, or a text that is none of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The system has no random bytes.
    #[error("cannot get random bytes from the system")]
    Random,
    /// The hidden name would be longer than stores take.
    #[error("the path has {0} bytes; hidden names allow {MOST_PATH}")]
    TooLong(usize),
    /// The text is not that of a names file.
    #[error("the names file is malformed")]
    Malformed,
    /// The name was not made with this key.
    #[error("it was not made with this tree's key")]
    Foreign,
}

/// The name of the names file, a container that holds the key.
pub const NAMES_FILE: &str = ".wattlock-names.wlk";

/// What a names file starts with.
const START: &str = "wattlock-names/1 ";

const KEY_LEN: usize = 64;

/// Paths are padded to a multiple of this.
const PADDED: usize = 32;

/// Characters between two slashes: file systems take names of 255 bytes.
const PART: usize = 240;

/// Bytes of the longest path: its hidden name and a prefix of a tree fit into the 1024 bytes of a key.
const MOST_PATH: usize = 640;

impl HiddenNames {
    /// A new key.
    ///
    /// # Errors
    /// [`NameError::Random`].
    pub fn generate() -> Result<Self, NameError> {
        let mut key = Zeroizing::new([0; KEY_LEN]);
        getrandom::fill(&mut key[..]).map_err(|_| NameError::Random)?;
        Ok(Self { key })
    }

    /// The key in the plaintext of a names file.
    ///
    /// # Errors
    /// [`NameError::Malformed`].
    pub fn parse(text: &[u8]) -> Result<Self, NameError> {
        let text = text.strip_prefix(START.as_bytes()).and_then(|text| text.strip_suffix(b"\n"));
        let decoded = text.and_then(|text| BASE64.decode(text).ok()).map(Zeroizing::new);
        let decoded = decoded.filter(|key| key.len() == KEY_LEN).ok_or(NameError::Malformed)?;
        let mut key = Zeroizing::new([0; KEY_LEN]);
        key.copy_from_slice(&decoded);
        Ok(Self { key })
    }

    /// The plaintext of a names file with this key.
    pub fn to_text(&self) -> Zeroizing<String> {
        let key = Zeroizing::new(BASE64.encode(&self.key[..]));
        Zeroizing::new([START, &key, "\n"].concat())
    }

    /// The name of the object for the file at `path`, which has no end such as `.wlk` yet. The same path
    /// always gives the same name.
    ///
    /// # Errors
    /// [`NameError::TooLong`].
    pub fn hide(&self, path: &Path) -> Result<String, NameError> {
        let mut padded = path.as_os_str().as_bytes().to_vec();
        if padded.len() > MOST_PATH {
            return Err(NameError::TooLong(padded.len()));
        }
        padded.resize((padded.len() + 1).next_multiple_of(PADDED), 0);
        let sealed = self.cipher().encrypt([CONTEXT], &padded).map_err(|_| NameError::Random)?;
        let text = BASE64_URL.encode(sealed);
        let parts: Vec<&str> =
            (0..text.len()).step_by(PART).map(|at| &text[at..text.len().min(at + PART)]).collect();
        Ok(parts.join("/"))
    }

    /// The path that `name` hides.
    ///
    /// # Errors
    /// [`NameError::Foreign`].
    pub fn reveal(&self, name: &OsStr) -> Result<PathBuf, NameError> {
        let text: Vec<u8> =
            name.as_bytes().iter().copied().filter(|character| *character != b'/').collect();
        let sealed = BASE64_URL.decode(text).map_err(|_| NameError::Foreign)?;
        let opened = self.cipher().decrypt([CONTEXT], &sealed);
        let mut path = opened.map_err(|_| NameError::Foreign)?;
        let len = path.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        path.truncate(len);
        // Any holder of the key may have made it.
        let leads_out = |part: &[u8]| [&b""[..], b".", b".."].contains(&part);
        if path.split(|byte| *byte == b'/').any(leads_out) || path.contains(&0) {
            return Err(NameError::Foreign);
        }
        Ok(PathBuf::from(OsString::from_vec(path)))
    }

    fn cipher(&self) -> Aes256Siv {
        Aes256Siv::new((&*self.key).into())
    }
}

/// The associated data of a name.
const CONTEXT: &[u8] = b"wattlock/v1 name";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_hidden_and_revealed() {
        let names = HiddenNames::generate().unwrap();
        let long = "x/".repeat(320);
        for path in ["a", "d/e f/ü.txt", "x".repeat(31).as_str(), &"x".repeat(32), &long[..639]] {
            let hidden = names.hide(Path::new(path)).unwrap();
            assert_eq!(hidden, names.hide(Path::new(path)).unwrap());
            assert!(hidden.split('/').all(|part| part.len() <= 240) && hidden.len() < 940);
            assert_eq!(names.reveal(OsStr::new(&hidden)), Ok(path.into()));
            let other = HiddenNames::generate().unwrap();
            assert_eq!(other.reveal(OsStr::new(&hidden)), Err(NameError::Foreign));
        }
        let bytes = OsStr::from_bytes(b"d/\xff\n");
        let hidden = names.hide(Path::new(bytes)).unwrap();
        assert_eq!(names.reveal(OsStr::new(&hidden)), Ok(bytes.into()));
        assert_eq!(names.hide(Path::new(&"x".repeat(641))), Err(NameError::TooLong(641)));
    }

    /// Made by another implementation, from the text of the specification.
    #[test]
    fn the_names_of_the_vectors_hold() {
        let text = std::fs::read(wattlock_vectors::folder("hidden-names").join("names.json"));
        let vectors: serde_json::Value = serde_json::from_slice(&text.unwrap()).unwrap();
        let names = HiddenNames::parse(vectors["names_file"].as_str().unwrap().as_bytes()).unwrap();
        for vector in vectors["good"].as_array().unwrap() {
            let (hex, name) = (&vector["path_hex"], vector["name"].as_str().unwrap());
            let hex = hex.as_str().unwrap().as_bytes().chunks(2);
            let bytes =
                hex.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap());
            let path = PathBuf::from(OsString::from_vec(bytes.collect()));
            assert_eq!(names.hide(&path).unwrap(), name, "{}", path.display());
            assert_eq!(names.reveal(OsStr::new(name)), Ok(path));
        }
        for vector in vectors["refused"].as_array().unwrap() {
            let name = OsStr::new(vector["name"].as_str().unwrap());
            assert_eq!(names.reveal(name), Err(NameError::Foreign), "{}", vector["why"]);
        }
    }

    #[test]
    fn a_names_file_is_read_again() {
        let names = HiddenNames::generate().unwrap();
        let text = names.to_text();
        let again = HiddenNames::parse(text.as_bytes()).unwrap();
        assert_eq!(*again.key, *names.key);
        for wrong in ["", "wattlock-names/1 AAAA\n", "wattlock-names/2 x\n", text.trim_end()] {
            assert!(HiddenNames::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
