//! Patterns of files and directories that a run leaves out.

use std::ffi::OsStr;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::Error;

/// Patterns: one without a slash is compared with names, one with a slash with paths.
#[derive(Clone, Debug, Default)]
pub struct Exclude {
    names: GlobSet,
    paths: GlobSet,
}

impl Exclude {
    /// Reads `patterns`, in which `*` and `?` match no slash, and `**` any number of directories.
    ///
    /// # Errors
    /// [`Error::Usage`] for one that is malformed.
    pub fn new(patterns: &[String]) -> Result<Self, Error> {
        let (mut names, mut paths) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for pattern in patterns {
            let wrong = |why: &globset::Error| {
                Error::usage(format!("--exclude {pattern:?}: {}", why.kind()))
            };
            let from_top = pattern.starts_with('/');
            let plain = pattern.trim_end_matches('/').trim_start_matches("./");
            let plain = plain.trim_start_matches('/');
            if plain.is_empty() {
                return Err(Error::usage(format!("--exclude {pattern:?}: the pattern is empty")));
            }
            let glob = GlobBuilder::new(plain).literal_separator(true).build();
            let glob = glob.map_err(|why| wrong(&why))?;
            let set = if from_top || plain.contains('/') { &mut paths } else { &mut names };
            set.add(glob);
        }
        let build = |set: &GlobSetBuilder| set.build().map_err(|why| Error::usage(why.to_string()));
        Ok(Self { names: build(&names)?, paths: build(&paths)? })
    }

    /// True if the file at `path` below a directory of that name, or a directory that it is in, is left
    /// out.
    pub fn covers(&self, path: &Path, top: Option<&OsStr>) -> bool {
        let top = Path::new(top.unwrap_or_default());
        path.ancestors().any(|below| self.matches(below, &top.join(below)))
    }

    /// True if a file or directory is left out. `below` is its path below the directory that was
    /// given, and `with_top` the same with that directory's name in front.
    pub(crate) fn matches(&self, below: &Path, with_top: &Path) -> bool {
        let name = below.file_name().is_some_and(|name| self.names.is_match(name));
        name || self.paths.is_match(below) || self.paths.is_match(with_top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_anywhere_and_paths_from_the_top() {
        let excluded = |patterns: &[&str], below: &str| {
            let patterns: Vec<String> = patterns.iter().map(|&p| p.to_owned()).collect();
            let exclude = Exclude::new(&patterns).unwrap();
            exclude.matches(Path::new(below), &Path::new("top").join(below))
        };
        assert!(excluded(&["*.tmp"], "a.tmp") && excluded(&["*.tmp"], "deep/down/a.tmp"));
        assert!(!excluded(&["*.tmp"], "a.tmp.txt") && !excluded(&[], "a"));
        assert!(excluded(&["node_modules/"], "x/node_modules"));
        assert!(excluded(&["sub/raw"], "sub/raw") && excluded(&["top/sub/raw"], "sub/raw"));
        assert!(!excluded(&["sub/raw"], "other/sub/raw") && excluded(&["**/raw"], "other/sub/raw"));
        assert!(!excluded(&["sub/*"], "sub/a/b") && excluded(&["./sub/*"], "sub/a"));
        assert!(Exclude::new(&["[".to_owned()]).is_err());
    }
}
