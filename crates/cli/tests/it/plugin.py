#!/usr/bin/env python3
"""An age plugin for tests: wraps a file key by adding one to each byte. Protects nothing.

With --age-plugin=… it speaks the plugin protocol, https://c2sp.org/age-plugin; with --keys it
prints its recipient and its identity. Before it answers it runs the shell command in WATTLOCKTEST_DO,
if there is one, in its own folder: what happens while wattlock waits, whose process number is then in
WATTLOCKTEST_CALLER. Before it opens anything it asks for the secret in WATTLOCKTEST_ASK, if there is one.
"""
import base64
import os
import subprocess
import sys

NAME = "wattlocktest"
LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def bech32(prefix, data):
    bits = "".join(f"{byte:08b}" for byte in data)
    bits += "0" * (-len(bits) % 5)
    values = [int(bits[i:i + 5], 2) for i in range(0, len(bits), 5)]
    expanded = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    check = 1
    for value in expanded + values + [0] * 6:
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ value
        for i, generator in enumerate([0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3]):
            check ^= generator if top >> i & 1 else 0
    check ^= 1
    values += [check >> 5 * (5 - i) & 31 for i in range(6)]
    return prefix + "1" + "".join(LETTERS[value] for value in values)


def read():
    words = sys.stdin.readline().split()
    body = ""
    while True:
        line = sys.stdin.readline().rstrip("\n")
        body += line
        if len(line) < 64:
            return words[1:], base64.b64decode(body + "=" * (-len(body) % 4))


def write(words, body=b""):
    text = base64.b64encode(body).decode().rstrip("=")
    lines = [text[i:i + 64] for i in range(0, len(text), 64)]
    if not lines or len(lines[-1]) == 64:
        lines.append("")
    print("-> " + " ".join(words), *lines, sep="\n", flush=True)


def until_done():
    while True:
        words, body = read()
        if words == ["done"]:
            return
        yield words, body


def meanwhile():
    command = os.environ.get("WATTLOCKTEST_DO")
    if command:
        caller = {"WATTLOCKTEST_CALLER": str(os.getppid())}
        folder = os.path.dirname(os.path.abspath(__file__))
        subprocess.run(
            ["sh", "-ec", command], cwd=folder, env=os.environ | caller, stdout=sys.stderr, check=True
        )


def ask():
    question = os.environ.get("WATTLOCKTEST_ASK")
    if question:
        write(["request-secret"], question.encode())
        read()


def recipient():
    keys = [body for words, body in until_done() if words == ["wrap-file-key"]]
    meanwhile()
    for index, key in enumerate(keys):
        wrapped = bytes((byte + 1) % 256 for byte in key)
        write(["recipient-stanza", str(index), NAME], wrapped)
        read()
    write(["done"])


def identity():
    stanzas = [(words, body) for words, body in until_done() if words[0] == "recipient-stanza"]
    meanwhile()
    ask()
    for words, body in stanzas:
        if words[2] == NAME:
            write(["file-key", words[1]], bytes((byte - 1) % 256 for byte in body))
            read()
    write(["done"])


if "--keys" in sys.argv:
    print(bech32("age1" + NAME, b"recipient"))
    print(bech32("age-plugin-" + NAME + "-", b"identity").upper())
elif "--age-plugin=recipient-v1" in sys.argv:
    recipient()
elif "--age-plugin=identity-v1" in sys.argv:
    identity()
