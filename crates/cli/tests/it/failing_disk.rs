//! A disk on which no write succeeds, found out only when outputs are made durable: on a real file system in a
//! virtual machine.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use wattlock_testing::VirtualMachine;

use crate::power_loss::{DISK_MODULES, path_of};
use crate::support::{Place, installed};

/// Makes files on a file system whose journal is on another disk, so that a disk which refuses data does
/// not end the file system itself; only a sync says that data was lost.
const SCRIPT: &str = r#"
export PATH=/bin
/bin/busybox --install -s /bin
dm() { /dmsetup --noudevrules --noudevsync "$@"; }
sectors=$(cat /sys/block/vda/size)
works="0 $sectors linear /dev/vda 0"
fails="0 $sectors flakey /dev/vda 0 0 1000000 1 error_writes"
dm create disk --table "$works" || echo FAILED: no disk
/mkfs.ext4 -q -F -O journal_dev /dev/vdb || echo FAILED: no journal
/mkfs.ext4 -q -F -J device=/dev/vdb /dev/dm-0 || echo FAILED: no file system
mkdir /mnt
mount -t ext4 /dev/dm-0 /mnt || echo FAILED: no mount
mkdir /mnt/tree
for i in $(seq 300); do yes "line of file $i" | head -c 3000 >/mnt/tree/f$i; done
(cd /mnt/tree; md5sum f*) >/tmp/sums
sync
dm load disk --table "$fails" && dm suspend disk && dm resume disk || echo FAILED: the disk does not fail
/wattlock protect --quiet -r RECIPIENT --replace --recursive /mnt/tree 2>/tmp/said
echo CODE: $?
echo MESSAGES: $(grep -c "cannot write.*f[0-9]*.wlk" /tmp/said)
head -n 3 /tmp/said
echo NAMED: $(ls /mnt/tree | grep -c wlk)
dm load disk --table "$works" && dm suspend --nolockfs disk && dm resume disk || echo FAILED: the disk does not work
umount /mnt
mount -t ext4 /dev/dm-0 /mnt || echo FAILED: no second mount
(cd /mnt/tree; md5sum f*) >/tmp/now
cmp /tmp/sums /tmp/now && echo ORIGINALS: same
/wattlock protect --quiet -r RECIPIENT --replace --recursive /mnt/tree || echo FAILED: the second run
echo THEN: $(ls /mnt/tree | grep -c wlk)
"#;

#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_a_disk_that_fails() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let Some(mut machine) = VirtualMachine::new(target) else { return };
    if !["dmsetup", "mkfs.ext4"].into_iter().all(installed) {
        return;
    }
    machine.has_vaes();
    let place = Place::new();
    machine.add_disk(64 << 20, |_| {});
    machine.add_disk(32 << 20, |_| {});
    machine.add_program(Path::new(env!("CARGO_BIN_EXE_wattlock")), "wattlock");
    machine.add_program(&path_of("dmsetup"), "dmsetup");
    machine.add_program(&path_of("mkfs.ext4"), "mkfs.ext4");
    DISK_MODULES.iter().for_each(|module| machine.add_module(module));
    machine.add_module("drivers/md/dm-flakey.ko");
    let console = machine.run(&SCRIPT.replace("RECIPIENT", &place.recipient));
    assert!(!console.contains("FAILED"), "{console}");
    // Each file of a group is reported, none gets its name, and no original goes.
    for said in ["CODE: 1\n", "MESSAGES: 300\n", "NAMED: 0\n", "ORIGINALS: same\n", "THEN: 300\n"] {
        assert!(console.contains(said), "{said}{console}");
    }
}
