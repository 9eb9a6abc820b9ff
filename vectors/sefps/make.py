#!/usr/bin/env python3
"""Makes the vectors in this folder from docs/spec/sefps.md, with hashlib and `openssl enc` alone."""

import hashlib
import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent
IV = "fffffffffffffffffffffffffffffffe"  # wraps after two blocks


def key(bits):
    return bytes(range(bits // 8))


def plain(length):
    return bytes(i % 251 for i in range(length))


def container(bits, mode, data):
    zeros = 16 - len(data) % 16
    padded = data + bytes(zeros) + bytes([zeros] * 16)
    padded += hashlib.sha3_256(padded).digest()
    command = ["openssl", "enc", f"-aes-{bits}-{mode}", "-nopad", "-K", key(bits).hex()]
    command += ["-iv", IV] if mode == "ctr" else []
    return subprocess.run(command, input=padded, capture_output=True, check=True).stdout


if __name__ == "__main__":
    for bits in (128, 192, 256):
        for mode in ("ecb", "ctr"):
            for length in (0, 1, 15, 16, 17, 123):
                name = f"aes-{bits}-{mode}-{length}.sefps"
                (HERE / name).write_bytes(container(bits, mode, plain(length)))
