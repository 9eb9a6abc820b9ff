#!/usr/bin/env python3
"""Makes the vectors in this folder from docs/spec/stream.md, with hmac, hashlib and the package
`cryptography` for AES-256-GCM, and with none of Wattlock's code."""

import hashlib
import hmac
import pathlib

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HERE = pathlib.Path(__file__).parent
MAGIC = b"wattlock-stream/v1\n"
KEY = bytes(range(32))
OPEN, DATA, REKEY, END, CLOSE = 1, 2, 3, 4, 5
RAW, LINES, LENGTH = 0, 1, 2
COMPLETE, CUT, STOPPED, CONTINUED = 0, 1, 2, 3


def expand(prk, info, length):
    """HKDF-Expand with SHA-512, RFC 5869."""
    out, block, count = b"", b"", 1
    while len(out) < length:
        block = hmac.new(prk, block + info + bytes([count]), hashlib.sha512).digest()
        out, count = out + block, count + 1
    return out[:length]


def salt(name):
    """No salt is random here, so that the vectors can be made again."""
    return hashlib.sha256(name.encode()).digest()[:24]


class Stream:
    def __init__(self, name, key=KEY, key_header=b"", magic=MAGIC):
        self.key, self.salt = key, salt(name)
        okm = expand(key, b"wattlock-stream/v1 stream\0" + self.salt + key_header, 76)
        self.own = (okm[:32], okm[32:44])
        self.units = [magic + len(key_header).to_bytes(4, "big") + key_header + self.salt + okm[44:]]
        self.chains = {}
        self.frames = 0
        self.opened = 0

    def frame(self, kind, connection, body, keys, clear=b""):
        key, base = keys
        mask = bytes([kind]) + bytes(3) + self.frames.to_bytes(8, "big")
        nonce = bytes(a ^ b for a, b in zip(base, mask))
        sealed = clear + AESGCM(key).encrypt(nonce, body, None)
        header = len(sealed).to_bytes(4, "big") + bytes([kind]) + connection.to_bytes(7, "big")
        self.units.append(header + sealed)
        self.frames += 1

    def open(self, framing, previous=None):
        self.opened += 1
        number = self.opened
        own = salt(f"{self.salt.hex()} {number}")
        info = b"wattlock-stream/v1 connection\0" + self.salt + number.to_bytes(8, "big") + own
        okm = expand(self.key, info, 76)
        part, before = (0, bytes(24)) if previous is None else (previous[0] + 1, previous[1])
        self.chains[number] = (okm[:32], okm[32:44], okm[44:], part, own)
        body = bytes([framing]) + part.to_bytes(4, "big") + before
        self.frame(OPEN, number, body, okm_keys(okm), own)
        return number

    def data(self, number, messages):
        self.frame(DATA, number, messages, self.chains[number][:2])

    def rekey(self, number):
        self.frame(REKEY, number, b"", self.chains[number][:2])
        _, _, chain, part, own = self.chains[number]
        okm = expand(chain, b"wattlock-stream/v1 ratchet", 76)
        self.chains[number] = (okm[:32], okm[32:44], okm[44:], part, own)

    def end(self, number, reason):
        self.frame(END, number, bytes([reason]), self.chains[number][:2])
        return self.chains.pop(number)[3:]

    def close(self):
        self.frame(CLOSE, 0, b"", self.own)


def okm_keys(okm):
    return okm[:32], okm[32:44]


def example(name="example", **how):
    stream = Stream(name, **how)
    one = stream.open(LINES)
    two = stream.open(LENGTH)
    stream.data(one, b"first\nsecond\n")
    stream.data(two, b"\0\0\0\5hello\0\0\0\0")
    stream.rekey(one)
    stream.data(one, b"third\n")
    stream.data(two, b"\0\0\0\1!")
    stream.end(one, COMPLETE)
    stream.end(two, COMPLETE)
    stream.close()
    return stream.units


WHOLE = b"first\nsecond\n\0\0\0\5hello\0\0\0\0third\n\0\0\0\1!"


def write(name, expect, body, released=b"", key=KEY):
    head = f"expect: {expect}\nkey: {key.hex()}\nreleased: {released.hex()}\n\n"
    (HERE / name).write_bytes(head.encode() + body)


def flip(unit, at, mask=1):
    return unit[:at] + bytes([unit[at] ^ mask]) + unit[at + 1 :]


def faults():
    units = example()
    join = b"".join
    first, upto = units[3], 13
    write("success_two_connections", "success", join(units), WHOLE)
    write("success_key_header", "success", join(example(key_header=b"for whom")), WHOLE)
    empty = Stream("empty")
    empty.close()
    write("success_no_connection", "success", join(empty.units))
    raw = Stream("raw")
    number = raw.open(RAW)
    raw.data(number, b"")
    raw.data(number, bytes(range(256)) * 40)
    raw.end(number, COMPLETE)
    raw.close()
    write("success_raw", "success", join(raw.units), bytes(range(256)) * 40)
    files, previous = [], None
    for part in range(3):
        stream = Stream(f"part {part}")
        number = stream.open(RAW, previous)
        stream.data(number, b"part %d;" % part)
        previous = stream.end(number, COMPLETE if part == 2 else CONTINUED)
        stream.close()
        files.append(join(stream.units))
    write("success_three_parts", "success", join(files), b"part 0;part 1;part 2;")
    write("success_second_part_alone", "success", files[1], b"part 1;")
    write("key_wrong", "wrong key", join(units), key=bytes(32))
    write("header_magic", "not a stream", flip(join(units), 3))
    write("header_version", "unknown version", join(example(magic=b"wattlock-stream/v2\n")))
    write("header_commitment_flipped", "wrong key", flip(join(units), 47))
    write("header_key_header_changed", "wrong key",
          join(example(key_header=b"for whom")).replace(b"for whom", b"for whon"))
    write("header_cut", "cut", units[0][:50])
    write("frame_data_flipped", "damaged", join(units[:3] + [flip(first, 14)] + units[4:]))
    write("frame_tag_flipped", "damaged", join(units[:3] + [flip(first, len(first) - 1)] + units[4:]))
    write("frame_of_other_connection", "damaged", join(units[:3] + [flip(first, 11, 3)] + units[4:]))
    write("frame_of_other_kind", "damaged", join(units[:3] + [flip(first, 4, 7)] + units[4:]))
    write("frame_of_unknown_kind", "damaged", join(units[:3] + [flip(first, 4, 8)] + units[4:]))
    short = (15).to_bytes(4, "big") + first[4:27]
    write("frame_shorter_than_tag", "damaged", join(units[:3] + [short]))
    long = (1 << 31).to_bytes(4, "big") + first[4:]
    write("frame_longer_than_limit", "damaged", join(units[:3] + [long]))
    write("frame_repeated", "damaged", join(units[:4] + units[3:]), first and b"first\nsecond\n")
    write("frame_missing", "damaged", join(units[:3] + units[4:]))
    write("frames_swapped", "damaged", join(units[:3] + [units[4], units[3]] + units[5:]))
    other = example("other")
    write("frame_of_other_stream", "damaged", join(units[:3] + [other[3]] + units[4:]))
    write("rekey_missing", "damaged", join(units[:5] + units[6:]), WHOLE[: 13 + 13])
    write("end_missing", "damaged", join(units[:8] + units[9:]), WHOLE)
    write("connection_missing", "damaged", join([units[0]] + units[2:]))
    write("cut_in_frame", "cut", join(units[:4]) + units[4][:-3], WHOLE[:upto])
    write("cut_between_frames", "cut", join(units[:5]), WHOLE[: 13 + 13])
    write("cut_before_close", "cut", join(units[:-1]), WHOLE)
    write("stream_appended_cut", "cut", join(units) + join(other[:4]), WHOLE + WHOLE[:upto])
    write("garbage_appended", "not a stream", join(units) + b"garbage", WHOLE)


def readme():
    lines = [
        "# Sealed streams",
        "",
        "Made by `make.py` beside them, which knows `docs/spec/stream.md`, Python's `hmac` and "
        "`cryptography`, and none",
        "of Wattlock's code; ours, under the licence of the project. Each file names what must "
        "happen to it in its line",
        "`expect:`, and in `released:` all bytes of messages that may come out before that.",
        "",
        "| file | SHA-256 |",
        "|---|---|",
    ]
    for path in sorted(HERE.iterdir()):
        if path.name != "README.md":
            lines.append(f"| `{path.name}` | {hashlib.sha256(path.read_bytes()).hexdigest()} |")
    (HERE / "README.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    faults()
    readme()
