#!/usr/bin/env bash
# The provider and the test host in C, both with AddressSanitizer and the host with UBSan as well,
# on every kernel that this CPU has. Needs the nightly toolchain, clang 19 and OpenSSL's headers.
set -euo pipefail
cd "$(dirname "$0")/.."

target=x86_64-unknown-linux-gnu
built=target/sanitize/$target/debug
RUSTFLAGS=-Zsanitizer=address cargo +nightly build --locked --package wattlock-provider \
	--target "$target" --target-dir target/sanitize

# A module takes the runtime of the program that loads it: Rust's own, which fits what rustc made.
runtime=$(rustc +nightly --print sysroot)/lib/rustlib/$target/lib/librustc-nightly_rt.asan.a
host=target/sanitize/host
objects=()
for source in crates/provider/tests/it/host/*.c; do
	# Programs of their own: one counts calls of malloc, the other takes OpenSSL 3.5.
	case $(basename "$source") in steady.c | quic.c) continue ;; esac
	object=target/sanitize/$(basename "$source" .c).o
	clang-19 -std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -O1 -g -fno-omit-frame-pointer \
		-fsanitize=address,undefined -fno-sanitize-recover=undefined -c "$source" -o "$object"
	objects+=("$object")
done
clang-19 "${objects[@]}" -Wl,--whole-archive "$runtime" -Wl,--no-whole-archive \
	-Wl,--export-dynamic -lcrypto -lpthread -ldl -lrt -lm -lstdc++ -o "$host"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$PWD/$built/libwattlock_provider.so" "$folder/wattlock.so"
run() { # run SETTING ARGUMENT...
	cat >"$folder/openssl.cnf" <<-CONFIG
		openssl_conf = init
		[init]
		providers = provider_list
		[provider_list]
		default = default_section
		wattlock = wattlock_section
		[default_section]
		activate = 1
		[wattlock_section]
		activate = 1
		$1
	CONFIG
	shift
	ASAN_OPTIONS=detect_stack_use_after_return=1 "$host" "$folder" "$@"
}
if run "" control >/dev/null 2>"$folder/report" || ! grep -q heap-buffer-overflow "$folder/report"; then
	echo "sanitize: the control was not found" >&2
	exit 1
fi
run ""
run "paper_mode = 1" paper
run "accelerator = simulated:rate=cpu,latency_us=0,fault_every=3
threshold = 0"
echo "sanitize: no error, and the control was found"
