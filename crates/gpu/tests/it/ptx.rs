//! The committed PTX is what the kernels' text compiles to.

use std::path::Path;
use std::process::Command;

#[test]
fn committed_ptx_is_what_clang_makes_of_the_text() {
    if !wattlock_testing::has_program("clang-19") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (source, committed) in [("wattlock.c", "aes.sm_75.ptx"), ("rates.c", "rates.sm_75.ptx")] {
        let made = folder.path().join(committed);
        let script = root.join("../../xtask/ptx.sh");
        let compiled = Command::new(script).arg(&made).arg(source).output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let made = std::fs::read(made).unwrap();
        let committed = std::fs::read(root.join("kernels").join(committed)).unwrap();
        assert!(made == committed, "{source} has changed: run `make ptx` and commit its output");
    }
}

/// A driver refuses PTX that is newer than itself, and a GPU refuses PTX for newer GPUs.
#[test]
fn committed_ptx_asks_for_little() {
    let committed = include_str!("../../kernels/aes.sm_75.ptx");
    assert!(committed.contains("\n.version 6.4\n") && committed.contains("\n.target sm_75\n"));
    for kernel in [
        "ctr",
        "ctr_extended",
        "ecb_encrypt",
        "ecb_decrypt",
        "cbc_encrypt",
        "cbc_decrypt",
        "gcm_ctr",
    ] {
        for kind in ["t0", "t4"] {
            assert!(committed.contains(&format!(".visible .entry wattlock_{kernel}_{kind}(")));
        }
    }
    for kernel in ["ghash", "gcm_tags"] {
        assert!(committed.contains(&format!(".visible .entry wattlock_{kernel}(")));
    }
    // The look-ups of four tables stay one permute and one load with an offset.
    for offset in ["+128]", "+65536]", "+65664]"] {
        assert!(committed.contains(offset), "{offset}");
    }
}
