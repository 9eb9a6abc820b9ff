"""Folders of segments: every kind of key, several runs and epochs, a tenant, and writers that were killed or cut."""

import signal
import socket
import subprocess
import time

from corpus import content, plaintext
from write_streams import lines, listening, wait_until_taken, with_lengths

KEYS = ["x25519-a", "ssh-ed25519", "ssh-rsa", "passphrase", "plugin", "stream-raw"]


def folders(corpus):
    for key in KEYS:
        # Two runs, each of which makes a key, and each of several segments.
        runs = [lines(150, f"{key} 0"), lines(100, f"{key} 1")]
        opens = [key, "stream-hex"] if key == "stream-raw" else [key]
        name = f"folder-for-{key}"
        said = [piped(corpus, name, data, key, ["--framing", "ndjson", "--rotate-size", "1K"]) for data in runs]
        keep(corpus, name, said, opens, b"".join(runs), epochs=2, segments=4)
    several = ["x25519-a", "x25519-b", "ssh-ed25519", "ssh-rsa", "plugin"]
    said = [piped(corpus, "folder-for-several", b"for several\n", several, ["--framing", "ndjson"])]
    keep(corpus, "folder-for-several", said, several, b"for several\n")
    for framing, data in (("raw", content(150_000, "raw")), ("length", with_lengths([0, 70_000, 1], "length")),
                          ("ndjson", b'{"a":1}\n\n{"b":"\xff"}\nthe last without a newline')):
        name = f"folder-{framing}"
        said = [piped(corpus, name, data, "x25519-a", ["--framing", framing])]
        keep(corpus, name, said, ["x25519-a"], data)
    data = lines(50, "tenant")
    said = [piped(corpus, "folder-tenant", data, "x25519-a", ["--framing", "ndjson", "--tenant", "acme"])]
    keep(corpus, "folder-tenant/acme", said, ["x25519-a"], data, tenant="acme")
    data = lines(2000, "epochs")
    said = [piped(corpus, "folder-epochs", data, "stream-raw",
                  ["--framing", "ndjson", "--rotate-size", "16K", "--key-bytes", "30K"])]
    keep(corpus, "folder-epochs", said, ["stream-raw", "stream-hex"], data, epochs=3, segments=6)
    killed(corpus)
    acknowledged(corpus)


def seal(corpus, name, keys, words):
    keys = [keys] if isinstance(keys, str) else keys
    words_of_keys = [word for key in keys for word in corpus.keys[key]["seal"]]
    return ["stream", *words_of_keys, *words, "-o", f"{name}/"]


def piped(corpus, name, data, keys, words):
    """One run, of which the manifest says the words."""
    args = seal(corpus, name, keys, ["-q", *words])
    feed = subprocess.Popen(["wattlock", *args], env=corpus.environment, cwd=corpus.folder, stdin=subprocess.PIPE)
    # Part by part, for a segment ends between two records, and a record holds what has come.
    for start in range(0, len(data), 3000):
        feed.stdin.write(data[start:start + 3000])
        feed.stdin.flush()
        wait_until_taken(feed)
    feed.stdin.close()
    assert feed.wait() == 0, name
    return args


def keep(corpus, name, runs, opens, data, exits=0, epochs=1, segments=1, **more):
    """Names the files of a folder, which opens to `data` with each of the keys."""
    folder = corpus.folder / name
    command = " && ".join(corpus.said(args) for args in runs)
    found = {"epochs": 0, "segments": 0}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found["epochs"] += path.parent.name == "keys"
            found["segments"] += path.suffix == ".wls"
            corpus.add(path.relative_to(corpus.folder).as_posix(), "folder", command)
    assert found["epochs"] >= epochs and found["segments"] >= segments, (name, found)
    for key in opens:
        words = ["stream", "--open", "-q", *corpus.keys[key]["open"], name]
        assert corpus.run(words, exits=exits).stdout == data, name
    corpus.folders.append({
        "folder": name, "opens": opens, "plaintext": plaintext(data), "exits": exits, **found, **more})


def killed(corpus):
    """A writer that is killed, and the next, which accounts for that; and one that nobody accounts for."""
    for name, after in (("folder-killed", None), ("folder-recovered", lines(10, "after"))):
        data = lines(40, name)
        args = seal(corpus, name, "x25519-a", ["--framing", "ndjson"])
        with listening(corpus, args) as (process, connect):
            client = connect()
            client.sendall(data)
            wait_until_opens(corpus, name, data)
            process.send_signal(signal.SIGKILL)
            process.wait()
            client.close()
        runs = [args]
        if after:
            runs.append(piped(corpus, name, after, "x25519-a", ["--framing", "ndjson"]))
            keep(corpus, name, runs, ["x25519-a"], data + after, epochs=2, segments=2)
        else:
            # What was written opens, and that the rest is missing is an error.
            keep(corpus, name, runs, ["x25519-a"], data, exits=3)


def wait_until_opens(corpus, name, data):
    words = ["wattlock", "stream", "--open", "-q", *corpus.keys["x25519-a"]["open"], name]
    for _ in range(3000):
        opened = subprocess.run(words, env=corpus.environment, cwd=corpus.folder, capture_output=True, check=False)
        if opened.stdout == data:
            return
        time.sleep(0.01)
    raise SystemExit(f"{name} never opened to what was sent")


def acknowledged(corpus):
    """Three senders of numbered messages, one after the other; the second is cut in a message."""
    name = "folder-acknowledged"
    args = seal(corpus, name, "passphrase", ["--framing", "numbered", "--rotate-size", "1K"])
    kept = b""
    with listening(corpus, args) as (process, connect):
        for sender in range(3):
            client = connect()
            for number in range(1, 21):
                message = content(40 + number, f"{sender} {number}")
                client.sendall(len(message).to_bytes(4, "big") + number.to_bytes(8, "big") + message)
                assert int.from_bytes(client.recv(8, socket.MSG_WAITALL), "big") == number
                kept += len(message).to_bytes(4, "big") + message
            if sender == 1:
                client.sendall(b"\0\0\0\5ab")
            client.shutdown(socket.SHUT_WR)
            while client.recv(100):
                pass
            client.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    keep(corpus, name, [args], ["passphrase"], kept, exits=1, segments=2)
