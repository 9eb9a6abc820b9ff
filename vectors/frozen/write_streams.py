"""Sealed streams: every framing and kind of key, rotated files, many connections, and those that were cut."""

import contextlib
import fcntl
import signal
import socket
import struct
import subprocess
import termios
import time

from corpus import content, plaintext, sha256
from write_files import STANZAS

KEYS = ["x25519-a", "ssh-ed25519", "ssh-rsa", "passphrase", "plugin", "stream-raw"]
LENGTHS = {"64K": [0, 1, 15, 16, 17, 65535, 65536, 65537, 131072], "1K": [1023, 1024, 1025, 2048, 2049]}


def lines(count, seed):
    return b"".join(b'{"n":%d,"text":"%s"}\n' % (i, content(20, f"{seed} {i}").hex().encode()) for i in range(count))


def with_lengths(lengths, seed):
    return b"".join(struct.pack(">I", n) + content(n, f"{seed} {i}") for i, n in enumerate(lengths))


MESSAGES = {
    "ndjson": {
        "none": b"", "empty-lines": b"\n\n\n", "one": b"{}\n", "many": lines(300, "many"),
        "last-open": b'{"a":1}\n\n{"b":"\xff"}\nthe last without a newline',
        "long": content(70_000, "long").hex().encode() + b"\n{}\n",
    },
    "length": {
        "none": b"", "empty": struct.pack(">I", 0) * 3, "one": with_lengths([5], "one"),
        "many": with_lengths(range(0, 400, 3), "many"), "long": with_lengths([0, 70_000, 1], "long"),
    },
    "raw": {"rotated": content(20_000, "rotated raw")},
}


def keys(corpus):
    raw = content(32, "stream key")
    (corpus.folder / "keys/stream-raw").write_bytes(raw)
    (corpus.folder / "keys/stream-hex").write_text(raw.hex() + "\n")
    for form in ("raw", "hex"):
        words = ["--key-file", f"keys/stream-{form}"]
        corpus.key(f"stream-{form}", words, words)


def streams(corpus):
    for chunk, lengths in LENGTHS.items():
        for length in lengths:
            name = f"stream-raw-{chunk}-{length:06}"
            piped(corpus, f"{name}.wls", content(length, name), ["stream-raw"], ["--chunk", chunk])
    for key in KEYS:
        opens = [key, "stream-hex"] if key == "stream-raw" else [key]
        piped(corpus, f"stream-for-{key}.wls", MESSAGES["ndjson"]["many"], opens, ["--framing", "ndjson"])
    several = ["x25519-a", "x25519-b", "ssh-ed25519", "ssh-rsa", "plugin"]
    piped(corpus, "stream-for-several.wls", b"for several\n", several, [], sealers=several)
    for framing in ("ndjson", "length"):
        for label, data in MESSAGES[framing].items():
            piped(corpus, f"stream-{framing}-{label}.wls", data, ["x25519-a"], ["--framing", framing])
    for framing, data in (("raw", MESSAGES["raw"]["rotated"]), ("ndjson", lines(400, "rotated")),
                          ("length", with_lengths(range(0, 300, 2), "rotated"))):
        rotated(corpus, framing, data)
    for framing in ("raw", "ndjson", "length"):
        connections(corpus, framing)
    cut(corpus)


def piped(corpus, name, data, opens, words, sealers=None):
    seal = [word for key in sealers or opens[:1] for word in corpus.keys[key]["seal"]]
    args = ["stream", "-q", *seal, *words]
    corpus.stream(name, corpus.run(args, data=data).stdout, args, data, opens)


def keep(corpus, stem, args, opens, **more):
    """Keeps the files of a rotated stream, each of which opens by itself, and all together."""
    names = sorted(path.name for path in corpus.scratch.glob(f"{stem}.wls.*"))
    assert len(names) >= 3, names
    sealed = [(corpus.scratch / name).read_bytes() for name in names]
    for name, data in zip(names, sealed):
        corpus.stream(name, data, args, None, opens)
    words = ["stream", "--open", "-q", *corpus.keys[opens[0]]["open"]]
    opened = corpus.run(words, data=b"".join(sealed)).stdout
    corpus.sequences.append({"files": names, "opens": opens, "plaintext": plaintext(opened), **more})
    return opened


def rotated(corpus, framing, data):
    stem = f"stream-rotated-{framing}"
    args = ["stream", "-q", *corpus.keys["x25519-a"]["seal"], "--framing", framing, "--chunk", "1K",
            "-o", str(corpus.scratch / f"{stem}.wls"), "--rotate-size", "4K"]
    # Part by part, for a file ends between two frames, and a frame holds what has come.
    feed = subprocess.Popen(["wattlock", *args], env=corpus.environment, cwd=corpus.folder,
                            stdin=subprocess.PIPE)
    for start in range(0, len(data), 1500):
        feed.stdin.write(data[start:start + 1500])
        feed.stdin.flush()
        wait_until_taken(feed)
    feed.stdin.close()
    assert feed.wait() == 0
    assert keep(corpus, stem, args, ["x25519-a"]) == data


def wait_until_taken(feed):
    """Waits until the program has read all of its standard input."""
    left = struct.pack("i", 1)
    while any(left):
        time.sleep(0.005)
        left = fcntl.ioctl(feed.stdin, termios.FIONREAD, bytes(4))


@contextlib.contextmanager
def listening(corpus, args):
    """A program that listens at a socket; and a function that connects to it."""
    path = corpus.scratch / "in.sock"
    process = subprocess.Popen(
        ["wattlock", *args, "--listen", f"unix:{path}"], env=corpus.environment, cwd=corpus.folder,
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        assert b"listening at" in process.stderr.readline()

        def connect():
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(path))
            return client
        yield process, connect
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
        path.unlink(missing_ok=True)


def wait_until_sealed(stem, corpus, size):
    """Waits until the files of a stream have so many bytes in all."""
    for _ in range(3000):
        if sum(path.stat().st_size for path in corpus.scratch.glob(f"{stem}*")) >= size:
            return
        time.sleep(0.01)
    raise SystemExit(f"{stem} never had {size} bytes")


def connections(corpus, framing):
    """Five connections that take turns, through several files; the third begins late."""
    stem = f"stream-connections-{framing}"
    args = ["stream", *corpus.keys["x25519-a"]["seal"], "--framing", framing, "--chunk", "1K",
            "-o", str(corpus.scratch / f"{stem}.wls"), "--rotate-size", "4K"]
    sent = [b""] * 5
    with listening(corpus, args) as (process, connect):
        clients = [connect() for _ in sent]
        for turn in range(12):
            for i, client in enumerate(clients):
                part = {"raw": content(200, f"{i} {turn}"), "ndjson": lines(3, f"{i} {turn}"),
                        "length": with_lengths([0, 150, 7], f"{i} {turn}")}[framing]
                if i == 2 and turn < 6:
                    continue
                client.sendall(part)
                sent[i] += part
            wait_until_sealed(f"{stem}.wls", corpus, sum(map(len, sent)))
        for client in clients:
            # The program closes its end once it has read everything.
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
            client.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    opened = keep(corpus, stem, args, ["x25519-a"], connections=sorted(map(sha256, sent)))
    if framing == "ndjson":
        assert sorted(opened.splitlines()) == sorted(b"".join(sent).splitlines())
    assert len(opened) == sum(map(len, sent))


def cut(corpus):
    """A connection that breaks a rule, a writer that is stopped in the middle, and one that is killed."""
    for label, end, exits in (("rule", None, 1), ("stopped", signal.SIGTERM, 1), ("killed", signal.SIGKILL, 3)):
        stem = f"stream-cut-{label}.wls"
        args = ["stream", *corpus.keys["x25519-a"]["seal"], "--framing", "ndjson", "--max-message", "1K",
                "-o", str(corpus.scratch / stem)]
        whole = lines(20, label)
        with listening(corpus, args) as (process, connect):
            client = connect()
            client.sendall(whole)
            wait_until_sealed(stem, corpus, len(whole))
            if label == "rule":
                with contextlib.suppress(BrokenPipeError):
                    client.sendall(b"x" * 5000)
                assert client.recv(1) == b""
            else:
                client.sendall(b"half a li")
            process.send_signal(end or signal.SIGTERM)
            process.wait()
        left = list(corpus.scratch.glob(f"{stem}*"))
        assert len(left) == 1, left
        corpus.stream(stem, left[0].read_bytes(), args, whole, ["x25519-a"], exits)
