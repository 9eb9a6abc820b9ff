"""Sealed files on any filesystem of fsspec, read in ranges.

    pandas.read_parquet(
        "wattlock::s3://bucket/table.parquet",
        columns=["price"],
        storage_options={"wattlock": {"identity_file": "key.txt"}},
    )

A path names the sealed file; its name needs no suffix. What is read is fetched, in whole chunks of 16 KiB, with each file's header and end.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Literal

import fsspec
from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.compression import compr
from fsspec.core import get_compression
from fsspec.implementations.chained import ChainedFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractBufferedFile
from fsspec.utils import isfilelike

from ._files import SealedText, SealingFile
from ._wattlock import (
    FileWriter,
    Identity,
    Recipient,
    Tampered,
    Truncated,
    View,
    WattlockError,
    Writer,
)


class WattlockFileSystem(ChainedFileSystem):
    """Sealed files of another filesystem, as their plaintext.

    Options: `identities`, `identity_file` and `passphrase` to read; `recipients` (by default those of the identities),
    `passphrase` and `format` to write; `fs`, or `target_protocol` and `target_options`, for the filesystem that has the
    sealed files. A filesystem that is sent to another process needs an `identity_file` or keys as text.
    """

    protocol = "wattlock"
    root_marker = ""
    # An instance for another key must be another one.
    cachable = False

    def __init__(
        self,
        fo: Any = None,
        *,
        fs: fsspec.AbstractFileSystem | None = None,
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        identities: Identity | str | Sequence[Identity | str] | None = None,
        identity_file: str | os.PathLike[str] | None = None,
        recipients: Recipient | str | Sequence[Recipient | str] | None = None,
        passphrase: str | None = None,
        format: Literal["wattlock", "age"] = "wattlock",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.fs = fs or fsspec.filesystem(target_protocol or "file", **(target_options or {}))
        keys = [identities] if isinstance(identities, (str, Identity)) else list(identities or ())
        self._identities = [key if isinstance(key, Identity) else Identity(key) for key in keys]
        if identity_file is not None:
            self._identities.append(Identity.from_file(os.fspath(identity_file)))
        if recipients is None and passphrase is None:
            recipients = [to for key in self._identities for to in key.recipients]
        self._passphrase = passphrase
        self._writing = {"recipients": recipients, "passphrase": passphrase, "format": format}
        self._views = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def _strip_protocol(cls, path):
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return os.fspath(path).removeprefix("wattlock://").removeprefix("wattlock::")

    @property
    def fsid(self):
        return "wattlock_" + self.fs.fsid

    # Reading.

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        path = self._inner(path)
        found = dict(self.fs.info(path, **kwargs))
        if found.get("type") != "directory":
            found["sealed_size"] = found["size"]
            found["size"] = self._view(path).size
        return found

    def ls(self, path, detail=True, **kwargs):
        found = self.fs.ls(self._inner(path), detail=True, **kwargs)
        if not detail:
            return [one["name"] for one in found]
        # The length of a plaintext takes a look into its file, which a listing does not do.
        return [one if one.get("type") == "directory" else _without_size(one) for one in found]

    def size(self, path: str) -> int | None:
        return self.info(path).get("size")

    def du(self, path, total=True, maxdepth=None, withdirs=False, **kwargs):
        sizes = {name: self.size(name) for name in self.find(path, maxdepth=maxdepth, **kwargs)}
        return sum(sizes.values()) if total else sizes

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any
    ) -> bytes:
        path = self._inner(path)
        view = self._view(path)
        start, end = _bounds(start, end, view.size)
        return view.read(start, end)

    def cat_ranges(self, paths, starts, ends, max_gap=None, on_error="return", **kwargs):
        count = len(paths)
        starts = starts if isinstance(starts, (list, tuple)) else [starts] * count
        ends = ends if isinstance(ends, (list, tuple)) else [ends] * count
        if not count == len(starts) == len(ends):
            raise ValueError("paths, starts and ends have different lengths")
        out, wanted = [None] * count, []
        for i, (path, start, end) in enumerate(zip(paths, starts, ends)):
            try:
                view = self._view(self._inner(path))
                wanted.append((i, view, *_bounds(start, end, view.size)))
            except Exception as error:
                if on_error != "return":
                    raise
                out[i] = error
        ranges = [view.missing(start, end) for _, view, start, end in wanted]
        # At once, where the filesystem can do that.
        fetched = self.fs.cat_ranges(
            [view.path for _, view, _, _ in wanted],
            [first for first, _ in ranges],
            [last for _, last in ranges],
            on_error="return",
        )
        for (i, view, start, end), sealed in zip(wanted, fetched):
            try:
                if isinstance(sealed, Exception):
                    raise sealed
                out[i] = view.opened(start, end, sealed)
            except Exception as error:
                if on_error != "return":
                    raise
                out[i] = error
        return out

    def get_file(self, rpath, lpath, callback=DEFAULT_CALLBACK, outfile=None, **kwargs):
        """Decrypt a file to a local one, which appears when it is complete."""
        if outfile is None and isfilelike(lpath):
            outfile = lpath
        if outfile is None and self.isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
            return

        def copy(target):
            with self.open(rpath, "rb") as source:
                _copy(source, target, source.size, callback)

        if outfile is not None:
            copy(outfile)
            return
        os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
        part = f"{os.fspath(lpath)}.{secrets.token_hex(8)}.part"
        try:
            with open(part, "xb") as target:
                copy(target)
            os.replace(part, lpath)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)
            raise

    def open(
        self, path, mode="rb", block_size=None, cache_options=None, compression=None, **kwargs
    ):
        """Open a file, as fsspec does; after an exception in its `with` block, what was written is given up."""
        if "b" not in mode:
            text = {
                name: kwargs.pop(name)
                for name in ("encoding", "errors", "newline")
                if name in kwargs
            }
            options = {"cache_options": cache_options, "compression": compression, **kwargs}
            file = self.open(path, mode.replace("t", "") + "b", block_size, **options)
            return SealedText(file, **text) if "r" not in mode else io.TextIOWrapper(file, **text)
        compression = get_compression(path, compression)
        if compression is None or "r" in mode:
            options = {"cache_options": cache_options, "compression": compression, **kwargs}
            return super().open(path, mode, block_size, **options)
        file = super().open(path, mode, block_size, cache_options, **kwargs)
        return _Compressed(compr[compression](file, mode="w"), file)

    def _open(
        self, path, mode="rb", block_size=None, autocommit=True, cache_options=None, **kwargs
    ):
        path = self._inner(path)
        if mode in ("wb", "xb"):
            if mode == "xb" and self.fs.exists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            return _WriteFile(self, path, autocommit, kwargs)
        if mode != "rb":
            raise NotImplementedError(f"mode {mode!r}: sealed files are read, or written anew")
        view = self._view(path)
        return _ReadFile(self, path, view, block_size or BLOCK_SIZE, cache_options, kwargs)

    # Writing, and what needs no key.

    def pipe_file(
        self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any
    ) -> None:
        with self.open(path, "xb" if mode == "create" else "wb", **kwargs) as file:
            file.write(value)

    def put_file(self, lpath, rpath, callback=DEFAULT_CALLBACK, mode="overwrite", **kwargs):
        if os.path.isdir(lpath):
            self.makedirs(rpath, exist_ok=True)
            return
        self.makedirs(self._parent(os.fspath(rpath)), exist_ok=True)
        with open(lpath, "rb") as source:
            with self.open(rpath, "xb" if mode == "create" else "wb", **kwargs) as target:
                _copy(source, target, os.fstat(source.fileno()).st_size, callback)

    def cp_file(self, path1, path2, **kwargs):
        self._forget(path2)
        self.fs.cp_file(self._inner(path1), self._inner(path2), **kwargs)

    def mv(self, path1, path2, **kwargs):
        self._forget(path1)
        self._forget(path2)
        self.fs.mv(self._inner(path1), self._inner(path2), **kwargs)

    def rm_file(self, path):
        self._forget(path)
        self.fs.rm_file(self._inner(path))

    def rm(self, path, recursive=False, maxdepth=None):
        with self._lock:
            self._views.clear()
        paths = path if isinstance(path, list) else [path]
        self.fs.rm([self._inner(one) for one in paths], recursive=recursive, maxdepth=maxdepth)

    def mkdir(self, path, create_parents=True, **kwargs):
        self.fs.mkdir(self._inner(path), create_parents=create_parents, **kwargs)

    def makedirs(self, path, exist_ok=False):
        self.fs.makedirs(self._inner(path), exist_ok=exist_ok)

    def rmdir(self, path):
        self.fs.rmdir(self._inner(path))

    def exists(self, path: str, **kwargs: Any) -> bool:
        return self.fs.exists(self._inner(path), **kwargs)

    def isdir(self, path):
        return self.fs.isdir(self._inner(path))

    def isfile(self, path):
        return self.fs.isfile(self._inner(path))

    def created(self, path):
        return self.fs.created(self._inner(path))

    def modified(self, path):
        return self.fs.modified(self._inner(path))

    def ukey(self, path):
        return self.fs.ukey(self._inner(path))

    def invalidate_cache(self, path=None):
        with self._lock:
            self._views.clear()
        self.fs.invalidate_cache(path and self._inner(path))
        super().invalidate_cache(path)

    # Inside.

    def _inner(self, path):
        return self.fs._strip_protocol(self._strip_protocol(path))

    def _view(self, path):
        """The view of a file, as long as the filesystem says that the file is the same."""
        stamp = _stamp(self.fs.info(path))
        with self._lock:
            known = self._views.get(path)
            if known and known.stamp == stamp:
                self._views.move_to_end(path)
                return known
        new = _FileView(self, path, stamp)
        with self._lock:
            self._views[path] = new
            while len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)
        return new

    def _forget(self, path):
        with self._lock:
            self._views.pop(self._inner(path), None)


class _FileView:
    """The plaintext of one sealed file: its first and its last bytes are fetched at once."""

    def __init__(self, owner, path, stamp):
        self._owner, self._fs = owner, owner.fs
        self.path = path
        self.stamp = stamp
        self._sealed_size = stamp[0]
        keys = (owner._identities or None, owner._passphrase)
        front = self._fetch(0, min(FRONT_SIZE, self._sealed_size))
        try:
            self._view = self._open(front, *keys)
        except WattlockError as error:
            error.add_note(f"in {path}")
            raise
        self.size = self._view.size
        # The last chunk proves that nothing is missing. Files such as Parquet's are read from their end.
        start = self._view.sealed_range(max(0, self.size - TAIL_SIZE), self.size)[0]
        whole = len(front) == self._sealed_size
        self._tail = front[start:] if whole else self._fetch(start, self._sealed_size)
        self._tail_at = start
        self.read(self.size, self.size)

    def _open(self, front, identities, passphrase):
        while True:
            try:
                return View(front, self._sealed_size, identities, passphrase=passphrase)
            except (Truncated, Tampered):
                # A header of many recipients is longer.
                if len(front) >= min(self._sealed_size, MOST_FRONT):
                    raise
            front = self._fetch(0, min(8 * len(front), self._sealed_size))

    def read(self, start, stop):
        """The plaintext from start to stop."""
        return self.opened(start, stop, self._fetch(*self.missing(start, stop)))

    def missing(self, start, stop):
        """The bytes of the sealed file that are to be fetched for a range; what is known of the end is not."""
        first, last = self._view.sealed_range(start, stop)
        return min(first, self._tail_at), min(last, self._tail_at)

    def opened(self, start, stop, sealed):
        """The plaintext of a range, of which the missing bytes were fetched."""
        first, last = self.missing(start, stop)
        if len(sealed) != last - first:
            raise self._changed()
        sealed = sealed + self._tail if self._view.sealed_range(start, stop)[1] > last else sealed
        try:
            return self._view.read(start, stop, sealed, first)
        except Tampered:
            self._owner._forget(self.path)
            self._fs.invalidate_cache()
            if _stamp(self._fs.info(self.path)) != self.stamp:
                raise self._changed() from None
            raise

    def _fetch(self, start, stop):
        sealed = self._fs.cat_file(self.path, start=start, end=stop) if start < stop else b""
        if len(sealed) != stop - start:
            raise self._changed()
        return sealed

    def _changed(self):
        return OSError(errno.ESTALE, "the file changed meanwhile", self.path)


class _ReadFile(AbstractBufferedFile):
    """The plaintext of a sealed file."""

    def __init__(self, fs, path, view, block_size, cache_options, options):
        self._view = view
        options = {"cache_options": cache_options, "size": view.size, **options}
        super().__init__(fs, path, "rb", block_size, **options)

    def _fetch_range(self, start, end):
        return self._view.read(start, min(end, self._view.size))


class _WriteFile(SealingFile):
    """A sealed file that appears when it is closed, or when its transaction ends.

    A local file is made whole by this package. A store has uploads that appear when they are complete. For other
    filesystems, the sealed bytes are kept in a temporary file until the end.
    """

    def __init__(self, fs, path, autocommit, options):
        self.fs, self.path, self.autocommit = fs, path, autocommit
        self._options, self._writer, self._file, self._waits = options, None, None, False
        if isinstance(fs.fs, LocalFileSystem):
            if fs.fs.auto_mkdir:
                os.makedirs(os.path.dirname(path), exist_ok=True)
            self._file = FileWriter(path, **fs._writing, overwrite=True)
        else:
            self._writer = Writer(**fs._writing)
            protocols = fs.fs.protocol
            protocols = {protocols} if isinstance(protocols, str) else set(protocols)
            if protocols & STORES:
                self._file = fs.fs.open(path, "wb", autocommit=False, **options)
            else:
                self._file = tempfile.TemporaryFile()
        super().__init__(path)

    def commit(self):
        """Give the file its name, at the end of a transaction."""
        if self._waits:
            try:
                self._finish()
            except BaseException:
                self._give_up()
                raise
        elif self._state != "ended":
            self.autocommit = True
            self.publish()

    def discard(self):
        waits, self._waits = self._waits, False
        if waits and self._process == os.getpid():
            self._give_up()
        super().discard()

    def _put(self, data):
        if isinstance(self._file, FileWriter):
            self._file.write(data)
        else:
            self._file.write(self._writer.update(data))

    def _publish(self):
        if not self.autocommit:
            self._waits = True
            return
        self._finish()

    def _finish(self):
        self._waits = False
        self.fs._forget(self.path)
        if isinstance(self._file, FileWriter):
            self._file.close()
            return
        self._file.write(self._writer.finish())
        if isinstance(self._file, AbstractBufferedFile):
            self._file.close()
            self._file.commit()
            return
        self._file.seek(0)
        with self.fs.fs.open(self.path, "wb", **self._options) as out:
            shutil.copyfileobj(self._file, out, PART_SIZE)
        self._file.close()

    def _give_up(self):
        if self._file is None:
            return
        if isinstance(self._file, (FileWriter, AbstractBufferedFile)):
            self._file.discard()
        if isinstance(self._file, AbstractBufferedFile):
            # It would send the rest of it otherwise.
            self._file.closed = True
        elif not isinstance(self._file, FileWriter):
            self._file.close()

    def __del__(self):
        if isinstance(self._file, AbstractBufferedFile) and self._process != os.getpid():
            self._file.closed = True
        super().__del__()


class _Compressed(io.BufferedIOBase):
    """A compressor that closes the file below it."""

    def __init__(self, compressor, file):
        super().__init__()
        self._compressor, self._file = compressor, file

    def writable(self):
        return True

    def write(self, data):
        return self._compressor.write(data)

    def close(self):
        self._end(self._file.close)

    def publish(self):
        self._end(self._file.publish)

    def discard(self):
        self._file.discard()
        with contextlib.suppress(ValueError):
            self._compressor.close()
        super().close()

    def __exit__(self, kind, value, traceback):
        self.publish() if kind is None else self.discard()

    def __del__(self):
        if not self.closed:
            self._dealloc_warn(self)
            self.discard()

    def _dealloc_warn(self, source):
        self._file._dealloc_warn(source)

    def _end(self, end):
        if not self.closed:
            try:
                self._compressor.close()
                end()
            except BaseException:
                self._file.discard()
                raise
            finally:
                super().close()


def _stamp(info):
    """What changes when a file does: its length first."""
    names = ("size", "ETag", "etag", "LastModified", "last_modified", "mtime", "ino", "created")
    return tuple(str(info.get(name)) if name != "size" else info[name] for name in names)


def _copy(source, target, size, callback):
    """Copy all of a file, and report progress to a callback of fsspec."""
    callback.set_size(size)
    while part := source.read(PART_SIZE):
        target.write(part)
        callback.relative_update(len(part))


def _without_size(info):
    return {**info, "size": None, "sealed_size": info.get("size")}


def _bounds(start, end, size):
    """Offsets as slices have them."""
    start, end, _ = slice(start, end).indices(size)
    return start, max(start, end)


# What is read of a file at first: a header of some recipients.
FRONT_SIZE = 4 << 10

# The longest header of a container, with what follows it.
MOST_FRONT = (1 << 20) + (64 << 10)

# The end that is read at first, at least a chunk.
TAIL_SIZE = 12 << 10

# What file objects read ahead.
BLOCK_SIZE = 1 << 20

# What is copied at once.
PART_SIZE = 8 << 20

# Filesystems whose uploads appear when they are complete, and can be given up.
STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "r2"}

# Files of which the keys are kept.
MOST_VIEWS = 1024

__all__ = ["WattlockFileSystem"]
