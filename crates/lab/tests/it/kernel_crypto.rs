//! The kernel's crypto interface as EECA's interaction unit, with a real kernel: the program in a virtual
//! machine that is emulated, so that its speed says nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use wattlock_testing::{has_program, skip};

/// What the machine runs; its JSON goes to the console between two marks.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t tmpfs tmp /tmp
for round in 1 2 3; do for module in /modules/*.ko; do /bin/busybox insmod $module 2>/dev/null; done; done
/wattlock-lab paper eeca --quick --json /tmp/eeca.json >/dev/null 2>/tmp/said
/bin/busybox tail -n 3 /tmp/said
echo; echo BEGIN
/bin/busybox cat /tmp/eeca.json
echo; echo END
/bin/busybox poweroff -f
"#;

/// The kernel that `cargo xtask kernel` unpacks, and its modules' folder.
fn kernel() -> Option<(PathBuf, PathBuf)> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("kernel");
    let image = fs::read_dir(folder.join("boot")).ok()?.find_map(|file| {
        let path = file.ok()?.path();
        path.file_name()?.to_str()?.starts_with("vmlinuz").then_some(path)
    });
    let modules = fs::read_dir(folder.join("lib/modules")).ok()?.next()?.ok()?.path();
    Some((image?, modules.join("kernel")))
}

/// Copies the program without what is for debuggers, and the libraries that it needs.
fn furnish(root: &Path, modules: &Path) {
    for folder in ["bin", "dev", "modules", "proc", "sys", "tmp"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("init"), INIT).unwrap();
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
    symlink("busybox", root.join("bin/sh")).unwrap();
    let program = env!("CARGO_BIN_EXE_wattlock-lab");
    let stripped = root.join("wattlock-lab");
    assert!(
        Command::new("strip")
            .arg("-o")
            .args([&*stripped, Path::new(program)])
            .status()
            .unwrap()
            .success()
    );
    let listed = Command::new("ldd").arg(program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        let place = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(library, place).unwrap();
    }
    for module in [
        "crypto/af_alg.ko",
        "crypto/algif_skcipher.ko",
        "crypto/cbc.ko",
        "crypto/cryptd.ko",
        "crypto/crypto_simd.ko",
        "arch/x86/crypto/aesni-intel.ko",
    ] {
        let (from, name) = (modules.join(module), Path::new(module).file_name().unwrap());
        if from.exists() {
            fs::copy(from, root.join("modules").join(name)).unwrap();
        }
    }
}

/// Everything below `root` as an initial file system.
fn packed(root: &Path) -> PathBuf {
    let packed = root.with_extension("cpio");
    let pack = "find . | cpio -o -H newc --quiet";
    let mut made = Command::new("sh");
    made.args(["-c", pack]).current_dir(root).stdout(fs::File::create(&packed).unwrap());
    assert!(made.status().unwrap().success());
    packed
}

#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_the_kernels_crypto_in_a_virtual_machine() {
    let Some((image, modules)) = kernel() else {
        return skip("kernel", "no unpacked kernel: cargo xtask kernel");
    };
    for program in ["qemu-system-x86_64", "cpio", "strip"] {
        if !has_program(program) {
            return;
        }
    }
    if !Path::new("/bin/busybox").exists() {
        return skip("busybox", "/bin/busybox is not installed");
    }
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    furnish(&root, &modules);
    let mut machine = Command::new("qemu-system-x86_64")
        .args(["-cpu", "max", "-m", "2G", "-smp", "2", "-nographic", "-no-reboot"])
        .arg("-kernel")
        .arg(image)
        .arg("-initrd")
        .arg(packed(&root))
        .args(["-append", "console=ttyS0 quiet panic=-1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut console = Vec::new();
    machine.stdout.take().unwrap().read_to_end(&mut console).unwrap();
    assert!(machine.wait().unwrap().success());
    let console = String::from_utf8_lossy(&console).replace('\r', "");
    let json = console.split("\nBEGIN\n").nth(1).and_then(|rest| rest.split("\nEND\n").next());
    let json = json.unwrap_or_else(|| panic!("{console}"));
    let document: Value = serde_json::from_str(json).unwrap_or_else(|why| panic!("{why}: {json}"));
    let sections = document["sections"].as_array().unwrap();
    let rows = sections.iter().flat_map(|section| section["rows"].as_array().unwrap());
    let by_kernel: Vec<&Value> =
        rows.filter(|row| row["column"] == "the accelerator's, by AF_ALG").collect();
    assert_eq!(by_kernel.len(), 9);
    let measured = by_kernel.iter().filter(|row| row["ours"].as_f64() > Some(0.0));
    assert_eq!(measured.count(), 1, "16 kB: {:#?}", document["live"]["skipped"]);
    let tools = &document["live"]["tools"]["kernel's crypto (AF_ALG)"];
    assert!(tools.as_str().unwrap().starts_with("Linux "), "{tools}");
}
