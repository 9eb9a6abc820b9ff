//! The frozen corpus: what earlier versions wrote, and what their manifests say of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use wattlock_vectors::sha256;

use crate::programs::wattlock;

/// What one version wrote.
pub struct Corpus {
    /// Its folder.
    pub folder: PathBuf,
    /// Its manifest.
    pub manifest: Value,
}

/// A file, as the manifest names it.
pub struct Frozen<'a> {
    /// Its path in the folder.
    pub name: &'a str,
    entry: &'a Value,
}

/// The corpora of versions in all formats that these had, at least one.
pub fn corpora() -> Vec<Corpus> {
    let mut corpora = all_corpora();
    corpora.retain(|corpus| !corpus.folder.ends_with("0.1-folders"));
    corpora
}

/// All corpora: also those that complete an earlier one with formats that it lacks.
pub fn all_corpora() -> Vec<Corpus> {
    let entries = fs::read_dir(wattlock_vectors::folder("frozen")).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir() && !path.ends_with("__pycache__"));
    folders.sort();
    assert!(folders[0].ends_with("0.1"), "{folders:?}");
    folders.into_iter().map(Corpus::load).collect()
}

impl Corpus {
    fn load(folder: PathBuf) -> Self {
        let text = fs::read_to_string(folder.join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(manifest["schema"], "wattlock-frozen/1");
        Self { folder, manifest }
    }

    /// All files of these kinds, at least one.
    pub fn files(&self, kinds: &[&str]) -> Vec<Frozen<'_>> {
        let files = self.manifest["files"].as_object().unwrap().iter();
        let mut files: Vec<_> = files.map(|(name, entry)| Frozen { name, entry }).collect();
        files.retain(|file| kinds.contains(&file.kind()));
        assert!(!files.is_empty(), "{kinds:?}");
        files
    }

    /// The names of keys, other than a plugin's, which needs a program.
    pub fn keys(&self) -> Vec<&str> {
        let keys = self.manifest["keys"].as_object().unwrap().keys().map(String::as_str);
        keys.filter(|key| *key != "plugin").collect()
    }

    /// `wattlock COMMAND` in the corpus, with the words that open with `key`.
    pub fn with_key(&self, command: &[&str], key: &str) -> Command {
        self.with_words(wattlock(), command, &self.words_that_open(key))
    }

    /// The words of a command line that open with `key`.
    pub fn words_that_open(&self, key: &str) -> Vec<&str> {
        words(&self.manifest["keys"][key]["open"])
    }

    /// `PROGRAM COMMAND WORDS…` in the corpus, with its passphrase and plugins.
    pub fn with_words(&self, mut program: Command, command: &[&str], words: &[&str]) -> Command {
        program.current_dir(&self.folder).args(command).args(words);
        program.env("P", self.manifest["passphrase"].as_str().unwrap());
        let plugins = self.folder.join("keys");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(plugins).chain(std::env::split_paths(&path));
        program.env("PATH", std::env::join_paths(folders).unwrap());
        program
    }

    /// The document in a file of the corpus.
    pub fn document(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.folder.join(name)).unwrap()).unwrap()
    }

    /// A file of the corpus as standard input.
    pub fn stdin(&self, name: &str) -> Stdio {
        fs::File::open(self.folder.join(name)).unwrap().into()
    }

    /// The paths of all files but the manifest and the README.
    pub fn paths(&self) -> BTreeSet<String> {
        let mut paths = below(&self.folder);
        assert!(paths.remove("manifest.json") && paths.remove("README.md"));
        paths
    }
}

impl Frozen<'_> {
    /// "wattlock", "age", "sefps", "stream", "journal", …
    pub fn kind(&self) -> &str {
        self.entry["kind"].as_str().unwrap()
    }

    /// A value of the entry.
    pub fn get(&self, key: &str) -> &Value {
        &self.entry[key]
    }

    /// True if the key opens it.
    pub fn opens_with(&self, key: &str) -> bool {
        words(&self.entry["opens"]).contains(&key)
    }

    /// True if it is in a folder that was protected as a whole.
    pub fn is_in_tree(&self) -> bool {
        self.name.contains('/')
    }

    /// The name of the file that it opens to, unless the sealed one is asked for.
    pub fn plain_name(&self) -> &str {
        self.name.rsplit_once('.').unwrap().0
    }

    /// Asserts that it opens to these bytes.
    #[track_caller]
    pub fn assert_opens_to(&self, bytes: &[u8]) {
        assert_plaintext(self.get("plaintext"), bytes, self.name);
    }
}

/// Asserts that `bytes` are those of which a manifest has length and digest.
#[track_caller]
pub fn assert_plaintext(expected: &Value, bytes: &[u8], what: &str) {
    assert_eq!(expected["bytes"], bytes.len(), "{what}");
    assert_eq!(expected["sha256"], sha256(bytes), "{what}");
}

/// An array of texts.
pub fn words(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

/// The paths of all files below a folder.
pub fn below(folder: &Path) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let path = path.strip_prefix(folder).unwrap();
                paths.insert(path.to_str().unwrap().to_owned());
            }
        }
    }
    paths
}
