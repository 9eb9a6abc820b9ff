#!/bin/sh
# Measures an NVIDIA GPU in less than ten minutes: right results first, then instructions, kernels,
# copies, joules, and data in host memory. Reads the GPU's settings and changes none. Needs the
# driver, and the binary, which it builds where it is missing and cargo is there:
#
#     bench/gpu.sh [BINARY [DEVICE]]
#
# Where `wattlock-lab` is built, with the provider beside it, pages by HTTPS with the GPU as the
# provider's accelerator follow, into https-gpu.json: a minute more for each suite.
#
# Without a GPU it says why, and exits with 4. Output goes to bench/results/gpu.json and gpu.txt.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
binary=${1:-${CARGO_TARGET_DIR:-$root/target}/release/examples/gpu_bench}
device=${2:-cuda:0}
if [ ! -x "$binary" ]; then
	(cd "$root" && cargo build --release --locked -p wattlock-gpu --example gpu_bench)
fi
out=${GPU_RESULTS:-$root/bench/results}
mkdir -p "$out"
if command -v nvidia-smi >/dev/null 2>&1; then
	# What it is set to, and who else uses it, belongs to the figures.
	nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu,utilization.gpu,persistence_mode,pcie.link.gen.current,pcie.link.width.current \
		--format=csv >"$out/gpu-settings.csv" 2>&1 || true
fi
status=$(mktemp)
trap 'rm -f "$status"' EXIT
{
	code=0
	"$binary" --device "$device" --json "$out/gpu.json" 2>&1 || code=$?
	echo "$code" >"$status"
} | tee "$out/gpu.txt"
lab=${WATTLOCK_LAB:-${CARGO_TARGET_DIR:-$root/target}/release/wattlock-lab}
if [ "$(cat "$status")" = 0 ] && [ -x "$lab" ]; then
	# It says itself what is missing where no page can be served.
	"$lab" bench https --accelerator "$device" --sizes 64K,512K,2M --json "$out/https-gpu.json" ||
		echo "$?" >"$status"
fi
exit "$(cat "$status")"
