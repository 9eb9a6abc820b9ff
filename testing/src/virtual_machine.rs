//! A virtual machine whose CPU and speed are emulated, with the kernel that `cargo xtask kernel` unpacks.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::skips::{has_program, skip};

/// A machine to be furnished and then booted once.
pub struct VirtualMachine {
    image: PathBuf,
    modules: PathBuf,
    place: tempfile::TempDir,
    cpu: &'static str,
    disks: Vec<PathBuf>,
}

impl VirtualMachine {
    /// A machine with nothing but busybox. `target` is where the tests are built. Skipped where QEMU,
    /// busybox, what packs an initial file system, or the kernel is missing.
    #[track_caller]
    pub fn new(target: &Path) -> Option<Self> {
        let Some((image, modules)) = kernel(&target.join("kernel")) else {
            skip("kernel", "no unpacked kernel: cargo xtask kernel");
            return None;
        };
        if !["qemu-system-x86_64", "cpio", "strip"].into_iter().all(has_program) {
            return None;
        }
        if !Path::new("/bin/busybox").exists() {
            skip("busybox", "/bin/busybox is not installed");
            return None;
        }
        let machine = Self {
            image,
            modules,
            place: tempfile::tempdir().unwrap(),
            cpu: "max",
            disks: Vec::new(),
        };
        for folder in ["bin", "dev", "modules", "proc", "sys", "tmp"] {
            fs::create_dir_all(machine.root().join(folder)).unwrap();
        }
        fs::copy("/bin/busybox", machine.root().join("bin/busybox")).unwrap();
        symlink("busybox", machine.root().join("bin/sh")).unwrap();
        Some(machine)
    }

    /// Takes VAES from the CPU where QEMU emulates it wrongly: before 8.1, in the upper half of a 256-bit
    /// register. True if VAES is there and right; skipped in part if not.
    #[track_caller]
    pub fn has_vaes(&mut self) -> bool {
        let told = Command::new("qemu-system-x86_64").arg("--version").output().unwrap().stdout;
        let told = String::from_utf8_lossy(&told);
        let version = told.split_whitespace().nth(3).unwrap_or_default();
        let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let right = (parts.next(), parts.next()) >= (Some(8), Some(1));
        if !right {
            self.cpu = "max,vaes=off";
            skip("qemu-8.1", format_args!("QEMU {version} emulates 256-bit VAES wrongly"));
        }
        right
    }

    fn root(&self) -> PathBuf {
        self.place.path().join("root")
    }

    /// Copies the program, as `/NAME` and without what is for debuggers, and the libraries that it needs.
    ///
    /// # Panics
    /// If that fails.
    pub fn add_program(&self, program: &Path, name: &str) {
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(self.root().join(name)).arg(program);
        assert!(strip.status().unwrap().success());
        let listed = Command::new("ldd").arg(program).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
            let place = self.root().join(library.trim_start_matches('/'));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(library, place).unwrap();
        }
    }

    /// Copies a module of the kernel to `/modules`, if it is none that is built in.
    ///
    /// # Panics
    /// If that fails.
    pub fn add_module(&self, module: &str) {
        let (from, name) = (self.modules.join(module), Path::new(module).file_name().unwrap());
        if from.exists() {
            fs::copy(from, self.root().join("modules").join(name)).unwrap();
        }
    }

    /// Copies a file to `/NAME`.
    ///
    /// # Panics
    /// If that fails.
    pub fn add_file(&self, file: &Path, name: &str) {
        fs::copy(file, self.root().join(name)).unwrap();
    }

    /// Adds a disk of `len` bytes, which holds what `fill` makes of its file: `/dev/vda`, `/dev/vdb`, and so on.
    ///
    /// # Panics
    /// If that fails.
    pub fn add_disk(&mut self, len: u64, fill: impl FnOnce(&Path)) {
        let path = self.place.path().join(format!("disk{}", self.disks.len()));
        fs::File::create(&path).unwrap().set_len(len).unwrap();
        fill(&path);
        self.disks.push(path);
    }

    /// Boots the machine, runs a shell script in it, and returns what the console showed.
    ///
    /// # Panics
    /// If the machine does not run to its end.
    pub fn run(&self, script: &str) -> String {
        let init = self.root().join("init");
        fs::write(&init, [BEGIN, script, END].concat()).unwrap();
        fs::set_permissions(init, fs::Permissions::from_mode(0o755)).unwrap();
        let mut machine = Command::new("qemu-system-x86_64")
            .args(["-cpu", self.cpu, "-m", "2G", "-smp", "2", "-nographic", "-no-reboot"])
            .arg("-kernel")
            .arg(&self.image)
            .arg("-initrd")
            .arg(self.packed())
            .args(["-append", "console=ttyS0 quiet panic=-1"])
            .args(self.disks.iter().flat_map(|disk| {
                let disk = format!("file={},format=raw,if=virtio,cache=unsafe", disk.display());
                ["-drive".to_owned(), disk]
            }))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut console = Vec::new();
        machine.stdout.take().unwrap().read_to_end(&mut console).unwrap();
        assert!(machine.wait().unwrap().success());
        String::from_utf8_lossy(&console).replace('\r', "")
    }

    /// Everything below the root as an initial file system.
    fn packed(&self) -> PathBuf {
        let packed = self.root().with_extension("cpio");
        let pack = "find . | cpio -o -H newc --quiet";
        let mut made = Command::new("sh");
        let made = made.args(["-c", pack]).current_dir(self.root());
        assert!(made.stdout(fs::File::create(&packed).unwrap()).status().unwrap().success());
        packed
    }
}

/// The kernel, and its modules' folder.
fn kernel(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let image = fs::read_dir(folder.join("boot")).ok()?.find_map(|file| {
        let path = file.ok()?.path();
        path.file_name()?.to_str()?.starts_with("vmlinuz").then_some(path)
    });
    let modules = fs::read_dir(folder.join("lib/modules")).ok()?.next()?.ok()?.path();
    Some((image?, modules.join("kernel")))
}

const BEGIN: &str = "#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t tmpfs tmp /tmp
for round in 1 2 3; do for module in /modules/*.ko; do /bin/busybox insmod $module 2>/dev/null; done; done
";

const END: &str = "
/bin/busybox poweroff -f
";
