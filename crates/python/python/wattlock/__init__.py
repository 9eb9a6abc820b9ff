"""Encrypt data on all cores, read it in ranges, and measure the joules.

    import wattlock

    identity = wattlock.keygen()
    sealed = wattlock.seal(b"what was said in confidence", identity.recipient)
    assert wattlock.open(sealed, identity) == b"what was said in confidence"

Containers are those of the program `wattlock` and of age. `wattlock.fs` has them as a filesystem for pandas, pyarrow and
others; `python -m wattlock.reader` opens them without any compiled code.
"""

from __future__ import annotations

import os

try:
    from ._files import DiscardedWarning, SealedReader, SealedText, SealedWriter, open_file
    from ._wattlock import (
        Identity,
        Measurement,
        Recipient,
        Session,
        Tampered,
        Truncated,
        WattlockError,
        WrongKey,
        __version__,
        additional_data,
        keygen,
        open,
        open_into,
        opened_size,
        protect,
        seal,
        seal_into,
        sealed_size,
        session_key,
        set_threads,
        threads,
        unprotect,
    )
except ModuleNotFoundError as error:
    # On a system that there is no build for, `python -m wattlock.reader` works all the same.
    if error.name != "wattlock._wattlock":
        raise

    def __getattr__(name):
        raise ImportError(
            "this copy of the package wattlock has no compiled code; wattlock.reader works without"
        )


def measure(*, root: str | os.PathLike[str] | None = None) -> Measurement:
    """Measure the joules of the machine while a block runs.

    with wattlock.measure() as m:
        work()
    print(m.joules, m.interval, m.class_)
    """
    return Measurement(root=root)


__all__ = [
    "DiscardedWarning",
    "Identity",
    "Measurement",
    "Recipient",
    "SealedReader",
    "SealedText",
    "SealedWriter",
    "Session",
    "Tampered",
    "Truncated",
    "WattlockError",
    "WrongKey",
    "__version__",
    "additional_data",
    "keygen",
    "measure",
    "open",
    "open_file",
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
