"""Tasks on a local Ray cluster of two nodes, one of which is killed."""

import hashlib
import os
import threading

import pytest
from conftest import need, pattern

import wattlock


@pytest.fixture(scope="module")
def cluster():
    need("ray")
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.wait_for_nodes()
    yield cluster, nodes
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def files(tmp_path):
    made = []
    for number in range(24):
        file = tmp_path / f"in/{number}.bin"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(pattern(200_000 + number))
        made.append(file)
    (tmp_path / "safe").mkdir()
    (tmp_path / "back").mkdir()
    return made


def test_ranges_of_one_object(cluster, identity, tmp_path):
    import wattlock.ray

    key, data = tmp_path / "key.txt", pattern(10_000_019)
    key.write_text(identity.secret())
    (tmp_path / "big").write_bytes(wattlock.seal(data, identity.recipient))
    url = f"wattlock::file://{tmp_path}/big"
    parts = wattlock.ray.map_ranges(
        lambda part: (len(part), hashlib.sha256(part).hexdigest()),
        url,
        identity_file=key,
        range_size=3_000_000,
    )
    wanted = [data[at : at + 3_000_000] for at in range(0, len(data), 3_000_000)]
    assert parts == [(len(part), hashlib.sha256(part).hexdigest()) for part in wanted]


def test_files_while_a_node_is_killed(cluster, identity, files, tmp_path, monkeypatch):
    import wattlock.ray

    # Many tasks, so that there are some when the node dies.
    monkeypatch.setattr(wattlock.ray, "BATCH_FILES", 1)
    cluster, nodes = cluster
    safe = tmp_path / "safe"
    existing = safe / "23.bin.wlk"
    existing.write_bytes(b"what was there")

    def kill():
        while len(os.listdir(safe)) < 4:
            pass
        cluster.remove_node(nodes.pop(), allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    summary = wattlock.ray.protect(files, recipients=identity.recipient, out_dir=safe)
    killer.join()
    assert [one.path for one in summary.failed] == [str(files[23])]
    assert existing.read_bytes() == b"what was there"
    assert sorted(summary.done) == sorted(str(safe / f"{file.name}.wlk") for file in files[:23])
    assert sorted(os.listdir(safe)) == sorted(f"{file.name}.wlk" for file in files)
    assert summary.in_bytes == sum(file.stat().st_size for file in files[:23])
    assert sum(summary.nodes.values()) == 23

    key = tmp_path / "key.txt"
    key.write_text(identity.secret())
    back = wattlock.ray.unprotect(summary.done, identity_file=key, out_dir=tmp_path / "back")
    assert not back.failed and len(back.done) == 23
    for file in files[:23]:
        assert (tmp_path / "back" / file.name).read_bytes() == file.read_bytes()


def test_files_that_cannot_be_done(cluster, identity, files, tmp_path):
    import wattlock.ray

    summary = wattlock.ray.protect(
        [tmp_path / "none", files[0]], recipients=str(identity.recipient), out_dir=tmp_path / "safe"
    )
    [failed] = summary.failed
    assert failed.path == str(tmp_path / "none") and "FileNotFoundError" in failed.error
    assert len(summary.done) == 1
    with pytest.raises(ValueError, match="two files"):
        wattlock.ray.protect(
            [files[0], tmp_path / "0.bin"], recipients=str(identity.recipient), out_dir=tmp_path
        )
