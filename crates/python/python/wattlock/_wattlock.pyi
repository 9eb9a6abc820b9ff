import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, final

from typing_extensions import Buffer

__all__ = [
    "FileView",
    "FileWriter",
    "Identity",
    "Measurement",
    "Recipient",
    "Session",
    "Tampered",
    "Truncated",
    "View",
    "WattlockError",
    "Writer",
    "WrongKey",
    "__version__",
    "additional_data",
    "keygen",
    "open",
    "open_into",
    "opened_size",
    "protect",
    "seal",
    "seal_into",
    "sealed_size",
    "session_key",
    "set_threads",
    "threads",
    "unprotect",
]
__version__: str

_Path = str | os.PathLike[str]
_Recipients = Recipient | str | Sequence[Recipient | str]
_Identities = Identity | str | Sequence[Identity | str]
_Format = Literal["wattlock", "age"]

class WattlockError(Exception): ...
class WrongKey(WattlockError): ...

class Tampered(WattlockError):
    chunk: int | None

class Truncated(WattlockError): ...

@final
class Recipient:
    def __new__(cls, text: str) -> Recipient: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Recipient], tuple[str]]: ...

@final
class Identity:
    def __new__(cls, text: str | bytes, passphrase: str | None = None) -> Identity: ...
    @staticmethod
    def from_file(path: _Path, passphrase: str | None = None) -> Identity: ...
    @property
    def recipient(self) -> Recipient: ...
    @property
    def recipients(self) -> list[Recipient]: ...
    def secret(self) -> str: ...

def keygen(*, post_quantum: bool = False) -> Identity: ...
def seal(
    data: Buffer,
    recipients: _Recipients | None = None,
    *,
    passphrase: str | None = None,
    format: _Format = "wattlock",
) -> bytes: ...
def seal_into(
    data: Buffer,
    out: Buffer,
    recipients: _Recipients | None = None,
    *,
    passphrase: str | None = None,
    format: _Format = "wattlock",
) -> int: ...
def sealed_size(
    size: int,
    recipients: _Recipients | None = None,
    *,
    passphrase: str | None = None,
    format: _Format = "wattlock",
) -> int: ...
def open(
    container: Buffer, identities: _Identities | None = None, *, passphrase: str | None = None
) -> bytes: ...
def open_into(
    container: Buffer,
    out: Buffer,
    identities: _Identities | None = None,
    *,
    passphrase: str | None = None,
) -> int: ...
def opened_size(container: Buffer) -> int: ...
def protect(
    path: _Path,
    output: _Path | None = None,
    *,
    recipients: _Recipients | None = None,
    passphrase: str | None = None,
    format: _Format = "wattlock",
    overwrite: bool = False,
    replace: bool = False,
    metadata: bool = True,
) -> Path: ...
def unprotect(
    path: _Path,
    output: _Path | None = None,
    *,
    identities: _Identities | None = None,
    passphrase: str | None = None,
    overwrite: bool = False,
    replace: bool = False,
) -> Path: ...
def session_key() -> bytes: ...
def additional_data(
    *,
    tenant: str | None = None,
    topic: str | None = None,
    source: str | None = None,
    time_us: int | None = None,
    sequence: int | None = None,
) -> bytes: ...

@final
class Session:
    def __new__(cls, key: Buffer | Mapping[int, Buffer], epoch: int = 0) -> Session: ...
    @property
    def epoch(self) -> int: ...
    def seal(self, message: Buffer, additional_data: Buffer | None = None) -> bytes: ...
    def open(self, record: Buffer, additional_data: Buffer | None = None) -> bytes: ...

@final
class Measurement:
    def __new__(cls, *, root: _Path | None = None) -> Measurement: ...
    def __enter__(self) -> Measurement: ...
    def __exit__(self, *_raised: object) -> bool: ...
    @property
    def joules(self) -> float | None: ...
    @property
    def interval(self) -> tuple[float, float] | None: ...
    @property
    def class_(self) -> Literal["measured", "integrated", "attributed", "unavailable"] | None: ...
    @property
    def modelled_interval(self) -> tuple[float, float] | None: ...
    @property
    def covers(self) -> list[str]: ...
    @property
    def missing(self) -> list[str]: ...
    @property
    def caveats(self) -> list[str]: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def cpu_seconds(self) -> float | None: ...

def threads() -> int: ...
def set_threads(count: int | None) -> None: ...

@final
class View:
    def __new__(
        cls,
        front: Buffer,
        size: int,
        identities: _Identities | None = None,
        *,
        passphrase: str | None = None,
    ) -> View: ...
    @property
    def size(self) -> int: ...
    def sealed_range(self, start: int, stop: int) -> tuple[int, int]: ...
    def read(self, start: int, stop: int, sealed: Buffer, at: int) -> bytes: ...
    def read_into(self, start: int, out: Buffer, sealed: Buffer, at: int) -> None: ...

@final
class FileView:
    def __new__(
        cls,
        path: _Path,
        identities: _Identities | None = None,
        *,
        passphrase: str | None = None,
    ) -> FileView: ...
    @property
    def size(self) -> int: ...
    def read_into(self, start: int, out: Buffer) -> None: ...

@final
class Writer:
    def __new__(
        cls,
        recipients: _Recipients | None = None,
        *,
        passphrase: str | None = None,
        format: _Format = "wattlock",
    ) -> Writer: ...
    def update(self, data: Buffer) -> bytes: ...
    def finish(self) -> bytes: ...

@final
class FileWriter:
    def __new__(
        cls,
        path: _Path,
        recipients: _Recipients | None = None,
        *,
        passphrase: str | None = None,
        format: _Format = "wattlock",
        overwrite: bool = False,
    ) -> FileWriter: ...
    def write(self, data: Buffer) -> None: ...
    def close(self) -> None: ...
    def discard(self) -> None: ...
