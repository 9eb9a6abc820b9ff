//! The part of a run's files that one of several machines does.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::batch::Found;

/// One of several runs that share the files of one tree. Each file is in one shard, by its path alone, so that runs
/// need not know of each other, and a file that is added changes nothing for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1 to `count`.
    index: u32,
    count: u32,
}

impl Shard {
    /// Shard `index` of `count`; the first is 1. `None` if there is no such shard.
    pub fn new(index: u32, count: u32) -> Option<Self> {
        (1..=count).contains(&index).then_some(Self { index, count })
    }

    /// True if the file at `path` is in this shard: SHA-256 of the path's bytes, its first eight bytes as a big-endian
    /// number, modulo the count, is one less than the index.
    fn has(self, path: &Path) -> bool {
        let digest = Sha256::digest(path.as_os_str().as_bytes());
        let (first, _) = digest.split_first_chunk::<8>().expect("32 bytes");
        u64::from_be_bytes(*first) % u64::from(self.count) == u64::from(self.index - 1)
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Found {
    /// Leaves only what is in `shard`. A path counts from the name of the input that it was found below, as it would
    /// stand in an output directory: `photos/a.jpg` for the file `/mnt/photos/a.jpg` of the input `/mnt/photos`.
    pub fn retain_shard(&mut self, shard: Shard, inputs: &[PathBuf]) {
        let is_ours = |path: &Path| shard.has(relative(path, inputs));
        let before = self.tasks.len();
        self.tasks.retain(|task| is_ours(&task.input));
        self.other_shards += before - self.tasks.len();
        self.skipped.retain(|(path, _)| is_ours(path));
        self.failed.retain(|(path, _)| is_ours(path));
        self.folders.keep_open();
    }
}

/// The path of a file from the name of its input on.
fn relative<'p>(path: &'p Path, inputs: &[PathBuf]) -> &'p Path {
    let tops = inputs.iter().filter(|input| path.starts_with(input));
    // The innermost, where one input lies in another.
    let Some(top) = tops.max_by_key(|input| input.components().count()) else { return path };
    let base = match top.file_name() {
        Some(_) => top.parent().unwrap_or(Path::new("")),
        None => top,
    };
    path.strip_prefix(base).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_is_in_one_shard() {
        for count in [1, 2, 3, 7, 100] {
            let mut found = vec![0; count as usize];
            for number in 0..2000 {
                let path = PathBuf::from(format!("photos/{number}.jpg"));
                let shards = (1..=count).filter(|i| Shard::new(*i, count).unwrap().has(&path));
                let shards: Vec<u32> = shards.collect();
                assert_eq!(shards.len(), 1);
                found[shards[0] as usize - 1] += 1;
            }
            let mean = 2000 / count as usize;
            assert!(found.iter().all(|files| (mean / 3..=mean * 3).contains(files)), "{found:?}");
        }
    }

    /// The handbook says how, so that other programs can tell.
    #[test]
    fn the_shard_of_a_path_never_changes() {
        // printf photos/a.jpg | sha256sum begins with 58d4d8dec171db3f.
        for (path, index) in SHARDS_OF_16 {
            assert!(Shard::new(index, 16).unwrap().has(Path::new(path)), "{path}");
        }
    }

    const SHARDS_OF_16: [(&str, u32); 3] = [("photos/a.jpg", 16), ("b", 11), ("", 5)];

    #[test]
    fn paths_count_from_the_name_of_their_input() {
        let inputs = ["/mnt/photos", "/mnt/photos/old", ".", "s3://bucket/tree"].map(PathBuf::from);
        for (path, expected) in [
            ("/mnt/photos/x/a.jpg", "photos/x/a.jpg"),
            ("/mnt/photos/old/a.jpg", "old/a.jpg"),
            ("./notes/b", "notes/b"),
            ("s3://bucket/tree/k", "tree/k"),
            ("/elsewhere", "/elsewhere"),
        ] {
            assert_eq!(relative(Path::new(path), &inputs), Path::new(expected));
        }
    }

    #[test]
    fn there_are_no_other_shards() {
        assert!(Shard::new(0, 4).is_none() && Shard::new(5, 4).is_none());
        assert!(Shard::new(1, 0).is_none());
    }
}
