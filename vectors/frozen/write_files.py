"""Containers of every format, for every kind of recipient, of every length at a boundary."""

import os
import shutil
import subprocess
from pathlib import Path

from corpus import content, sha256

CHEAP = ["--work-factor", "10"]
LENGTHS = {
    # Around the block, the padding of metadata, the chunk of 16 KiB, and the piece of 1 MiB.
    "wattlock": [0, 1, 15, 16, 17, 63, 64, 65, 16383, 16384, 16385, 32767, 32768, 32769, 49152, 1048577],
    # Around the block and the chunk of 64 KiB.
    "age": [0, 1, 15, 16, 17, 65535, 65536, 65537, 131071, 131072, 131073],
    "sefps": [0, 1, 15, 16, 17, 31, 32, 33],
}
SUFFIX = {"wattlock": "wlk", "age": "age"}


def keys(corpus):
    folder = corpus.folder / "keys"
    folder.mkdir()
    for name in ("x25519-a", "x25519-b"):
        file = f"keys/{name}.txt"
        corpus.run(["keygen", "-o", file])
        recipient = corpus.run(["keygen", "-y", file]).stdout.decode().strip()
        corpus.key(name, ["-r", recipient], ["-i", file])
    for kind in ("ed25519", "rsa"):
        file = folder / f"ssh-{kind}"
        words = ["ssh-keygen", "-q", "-t", kind, "-b", "2048", "-N", "", "-C", "frozen", "-f", file]
        subprocess.run(words, check=True)
        corpus.key(f"ssh-{kind}", ["-R", f"keys/ssh-{kind}.pub"], ["-i", f"keys/ssh-{kind}"])
    corpus.key("passphrase", [*CHEAP, "--passphrase-env", "P"], ["--passphrase-env", "P"])
    corpus.key("passphrase-18", ["--passphrase-env", "P"], ["--passphrase-env", "P"])
    tests = Path(__file__).resolve().parents[2] / "crates/cli/tests"
    plugin = next(path for path in (tests / "plugin.py", tests / "it/plugin.py") if path.exists())
    shutil.copy(plugin, folder / "age-plugin-wattlocktest")
    (folder / "age-plugin-wattlocktest").chmod(0o755)
    said = subprocess.run([folder / "age-plugin-wattlocktest", "--keys"], check=True, capture_output=True)
    recipient, identity = said.stdout.decode().split()
    (folder / "plugin.txt").write_text(identity + "\n")
    corpus.key("plugin", ["-r", recipient], ["-i", "keys/plugin.txt"])


# For each key: the type that its stanza has.
STANZAS = {
    "x25519-a": "X25519", "x25519-b": "X25519", "ssh-ed25519": "ssh-ed25519", "ssh-rsa": "ssh-rsa",
    "passphrase": "scrypt", "passphrase-18": "scrypt", "plugin": "wattlocktest",
}


def seal(corpus, names):
    return [word for name in names for word in corpus.keys[name]["seal"]]


def containers(corpus):
    for kind, suffix in SUFFIX.items():
        for length in LENGTHS[kind]:
            name = f"{kind}-{length:07}"
            made = content(length, name)
            corpus.container(f"{name}.{suffix}", made, seal(corpus, ["x25519-a"]), ["x25519-a"],
                             recipients=["X25519"])
        recipients(corpus, kind, suffix)
        rekeyed(corpus, kind, suffix)
        from_a_pipe(corpus, kind, suffix)
        trees(corpus, kind)
    metadata(corpus)


def recipients(corpus, kind, suffix):
    for names in (["x25519-b"], ["ssh-ed25519"], ["ssh-rsa"], ["passphrase"], ["passphrase-18"], ["plugin"],
                  ["x25519-a", "x25519-b", "ssh-ed25519", "ssh-rsa", "plugin"]):
        name = f"{kind}-for-{names[0] if len(names) == 1 else 'several'}"
        corpus.container(f"{name}.{suffix}", content(1000, name), seal(corpus, names), names,
                         recipients=[STANZAS[name] for name in names])
    many = corpus.scratch / f"many-{kind}"
    others = []
    for i in range(99):
        key = corpus.run(["keygen"]).stdout.decode().splitlines()[-1]
        corpus.scratch.joinpath("other").write_text(key)
        others.append(corpus.run(["keygen", "-y", corpus.scratch / "other"]).stdout.decode())
    many.write_text("".join(others))
    name = f"{kind}-for-100"
    corpus.container(f"{name}.{suffix}", content(1000, name),
                     ["-R", str(many), *seal(corpus, ["x25519-a"])], ["x25519-a"],
                     recipients=["X25519"] * 100)


def rekeyed(corpus, kind, suffix):
    """Opened by the first, and sealed for the second; and so on."""
    for way in (["x25519-a", "ssh-ed25519"], ["x25519-a", "passphrase"], ["passphrase", "x25519-b"],
                ["ssh-rsa", "plugin"], ["x25519-a", "x25519-b", "ssh-rsa"]):
        name = f"{kind}-rekeyed-{'-'.join(way)}"
        length = 100_000 if way[-1] == "ssh-ed25519" else 1000
        data = content(length, name)
        file = f"{name}.{suffix}"
        corpus.container(file, data, seal(corpus, way[:1]), way[:1], recipients=[STANZAS[way[0]]])
        entry = corpus.files[file]
        for old, new in zip(way, way[1:]):
            words = corpus.keys[new]["seal"]
            environment = {}
            if new == "passphrase":
                secret = corpus.scratch / "secret"
                secret.write_text(corpus.environment["P"] + "\n")
                words = [*CHEAP, "--new-passphrase-file", str(secret)]
            args = ["rekey", *corpus.keys[old]["open"], *words, file]
            corpus.run(args, **environment)
            entry["command"] += " && " + corpus.said(args)
        entry |= {"opens": way[-1:], "recipients": [STANZAS[way[-1]]]}
        corpus.check(file)


def from_a_pipe(corpus, kind, suffix):
    for length in (0, 5000):
        name = f"{kind}-piped-{length}"
        data = content(length, name)
        args = ["protect", *corpus.keys["x25519-a"]["seal"], "--format", kind]
        (corpus.folder / f"{name}.{suffix}").write_bytes(corpus.run(args, data=data).stdout)
        corpus.add(f"{name}.{suffix}", kind, args, opens=["x25519-a"], recipients=["X25519"], sealed=None,
                   plaintext={"bytes": length, "sha256": sha256(data)})
        corpus.check(f"{name}.{suffix}")


def trees(corpus, kind):
    """A folder in one run; with a passphrase, all containers of wattlock v1 share a stanza."""
    plain = {"empty": 0, "a/one": 1, "a/b/chunk": 16384, "a/b/c/d/deep": 100, "space in name/x y": 17_000}
    for key in ("x25519-a", "passphrase"):
        tree = f"tree-{kind}-{key}"
        expected = {}
        for path, length in plain.items():
            data = content(length, f"{tree} {path}")
            corpus.source(f"{tree}/{path}", data)
            expected[path] = {"bytes": length, "sha256": sha256(data)}
        args = ["protect", *corpus.keys[key]["seal"], "--format", kind, "--recursive", "--out-dir", ".",
                str(corpus.plain / tree)]
        corpus.run(args)
        for path, data in expected.items():
            status = (corpus.plain / tree / path).stat()
            sealed = {"mode": "0644", "modified_unix_ns": status.st_mtime_ns, "name": os.path.basename(path)}
            corpus.add(f"{tree}/{path}.{SUFFIX[kind]}", kind, args, opens=[key], recipients=[STANZAS[key]],
                       sealed=sealed if kind == "wattlock" else None, plaintext=data)
            corpus.check(f"{tree}/{path}.{SUFFIX[kind]}")
        corpus.trees.append({"folder": tree, "opens": [key], "files": expected})


def metadata(corpus):
    one = seal(corpus, ["x25519-a"])
    common = {"opens": ["x25519-a"], "recipients": ["X25519"]}
    corpus.container("metadata-none.wlk", content(100, "none"), one, words=["--no-metadata"], **common)
    for mode in (0o400, 0o600, 0o640, 0o755, 0o777):
        corpus.container(f"metadata-mode-{mode:03o}.wlk", content(100, f"mode {mode:03o}"), one, mode=mode, **common)
    for seconds, nanoseconds in ((0, 0), (-1, 0), (-86400 * 365, 999_999_999), (1, 1), (1_000_000_000, 123_456_789),
                                 (2**31, 0), (2**33, 5)):
        name = f"metadata-time-{seconds}-{nanoseconds}"
        corpus.container(f"{name}.wlk", content(100, name), one, seconds=seconds, nanoseconds=nanoseconds,
                         **common)
    names = {"letters": "naïve café 漢字.txt", "255": "n" * 255, "spaces": " two  spaces ", "dash": "-dash",
             "hidden": ".hidden", "newline": "new\nline", "suffix": "report.wlk.wlk", "one": "n"}
    names["latin1"] = os.fsdecode(b"na\xefve.txt")
    for label, source in names.items():
        corpus.container(f"metadata-name-{label}.wlk", content(100, label), one, source=source, **common)


def sefps(corpus):
    for bits in (128, 192, 256):
        (corpus.folder / f"keys/sefps-{bits}").write_bytes(content(bits // 8, f"sefps {bits}"))
        for mode in ("ecb", "ctr"):
            counters = {"": "000102030405060708090a0b0c0d0e0f"} if mode == "ctr" else {"": None}
            if (bits, mode) == (256, "ctr"):
                counters["-wraps"] = "f" * 31 + "e"
            for more, iv in counters.items():
                key = f"sefps-{bits}-{mode}{more}"
                words = ["--key-file", f"keys/sefps-{bits}", "--cipher", f"aes-{bits}-{mode}"]
                words += ["--iv", iv] if iv else []
                corpus.key(key, words, words)
                for length in LENGTHS["sefps"]:
                    sefps_one(corpus, key, length)
    for variant in ("csp", "cpp", "overlapped"):
        sefps_one(corpus, "sefps-128-ecb", 5000, ["--variant", variant])
    sefps_one(corpus, "sefps-128-ecb", 5000, ["--variant", "csp", "--kernel", "aes-ttable-vartime"])
    sefps_one(corpus, "sefps-256-ctr", 70_001)


def sefps_one(corpus, key, length, words=()):
    name = "-".join([key, f"{length:05}", *(word for word in words if not word.startswith("--"))])
    corpus.container(f"{name}.sefps", content(length, name), corpus.keys[key]["seal"], [key], kind="sefps", words=words)
