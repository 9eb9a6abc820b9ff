"""The tools in Python that `wattlock-lab bench python` measures.

Started with the bytes of the large data. It prints the tools, one `name<TAB>version` a line, then an empty line. Each line of standard input is a
case, of which it does one run and answers the nanoseconds that it took, wall and CPU.
"""

import os
import sys
import time
from importlib.metadata import version

import cryptography
import pyrage
import wattlock
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SIZE = int(sys.argv[1])
MESSAGES = 20_000

identity = wattlock.keygen()
recipient = identity.recipient
data, back = bytearray(os.urandom(SIZE)), bytearray(SIZE)
room = bytearray(wattlock.sealed_size(SIZE, recipient))
sealed = wattlock.seal(data, recipient)
container = bytearray(sealed)

aead, nonce = AESGCM(os.urandom(32)), os.urandom(12)
aead_room = bytearray(SIZE + 16)
aead_sealed = bytearray(aead.encrypt(nonce, bytes(data), None))

pyrage_identity = pyrage.x25519.Identity.generate()
frozen = bytes(data)
pyrage_sealed = pyrage.encrypt(frozen, [pyrage_identity.to_public()])

session = wattlock.Session(wattlock.session_key())
small = os.urandom(1024)
record = session.seal(small)
small_sealed = aead.encrypt(nonce, small, None)


def many(call):
    """Calls it for each of many messages."""

    def run():
        for _ in range(MESSAGES):
            call()

    return run


RUNS = {
    "seal_into": lambda: wattlock.seal_into(data, room, recipient),
    "open_into": lambda: wattlock.open_into(container, back, identity),
    "seal": lambda: wattlock.seal(data, recipient),
    "open": lambda: wattlock.open(container, identity),
    "encrypt_into": lambda: aead.encrypt_into(nonce, data, None, aead_room),
    "decrypt_into": lambda: aead.decrypt_into(nonce, aead_sealed, None, back),
    "encrypt": lambda: aead.encrypt(nonce, data, None),
    "decrypt": lambda: aead.decrypt(nonce, aead_sealed, None),
    "pyrage encrypt": lambda: pyrage.encrypt(frozen, [pyrage_identity.to_public()]),
    "pyrage decrypt": lambda: pyrage.decrypt(pyrage_sealed, [pyrage_identity]),
    "copy": lambda: memoryview(room)[:SIZE].__setitem__(slice(None), data),
    "session seal": many(lambda: session.seal(small)),
    "session open": many(lambda: session.open(record)),
    "message encrypt": many(lambda: aead.encrypt(nonce, small, None)),
    "message decrypt": many(lambda: aead.decrypt(nonce, small_sealed, None)),
}


def main():
    """Answers until standard input ends."""
    for name in ["wattlock", "cryptography", "pyrage"]:
        print(f"{name}\t{version(name)}")
    print(f"python\t{sys.version.split()[0]}\n", flush=True)
    assert wattlock.open(sealed, identity) == data
    for line in sys.stdin:
        words = line.split()
        run = RUNS[" ".join(words[1:])]
        wattlock.set_threads(int(words[0]) or None)
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        run()
        print(time.perf_counter_ns() - wall, time.process_time_ns() - cpu, flush=True)


main()
