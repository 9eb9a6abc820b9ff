"""Makes records.json from the text of docs/spec/record.md, with the package `cryptography`."""

import json
import struct
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand


def record(session_key, epoch, writer, counter, message, additional, version=1):
    """The record of `message`."""
    info = b"wattlock/v1 record" + struct.pack(">I", epoch) + writer
    key = HKDFExpand(SHA256(), 32, info).derive(session_key)
    head = struct.pack(">BI16sQ", version, epoch, writer, counter)
    nonce = struct.pack(">IQ", 0, counter)
    return head + AESGCM(key).encrypt(nonce, message, head + additional)


def pattern(length, step):
    """Bytes without a short period."""
    return bytes((i * step + i // 251) % 256 for i in range(length))


KEY, OTHER = pattern(32, 7), pattern(32, 11)
WRITER = pattern(16, 13)


def cases():
    """Name, session key, epoch, additional data, record, message or None."""
    for length in [0, 1, 15, 16, 17, 200, 1000, 16384, 70000]:
        message = pattern(length, 5)
        yield f"message of {length} bytes", KEY, 1, b"", record(KEY, 1, WRITER, 0, message, b""), message
    short = b"what was said in confidence"
    for epoch, counter, additional in [(0, 1, b"topic"), (2**32 - 1, 2**32 - 1, pattern(300, 3)), (9, 2**64 - 1, b"\0")]:
        name = f"epoch {epoch}, counter {counter}, {len(additional)} bytes of additional data"
        yield name, KEY, epoch, additional, record(KEY, epoch, WRITER, counter, short, additional), short
    good = record(KEY, 1, WRITER, 5, short, b"topic")
    for name, at in [("version", 0), ("epoch", 4), ("writer", 5), ("counter", 28), ("ciphertext", 29), ("tag", -1)]:
        flipped = bytearray(good)
        flipped[at] ^= 1
        yield f"{name} flipped", KEY, 1, b"topic", bytes(flipped), None
    yield "version 2", KEY, 1, b"topic", record(KEY, 1, WRITER, 5, short, b"topic", version=2), None
    yield "another key", OTHER, 1, b"topic", good, None
    yield "key of another epoch", KEY, 2, b"topic", good, None
    yield "other additional data", KEY, 1, b"topic ", good, None
    yield "no additional data", KEY, 1, b"", good, None
    yield "a byte cut off", KEY, 1, b"topic", good[:-1], None
    yield "a byte appended", KEY, 1, b"topic", good + b"\0", None
    yield "44 bytes", KEY, 1, b"", record(KEY, 1, WRITER, 0, b"", b"")[:-1], None
    yield "empty", KEY, 1, b"", b"", None


def main():
    """Writes the file beside this one."""
    names = ["name", "session_key", "epoch", "additional_data", "record", "message"]
    text = lambda value: value.hex() if isinstance(value, bytes) else value
    made = [{name: text(value) for name, value in zip(names, case)} for case in cases()]
    Path(__file__).with_name("records.json").write_text(json.dumps({"cases": made}, indent=1) + "\n")


main()
