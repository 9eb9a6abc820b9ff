"""What write.py builds a corpus with: the program, contents that can be made again, and the manifest."""

import hashlib
import json
import os
import pathlib
import shlex
import subprocess

PASSPHRASE = "frozen horse battery"


def content(length, seed):
    """`length` bytes: SHA-256 of "SEED 0", "SEED 1", and so on, joined."""
    blocks = (hashlib.sha256(f"{seed} {i}".encode()).digest() for i in range(length // 32 + 1))
    return b"".join(blocks)[:length]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def plaintext(data):
    return {"bytes": len(data), "sha256": sha256(data)}


LAB = ("bench", "simulate", "sefps")


def program_of(args):
    """The program that has the command which `args` begin with."""
    return "wattlock-lab" if args[0] in LAB else "wattlock"


def command(kind, name):
    """The words of a command for a kind of container."""
    return ["sefps", name] if kind == "sefps" else [name]


class Corpus:
    """A folder that is being written, and the scratch folder in which its inputs are made."""

    def __init__(self, program, folder, scratch):
        self.folder, self.scratch = folder, scratch
        self.keys, self.files, self.trees, self.sequences, self.folders = {}, {}, [], [], []
        programs = scratch / "bin"
        programs.mkdir()
        for name in ("wattlock", "wattlock-lab"):
            (programs / name).symlink_to(program.resolve().with_name(name))
        self.plain = scratch / "plain"
        self.plain.mkdir()
        self.environment = dict(os.environ, P=PASSPHRASE, LC_ALL="C.UTF-8", UMASK="022")
        self.environment["WATTLOCK_CACHE"] = str(scratch / "no-cache")
        path = [str(programs), str(folder / "keys"), os.environ["PATH"]]
        self.environment["PATH"] = os.pathsep.join(path)

    def run(self, args, data=b"", exits=0, cwd=None, **more):
        """Runs the program that has this command, in the corpus; gives what it wrote on standard output and error."""
        ran = subprocess.run(
            [program_of(args), *args], input=data, capture_output=True, env=dict(self.environment, **more),
            cwd=cwd or self.folder, check=False)
        if ran.returncode != exits:
            said = shlex.join([program_of(args), *map(str, args)])
            raise SystemExit(f"{said}: {ran.returncode}: {ran.stderr.decode()}")
        return ran

    def key(self, name, seal, unlock, file=None):
        """A key: the words that seal with it, and those that open with it."""
        self.keys[name] = {"seal": seal, "open": unlock, **({"file": file} if file else {})}

    def source(self, name, data, mode=0o644, seconds=1_790_000_000, nanoseconds=0):
        """A file to protect, in the scratch folder."""
        path = self.plain / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)
        moment = seconds * 10**9 + nanoseconds
        os.utime(path, ns=(moment, moment))
        return path

    def said(self, args):
        """A command as the manifest names it: without the scratch folder."""
        words = [program_of(args), *(str(arg).replace(f"{self.plain}/", "plain/") for arg in args)]
        said = shlex.join(words).replace(f"{self.scratch}/", "")
        # A byte that is no text stands as an escape.
        return os.fsencode(said).decode(errors="backslashreplace")

    def add(self, name, kind, args, **more):
        """Names a file that is there in the manifest."""
        assert name not in self.files, name
        command = args if isinstance(args, str) else self.said(args)
        self.files[name] = {"kind": kind, "command": command, **more}

    def container(self, name, data, seal, opens, kind=None, recipients=(), words=(), **times):
        """Protects `data` to the file `name`, and checks that each of the keys opens it."""
        kind = kind or ("age" if name.endswith(".age") else "wattlock")
        source = self.source(times.pop("source", name.rsplit(".", 1)[0]), data, **times)
        words = [*words, "--format", kind] if kind == "age" else [*words]
        args = [*command(kind, "protect"), *seal, *words, "-o", name, str(source)]
        self.run(args)
        sealed = None
        if kind == "wattlock" and "--no-metadata" not in words:
            status = source.stat()
            sealed = {"mode": f"{status.st_mode & 0o777:04o}", "modified_unix_ns": status.st_mtime_ns}
            try:
                sealed["name"] = source.name.encode().decode()
            except UnicodeEncodeError:
                sealed["name_hex"] = os.fsencode(source.name).hex()
        more = {"opens": list(opens), "plaintext": plaintext(data)}
        if kind != "sefps":
            more |= {"recipients": list(recipients), "sealed": sealed}
        self.add(name, kind, args, **more)
        self.check(name)

    def check(self, name):
        """Opens a container with each of its keys."""
        entry = self.files[name]
        for key in entry["opens"]:
            opened = self.run([*command(entry["kind"], "unprotect"), *self.keys[key]["open"], "-o-", "--", name])
            assert plaintext(opened.stdout) == entry["plaintext"], name

    def stream(self, name, sealed, args, data, opens, exits=0, **more):
        """Keeps a sealed stream that opens to `data`; None is what it opens to, whatever that is."""
        (self.folder / name).write_bytes(sealed)
        for key in opens:
            for _ in range(3 if data is None else 1):
                words = ["stream", "--open", "-q", *self.keys[key]["open"]]
                opened = self.run(words, data=sealed, exits=exits).stdout
                data = opened if data is None else data
                assert opened == data, name
        self.add(name, "stream", args, opens=list(opens), plaintext=plaintext(data), exits=exits, **more)
        return data

    def manifest(self, version, commit, date):
        """Writes the manifest, which names every file of the folder, and gives its own SHA-256."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                name = path.relative_to(self.folder).as_posix()
                entry = self.files.get(name, {"kind": "key"} if name.startswith("keys/") else None)
                assert entry, f"{name} is in no manifest"
                data = path.read_bytes()
                found[name] = {"bytes": len(data), "sha256": sha256(data), **entry}
        assert not set(self.files) - set(found), set(self.files) - set(found)
        document = {
            "schema": "wattlock-frozen/1",
            "version": version,
            "program": self.run(["--version"]).stdout.decode().strip(),
            "commit": commit,
            "written": date,
            "passphrase": PASSPHRASE,
            "keys": self.keys,
            "trees": self.trees,
            "sequences": self.sequences,
            "folders": self.folders,
            "files": found,
        }
        text = json.dumps(document, indent=1, ensure_ascii=True) + "\n"
        (self.folder / "manifest.json").write_text(text)
        return sha256(text.encode())
