//! Power losses while the messages of a folder are delivered or copied: what was acknowledged arrives, and a position is never
//! ahead of what arrived.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::power_loss::{SENDING, lose_power_on_ext4, lose_power_on_xfs};

/// A follower delivers what the gateway takes in, to a receiver or a file on the same disk, over two runs of both, the first of
/// which are killed. After each power loss, the next follower delivers the rest.
const FOLLOWED: &str = r#"
/wattlock stream -r RECIPIENT --framing relp --listen tcp:127.0.0.1:7001 --sync batch --rotate-size 1K -o /mnt/there/ 2>/tmp/said-there &
receiver=$!
until grep -q listening /tmp/said-there; do usleep 50000; done
deliver() {
	/wattlock stream --open --follow -q -i /key.txt --position /mnt/position DESTINATION /mnt/logs 2>/tmp/said-follower &
	follower=$!
}
arrived() { # prints what arrived
	! ls /mnt/there/*.wls >/dev/null 2>&1 || /wattlock stream --open -q -i /key.txt /mnt/there 2>/dev/null
	cat /mnt/out /mnt/out.* 2>/dev/null
}
serve
deliver
send 1 12
until arrived | grep -q '^line 6 '; do usleep 50000; done
kill -9 $server $follower
exec 3>&- 4<&-
wait $server $follower $client
serve
deliver
send 13 24
until arrived | grep -q '^line 24 '; do usleep 50000; done
exec 3>&-
kill $server $follower
wait $server || echo FAILED: the gateway
wait $follower || echo "FAILED: the follower: $(cat /tmp/said-follower)"
kill $receiver
wait $receiver || echo FAILED: the receiver
umount /mnt
dm remove log
/replay /dev/vdb >/tmp/parts || echo FAILED: no parts

look() { # at what arrived after part $1, mark $2, seed $3, and what is delivered then
	acknowledged=$2
	case $2 in '' | start | ready) acknowledged=0 ;; esac
	arrived >/tmp/all
	: >/tmp/kept
	rm -f /tmp/delivered*
	if ls /mnt/logs/*.wls >/dev/null 2>&1; then
		echo one more | /wattlock stream -q -r RECIPIENT --framing ndjson -o /mnt/logs/ 2>/tmp/said ||
			echo "FAILED at $1 ($2) seed $3: the folder does not go on: $(cat /tmp/said)"
		/wattlock stream --open -q -i /key.txt /mnt/logs 2>/dev/null | grep -v 'one more' >/tmp/kept
		rm -f /tmp/ended
		(
			/wattlock stream --open --follow -q -i /key.txt --position /mnt/position -o /tmp/delivered /mnt/logs 2>/tmp/said
			echo >/tmp/ended
		) &
		tries=0
		until grep -q 'one more' /tmp/delivered* 2>/dev/null; do
			tries=$((tries + 1))
			if [ -e /tmp/ended ] || [ $tries = 3000 ]; then
				echo "FAILED at $1 ($2) seed $3: no delivery: $(cat /tmp/said)"
				break
			fi
			usleep 20000
		done
		killall wattlock 2>/dev/null
		wait
		cat /tmp/delivered* >>/tmp/all
	fi
	while read -r line; do
		grep -q -x -F "$line" /tmp/all || echo "FAILED at $1 ($2) seed $3: the position passes over: $line"
	done </tmp/kept
	for i in $(seq $acknowledged); do
		grep -q "^line $i of a text that takes some room in the segment$" /tmp/all ||
			echo "FAILED at $1 ($2) seed $3: line $i was acknowledged and does not arrive"
	done
}

"#;

/// A gateway copies its folder to a store on the same disk, and removes what the store has, over two runs of both. After each power
/// loss, the next run copies the rest.
const FORWARDED: &str = r#"
store() {
	rm -f /tmp/said-store
	/wattlock stream --store --listen tcp:127.0.0.1:7001 -o /mnt/copies 2>/tmp/said-store &
	store=$!
	until grep -q listening /tmp/said-store; do usleep 50000; done
}
copies() { # prints what the store has
	! ls /mnt/copies/*/*.wls >/dev/null 2>&1 || /wattlock stream --open -q -i /key.txt /mnt/copies/* 2>/dev/null
}
store
serve
send 1 12
kill -9 $server $store
exec 3>&- 4<&-
wait
store
serve
send 13 24
exec 3>&-
kill $server
wait $server || echo FAILED: the gateway
copies | grep -q '^line 24 ' || echo FAILED: the store does not have all
kill $store
wait $store || echo FAILED: the store
umount /mnt
dm remove log
/replay /dev/vdb >/tmp/parts || echo FAILED: no parts

look() { # at the store after part $1, mark $2, seed $3, and after another run
	acknowledged=$2
	case $2 in '' | start | ready) acknowledged=0 ;; esac
	copies >/tmp/lines
	if [ IN_STORE = 1 ]; then
		for i in $(seq $acknowledged); do
			grep -q "^line $i of a text that takes some room in the segment$" /tmp/lines ||
				echo "FAILED at $1 ($2) seed $3: line $i was acknowledged and is not in the store"
		done
	fi
	mkdir -p /mnt/copies
	store
	echo one more | /wattlock stream -q -r RECIPIENT --framing ndjson -o /mnt/logs/ --forward tcp:127.0.0.1:7001 --remove-forwarded --drain 60 2>/tmp/said ||
		echo "FAILED at $1 ($2) seed $3: it does not go on: $(cat /tmp/said)"
	kill $store
	wait $store
	left=$(find /mnt/logs -name '*.wls' -size +0 | wc -l)
	[ $left = 0 ] || echo "FAILED at $1 ($2) seed $3: $left segments were not copied: $(cat /tmp/said)"
	copies >/tmp/lines
	for i in $(seq $acknowledged); do
		grep -q "^line $i of a text that takes some room in the segment$" /tmp/lines ||
			echo "FAILED at $1 ($2) seed $3: line $i was acknowledged and is lost"
	done
	[ $(sort /tmp/lines | uniq -d | wc -l) = 0 ] || echo "FAILED at $1 ($2) seed $3: doubles"
}

"#;

fn sending(script: &str, more: &str) -> String {
    let sending = SENDING.replace("MORE", more).replace("SYNC", "batch").replace("SEGMENT", "1K");
    [&sending, script].concat()
}

#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_power_losses_of_delivery_to_a_receiver() {
    let to = "--connect tcp:127.0.0.1:7001 --acknowledged relp";
    lose_power_on_ext4(&sending(FOLLOWED, "").replace("DESTINATION", to));
}

#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_power_losses_of_delivery_to_files() {
    lose_power_on_ext4(&sending(FOLLOWED, "").replace("DESTINATION", "-o /mnt/out"));
}

/// What was removed is known by its number alone, which no other segment may get.
#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_power_losses_of_copies_on_xfs() {
    let more = "--forward tcp:127.0.0.1:7001 --remove-forwarded --drain 60";
    lose_power_on_xfs(&sending(FORWARDED, more).replace("IN_STORE", "0"));
}

#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_power_losses_of_copies_that_senders_wait_for() {
    let more = "--forward tcp:127.0.0.1:7001 --remove-forwarded --ack-forwarded --drain 60";
    lose_power_on_ext4(&sending(FORWARDED, more).replace("IN_STORE", "1"));
}
