//! Walks the folders of test vectors; for tests only.
//!
//! A container vector is a file with a textual header (`key: value` lines, among them `expect`),
//! an empty line, and the container. Each file has one fault, which its name describes.
#![forbid(unsafe_code)]

pub mod line;
pub mod rsp;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// One vector.
#[derive(Debug)]
pub struct Vector {
    /// The file's name.
    pub name: String,
    /// The lines of its header.
    pub fields: Vec<(String, String)>,
    /// The container.
    pub body: Vec<u8>,
}

impl Vector {
    /// All values of `key`.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// The first value of `key`.
    pub fn one(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// What should happen to the container.
    ///
    /// # Panics
    /// If the vector does not say.
    pub fn expect(&self) -> &str {
        self.one("expect").unwrap_or_else(|| panic!("{} has no line expect:", self.name))
    }
}

/// The folder of that name.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// All container vectors of a folder, by name.
///
/// # Panics
/// If the folder cannot be read or a file is not a vector: the tests cannot go on without.
pub fn containers(name: &str) -> Vec<Vector> {
    files(name).into_iter().map(|path| container(&path)).collect()
}

/// The vectors' files of a folder, sorted; its README is none.
///
/// # Panics
/// If the folder cannot be read.
pub fn files(name: &str) -> Vec<PathBuf> {
    let folder = folder(name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.file_name().is_some_and(|name| name != "README.md"))
        .collect();
    files.sort();
    files
}

/// SHA-256 in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn container(path: &Path) -> Vector {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let end = bytes
        .windows(2)
        .position(|pair| pair == b"\n\n")
        .unwrap_or_else(|| panic!("{} has no empty line", path.display()));
    let header = std::str::from_utf8(&bytes[..end]).expect("the header is text");
    let fields: Vec<(String, String)> = header
        .lines()
        .map(|line| {
            let (key, value) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
            (key.to_owned(), value.to_owned())
        })
        .collect();
    let mut body = bytes[end + 2..].to_vec();
    if fields.contains(&("compressed".into(), "zlib".into())) {
        let mut inflated = Vec::new();
        flate2::read::ZlibDecoder::new(&body[..]).read_to_end(&mut inflated).expect("zlib");
        body = inflated;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Vector { name, fields, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All files below a folder but its README.
    fn below(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut found = Vec::new();
        for path in entries.filter(|path| !path.ends_with("README.md")) {
            if path.is_dir() {
                found.extend(below(&path));
            } else {
                found.push(path);
            }
        }
        found
    }

    #[test]
    fn every_file_has_its_birth_certificate() {
        let mut folders: Vec<_> = fs::read_dir(folder(""))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir() && !path.ends_with("src"))
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        folders.sort();
        assert!(folders.len() >= 9, "folders are missing: {folders:?}");
        // It has a manifest, which the tests of the program go through.
        folders.retain(|folder| folder != "frozen");
        for folder_name in &folders {
            let readme = fs::read_to_string(folder(folder_name).join("README.md")).unwrap();
            for path in below(&folder(folder_name)) {
                let name = path.strip_prefix(folder(folder_name)).unwrap().display();
                let row = format!("| `{name}` | {} |", sha256(&fs::read(&path).unwrap()));
                assert!(readme.contains(&row), "{folder_name}/README.md lacks: {row}");
            }
        }
    }
}
