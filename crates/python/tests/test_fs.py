"""The filesystem of fsspec, with the libraries that people read with."""

import os
import pickle
import subprocess

import pytest
from conftest import ROOT, need, pattern, skip

import wattlock

fsspec = pytest.importorskip("fsspec")


class Bucket:
    """A bucket of an S3 server on this machine, which counts requests."""

    def __init__(self, server):
        self._server = server
        self.endpoint = server.stdout.readline().strip()
        server.stdout.readline()
        self.options = {
            "key": "AKIAWATTLOCKTEST",
            "secret": "a-secret-that-no-message-may-show",
            "client_kwargs": {"endpoint_url": self.endpoint, "region_name": "us-east-1"},
            "skip_instance_cache": True,
        }

    def requests(self):
        """Method and bytes of the bodies of each request since the last call."""
        self._server.stdin.write("\n")
        self._server.stdin.flush()
        lines = iter(self._server.stdout.readline, "\n")
        return [(line.split()[0], int(line.split()[1])) for line in lines]


@pytest.fixture(scope="module")
def bucket():
    need("s3fs")
    program = ROOT / "target/debug/examples/serve"
    if not program.exists():
        skip("store", "`cargo build -p wattlock-testing-store --example serve` makes the store")
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        yield Bucket(server)
        server.stdin.close()


@pytest.fixture
def key_file(identity, tmp_path):
    file = tmp_path / "key.txt"
    file.write_text(identity.secret())
    return file


@pytest.fixture
def options(key_file):
    return {"wattlock": {"identity_file": str(key_file)}}


@pytest.fixture
def local(tmp_path, options):
    (tmp_path / "data").mkdir()
    fs, path = fsspec.url_to_fs(f"wattlock::file://{tmp_path}/data", **options)
    return fs, path


@pytest.mark.parametrize("format", ["wattlock", "age"])
def test_files_and_ranges(identity, tmp_path, format):
    fs = fsspec.filesystem("wattlock", identities=identity, format=format)
    path, data = f"{tmp_path}/x", pattern(500_000)
    fs.pipe_file(path, data)
    assert wattlock.open((tmp_path / "x").read_bytes(), identity) == data
    assert fs.size(path) == len(data) and fs.info(path)["sealed_size"] > len(data)
    assert fs.cat_file(path) == data
    bounds = [(0, 1), (16383, 16385), (100_000, None), (-5, None), (None, -499_990), (9, 3), (10**7, None)]
    for start, end in bounds:
        assert fs.cat_file(path, start, end) == data[start:end]
    starts, ends = zip(*bounds)
    assert fs.cat_ranges([path] * len(bounds), list(starts), list(ends)) == [
        data[start:end] for start, end in bounds
    ]
    with fs.open(path) as file:
        file.seek(499_000)
        assert file.read() == data[499_000:] and file.size == len(data)
    fs.get_file(path, f"{tmp_path}/out")
    assert (tmp_path / "out").read_bytes() == data
    fs.put_file(f"{tmp_path}/out", f"{tmp_path}/again")
    assert fs.cat_file(f"{tmp_path}/again") == data
    assert fs.du(str(tmp_path / "again")) == len(data)
    fs.mv(f"{tmp_path}/again", f"{tmp_path}/moved")
    fs.cp_file(f"{tmp_path}/moved", f"{tmp_path}/copy")
    assert fs.cat_file(f"{tmp_path}/copy", 5, 9) == data[5:9]
    fs.rm([f"{tmp_path}/moved", f"{tmp_path}/copy"])
    assert not fs.exists(f"{tmp_path}/moved")
    assert sorted(fs.ls(str(tmp_path), detail=False)) == [f"{tmp_path}/out", path]


def test_empty_and_small_files(local):
    fs, top = local
    for size in [0, 1, 16383, 16384, 16385]:
        fs.pipe_file(f"{top}/{size}", pattern(size))
        assert fs.cat_file(f"{top}/{size}") == pattern(size) and fs.size(f"{top}/{size}") == size


def test_a_file_appears_complete_or_not_at_all(local, tmp_path):
    fs, top = local
    with pytest.raises(KeyError):
        with fs.open(f"{top}/x", "wb") as file:
            file.write(pattern(20_000_000))
            raise KeyError
    file = fs.open(f"{top}/x", "wb")
    file.write(b"never closed")
    del file
    assert os.listdir(tmp_path / "data") == []
    fs.pipe_file(f"{top}/x", b"first", mode="create")
    with pytest.raises(FileExistsError):
        fs.pipe_file(f"{top}/x", b"second", mode="create")
    assert fs.cat_file(f"{top}/x") == b"first"


def test_compression_and_text(local, tmp_path):
    fs, top = local
    for compression in ["gzip", "bz2", "xz"]:
        with fs.open(f"{top}/x", "wb", compression=compression) as file:
            file.write(b"compressed")
        with fs.open(f"{top}/x", "rb", compression=compression) as file:
            assert file.read() == b"compressed"
    with fs.open(f"{top}/t.gz", "wt", compression="infer", encoding="utf-8") as file:
        file.write("Grüße\n")
    with fs.open(f"{top}/t.gz", "rt", compression="infer", encoding="utf-8") as file:
        assert file.read() == "Grüße\n"
    for mode, options in [("w", {}), ("wb", {"compression": "gzip"})]:
        with pytest.raises(KeyError):
            with fs.open(f"{top}/half", mode, **options) as file:
                file.write("half" if mode == "w" else b"half")
                raise KeyError
        assert not fs.exists(f"{top}/half")


def test_a_filesystem_in_memory_gets_whole_files(identity):
    fs = fsspec.filesystem("wattlock", identities=identity, target_protocol="memory")
    fs.pipe_file("/wl/x", b"first")
    with pytest.raises(KeyError):
        with fs.open("/wl/x", "wb") as file:
            file.write(pattern(10_000_000))
            raise KeyError
    assert fs.cat_file("/wl/x") == b"first"
    fs.pipe_file("/wl/x", pattern(10_000_000))
    assert fs.cat_file("/wl/x", 9_000_000) == pattern(10_000_000)[9_000_000:]
    fs.rm("/wl", recursive=True)


@pytest.mark.parametrize("inner", ["file", "memory"])
def test_transactions(identity, tmp_path, inner):
    fs = fsspec.filesystem("wattlock", identities=identity, target_protocol=inner)
    top = str(tmp_path) if inner == "file" else "/transactions"
    with fs.transaction:
        with fs.open(f"{top}/a", "wb") as file:
            file.write(b"a")
        open_until_the_end = fs.open(f"{top}/b", "wb")
        open_until_the_end.write(b"b")
        with pytest.raises(KeyError):
            with fs.open(f"{top}/c", "wb") as file:
                file.write(b"c")
                raise KeyError
        assert not fs.exists(f"{top}/a")
    assert fs.cat_file(f"{top}/a") == b"a" and fs.cat_file(f"{top}/b") == b"b"
    assert not fs.exists(f"{top}/c")
    with pytest.raises(KeyError):
        with fs.transaction:
            fs.pipe_file(f"{top}/d", b"d")
            raise KeyError
    assert not fs.exists(f"{top}/d")


def test_a_fork_leaves_files_to_the_parent(local, bucket, options):
    remote, _ = fsspec.url_to_fs("wattlock::s3://bucket/forked", **options, s3=bucket.options)
    for fs, path in [(local[0], f"{local[1]}/forked"), (remote, "bucket/forked")]:
        with fs.open(path, "wb") as file:
            file.write(b"before")
            child = os.fork()
            if child == 0:
                ok = False
                try:
                    file.write(b"child")
                except RuntimeError as error:
                    ok = "before a fork" in str(error)
                file.discard()
                del file
                os._exit(0 if ok else 1)
            assert os.waitpid(child, 0)[1] == 0
            file.write(b" and after")
        assert fs.cat_file(path) == b"before and after"


def test_a_target_that_cannot_be_written_keeps_what_it_has(local, tmp_path):
    fs, top = local
    (tmp_path / "data/folder").mkdir(mode=0o755)
    with pytest.raises(IsADirectoryError):
        fs.open(f"{top}/folder", "wb")
    assert os.listdir(tmp_path / "data/folder") == []


def test_getting_a_file_replaces_the_target_at_the_end(local, tmp_path):
    fs, top = local
    fs.pipe_file(f"{top}/x", pattern(20_000_000))
    fs.get_file(f"{top}/x", f"{tmp_path}/new/folder/x")
    assert (tmp_path / "new/folder/x").read_bytes() == pattern(20_000_000)
    sealed = bytearray((tmp_path / "data/x").read_bytes())
    sealed[-5_000_000] ^= 1
    (tmp_path / "data/x").write_bytes(sealed)
    (tmp_path / "out").write_bytes(b"what was there")
    with pytest.raises(wattlock.Tampered):
        fs.get_file(f"{top}/x", f"{tmp_path}/out")
    assert (tmp_path / "out").read_bytes() == b"what was there"
    assert sorted(os.listdir(tmp_path)) == ["data", "key.txt", "new", "out"]


@pytest.mark.parametrize("cache", ["none", "bytes", "readahead", "blockcache", "all"])
def test_caches_of_fsspec(local, cache):
    fs, top = local
    fs.pipe_file(f"{top}/x", pattern(300_000))
    with fs.open(f"{top}/x", cache_type=cache) as file:
        file.seek(200_000)
        assert file.read(10) == pattern(300_000)[200_000:200_010]


def test_an_error_names_the_file(local, tmp_path):
    fs, top = local
    (tmp_path / "data/plain").write_bytes(b"not sealed")
    with pytest.raises(wattlock.WattlockError) as found:
        fs.info(f"{top}/plain")
    assert f"in {top}/plain" in found.value.__notes__


def test_what_is_written_again_is_read_again(local):
    fs, top = local
    for content in [pattern(100_000), pattern(100_000, step=3), b"short"]:
        fs.pipe_file(f"{top}/x", content)
        assert fs.cat_file(f"{top}/x") == content
    # By another program.
    other = fsspec.filesystem("wattlock", identity_file=fs.storage_options["identity_file"])
    other.pipe_file(f"{top}/x", pattern(70_000))
    assert fs.cat_file(f"{top}/x", 60_000) == pattern(70_000)[60_000:]


def test_a_file_that_changes_while_it_is_read(local):
    fs, top = local
    fs.pipe_file(f"{top}/x", pattern(500_000))
    with fs.open(f"{top}/x", block_size=1000) as file:
        assert file.read(10) == pattern(10)
        fs.pipe_file(f"{top}/x", pattern(500_000, step=3))
        file.seek(200_000)
        with pytest.raises(OSError, match="changed meanwhile"):
            file.read(10)


def test_damage_and_wrong_keys(local, tmp_path, identity):
    fs, top = local
    sealed = bytearray(wattlock.seal(pattern(100_000), identity.recipient))
    start = len(sealed) - 100_000 - 7 * 16
    (tmp_path / "data/cut").write_bytes(sealed[: start + 3 * 16400 + 500])
    with pytest.raises(wattlock.WattlockError):
        fs.open(f"{top}/cut")
    sealed[start + 16400] ^= 1
    (tmp_path / "data/damaged").write_bytes(sealed)
    assert fs.cat_file(f"{top}/damaged", 0, 16384) == pattern(16384)
    with pytest.raises(wattlock.Tampered):
        fs.cat_file(f"{top}/damaged")
    found = fs.cat_ranges([f"{top}/damaged"] * 2, [0, 20_000], [5, 20_005])
    assert found[0] == pattern(5) and isinstance(found[1], wattlock.Tampered)
    other = fsspec.filesystem("wattlock", identities=wattlock.keygen())
    with pytest.raises(wattlock.WrongKey):
        other.cat_file(f"{top}/damaged")


def test_long_headers(tmp_path):
    identities = [wattlock.keygen() for _ in range(300)]
    fs = fsspec.filesystem("wattlock", identities=identities)
    fs.pipe_file(f"{tmp_path}/x", pattern(50_000))
    last = fsspec.filesystem("wattlock", identities=identities[-1].secret())
    assert last.cat_file(f"{tmp_path}/x", 40_000) == pattern(50_000)[40_000:]


def test_another_process_gets_it_by_its_key_file(local, identity, tmp_path):
    fs, top = local
    fs.pipe_file(f"{top}/x", b"content")
    assert pickle.loads(pickle.dumps(fs)).cat_file(f"{top}/x") == b"content"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(fsspec.filesystem("wattlock", identities=identity))


def test_pandas_reads_a_column_out_of_a_bucket(bucket, options):
    """At most 1.1 times the bytes of the same file unsealed, and 64 KiB."""
    numpy, pandas = need("numpy"), need("pandas")
    need("pyarrow")
    random = numpy.random.default_rng(1)
    table = pandas.DataFrame({name: random.random(300_000) for name in "abcdef"})
    s3 = {"s3": dict(bucket.options)}
    table.to_parquet("s3://bucket/plain.parquet", storage_options=bucket.options)
    url = "wattlock::s3://bucket/sealed.parquet"
    table.to_parquet(url, storage_options={**options, **s3})

    def reading(url, storage_options):
        bucket.requests()
        column = pandas.read_parquet(url, columns=["c"], storage_options=storage_options)
        assert (column["c"] == table["c"]).all() and list(column) == ["c"]
        seen = bucket.requests()
        return sum(sent for _, sent in seen), seen

    plain, _ = reading("s3://bucket/plain.parquet", bucket.options)
    sealed, seen = reading(url, {**options, **s3})
    assert sealed <= 1.1 * plain + 65536, (plain, sealed, seen)
    # What it is for: a column is a sixth of the file.
    assert sealed < 300_000 * 8 * 2
    assert sum(method == "GET" for method, _ in seen) <= 12, seen


def test_a_range_of_a_bucket_takes_few_requests(bucket, options):
    fs, path = fsspec.url_to_fs("wattlock::s3://bucket/big", **options, s3=bucket.options)
    fs.pipe_file(path, pattern(20_000_000))
    fs.info(path)
    bucket.requests()
    assert fs.cat_file(path, 10_000_000, 10_100_000) == pattern(20_000_000)[10_000_000:10_100_000]
    seen = bucket.requests()
    assert len(seen) <= 2 and sum(sent for _, sent in seen) <= 140_000, seen


def test_an_upload_that_fails_leaves_no_object(bucket, options):
    fs, path = fsspec.url_to_fs("wattlock::s3://bucket/half", **options, s3=bucket.options)
    with pytest.raises(KeyError):
        with fs.open(path, "wb") as file:
            file.write(pattern(30_000_000))
            raise KeyError
    fs.invalidate_cache()
    assert not fs.exists(path)


def test_pyarrow_reads_a_dataset(local):
    pyarrow = need("pyarrow")
    need("pyarrow.dataset")
    import pyarrow.dataset
    import pyarrow.fs
    import pyarrow.parquet

    fs, top = local
    table = pyarrow.table({"year": [2024, 2024, 2025, 2026], "value": [1.5, 2.5, 3.5, 4.5]})
    arrow = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(fs))
    pyarrow.parquet.write_to_dataset(table, f"{top}/set", ["year"], filesystem=arrow)
    dataset = pyarrow.dataset.dataset(f"{top}/set", filesystem=arrow, partitioning="hive")
    assert dataset.to_table(filter=pyarrow.dataset.field("year") > 2024).num_rows == 2


def test_numpy(local):
    numpy = need("numpy")
    fs, top = local
    with fs.open(f"{top}/a.npy", "wb") as file:
        numpy.save(file, numpy.arange(1000))
    with fs.open(f"{top}/a.npy") as file:
        assert numpy.load(file).sum() == 499_500


def test_zarr(options, tmp_path):
    zarr, numpy = need("zarr"), need("numpy")
    fs, top = fsspec.url_to_fs(
        f"wattlock::file://{tmp_path}/data", **options, file={"auto_mkdir": True}
    )
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

    store = zarr.storage.FsspecStore(AsyncFileSystemWrapper(fs), path=f"{top}/z")
    array = zarr.create_array(store, shape=(1000, 1000), chunks=(100, 100), dtype="f8")
    array[:] = numpy.arange(1_000_000).reshape(1000, 1000)
    again = zarr.open_array(store, mode="r")
    assert (again[250:260, 990:] == array[250:260, 990:]).all()


def test_torch_and_safetensors(local, tmp_path):
    torch = need("torch")
    need("safetensors")
    import safetensors.torch

    fs, top = local
    tensors = {"weight": torch.arange(100_000).reshape(100, -1), "bias": torch.ones(7)}
    with fs.open(f"{top}/model.pt", "wb") as file:
        torch.save(tensors, file)
    with fs.open(f"{top}/model.pt") as file:
        loaded = torch.load(file)
    assert all((loaded[name] == tensors[name]).all() for name in tensors)
    fs.pipe_file(f"{top}/model.safetensors", safetensors.torch.save(tensors))
    loaded = safetensors.torch.load(fs.cat_file(f"{top}/model.safetensors"))
    assert all((loaded[name] == tensors[name]).all() for name in tensors)



def test_torch_loads_data_in_workers(local):
    torch = need("torch")
    import torch.utils.data

    fs, top = local
    for i in range(8):
        fs.pipe_file(f"{top}/{i}", pattern(3_000_000) + bytes([i]))

    class Files(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            return fs.cat_file(f"{top}/{i}")[-1]

    loaded = torch.utils.data.DataLoader(Files(), num_workers=2, multiprocessing_context="fork")
    assert [int(item) for item in loaded] == list(range(8))


def test_duckdb(local):
    duckdb = need("duckdb")
    pandas = need("pandas")
    fs, top = local
    with fs.open(f"{top}/t.parquet", "wb") as file:
        pandas.DataFrame({"a": range(1000), "b": range(1000)}).to_parquet(file)
    connection = duckdb.connect()
    connection.register_filesystem(fs)
    query = f"select sum(a) from read_parquet('wattlock://{top}/t.parquet')"
    assert connection.execute(query).fetchone() == (499_500,)
