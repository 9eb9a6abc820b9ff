"""Sessions, and the records that they write."""

import json
import os
import sys
import threading

import pytest
from conftest import ROOT, need, pattern

import wattlock


def test_records_open_in_any_order():
    key = wattlock.session_key()
    first, second = wattlock.Session(key), wattlock.Session(key)
    records = [session.seal(b"%d" % i, b"topic") for i in range(5) for session in (first, second)]
    assert len(set(records)) == 10 and {len(record) for record in records} == {46}
    reader = wattlock.Session(key)
    assert [reader.open(record, b"topic") for record in reversed(records)] == [
        b"%d" % i for i in reversed(range(5)) for _ in range(2)
    ]


def test_additional_data_has_one_form():
    assert wattlock.additional_data() == b""
    both = wattlock.additional_data(sequence=258, tenant="acme")
    assert both == b"\x01\x11\0\x04acme" + (258).to_bytes(8, "big")
    every = wattlock.additional_data(tenant="", topic="t", source="é", time_us=1, sequence=2)
    assert every == b"\x01\x1f\0\0\0\x01t\0\x02\xc3\xa9" + bytes([0] * 7 + [1] + [0] * 7 + [2])
    with pytest.raises(ValueError, match="too long"):
        wattlock.additional_data(topic="x" * 65536)
    with pytest.raises(OverflowError):
        wattlock.additional_data(sequence=-1)
    session = wattlock.Session(wattlock.session_key())
    record = session.seal(b"a message", both)
    assert session.open(record, both) == b"a message"
    with pytest.raises(wattlock.Tampered):
        session.open(record, wattlock.additional_data(tenant="acme", sequence=259))


def test_writers_and_counters_never_repeat():
    key = wattlock.session_key()
    heads = set()
    for _ in range(20):
        session = wattlock.Session(key)
        heads |= {session.seal(b"x")[:29] for _ in range(20)}
    assert len(heads) == 400


def test_a_forked_process_has_an_identity_of_its_own():
    session = wattlock.Session(wattlock.session_key())
    before = session.seal(b"before")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, session.seal(b"child"))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        from_child = pipe.read()
    os.waitpid(child, 0)
    after = session.seal(b"parent")
    assert session.open(from_child) == b"child"
    assert before[5:21] == after[5:21] != from_child[5:21]
    assert int.from_bytes(after[21:29], "big") == 1


def test_keys_by_epoch():
    keys = {epoch: wattlock.session_key() for epoch in (1, 2)}
    old, new = wattlock.Session(keys, epoch=1), wattlock.Session(keys, epoch=2)
    assert new.open(old.seal(b"x")) == b"x" and new.epoch == 2
    with pytest.raises(wattlock.WrongKey, match="epoch 2"):
        wattlock.Session(keys[1], epoch=1).open(new.seal(b"x"))
    for call in [lambda: wattlock.Session(keys), lambda: wattlock.Session(b"short")]:
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        wattlock.Session({"one": keys[1]})
    assert keys[1].hex() not in repr(old)


def test_the_vectors():
    cases = json.loads((ROOT / "vectors/record/records.json").read_text())["cases"]
    for case in cases:
        session = wattlock.Session(bytes.fromhex(case["session_key"]), case["epoch"])
        record, additional = (bytes.fromhex(case[name]) for name in ("record", "additional_data"))
        if case["message"] is None:
            with pytest.raises(wattlock.WattlockError):
                session.open(record, additional)
        else:
            assert session.open(record, additional).hex() == case["message"], case["name"]


def test_the_reader_in_python_opens_them():
    reader = need("wattlock.reader")
    key = wattlock.session_key()
    session = wattlock.Session(key, epoch=7)
    for length in [0, 1, 1000, 100_000]:
        record = session.seal(pattern(length), b"topic")
        assert reader.open_record(record, {7: key}, b"topic") == pattern(length)


def test_each_byte_counts():
    session = wattlock.Session(wattlock.session_key())
    record = session.seal(b"a message", b"topic")
    for at in range(len(record)):
        damaged = bytearray(record)
        damaged[at] ^= 1
        with pytest.raises(wattlock.WattlockError):
            session.open(damaged, b"topic")
    with pytest.raises(wattlock.Tampered):
        session.open(record)
    with pytest.raises(wattlock.Truncated):
        session.open(record[:40])


def test_long_messages():
    """They are sealed without the interpreter's lock, and follow the same writer."""
    key = wattlock.session_key()
    session, other = wattlock.Session(key), wattlock.Session(key)
    sizes = [0, (64 << 10) - 1, 64 << 10, 5, (3 << 20) + 1]
    records = [session.seal(pattern(size), b"bound") for size in sizes]
    assert len({record[5:21] for record in records}) == 1
    assert [int.from_bytes(record[21:29]) for record in records] == [0, 1, 2, 3, 4]
    for size, record in zip(sizes, records):
        assert other.open(record, b"bound") == pattern(size)
        with pytest.raises(wattlock.Tampered):
            other.open(record, b"another")
        with pytest.raises(wattlock.Tampered):
            other.open(record[:-1] + bytes([record[-1] ^ 1]), b"bound")


def test_other_threads_work_during_a_long_message():
    session, message = wattlock.Session(wattlock.session_key()), bytes(64 << 20)
    record = session.seal(message)
    interval = sys.getswitchinterval()
    # From now on a thread gives the lock away by itself, or not at all.
    sys.setswitchinterval(1000)
    try:
        for work in lambda: session.seal(message), lambda: session.open(record):
            assert any(_ran_during(work) for _ in range(50))
    finally:
        sys.setswitchinterval(interval)


def _ran_during(work):
    """True if this thread ran while another one worked."""
    begins, ended = threading.Event(), []

    def run():
        begins.set()
        work()
        ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    begins.wait()
    ran = not ended
    thread.join()
    return ran
