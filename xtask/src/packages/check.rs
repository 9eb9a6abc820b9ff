//! Packages as users meet them: installed in a clean Debian, run, and purged; run without any other file, on
//! another kind of CPU and in a container; and made twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::statics::TARGETS;
use super::{Place, image, ran, said};
use crate::openssl::cache;

/// Tries all of them.
///
/// # Errors
/// What is wrong with one.
pub fn all(place: &Place) -> anyhow::Result<()> {
    let work = tempfile::tempdir_in(&place.out)?;
    for (what, check) in CHECKS {
        check(place, work.path()).with_context(|| format!("packages: {what}"))?;
        println!("packages: ok: {what}");
    }
    Ok(())
}

/// A check, with a folder for its files.
type Check = fn(&Place, &Path) -> anyhow::Result<()>;

const CHECKS: [(&str, Check); 6] = [
    ("lintian has nothing to say", lint),
    ("the unit of systemd is valid and hardened", unit),
    ("the Debian packages are installed, used and purged in a clean Debian", debian),
    ("the static programs run without any other file", statics),
    ("the container image runs", container),
    ("a second build in another folder gives the same bytes", again),
];

fn lint(place: &Place, _: &Path) -> anyhow::Result<()> {
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]);
    let said = said(lintian.args(packages(place, ".deb")?))?;
    ensure!(said.trim().is_empty(), "{said}");
    Ok(())
}

fn unit(place: &Place, work: &Path) -> anyhow::Result<()> {
    let unit = work.join("wattlock-stream@example.service");
    let text = fs::read_to_string(place.root.join("packaging/wattlock-stream@.service"))?;
    // It is not installed here.
    fs::write(&unit, text.replace("/usr/bin/wattlock", "/bin/true"))?;
    ran(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit))?;
    // In tenths.
    let limits = ["security", "--offline=yes", "--threshold=15", "--no-pager"];
    said(Command::new("systemd-analyze").args(limits).arg(&unit)).map(drop)
}

fn debian(place: &Place, work: &Path) -> anyhow::Result<()> {
    let packages = packages(place, ".deb")?;
    let release = fs::read_to_string("/etc/os-release")?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let suite = suite.context("this is no Debian")?;
    let base = cache(&place.root.join("target")).join(format!("debian-{suite}-clean"));
    if !base.join("complete").exists() {
        let _ = fs::remove_dir_all(&base);
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", "--include=openssl", suite]);
        said(debootstrap.arg(&base))?;
        fs::write(base.join("complete"), "")?;
    }
    // What is done to it lies in a layer above, which goes away.
    let layer = ["upper", "work", "root"].map(|name| work.join(name));
    layer.iter().try_for_each(fs::create_dir)?;
    let [upper, scratch, root] = layer;
    fs::create_dir(upper.join("packages"))?;
    for package in &packages {
        let name = package.file_name().context("a package has a name")?;
        fs::copy(package, upper.join("packages").join(name))?;
    }
    fs::write(upper.join("try.sh"), INSTALLED)?;
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "--propagation", "private", "sh", "-ec", LAYERED, "sh"]);
    let said = said(shell.args([&base, &upper, &scratch, &root]).env("LC_ALL", "C"))?;
    ensure!(said.ends_with("purged\n"), "{said}");
    Ok(())
}

/// Mounts a Debian and a layer above it, and runs `/try.sh` in there.
const LAYERED: &str = r#"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3" "$4"
mount -t proc proc "$4/proc"
mount --rbind /dev "$4/dev"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C chroot "$4" sh -eu /try.sh 2>&1
"#;

/// Installs, uses and purges the packages.
const INSTALLED: &str = r#"
all_files() { find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /packages -o -path /var/lib/dpkg -o -path /var/log \
	-o -path /var/cache \) -prune -o -print | sort; }
mkdir -p /tmp/work; cd /tmp/work
all_files > before
dpkg --install /packages/*.deb
dpkg --verify wattlock wattlock-lab
wattlock --version
wattlock keygen -o key.txt
head -c 3000000 /dev/urandom > file
wattlock protect -i key.txt file
wattlock verify -i key.txt file.wlk
wattlock unprotect -i key.txt -o back file.wlk
cmp file back
wattlock-lab hash --alg sha256 file > /dev/null
wattlock doctor > doctor.txt
grep -q "OpenCL" doctor.txt
if grep -q "static" doctor.txt; then echo "a build for glibc says that it is static"; exit 1; fi
# OpenSSL finds the provider by its name, and by the settings that the program writes.
openssl list -providers -provider wattlock | tee providers.txt
grep -q wattlock providers.txt
wattlock provider config > wattlock.cnf
grep -q "^module = /usr/lib/.*/ossl-modules/wattlock.so$" wattlock.cnf
OPENSSL_CONF=$PWD/wattlock.cnf openssl list -providers | grep -q -i wattlock
echo text | OPENSSL_CONF=$PWD/wattlock.cnf openssl enc -aes-256-ctr -K 00 -iv 00 2> /dev/null | \
	openssl enc -d -aes-256-ctr -K 00 -iv 00 2> /dev/null | grep -q text
for page in wattlock wattlock-protect wattlock-stream wattlock-lab wattlock-lab-bench-files; do
	gzip -dc /usr/share/man/man1/$page.1.gz | grep -q "^.TH"
done
bash -n /usr/share/bash-completion/completions/wattlock
bash -n /usr/share/bash-completion/completions/wattlock-lab
test -s /usr/lib/systemd/system/wattlock-stream@.service
# The same again, and away.
dpkg --install /packages/*.deb
dpkg --purge wattlock wattlock-lab
all_files > after
diff before after
echo purged
"#;

fn statics(place: &Place, work: &Path) -> anyhow::Result<()> {
    for target in &TARGETS {
        let name = format!("wattlock-{}-{}", place.version, target.triple);
        let archive = place.out.join(format!("{name}.tar.gz"));
        let root = work.join(target.triple);
        fs::create_dir(&root)?;
        ran(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&root))?;
        let unpacked = root.join(name);
        for file in ["LICENSE-MIT", "share/man/man1/wattlock.1.gz"] {
            ensure!(unpacked.join(file).is_file(), "{file} is not in the archive");
        }
        // Nothing else is in there; only another kind of CPU needs its emulator.
        let bare = root.join("bare");
        fs::create_dir_all(&bare)?;
        fs::copy(unpacked.join("wattlock"), bare.join("wattlock"))?;
        let mut before = Vec::new();
        if !target.triple.starts_with(std::env::consts::ARCH) {
            fs::copy("/usr/bin/qemu-aarch64-static", bare.join("qemu"))?;
            before.push("/qemu");
        }
        fs::write(bare.join("file"), vec![7; 3_000_000])?;
        let run = |words: &[&str]| {
            let mut chroot = Command::new("chroot");
            chroot.arg(&bare).args(&before).arg("/wattlock").args(words);
            said(&mut chroot)
        };
        run(&["keygen", "-o", "/key"])?;
        run(&["protect", "-i", "/key", "/file"])?;
        run(&["unprotect", "-i", "/key", "-o", "/back", "/file.wlk"])?;
        ensure!(fs::read(bare.join("back"))? == vec![7; 3_000_000], "the file came back changed");
        let doctor = run(&["doctor"])?;
        ensure!(doctor.contains("this build of the program is static"), "{doctor}");
    }
    Ok(())
}

fn container(place: &Place, work: &Path) -> anyhow::Result<()> {
    let bundle = work.join("bundle");
    image::unpack(place, &bundle)?;
    let data = work.join("data");
    fs::create_dir(&data)?;
    fs::write(data.join("file"), "text")?;
    ran(Command::new("chown").args(["-R", "1000:1000"]).arg(&data))?;
    let file = bundle.join("config.json");
    let made: Value = serde_json::from_slice(&fs::read(&file)?)?;
    let run = |words: &[&str]| {
        let mut config = made.clone();
        config["process"]["terminal"] = json!(false);
        let args = config["process"]["args"].as_array_mut().context("the image runs nothing")?;
        args.extend(words.iter().map(|&word| json!(word)));
        let mounts = config["mounts"].as_array_mut().context("there are no mounts")?;
        mounts.push(json!({
            "destination": "/data", "type": "bind", "source": data, "options": ["rbind", "rw"]
        }));
        fs::write(&file, serde_json::to_vec(&config)?)?;
        let name = format!("wattlock-check-{}", std::process::id());
        said(Command::new("runc").args(["run", "--bundle"]).arg(&bundle).arg(name))
    };
    ensure!(run(&["--version"])?.contains(&place.version), "it has another version");
    run(&["keygen", "-o", "key"])?;
    run(&["protect", "-i", "key", "file"])?;
    ensure!(run(&["unprotect", "-i", "key", "-o-", "file.wlk"])? == "text", "it came back changed");
    Ok(())
}

/// Only what is committed is built again.
fn again(place: &Place, work: &Path) -> anyhow::Result<()> {
    let changed =
        said(Command::new("git").args(["status", "--porcelain"]).current_dir(&place.root))?;
    if !changed.is_empty() {
        bail!("commit what is changed before:\n{changed}");
    }
    let root = work.join("another-folder");
    said(Command::new("git").args(["clone", "-q"]).arg(&place.root).arg(&root))?;
    let other = Place::new(root.clone(), root.join("target/packages"), place.version.clone())?;
    other.make()?;
    for name in place.files()? {
        let [one, two] = [&place.out, &other.out].map(|out| fs::read(out.join(&name)));
        ensure!(one? == two?, "{name} differs");
    }
    Ok(())
}

/// The packages whose names end like this.
fn packages(place: &Place, end: &str) -> anyhow::Result<Vec<PathBuf>> {
    let names = place.files()?.into_iter().filter(|name| name.ends_with(end));
    Ok(names.map(|name| place.out.join(name)).collect())
}
