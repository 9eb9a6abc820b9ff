"""Containers as file objects."""

from __future__ import annotations

import contextlib
import io
import os
import threading
from collections.abc import Sequence
from typing import Literal, overload

from ._wattlock import FileView, FileWriter, Identity, Recipient


@overload
def open_file(
    path: str | os.PathLike[str],
    mode: Literal["rb"] = "rb",
    *,
    identities: Identity | str | Sequence[Identity | str] | None = None,
    passphrase: str | None = None,
) -> io.BufferedReader: ...
@overload
def open_file(
    path: str | os.PathLike[str],
    mode: Literal["wb"],
    *,
    recipients: Recipient | str | Sequence[Recipient | str] | None = None,
    passphrase: str | None = None,
    format: Literal["wattlock", "age"] = "wattlock",
    overwrite: bool = False,
) -> SealedWriter: ...
def open_file(
    path,
    mode="rb",
    *,
    identities=None,
    recipients=None,
    passphrase=None,
    format="wattlock",
    overwrite=False,
):
    """Open a container as a binary file.

    "rb" reads and seeks in the plaintext; only the chunks that are read are decrypted. "wb" encrypts what is written: the
    file appears when it is closed, complete, and readable by its owner only. After an exception in its `with` block, or
    if it is never closed, there is no file.
    """
    path = os.fspath(path)
    if mode == "rb":
        if recipients is not None:
            raise ValueError("reading needs identities= or passphrase=, and no recipients=")
        raw = SealedReader(FileView(path, identities, passphrase=passphrase), path)
        return io.BufferedReader(raw, BUFFER_SIZE)
    if mode == "wb":
        if identities is not None:
            raise ValueError("writing needs recipients=, such as identity.recipient")
        writer = FileWriter(
            path, recipients, passphrase=passphrase, format=format, overwrite=overwrite
        )
        return SealedWriter(writer, path)
    raise ValueError(f"mode {mode!r} is neither 'rb' nor 'wb'")


class SealedReader(io.RawIOBase):
    """The plaintext of a container, decrypted chunk by chunk."""

    def __init__(self, view, name):
        super().__init__()
        # The last chunk proves that nothing is missing.
        view.read_into(view.size, bytearray())
        self._view = view
        self._at = 0
        self.name = name
        self.mode = "rb"

    @property
    def size(self):
        """Bytes of the plaintext."""
        self._check_open()
        return self._view.size

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        self._check_open()
        return self._at

    def seek(self, offset, whence=os.SEEK_SET):
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}.get(whence)
        if start is None:
            raise ValueError(f"whence {whence!r} is not supported")
        if start + offset < 0:
            raise ValueError("a negative position")
        self._at = start + offset
        return self._at

    def readinto(self, buffer):
        room = as_bytes(buffer)
        count = max(0, min(len(room), self.size - self._at))
        if count:
            self._view.read_into(self._at, room[:count])
            self._at += count
        return count

    def readall(self):
        rest = bytearray(max(0, self.size - self._at))
        self.readinto(rest)
        return bytes(rest)

    def close(self):
        self._view = None
        super().close()

    def _check_open(self):
        if self._view is None:
            raise ValueError("I/O operation on closed file")


class SealingFile(io.BufferedIOBase):
    """A file that encrypts what is written to it, and appears when it is closed, or not at all.

    A class has `_put(data)`, `_publish()` and `_give_up()`. Once one of them has failed or was interrupted, nothing is
    published any more.
    """

    _state = "ended"

    def __init__(self, name):
        super().__init__()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._pending = bytearray()
        self._written = 0
        self.name = name
        self.mode = "wb"
        self._state = "open"

    def writable(self):
        return True

    @property
    def closed(self):
        return self._state == "ended"

    def tell(self):
        self._check_open()
        return self._written

    def write(self, data):
        data = as_bytes(data)
        with self._step():
            if len(self._pending) + len(data) < WRITE_SIZE:
                self._pending += data
            else:
                if self._pending:
                    self._put(self._pending)
                    self._pending = bytearray()
                self._put(data)
            self._written += len(data)
        return len(data)

    def flush(self):
        """Do nothing: the file appears when it is closed."""
        self._check_open()

    def close(self):
        if self._state == "ended":
            return
        try:
            with self._step():
                if self._pending:
                    self._put(self._pending)
                    self._pending = bytearray()
                self._publish()
        except BaseException:
            self.discard()
            raise
        self._state = "ended"

    def discard(self):
        """Give the file up; nothing is left of it."""
        state, self._state = self._state, "ended"
        # A child leaves the file to its parent.
        if state != "ended" and self._process == os.getpid():
            self._give_up()

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self):
        self.discard()

    def __reduce_ex__(self, protocol):
        raise TypeError("a file that is being written can be neither copied nor pickled")

    @contextlib.contextmanager
    def _step(self):
        """One step, by one thread at a time. A step that does not come to its end breaks the file."""
        self._check_open()
        with self._lock:
            if self._state != "open":
                self._check_open()
                raise OSError("an earlier write failed or was interrupted; the file is given up")
            self._state = "broken"
            yield
            self._state = "open"

    def _check_open(self):
        if self._state == "ended":
            raise ValueError("I/O operation on closed file")
        if self._process != os.getpid():
            raise RuntimeError("the file was opened before a fork; it goes on in the parent only")


class SealedWriter(SealingFile):
    """A container in a file of this machine."""

    def __init__(self, writer, name):
        self._writer = writer
        super().__init__(name)

    def _put(self, data):
        self._writer.write(data)

    def _publish(self):
        self._writer.close()

    def _give_up(self):
        self._writer.discard()


def as_bytes(data):
    """The bytes of any buffer."""
    view = memoryview(data)
    return view.cast("B") if view.nbytes else memoryview(bytearray())


# Two chunks of age, eight of Wattlock.
BUFFER_SIZE = 128 << 10

# What is encrypted at once, on all cores.
WRITE_SIZE = 4 << 20
