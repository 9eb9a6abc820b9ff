#!/usr/bin/env bash
# Protects, verifies and restores a real file, and shows what tampering does: `make demo`.
set -euo pipefail
wattlock=$(realpath "${1:?usage: demo.sh WATTLOCK}")
export PATH="$(dirname "$wattlock"):$PATH"

place=$(mktemp -d "${TMPDIR:-/dev/shm}/wattlock-demo-XXXXXX" 2>/dev/null || mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
# The figures that a terminal shows, taken from --json so that they also show in a log.
timed() {
	printf '$ wattlock %s\n' "$*"
	wattlock "$@" --json > run.json
	awk -F'[:,]' '
		/^  "wall_ns"/ { wall = $2 / 1e9 }
		/^  "cpu_ns"/ { cpu = $2 / 1e9 }
		/^  "threads"/ { threads = $2 + 0 }
		END { printf "  512 MiB in %.3f s: %.2f GB/s, %.3f CPU seconds, %d threads\n",
			wall, 0.536870912 / wall, cpu, threads }' run.json
	rm run.json
}

say "A key pair, and 512 MiB of random bytes to protect"
run wattlock keygen -o key.txt
recipient=$(wattlock keygen -y key.txt)
head -c 536870912 /dev/urandom > data.bin
chmod 640 data.bin
digest=$(sha256sum < data.bin)

say "Protect it for that key"
timed protect -r "$recipient" data.bin
run ls -l data.bin data.bin.wlk

say "What anybody can see of it, without a key"
run wattlock inspect data.bin.wlk

say "Verify: every byte is authenticated, nothing is written"
timed verify -i key.txt data.bin.wlk

say "Restore it, and compare"
rm data.bin
timed unprotect -i key.txt data.bin.wlk
run ls -l data.bin
[ "$(sha256sum < data.bin)" = "$digest" ] && echo "  the same 512 MiB"

say "One flipped bit in the middle: exit code 3, and nothing is left behind"
byte=$(dd if=data.bin.wlk bs=1 skip=300000000 count=1 status=none | od -An -tu1)
printf "\\$(printf %o $((byte ^ 1)))" | dd of=data.bin.wlk bs=1 seek=300000000 conv=notrunc status=none
rm data.bin
code=0
run wattlock unprotect -i key.txt data.bin.wlk || code=$?
echo "  exit code $code"
run ls
[ "$code" = 3 ] && [ ! -e data.bin ]
