//! The library that stands for NVIDIA's driver, compiled once; for the tests of other crates, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library, compiled from `fake.rs`, which is no part of any test program.
pub fn fake() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    wattlock_testing::rust_library("cuda_fake", &source("cuda/fake.rs"), target)
}

/// The kernels' text as plain C; `None` where there is no C compiler.
pub fn kernels() -> Option<&'static Path> {
    static KERNELS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = KERNELS.get_or_init(|| {
        made("kernels.so", |new| {
            let mut cc = Command::new("cc");
            cc.args(["-O2", "-shared", "-fPIC", "-Wno-unused-function", "-o"]);
            match cc.args([new, &source("shim.c")]).output() {
                Ok(compiled) => {
                    let said = String::from_utf8_lossy(&compiled.stderr);
                    assert!(compiled.status.success(), "{said}");
                    true
                }
                Err(error) => {
                    wattlock_testing::skip("cc", &error);
                    false
                }
            }
        })
    });
    made.as_deref()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/tests/it").join(name)
}

/// Makes a file in the target folder and moves it into place when it is complete, because another
/// run of these tests may do the same. The compiler's own files are next to its output.
fn made(name: &str, make: impl FnOnce(&Path) -> bool) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(target).unwrap();
    let own = tempfile::tempdir_in(target).unwrap();
    let new = own.path().join(name);
    if !make(&new) {
        return None;
    }
    let path = target.join(name);
    fs::rename(new, &path).unwrap();
    Some(path)
}
