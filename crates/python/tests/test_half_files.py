"""An output that fails while it is written is not published, through whatever object it is written."""

import contextlib
import gc
import gzip
import io
import os
import warnings
import zipfile

import pytest
from conftest import need, pattern

import wattlock

fsspec = pytest.importorskip("fsspec")

# Those that a test expects are caught by `says`.
pytestmark = pytest.mark.filterwarnings("ignore::wattlock.DiscardedWarning")

BEFORE = b"the version before"


class Place:
    """One output that has a good version already, and the ways to write a new one."""

    def __init__(self, kind, identity, tmp_path):
        self.identity = identity
        self.path = tmp_path / "out"
        self.path.write_bytes(wattlock.seal(BEFORE, identity.recipient))
        self._fs = fsspec.filesystem("wattlock", identities=identity) if kind == "fs" else None

    def open(self, mode="wb", **options):
        if self._fs:
            return self._fs.open(str(self.path), mode, **options)
        options |= {"recipients": self.identity.recipient, "overwrite": True}
        return wattlock.open_file(self.path, mode, **options)

    def content(self):
        assert [name for name in os.listdir(self.path.parent) if name != "key.txt"] == ["out"]
        return wattlock.open(self.path.read_bytes(), self.identity)


@pytest.fixture(params=["open_file", "fs"])
def place(request, identity, tmp_path):
    return Place(request.param, identity, tmp_path)


@contextlib.contextmanager
def says(count):
    """So many warnings that an output was not written."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        gc.collect()
    said = [str(one.message) for one in caught if one.category is wattlock.DiscardedWarning]
    assert len(said) == count and all("out was not written" in text for text in said), said


def in_with(wrapper, data):
    with wrapper as file:
        file.write(data)
        raise KeyError


def finally_closed(wrapper, data):
    try:
        wrapper.write(data)
        raise KeyError
    finally:
        wrapper.close()


WRAPPERS = {
    "itself": lambda file: (file, b"x"),
    "text": lambda file: (io.TextIOWrapper(file), "x"),
    "buffer": lambda file: (io.BufferedWriter(file), b"x"),
    "text on a buffer": lambda file: (io.TextIOWrapper(io.BufferedWriter(file)), "x"),
    "gzip": lambda file: (gzip.open(file, "wt"), "x"),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("write", [in_with, finally_closed])
def test_an_exception_on_its_way_publishes_nothing(place, wrap, write):
    wrapper, unit = wrap(place.open())
    with pytest.raises(KeyError):
        write(wrapper, unit * 100_000)
    del wrapper
    gc.collect()
    assert place.content() == BEFORE


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_a_wrapper_that_is_never_closed_publishes_nothing(place, wrap):
    def write():
        wrapper, unit = wrap(place.open())
        wrapper.write(unit * 100_000)

    with says(1):
        write()
    assert place.content() == BEFORE


def test_text_modes_publish_all_or_nothing(place):
    text = "Grüße\n" * 50_000
    for mode, encoding, newline in [("w", "utf-8", None), ("wt", "utf-16", "\r\n"), ("w", "utf-32", "")]:
        with says(0), place.open(mode, encoding=encoding, newline=newline) as file:
            file.write(text)
        assert place.content() == text.replace("\n", newline or "\n").encode(encoding)
        place.path.write_bytes(wattlock.seal(BEFORE, place.identity.recipient))
    with pytest.raises(UnicodeEncodeError):
        with place.open("w", encoding="ascii") as file:
            file.write("Gruss")
            file.write("Grüße")
    for write in in_with, finally_closed:
        with pytest.raises(KeyError):
            write(place.open("w", encoding="utf-8"), text)
    with says(1):
        place.open("w", encoding="utf-8").write(text)
    assert place.content() == BEFORE


def test_open_file_reads_text(identity, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(wattlock.seal("Grüße\r\nan alle\n".encode("latin-1"), identity.recipient))
    with wattlock.open_file(path, "r", encoding="latin-1", identities=identity) as file:
        assert file.readlines() == ["Grüße\n", "an alle\n"]
    with pytest.raises(ValueError, match="text"):
        wattlock.open_file(path, "rb", encoding="latin-1", identities=identity)


def test_a_generator_that_is_dropped_publishes_nothing(place):
    def lines():
        file = place.open("w", encoding="utf-8")
        try:
            while True:
                file.write((yield))
        finally:
            file.close()

    with says(1):
        writer = lines()
        next(writer)
        writer.send("half")
        del writer
    assert place.content() == BEFORE


def test_handled_exceptions_do_not_matter(place):
    with says(0):
        try:
            raise KeyError
        except KeyError:
            with place.open() as file:
                file.write(b"opened")
                try:
                    raise ValueError
                except ValueError:
                    file.write(b" in a handler")
            assert place.content() == b"opened in a handler"
            file = place.open("w", encoding="utf-8")
            file.write("closed there")
            file.close()
    assert place.content() == b"closed there"
    with says(0):
        file = place.open()
        try:
            raise KeyError
        except KeyError:
            with file:
                file.write(b"the block ended well")
    assert place.content() == b"the block ended well"


@pytest.mark.parametrize("mode", ["wb", "w"])
def test_publish_writes_it_all_the_same(place, mode):
    for publishes in True, False:
        file = place.open(mode)
        try:
            raise KeyError
        except KeyError:
            file.write(b"kept" if mode == "wb" else "kept")
            with says(0 if publishes else 1):
                file.publish() if publishes else file.close()
        assert file.closed
        assert place.content() == (b"kept" if publishes else BEFORE)
        place.path.write_bytes(wattlock.seal(BEFORE, place.identity.recipient))


class Bad:
    """A cell of a table that raises when it is written."""

    def __str__(self):
        raise KeyError("a bad cell")


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_table_that_fails_leaves_the_former_one(identity, tmp_path, compression):
    pandas = need("pandas")
    (tmp_path / "key.txt").write_text(identity.secret())
    options = {"wattlock": {"identity_file": str(tmp_path / "key.txt")}}
    address = f"wattlock::file://{tmp_path}/out"
    csv = {"storage_options": options, "compression": compression, "index": False}
    pandas.DataFrame({"price": [1, 2]}).to_csv(address, **csv)
    before = (tmp_path / "out").read_bytes()
    numbers = [str(number) for number in range(200_000)]
    with says(1), pytest.raises(KeyError):
        pandas.DataFrame({"price": [*numbers, Bad()]}).to_csv(address, **csv)
    assert (tmp_path / "out").read_bytes() == before
    read = {"storage_options": options, "compression": compression}
    assert list(pandas.read_csv(address, **read)["price"]) == [1, 2]


def test_a_parquet_writer_that_is_left_early(place):
    pyarrow = need("pyarrow")
    need("pyarrow.parquet")
    import pyarrow.fs
    import pyarrow.parquet

    table = pyarrow.table({"price": list(range(1000))})

    def leave(end, *target, **options):
        writer = pyarrow.parquet.ParquetWriter(*target, table.schema, **options)
        try:
            writer.write_table(table)
            raise KeyError
        finally:
            if end:
                writer.close()

    for end in True, False:
        with pytest.raises(KeyError):
            leave(end, place.open())
        gc.collect()
        assert place.content() == BEFORE
        if place._fs:
            arrow = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(place._fs))
            with pytest.raises(KeyError):
                leave(end, str(place.path), filesystem=arrow)
            gc.collect()
            assert place.content() == BEFORE
    with place.open() as file:
        with pyarrow.parquet.ParquetWriter(file, table.schema) as writer:
            writer.write_table(table)
    assert pyarrow.parquet.read_table(pyarrow.BufferReader(place.content())) == table


def test_an_archive_is_written_whole(place):
    with says(0), place.open() as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("member", pattern(100_000))
    assert zipfile.ZipFile(io.BytesIO(place.content())).read("member") == pattern(100_000)


def test_a_warning_that_is_an_error_publishes_nothing(place):
    file = place.open()
    with warnings.catch_warnings():
        warnings.simplefilter("error", wattlock.DiscardedWarning)
        with pytest.raises(wattlock.DiscardedWarning):
            try:
                raise KeyError
            except KeyError:
                file.close()
    assert file.closed and place.content() == BEFORE


@pytest.mark.parametrize("inner", ["file", "memory"])
def test_a_transaction_gives_up_what_failed(identity, tmp_path, inner):
    fs = fsspec.filesystem("wattlock", identities=identity, target_protocol=inner)
    top = str(tmp_path) if inner == "file" else "/half-files"
    with fs.transaction:
        for name in "whole", "out":
            file = io.TextIOWrapper(fs.open(f"{top}/{name}", "wb"))
            with pytest.raises(KeyError) if name == "out" else contextlib.nullcontext():
                with file:
                    file.write(name)
                    if name == "out":
                        raise KeyError
    assert fs.cat_file(f"{top}/whole") == b"whole" and not fs.exists(f"{top}/out")
