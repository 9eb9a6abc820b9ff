"""Protect files and read sealed objects as tasks of a Ray cluster.

    summary = wattlock.ray.protect(paths, out_dir="/shared/safe", recipients=["age1…"])
    counts = wattlock.ray.map_ranges(count_lines, "wattlock::s3://bucket/log", identity_file="/keys/key.txt")

Files are on a filesystem that all nodes have. A task whose worker or node dies is run again elsewhere.
"""

import os
import socket
import time
from dataclasses import dataclass, field

import fsspec

import ray

import wattlock

__all__ = ["Failed", "Summary", "map_ranges", "protect", "unprotect"]


@dataclass
class Summary:
    """What a run did."""

    done: list = field(default_factory=list)
    """The outputs."""
    failed: list = field(default_factory=list)
    """`Failed` for each file that could not be done."""
    in_bytes: int = 0
    out_bytes: int = 0
    cpu_seconds: float = 0.0
    """Of the tasks that ended."""
    seconds: float = 0.0
    restarted: int = 0
    """Tasks that were run again because a worker or a node died."""
    nodes: dict = field(default_factory=dict)
    """How many files each node did."""


@dataclass
class Failed:
    """A file that could not be done, and why."""

    path: str
    error: str


def protect(paths, *, recipients, out_dir=None, format="wattlock", overwrite=False, restarts=3):
    """Protect files as tasks, and return a `Summary`.

    Containers go beside the files, or to `out_dir` under the names of the files. Recipients are text.
    """
    one_recipient = isinstance(recipients, (str, wattlock.Recipient))
    recipients = [str(one) for one in ([recipients] if one_recipient else recipients)]
    suffix = {"wattlock": ".wlk", "age": ".age"}[format]
    work = _pairs(paths, out_dir, lambda name: name + suffix)

    def one(path, output, again):
        wattlock.protect(path, output, recipients=recipients, format=format, overwrite=again)

    return _run(one, work, overwrite, restarts)


def unprotect(paths, *, identity_file, out_dir=None, overwrite=False, restarts=3):
    """Decrypt protected files as tasks, and return a `Summary`. Each node reads its keys from `identity_file`."""
    work = _pairs(paths, out_dir, _without_suffix)

    def one(path, output, again):
        identity = wattlock.Identity.from_file(identity_file)
        wattlock.unprotect(path, output, identities=identity, overwrite=again)

    return _run(one, work, overwrite, restarts)


def map_ranges(
    function, url, *, identity_file, range_size=256 << 20, storage_options=None, restarts=3
):
    """Call `function` with the bytes of each range of a sealed object, as tasks; return its results in order.

    `url` is one of fsspec, with wattlock:: in front. `storage_options` are those of the filesystem behind it:
    {"s3": {…}}. Each node reads its keys from `identity_file`.
    """
    if range_size <= 0:
        raise ValueError("range_size is not positive")
    options = {**(storage_options or {}), "wattlock": {"identity_file": os.fspath(identity_file)}}

    @ray.remote(max_retries=restarts)
    def task(start):
        fs, path = fsspec.url_to_fs(url, **options)
        return function(fs.cat_file(path, start, start + range_size))

    fs, path = fsspec.url_to_fs(url, **options)
    size = fs.size(path)
    return ray.get([task.remote(start) for start in range(0, max(size, 1), range_size)])


def _pairs(paths, out_dir, name):
    """Each path with its output; refuses two with the same."""
    pairs = []
    for path in map(os.fspath, paths):
        folder, base = os.path.split(os.path.abspath(path))
        pairs.append((path, os.path.join(out_dir or folder, name(base))))
    outputs = [output for _, output in pairs]
    if len(set(outputs)) != len(outputs):
        twice = next(output for output in outputs if outputs.count(output) > 1)
        raise ValueError(f"two files would become {twice}")
    return pairs


def _without_suffix(name):
    stem, suffix = os.path.splitext(name)
    if suffix not in (".wlk", ".age"):
        raise ValueError(f"{name} has no suffix .wlk or .age")
    return stem


def _run(one, pairs, overwrite, restarts):
    @ray.remote(max_retries=0)
    def task(batch, again):
        cpu, ended = time.process_time(), []
        for path, output in batch:
            try:
                one(path, output, again)
                ended.append((path, output, None, os.path.getsize(path), os.path.getsize(output)))
            except Exception as error:
                ended.append((path, output, f"{type(error).__name__}: {error}", 0, 0))
        return ended, time.process_time() - cpu, socket.gethostname() + ":" + _node()

    begun, summary = time.monotonic(), Summary()
    if not overwrite:
        # Before the tasks, since one that is run again replaces what its first attempt made.
        there = {path for path, output in pairs if os.path.lexists(output)}
        summary.failed += [Failed(path, "FileExistsError: its output exists") for path in there]
        pairs = [pair for pair in pairs if pair[0] not in there]
    waiting = {task.remote(batch, overwrite): (batch, 0) for batch in _batches(pairs)}
    while waiting:
        [ready], _ = ray.wait(list(waiting))
        batch, attempt = waiting.pop(ready)
        try:
            ended, cpu, node = ray.get(ready)
        except ray.exceptions.RayError as error:
            if attempt >= restarts:
                summary.failed += [Failed(path, f"{type(error).__name__}") for path, _ in batch]
                continue
            # An output of the first attempt may be there; this makes it again, under another key.
            waiting[task.remote(batch, True)] = (batch, attempt + 1)
            summary.restarted += 1
            continue
        summary.cpu_seconds += cpu
        for path, output, error, in_bytes, out_bytes in ended:
            if error:
                summary.failed.append(Failed(path, error))
                continue
            summary.done.append(output)
            summary.in_bytes += in_bytes
            summary.out_bytes += out_bytes
            summary.nodes[node] = summary.nodes.get(node, 0) + 1
    summary.seconds = time.monotonic() - begun
    return summary


def _node():
    return ray.get_runtime_context().get_node_id()[:8]


def _batches(pairs):
    """Files together that are small, so that a task is worth it."""
    batch, size = [], 0
    for pair in pairs:
        batch.append(pair)
        try:
            size += os.path.getsize(pair[0])
        except OSError:
            pass
        if size >= BATCH_SIZE or len(batch) >= BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


# A task takes some tenths of a second at least.
BATCH_SIZE = 256 << 20
BATCH_FILES = 100
