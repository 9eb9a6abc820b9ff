//! Power losses: every write to a disk is recorded while the program replaces files, and replayed up to many
//! points, on real file systems in a virtual machine.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;

use wattlock_testing::VirtualMachine;

use crate::support::{Place, installed, stdout};

/// Makes files on the first disk, whose writes the second records, and replaces them by containers and
/// these by files. Then it takes the third disk, which is as the first was, to every point between two
/// flushes, with some of the writes that no flush had completed, on a snapshot whose changes go to the
/// fourth, and looks at the files there.
const SCRIPT: &str = r#"
export PATH=/bin
/bin/busybox --install -s /bin
dm() { /dmsetup --noudevrules --noudevsync "$@"; }
sectors=$(cat /sys/block/vda/size)
dm create log --table "0 $sectors log-writes /dev/vda /dev/vdb" || echo FAILED: no log
mkdir /mnt
mount -t FILE_SYSTEM /dev/dm-0 /mnt || echo FAILED: no mount
mkdir -p /mnt/tree/sub
for i in $(seq 40); do yes "line of file $i" | head -c $((i * i * 17)) >/mnt/tree/f$i; done
for i in $(seq 41 60); do yes "line of file $i" | head -c $((i * 997)) >/mnt/tree/sub/f$i; done
(cd /mnt/tree; md5sum f* sub/f*) >/tmp/sums
sync
dm message log 0 mark ready
ulimit -n 176
/wattlock protect --quiet -r RECIPIENT --replace --recursive /mnt/tree || echo FAILED: protect
dm message log 0 mark sealed
/wattlock unprotect --quiet -i /key.txt --replace --recursive /mnt/tree || echo FAILED: unprotect
dm message log 0 mark opened
umount /mnt
dm remove log
/replay /dev/vdb >/tmp/parts || echo FAILED: no parts

look() { # at the files after part $1, mark $2, seed $3
	there=$(cd /mnt/tree; ls f* sub/f* 2>/dev/null)
	plain=$(echo "$there" | grep -v wlk)
	(cd /mnt/tree; [ -z "$plain" ] || md5sum $plain) >/tmp/now
	wrong=$(grep -v -x -F -f /tmp/sums /tmp/now)
	[ -z "$wrong" ] || echo "FAILED at $1 ($2) seed $3: wrong bytes: $wrong"
	if [ "$there" != "$plain" ]; then
		/wattlock verify --quiet -i /key.txt --recursive /mnt/tree 2>/tmp/said ||
			echo "FAILED at $1 ($2) seed $3: $(cat /tmp/said)"
	fi
	stems=$(echo "$there" | sed 's/.wlk$//' | sort -u | wc -l)
	[ $stems = 60 ] || echo "FAILED at $1 ($2) seed $3: $stems files are left"
	count=$(echo "$plain" | grep -c f)
	case $2 in
	sealed) [ $1 != "$sealed" ] || [ $count = 0 ] || echo "FAILED: $count files after their replacement" ;;
	opened) [ $count = 60 ] || echo "FAILED: $count files at the end" ;;
	esac
}

sealed=$(grep ' sealed ' /tmp/parts | head -n 1 | cut -d ' ' -f 1)
"#;

/// A disk whose writes are recorded, a gateway that acknowledges messages, and a sender, which notes the number of each message
/// that is acknowledged among the writes.
pub const SENDING: &str = r#"
export PATH=/bin
/bin/busybox --install -s /bin
dm() { /dmsetup --noudevrules --noudevsync "$@"; }
sectors=$(cat /sys/block/vda/size)
dm create log --table "0 $sectors log-writes /dev/vda /dev/vdb" || echo FAILED: no log
mkdir /mnt
mount -t FILE_SYSTEM /dev/dm-0 /mnt || echo FAILED: no mount
ifconfig lo 127.0.0.1 up
mkfifo /tmp/to /tmp/from
sync
dm message log 0 mark ready
serve() {
	rm -f /tmp/said
	/wattlock stream -r RECIPIENT --framing relp --listen tcp:127.0.0.1:7000 --sync SYNC --rotate-size SEGMENT -o /mnt/logs/ MORE 2>/tmp/said &
	server=$!
	until grep -q listening /tmp/said; do usleep 50000; done
	nc 127.0.0.1 7000 </tmp/to >/tmp/from &
	client=$!
	exec 3>/tmp/to 4</tmp/from
	printf '1 open 15 commands=syslog\n' >&3
	for i in 1 2 3 4; do read answer <&4; done
}
send() { # lines from $1 to $2
	for i in $(seq $1 $2); do
		line="line $i of a text that takes some room in the segment"
		echo "$((i + 1)) syslog ${#line} $line" >&3
		read answer <&4
		[ "$answer" = "$((i + 1)) rsp 6 200 OK" ] || echo "FAILED: $answer"
		dm message log 0 mark $i
	done
}
"#;

/// The same with messages that are acknowledged, each with a mark of its number, over two runs of the program, the first of
/// which is killed. What a mark says was acknowledged has to be there, and the folder has to go on.
const ACKNOWLEDGED: &str = r#"
serve
send 1 12
kill -9 $server
exec 3>&- 4<&-
wait
serve
send 13 24
exec 3>&-
kill $server
wait $server || echo FAILED: the program
umount /mnt
dm remove log
/replay /dev/vdb >/tmp/parts || echo FAILED: no parts

look() { # at the messages after part $1, mark $2, seed $3
	acknowledged=$2
	case $2 in '' | start | ready) acknowledged=0 ;; esac
	touch /tmp/lines
	if ls /mnt/logs/*.wls >/dev/null 2>&1; then
		/wattlock stream --open -q -i /key.txt /mnt/logs >/tmp/lines 2>/tmp/said
		echo one more | /wattlock stream -q -r RECIPIENT --framing ndjson -o /mnt/logs/ 2>/tmp/said ||
			echo "FAILED at $1 ($2) seed $3: it does not go on: $(cat /tmp/said)"
		/wattlock stream --open -q -i /key.txt /mnt/logs 2>/tmp/said | grep -v 'one more' >/tmp/again
		grep -q 'not authentic\|damaged\|cut off' /tmp/said && echo "FAILED at $1 ($2) seed $3: $(cat /tmp/said)"
		cmp -s /tmp/lines /tmp/again || echo "FAILED at $1 ($2) seed $3: recovery changes what is there"
	else
		: >/tmp/lines
	fi
	i=0
	while [ $((i += 1)) -le $((acknowledged - UNSAFE)) ]; do
		grep -q "^line $i of a text that takes some room in the segment$" /tmp/lines ||
			echo "FAILED at $1 ($2) seed $3: line $i was acknowledged and is lost"
	done
	[ $(sort /tmp/lines | uniq -d | wc -l) = 0 ] || echo "FAILED at $1 ($2) seed $3: doubles"
}

"#;

/// Takes the third disk to every point, and looks.
const POINTS: &str = r#"
points=0
cut -d ' ' -f 1,2 /tmp/parts >/tmp/points
while read part mark; do
	if [ $mark != start ]; then
		seed=0
		while [ $seed -lt SEEDS ]; do
			dm create snap --table "0 $sectors snapshot /dev/vdc /dev/vdd N 8" || echo FAILED: no snapshot
			/replay /dev/vdb /dev/dm-0 $part $seed || echo FAILED: no replay
			if mount -t FILE_SYSTEM MOUNT_OPTIONS /dev/dm-0 /mnt; then
				look $part $last $seed
				umount /mnt
			else
				echo "FAILED at $part ($mark) seed $seed: the file system cannot be mounted"
			fi
			dm remove snap
			points=$((points + 1))
			seed=$((seed + 1))
		done
	fi
	/replay /dev/vdb /dev/vdc $part || echo FAILED: no replay
	last=$mark
done </tmp/points
echo POINTS: $points
"#;

/// A kind of file system: how it is made and mounted, and how large its disk is.
struct Kind {
    name: &'static str,
    make: &'static [&'static str],
    options: &'static str,
    disk_len: u64,
    modules: &'static [&'static str],
    /// Subsets of each part's writes up to a random one: all, those that are durable at once, and then random ones.
    seeds: u32,
}

const EXT4: Kind = Kind {
    name: "ext4",
    make: &["mkfs.ext4", "-q", "-F"],
    options: "",
    disk_len: 64 << 20,
    modules: &[],
    seeds: 5,
};

const XFS: Kind = Kind {
    name: "xfs",
    make: &["mkfs.xfs", "-q", "-f"],
    options: "-o nouuid",
    disk_len: 320 << 20,
    modules: &["lib/libcrc32c.ko", "fs/xfs/xfs.ko"],
    seeds: 8,
};

/// Disks, and what stands between them and a file system.
pub const DISK_MODULES: [&str; 7] = [
    "drivers/virtio/virtio.ko",
    "drivers/virtio/virtio_ring.ko",
    "drivers/virtio/virtio_pci_legacy_dev.ko",
    "drivers/virtio/virtio_pci_modern_dev.ko",
    "drivers/virtio/virtio_pci.ko",
    "drivers/block/virtio_blk.ko",
    "drivers/md/dm-mod.ko",
];

/// The writes to disks.
const MODULES: [&str; 3] =
    ["drivers/md/dm-bufio.ko", "drivers/md/dm-log-writes.ko", "drivers/md/dm-snapshot.ko"];

#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_power_losses_on_ext4() {
    lose_power(&EXT4, SCRIPT);
}

#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_power_losses_of_acknowledged_messages() {
    lose_power_of_acknowledged("batch", "3K", 0, 1);
}

#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_power_losses_of_messages_that_are_synced_in_time() {
    lose_power_of_acknowledged("20", "3K", 0, 1);
}

/// What was acknowledged since the segment began may be lost, and no more.
#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_power_losses_of_messages_that_are_not_synced() {
    // There are few parts, so of each more is tried.
    lose_power_of_acknowledged("never", "500", 8, 3);
}

/// Of the messages that were acknowledged, the last `unsafe_count` may be lost. Of each part of the writes, `subsets` are
/// tried.
fn lose_power_of_acknowledged(sync: &str, segment: &str, unsafe_count: u32, subsets: u32) {
    let script = [SENDING, ACKNOWLEDGED]
        .concat()
        .replace("MORE", "")
        .replace("SYNC", sync)
        .replace("SEGMENT", segment)
        .replace("UNSAFE", &unsafe_count.to_string());
    lose_power(&Kind { seeds: subsets, ..EXT4 }, &script);
}

/// Runs a script that writes, and has a function `look`, which looks at what is there after each part of the writes.
pub fn lose_power_on_ext4(script: &str) {
    lose_power(&Kind { seeds: 1, ..EXT4 }, script);
}

/// The same on XFS, which orders less than ext4 does.
pub fn lose_power_on_xfs(script: &str) {
    lose_power(&Kind { seeds: 1, ..XFS }, script);
}

#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_power_losses_on_xfs() {
    lose_power(&XFS, SCRIPT);
}

fn lose_power(kind: &Kind, script: &str) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let Some(mut machine) = VirtualMachine::new(target) else { return };
    if !["dmsetup", kind.make[0]].into_iter().all(installed) {
        return;
    }
    machine.has_vaes();
    let place = Place::new();
    let made = place.path("disk");
    std::fs::File::create(&made).unwrap().set_len(kind.disk_len).unwrap();
    let (make, args) = kind.make.split_first().unwrap();
    assert!(Command::new(path_of(make)).args(args).arg(&made).status().unwrap().success());
    let copy = |to: &Path| {
        let copied = Command::new("cp").arg("--sparse=always").args([&made, to]).status();
        assert!(copied.unwrap().success());
    };
    machine.add_disk(kind.disk_len, copy);
    machine.add_disk(1 << 30, |_| {});
    machine.add_disk(kind.disk_len, copy);
    machine.add_disk(kind.disk_len, |_| {});
    machine.add_program(Path::new(env!("CARGO_BIN_EXE_wattlock")), "wattlock");
    // Built with the tests, and so beside them.
    let own = std::env::current_exe().unwrap();
    let examples = own.parent().unwrap().parent().unwrap().join("examples");
    machine.add_program(&examples.join("replay_writes"), "replay");
    machine.add_program(&path_of("dmsetup"), "dmsetup");
    machine.add_file(&place.path("key.txt"), "key.txt");
    DISK_MODULES.iter().chain(&MODULES).for_each(|module| machine.add_module(module));
    kind.modules.iter().for_each(|module| machine.add_module(module));
    let script = [script, POINTS].concat();
    let script = script
        .replace("FILE_SYSTEM", kind.name)
        .replace("MOUNT_OPTIONS", kind.options)
        .replace("RECIPIENT", &place.recipient)
        .replace("SEEDS", &kind.seeds.to_string());
    let console = machine.run(&script);
    assert!(!console.contains("FAILED"), "{console}");
    let points = console.split("POINTS: ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let points: u32 = points.and_then(|points| points.parse().ok()).unwrap_or(0);
    assert!(points >= 40, "only {points} points:\n{console}");
}

/// Where a program is, which not everybody has in PATH.
pub fn path_of(name: &str) -> PathBuf {
    let find = "PATH=$PATH:/usr/sbin:/sbin command -v \"$0\"";
    let found = Command::new("sh").args(["-c", find, name]).output().unwrap();
    PathBuf::from(stdout(&found).trim())
}
