//! Packages as users meet them: installed in a clean Debian, run, and purged; run without any other file, on
//! another kind of CPU and in a container; and made twice.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::statics::TARGETS;
use super::{Place, image};
use crate::command::{ran, said};
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

const CHECKS: [(&str, Check); 7] = [
    ("lintian has nothing to say", lint),
    ("the unit of systemd is valid and hardened", unit),
    ("the Debian packages are installed, used and purged in clean Debians", debian),
    ("the service seals under systemd, and again after a stop and after kill -9", service),
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
    ran(Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .arg(&unit))?;
    // In tenths.
    let limits = ["security", "--offline=yes", "--threshold=15", "--no-pager"];
    said(Command::new("systemd-analyze").args(limits).arg(&unit)).map(drop)
}

/// The Debians that the packages are for.
const SUITES: [&str; 2] = ["bookworm", "trixie"];

fn debian(place: &Place, work: &Path) -> anyhow::Result<()> {
    SUITES.iter().try_for_each(|suite| {
        let work = work.join(suite);
        fs::create_dir(&work)?;
        debian_of(place, suite, &work).context(*suite)
    })
}

fn debian_of(place: &Place, suite: &str, work: &Path) -> anyhow::Result<()> {
    let layer = Layer::new(place, suite, "openssl", work)?;
    fs::write(layer.upper.join("try.sh"), INSTALLED)?;
    let said = layer.run(IN_CHROOT)?;
    ensure!(said.ends_with("purged\n"), "{said}");
    Ok(())
}

fn service(place: &Place, work: &Path) -> anyhow::Result<()> {
    let work = work.join("service");
    fs::create_dir(&work)?;
    let layer = Layer::new(place, SUITES[0], "systemd,systemd-sysv,netcat-openbsd", &work)?;
    let units = layer.upper.join("etc/systemd/system");
    fs::create_dir_all(units.join("graphical.target.wants"))?;
    fs::write(
        units.join("try.service"),
        "[Service]\nType=oneshot\nExecStart=/bin/sh -eu /try.sh\n",
    )?;
    symlink("../try.service", units.join("graphical.target.wants/try.service"))?;
    fs::write(layer.upper.join("try.sh"), SERVED)?;
    layer.run(BOOTED)?;
    let said = fs::read_to_string(layer.upper.join("said"))?;
    ensure!(said.contains("\nMESSAGES: one two three four\n"), "{said}");
    Ok(())
}

/// A clean Debian, and a layer above it for what is done to it, with the packages in a folder.
struct Layer {
    base: PathBuf,
    upper: PathBuf,
    scratch: PathBuf,
    root: PathBuf,
}

impl Layer {
    /// A layer in `work` above the Debian `suite` with the programs `more`, which is unpacked once.
    fn new(place: &Place, suite: &str, more: &str, work: &Path) -> anyhow::Result<Self> {
        // A comma would end the path among the options of a mount.
        let name = format!("debian-{suite}-with-{}", more.replace(',', "-"));
        let base = cache(&place.root.join("target")).join(name);
        if !base.join("complete").exists() {
            let _ = fs::remove_dir_all(&base);
            let mut debootstrap = Command::new("debootstrap");
            debootstrap.args(["--variant=minbase", &format!("--include={more}"), suite]);
            said(debootstrap.arg(&base))?;
            fs::write(base.join("complete"), "")?;
        }
        let layer = ["upper", "scratch", "root"].map(|name| work.join(name));
        layer.iter().try_for_each(fs::create_dir)?;
        let [upper, scratch, root] = layer;
        fs::create_dir(upper.join("packages"))?;
        for package in packages(place, ".deb")? {
            let name = package.file_name().context("a package has a name")?;
            fs::copy(&package, upper.join("packages").join(name))?;
        }
        Ok(Self { base, upper, scratch, root })
    }

    /// Mounts it for a shell script, which has its place in `$root`; what that says.
    fn run(&self, script: &str) -> anyhow::Result<String> {
        let script = MOUNTED.to_owned() + script;
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "--propagation", "private", "sh", "-ec", &script, "sh"]);
        said(shell.args([&self.base, &self.upper, &self.scratch, &self.root]).env("LC_ALL", "C"))
    }
}

const MOUNTED: &str = r#"
root=$4
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3" "$root"
"#;

/// Runs `/try.sh` in there.
const IN_CHROOT: &str = r#"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C chroot "$root" sh -eu /try.sh 2>&1
"#;

/// Boots it. The unit `try.service` powers it off.
const BOOTED: &str = r#"
exec timeout 300 systemd-nspawn --quiet --register=no --keep-unit --boot --directory "$root" 2>&1
"#;

/// Has the service seal messages, stops it, kills it, and opens what it wrote.
const SERVED: &str = r#"
exec > /said 2>&1
trap 'systemctl --no-block poweroff' EXIT
until_it() { tries=0; until "$@"; do tries=$((tries + 1)); [ $tries -lt 300 ] || { echo "never: $*"; exit 1; }; sleep 0.1; done; }
send() { echo "$1" | nc -q 1 127.0.0.1 7000; }
runs_again() { [ "$(systemctl show -p NRestarts --value wattlock-stream@app)" = 1 ]; }
dpkg --install /packages/wattlock_*.deb
mkdir -p /etc/wattlock
wattlock keygen -o /root/key
echo "OPTIONS=--listen tcp:127.0.0.1:7000 --framing ndjson --rotate-size 1G -r $(wattlock keygen -y /root/key)" \
	> /etc/wattlock/app.stream
systemctl start wattlock-stream@app
until_it send one
send two
systemctl restart wattlock-stream@app
until_it send three
systemctl stop wattlock-stream@app
systemctl start wattlock-stream@app
until_it nc -z 127.0.0.1 7000
systemctl kill --signal=KILL wattlock-stream@app
until_it runs_again
until_it send four
systemctl stop wattlock-stream@app
systemctl status --no-pager wattlock-stream@app || true
journalctl --no-pager --unit wattlock-stream@app
ls -l /var/log/private/wattlock/app
for file in /var/log/private/wattlock/app/*; do
	# That of the run that was killed is cut.
	wattlock stream --open -i /root/key < "$file" >> /root/messages || [ $? = 3 ]
done
echo MESSAGES: $(cat /root/messages)
"#;

/// Installs, uses and purges the packages.
const INSTALLED: &str = r#"
all_files() { find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /packages -o -path /var/lib/dpkg -o -path /var/log \
	-o -path /var/cache \) -prune -o -print | sort; }
mkdir -p /tmp/work; cd /tmp/work
all_files > before
dpkg --install /packages/*.deb
test -z "$(dpkg --verify wattlock wattlock-lab)"
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
echo text | OPENSSL_CONF=$PWD/wattlock.cnf openssl enc -propquery x.wattlock=yes -aes-256-ctr -K 00 -iv 00 2> /dev/null | \
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
    image::unpack(place, work, &bundle)?;
    let file = bundle.join("config.json");
    let made: Value = serde_json::from_slice(&fs::read(&file)?)?;
    let archive = format!("oci-archive:{}", image::archive(place).display());
    let shown = said(Command::new("skopeo").args(["inspect", &archive]))?;
    ensure!(shown.contains("\"Os\": \"linux\""), "{shown}");
    let run = |words: &[&str]| {
        let mut config = made.clone();
        config["process"]["terminal"] = json!(false);
        let args = config["process"]["args"].as_array_mut().context("the image runs nothing")?;
        args.extend(words.iter().map(|&word| json!(word)));
        fs::write(&file, serde_json::to_vec(&config)?)?;
        let name = format!("wattlock-check-{}", std::process::id());
        said(Command::new("runc").args(["run", "--bundle"]).arg(&bundle).arg(name))
    };
    ensure!(run(&["--version"])?.contains(&place.version), "it has another version");
    run(&["keygen", "-o", "key"])?;
    run(&["protect", "-i", "key", "-o", "key.wlk", "key"])?;
    let key = fs::read_to_string(bundle.join("rootfs/data/key"))?;
    ensure!(run(&["unprotect", "-i", "key", "-o-", "key.wlk"])? == key, "it came back changed");
    Ok(())
}

/// Only what is committed is built again: fails if there are changes.
///
/// # Errors
/// Which.
pub fn refuse_changes(place: &Place) -> anyhow::Result<()> {
    let mut git = Command::new("git");
    let changed = said(git.args(["status", "--porcelain"]).current_dir(&place.root))?;
    if !changed.is_empty() {
        bail!("commit what is changed before:\n{changed}");
    }
    Ok(())
}

fn again(place: &Place, work: &Path) -> anyhow::Result<()> {
    let root = work.join("another-folder");
    said(Command::new("git").args(["clone", "-q"]).arg(&place.root).arg(&root))?;
    let other = Place::new(root, place.version.clone())?;
    other.make()?;
    let mut names = Vec::new();
    for name in place.files()? {
        let [one, two] = [&place.out, &other.out].map(|out| fs::read(out.join(&name)));
        if one? != two? {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    let kept = place.out.join("again");
    fs::rename(&other.out, &kept)?;
    bail!("{} differ; {} has those of the second build", names.join(", "), kept.display())
}

/// The packages whose names end like this.
fn packages(place: &Place, end: &str) -> anyhow::Result<Vec<PathBuf>> {
    let names = place.files()?.into_iter().filter(|name| name.ends_with(end));
    Ok(names.map(|name| place.out.join(name)).collect())
}
