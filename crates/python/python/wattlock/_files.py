"""Containers as file objects."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
import threading
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, overload

from ._wattlock import FileView, FileWriter, Identity, Recipient

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer


class DiscardedWarning(UserWarning):
    """An output was not written, because it was closed while an exception was handled, or was never closed."""


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
    mode: Literal["r", "rt"],
    *,
    identities: Identity | str | Sequence[Identity | str] | None = None,
    passphrase: str | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> io.TextIOWrapper: ...
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
@overload
def open_file(
    path: str | os.PathLike[str],
    mode: Literal["w", "wt"],
    *,
    recipients: Recipient | str | Sequence[Recipient | str] | None = None,
    passphrase: str | None = None,
    format: Literal["wattlock", "age"] = "wattlock",
    overwrite: bool = False,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> SealedText: ...
def open_file(
    path,
    mode="rb",
    *,
    identities=None,
    recipients=None,
    passphrase=None,
    format="wattlock",
    overwrite=False,
    encoding=None,
    errors=None,
    newline=None,
):
    """Open a container as a file.

    "rb" reads and seeks in the plaintext; only the chunks that are read are decrypted. "wb" encrypts what is written: the
    file appears when it is closed, complete, and readable by its owner only. "r" and "w" do so with text.

    There is no new file after an exception in the `with` block, if the file is closed while an exception that was raised
    meanwhile is handled, or if it is never closed; the last two cause a `DiscardedWarning`. `publish()` writes the file
    in an exception handler too.
    """
    path = os.fspath(path)
    text = {"encoding": encoding, "errors": errors, "newline": newline}
    if mode in ("r", "rt", "w", "wt"):
        if mode[0] == "r":
            file = open_file(path, "rb", identities=identities, recipients=recipients, passphrase=passphrase)
            return io.TextIOWrapper(file, **text)
        options = {"passphrase": passphrase, "format": format, "overwrite": overwrite}
        file = open_file(path, "wb", identities=identities, recipients=recipients, **options)
        return SealedText(file, **text)
    if any(option is not None for option in text.values()):
        raise ValueError("encoding, errors and newline are for the text modes 'r' and 'w'")
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
    raise ValueError(f"mode {mode!r} is not supported; use 'rb', 'wb', 'r' or 'w'")


class SealedReader(io.RawIOBase):
    """The plaintext of a container, decrypted chunk by chunk."""

    def __init__(self, view: FileView, name: str | bytes) -> None:
        super().__init__()
        # The last chunk proves that nothing is missing.
        view.read_into(view.size, bytearray())
        self._view = view
        self._at = 0
        self.name = name
        self.mode = "rb"

    @property
    def size(self) -> int:
        """Bytes of the plaintext."""
        self._check_open()
        return self._view.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._check_open()
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}.get(whence)
        if start is None:
            raise ValueError(f"whence {whence!r} is not supported")
        if start + offset < 0:
            raise ValueError("a negative position")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Buffer, /) -> int:
        room = as_bytes(buffer)
        count = max(0, min(len(room), self.size - self._at))
        if count:
            self._view.read_into(self._at, room[:count])
            self._at += count
        return count

    def readall(self) -> bytes:
        rest = bytearray(max(0, self.size - self._at))
        self.readinto(rest)
        return bytes(rest)

    def close(self) -> None:
        self._view = None
        super().close()

    def _check_open(self) -> None:
        if self._view is None:
            raise ValueError("I/O operation on closed file")


class SealingFile(io.BufferedIOBase):
    """A file that encrypts what is written to it, and appears when it is closed, or not at all.

    A class has `_put(data)`, `_publish()` and `_give_up()`. Once one of them has failed or was interrupted, nothing is
    published any more. Nothing is published either by a `close()` while an exception is handled that was not when the
    file was opened: the `with` block or the `finally` of an object around this file closes it so.
    """

    _state = "ended"

    def __init__(self, name: str | bytes) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._pending = bytearray()
        self._written = 0
        self._handled = sys.exception()
        self.name = name
        self.mode = "wb"
        self._state = "open"

    def writable(self) -> bool:
        return True

    @property
    def closed(self) -> bool:
        return self._state == "ended"

    def tell(self) -> int:
        self._check_open()
        return self._written

    def write(self, data: Buffer, /) -> int:
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

    def flush(self) -> None:
        """Do nothing: the file appears when it is closed."""
        self._check_open()

    def close(self) -> None:
        """Publish the file, or give it up if an exception is handled that was not when it was opened."""
        why = self._why_not() if self._state == "open" else None
        if why:
            self._discard_because(why)
        else:
            self.publish()

    def publish(self) -> None:
        """Publish the file, whatever exception is handled."""
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
        self._handled = None

    def discard(self) -> None:
        """Give the file up; nothing is left of it."""
        state, self._state = self._state, "ended"
        self._handled = None
        # A child leaves the file to its parent.
        if state != "ended" and self._process == os.getpid():
            self._give_up()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.publish()
        else:
            self.discard()

    def __del__(self):
        if self._state == "open":
            self._discard_because("it was never closed")
        self.discard()

    def _dealloc_warn(self, source):
        """An object around this file is collected; `io` calls this before it closes the file."""
        if self._state == "open":
            self._discard_because("it was never closed")

    def _why_not(self):
        """Why a `close()` now would publish a part of the file as if it were whole, or None."""
        error = sys.exception()
        if error is not None and error is not self._handled:
            return f"it was closed while {type(error).__name__} was handled; publish() writes it all the same"
        frame = sys._getframe(1)
        while frame:
            if frame.f_code.co_name == "__del__":
                return "it was never closed"
            frame = frame.f_back
        return None

    def _discard_because(self, why):
        is_ours = self._process == os.getpid()
        self.discard()
        if is_ours:
            warnings.warn(f"{self.name} was not written: {why}", DiscardedWarning, stacklevel=3)

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

    def _check_open(self) -> None:
        if self._state == "ended":
            raise ValueError("I/O operation on closed file")
        if self._process != os.getpid():
            raise RuntimeError("the file was opened before a fork; it goes on in the parent only")


class SealedWriter(SealingFile):
    """A container in a file of this machine."""

    def __init__(self, writer: FileWriter, name: str | bytes) -> None:
        self._writer = writer
        super().__init__(name)

    def _put(self, data):
        self._writer.write(data)

    def _publish(self):
        self._writer.close()

    def _give_up(self):
        self._writer.discard()


class SealedText(io.TextIOWrapper):
    """Text that is encrypted, and appears when it is closed, or not at all."""

    def __init__(
        self,
        file: io.BufferedIOBase,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> None:
        super().__init__(file, encoding, errors, newline)
        # The class above leaves the mark of the byte order out in a file without seek().
        mark = BYTE_ORDER_MARKS.get(codecs.lookup(self.encoding).name)
        if mark is not None:
            file.write(mark)

    def publish(self) -> None:
        """Publish the file, whatever exception is handled."""
        if not self.closed:
            try:
                self.flush()
                self.buffer.publish()
            except BaseException:
                self.buffer.discard()
                raise

    def discard(self) -> None:
        """Give the file up; nothing is left of it."""
        self.buffer.discard()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.publish()
        else:
            self.discard()


def as_bytes(data: Buffer) -> memoryview:
    """The bytes of any buffer."""
    view = memoryview(data)
    # In a format, names of fields are between colons.
    if any("O" in types or "&" in types for types in view.format.split(":")[::2]):
        raise BufferError("the buffer holds references to objects, and no data")
    return view.cast("B") if view.nbytes else memoryview(bytearray())


# Of encodings with a mark, what Python writes in front.
BYTE_ORDER_MARKS = {"utf-16": codecs.BOM_UTF16, "utf-32": codecs.BOM_UTF32}

# Two chunks of age, eight of Wattlock.
BUFFER_SIZE = 128 << 10

# What is encrypted at once, on all cores.
WRITE_SIZE = 4 << 20
