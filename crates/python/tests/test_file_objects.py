"""Files, and file objects."""

import copy
import gc
import io
import os
import threading

import pytest
from conftest import need, pattern

import wattlock


def test_protect_and_unprotect(identity, tmp_path):
    file = tmp_path / "letter.txt"
    file.write_bytes(pattern(100_000))
    os.utime(file, (1_000_000_000, 1_000_000_000))
    for format, suffix in [("wattlock", ".wlk"), ("age", ".age")]:
        out = wattlock.protect(file, recipients=identity.recipient, format=format)
        assert out == tmp_path / f"letter.txt{suffix}"
        with pytest.raises(FileExistsError):
            wattlock.protect(file, recipients=identity.recipient, format=format)
        back = wattlock.unprotect(out, tmp_path / "back", identities=identity, overwrite=True)
        assert back.read_bytes() == file.read_bytes()
        wattlock.unprotect(out, identities=identity, overwrite=True, replace=True)
        assert not out.exists()
    assert file.stat().st_mtime == 1_000_000_000
    wattlock.protect(str(file), recipients=identity.recipient, replace=True)
    assert sorted(os.listdir(tmp_path)) == ["back", "letter.txt.wlk"]


def test_errors_of_files(identity, tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        wattlock.protect(tmp_path / "none", recipients=identity.recipient)
    # As Python's own, which shows no PosixPath('…').
    assert str(missing.value) == f"[Errno 2] No such file or directory: '{tmp_path}/none'"
    with pytest.raises(FileNotFoundError, match="directory: '/"):
        wattlock.open_file(tmp_path / "none", identities=identity)
    with pytest.raises(IsADirectoryError, match="directory: '/"):
        wattlock.protect(tmp_path, recipients=identity.recipient)
    (tmp_path / "x").write_bytes(b"no container")
    with pytest.raises(ValueError, match="suffix"):
        wattlock.unprotect(tmp_path / "x", identities=identity)
    with pytest.raises(wattlock.WattlockError):
        wattlock.unprotect(tmp_path / "x", tmp_path / "y", identities=identity)
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("format", ["wattlock", "age"])
def test_reading_and_seeking(identity, tmp_path, format):
    data, path = pattern(300_000), tmp_path / "sealed"
    path.write_bytes(wattlock.seal(data, identity.recipient, format=format))
    with wattlock.open_file(path, identities=identity) as file:
        assert file.read() == data and file.read(5) == b""
        for at, count in [(0, 1), (16383, 2), (65535, 70000), (299_990, 100), (400_000, 3)]:
            assert file.seek(at) == at
            assert file.read(count) == data[at : at + count]
        assert file.seek(-10, io.SEEK_END) == 299_990 and file.tell() == 299_990
        room = bytearray(20)
        assert file.readinto(room) == 10 and room[:10] == data[-10:]
        with pytest.raises(ValueError):
            file.seek(-1)
    with pytest.raises(ValueError):
        file.read()


def test_a_file_that_is_cut_is_found_when_it_is_opened(identity, tmp_path):
    sealed = wattlock.seal(pattern(400_000), identity.recipient)
    path = tmp_path / "cut"
    start = len(sealed) - 400_000 - 25 * 16
    for end in [start + 16400 * 3, start + 16400 * 3 + 500, len(sealed) - 1]:
        path.write_bytes(sealed[:end])
        with pytest.raises(wattlock.WattlockError):
            wattlock.open_file(path, identities=identity)
    damaged = bytearray(sealed)
    damaged[start + 16400 * 20 + 5] ^= 1
    path.write_bytes(damaged)
    with wattlock.open_file(path, identities=identity) as file:
        assert file.read(5) == pattern(5)
        file.seek(16384 * 20)
        with pytest.raises(wattlock.Tampered) as found:
            file.read(5)
        assert found.value.chunk == 20


@pytest.mark.parametrize("format", ["wattlock", "age"])
def test_writing(identity, tmp_path, format):
    path = tmp_path / "new"
    for sizes in [[], [0], [1], [16384], [65536], [5_000_000], [3, 70_000, 16384] * 40]:
        parts = [pattern(size, step=11) for size in sizes]
        options = dict(recipients=identity.recipient, format=format, overwrite=True)
        with wattlock.open_file(path, "wb", **options) as file:
            for part in parts:
                assert file.write(part) == len(part)
            assert file.tell() == sum(sizes)
        assert wattlock.open(path.read_bytes(), identity) == b"".join(parts)
    assert os.listdir(tmp_path) == ["new"]


def test_a_file_appears_complete_or_not_at_all(identity, tmp_path):
    path, options = tmp_path / "new", dict(recipients=identity.recipient)
    with pytest.raises(KeyError):
        with wattlock.open_file(path, "wb", **options) as file:
            file.write(pattern(10_000_000))
            raise KeyError
    file = wattlock.open_file(path, "wb", **options)
    file.write(b"never closed")
    assert os.listdir(tmp_path) == []
    del file
    gc.collect()
    assert os.listdir(tmp_path) == []
    with wattlock.open_file(path, "wb", **options) as file:
        file.write(b"first")
        path.write_bytes(b"another was sooner")
        with pytest.raises(FileExistsError):
            file.close()
    assert path.read_bytes() == b"another was sooner"
    with pytest.raises(FileExistsError):
        wattlock.open_file(path, "wb", **options)
    with pytest.raises(ValueError):
        wattlock.open_file(path, "ab", **options)


def test_numpy_and_zip(identity, tmp_path):
    numpy = need("numpy")
    options = dict(recipients=identity.recipient)
    with wattlock.open_file(tmp_path / "a.npz", "wb", **options) as file:
        numpy.savez_compressed(file, a=numpy.arange(100_000), b=numpy.eye(3))
    with wattlock.open_file(tmp_path / "a.npz", identities=identity) as file:
        with numpy.load(file) as loaded:
            assert loaded["a"].sum() == 4999950000 and loaded["b"].trace() == 3


class Interrupts:
    """A writer that fails once."""

    def __init__(self, writer, error):
        self._writer, self._error = writer, error

    def write(self, data):
        error, self._error = self._error, None
        if error:
            raise error
        self._writer.write(data)

    def close(self):
        self._writer.close()

    def discard(self):
        self._writer.discard()


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_after_a_write_that_failed_nothing_is_published(identity, tmp_path, error):
    path = tmp_path / "x"
    with pytest.raises(OSError, match="earlier write"):
        with wattlock.open_file(path, "wb", recipients=identity.recipient) as file:
            file._writer = Interrupts(file._writer, error)
            file.write(b"a")
            with pytest.raises(type(error)):
                file.write(pattern(10_000_000))
            with pytest.raises(OSError, match="earlier write"):
                file.write(b"b")
    assert os.listdir(tmp_path) == []


def test_threads_may_share_a_writer(identity, tmp_path):
    path, lines = tmp_path / "x", [b"%07d\n" % number for number in range(40_000)]
    with wattlock.open_file(path, "wb", recipients=identity.recipient) as file:
        threads = [
            threading.Thread(target=lambda part=part: [file.write(line * 50) for line in part])
            for part in (lines[::2], lines[1::2])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    written = wattlock.open(path.read_bytes(), identity).split(b"\n")[:-1]
    assert len(written) == 2_000_000 and len(set(written)) == 40_000


def test_files_are_not_copied(identity, tmp_path):
    with wattlock.open_file(tmp_path / "x", "wb", recipients=identity.recipient) as file:
        with pytest.raises(TypeError):
            copy.copy(file)
        file.write(b"whole")
    assert wattlock.open((tmp_path / "x").read_bytes(), identity) == b"whole"
    with pytest.raises(ValueError, match="recipients="):
        wattlock.open_file(tmp_path / "y", "wb", identities=identity)


def test_what_is_no_file_is_refused(identity, tmp_path):
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to("/dev/null")
    (tmp_path / "x").write_bytes(b"x")
    with pytest.raises(ValueError, match="not a regular file"):
        wattlock.protect(fifo, tmp_path / "out", recipients=identity.recipient)
    with pytest.raises(ValueError, match="not a regular file"):
        wattlock.open_file(fifo, identities=identity)
    with pytest.raises(ValueError, match="device"):
        wattlock.protect(tmp_path / "x", link, recipients=identity.recipient, overwrite=True)
    assert link.is_symlink() and os.readlink(link) == "/dev/null"


def test_a_fork_while_others_write_files(identity, tmp_path):
    end, options = threading.Event(), dict(recipients=identity.recipient, overwrite=True)

    def work(number):
        while not end.is_set():
            with wattlock.open_file(tmp_path / f"{number}", "wb", **options) as file:
                file.write(b"x")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                try:
                    with wattlock.open_file(tmp_path / "child", "wb", **options) as file:
                        file.write(b"child")
                finally:
                    os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert wattlock.open((tmp_path / "child").read_bytes(), identity) == b"child"
