"""Containers as file objects."""

from __future__ import annotations

import io
import os
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

    "rb" reads and seeks in the plaintext; only the chunks that are read are decrypted. "wb" seals what is written: the
    file appears when it is closed, complete, and readable by its owner only. After an exception in a `with` block, or
    if it is never closed, there is no file.
    """
    path = os.fspath(path)
    if mode == "rb":
        raw = SealedReader(FileView(path, identities, passphrase=passphrase), path)
        return io.BufferedReader(raw, BUFFER_SIZE)
    if mode == "wb":
        writer = FileWriter(
            path, recipients, passphrase=passphrase, format=format, overwrite=overwrite
        )
        return SealedWriter(writer, path)
    raise ValueError(f"mode {mode!r} is neither 'rb' nor 'wb'")


class SealedReader(io.RawIOBase):
    """The plaintext of a container, opened chunk by chunk."""

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
        return self._view.size

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        self._check_open()
        return self._at

    def seek(self, offset, whence=os.SEEK_SET):
        self._check_open()
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}.get(whence)
        if start is None:
            raise ValueError(f"whence {whence!r} is not supported")
        if start + offset < 0:
            raise ValueError("a negative position")
        self._at = start + offset
        return self._at

    def readinto(self, buffer):
        self._check_open()
        room = memoryview(buffer).cast("B")
        count = max(0, min(len(room), self.size - self._at))
        if count:
            self._view.read_into(self._at, room[:count])
            self._at += count
        return count

    def readall(self):
        self._check_open()
        rest = bytearray(max(0, self.size - self._at))
        self.readinto(rest)
        return bytes(rest)

    def _check_open(self):
        if self.closed:
            raise ValueError("I/O operation on closed file")


class SealedWriter(io.BufferedIOBase):
    """A file that seals what is written to it, and appears when it is closed."""

    def __init__(self, writer, name):
        super().__init__()
        self._pending = bytearray()
        self._written = 0
        self._ended = False
        self._writer = writer
        self.name = name
        self.mode = "wb"

    def writable(self):
        return True

    @property
    def closed(self):
        return self._ended

    def tell(self):
        self._check_open()
        return self._written

    def write(self, data):
        self._check_open()
        data = memoryview(data).cast("B")
        if len(self._pending) + len(data) < WRITE_SIZE:
            self._pending += data
        else:
            self._send()
            self._pass_on(data)
        self._written += len(data)
        return len(data)

    def flush(self):
        """Do nothing: the file appears when it is closed."""
        self._check_open()

    def close(self):
        if self._ended:
            return
        try:
            self._send()
        except BaseException:
            self.discard()
            raise
        self._ended = True
        self._writer.close()

    def discard(self):
        """Give the file up; nothing is left of it."""
        if not self._ended:
            self._ended = True
            self._writer.discard()

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self):
        if not getattr(self, "_ended", True):
            self.discard()

    def _send(self):
        if self._pending:
            pending, self._pending = self._pending, bytearray()
            self._pass_on(pending)

    def _pass_on(self, data):
        try:
            self._writer.write(data)
        except BaseException:
            self.discard()
            raise

    def _check_open(self):
        if self._ended:
            raise ValueError("I/O operation on closed file")


# Two chunks of age, eight of Wattlock.
BUFFER_SIZE = 128 << 10

# What is sealed at once, on all cores.
WRITE_SIZE = 4 << 20
