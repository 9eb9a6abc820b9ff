#!/bin/sh
# Compiles the kernels, or another source beside them, to PTX, into the file named; clang 19, and
# no file of NVIDIA's. The same
# source gives the same bytes. PTX 6.4, the oldest for sm_75: drivers refuse what is newer than they.
set -eu
out=$(realpath -- "$1")
source=${2:-wattlock.c}
cd "$(dirname "$0")/../crates/gpu/kernels"
exec clang-19 -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_75 \
	-Xclang -target-feature -Xclang +ptx64 -O3 -Wall -Wextra -Werror -Wno-unused-function \
	-S "$source" -o "$out"
