#!/usr/bin/env python3
"""Writes the frozen corpus of a version: write.py PROGRAM VERSION COMMIT [folders]

PROGRAM is the release binary `wattlock` of that version, built from COMMIT, with `wattlock-lab` beside it; the corpus
becomes the folder VERSION next to this script, which must not exist yet. Needs ssh-keygen, strace, nginx, wrk and curl. What a version
wrote once stays as it is: a later version adds a folder of its own and leaves the others alone. With `folders`, only folders of
segments are written: the corpus of 0.1 is older than they are, and `0.1-folders` completes it.
"""

import datetime
import pathlib
import shutil
import subprocess
import sys
import tempfile

import write_documents
import write_files
import write_folders
import write_streams
from corpus import Corpus

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 4 << 20

README = """# What Wattlock {version} wrote

Source: this project, `vectors/frozen/write.py`, with the release binary of commit {commit}, on {date}.
Licence: as the project. The keys in `keys/` belong to this folder alone and protect nothing.

These files never change. Every later version opens them: the tests `frozen` of both programs go through
`manifest.json`, which names each file, its SHA-256, the command that wrote it, the keys that open it, and
the length and SHA-256 of what comes out. `content(length, seed)` in `corpus.py` makes the plaintexts.

| file | SHA-256 |
|---|---|
| `manifest.json` | {digest} |
"""


def main():
    program, version, commit, *only = sys.argv[1:]
    assert only in ([], ["folders"]), only
    program = pathlib.Path(program).resolve()
    folder = HERE / version
    folder.mkdir()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            corpus = Corpus(program, folder, pathlib.Path(scratch))
            write_files.keys(corpus)
            write_streams.keys(corpus)
            write_folders.folders(corpus)
            if not only:
                write_files.containers(corpus)
                write_files.sefps(corpus)
                write_streams.streams(corpus)
                write_documents.journals(corpus)
                write_documents.profiles(corpus)
                write_documents.documents(corpus)
            date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
            digest = corpus.manifest(version, commit, date)
            assert scratch not in (folder / "manifest.json").read_text()
        text = README.format(version=version, commit=commit, date=date, digest=digest)
        (folder / "README.md").write_text(text)
        total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        assert total <= LIMIT, f"{total} bytes are more than {LIMIT}"
        print(f"{version}: {len(corpus.files)} files, {total} bytes")
    except BaseException:
        shutil.rmtree(folder)
        raise


if __name__ == "__main__":
    main()
