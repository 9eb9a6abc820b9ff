"""Containers in memory."""

import ctypes
import mmap
import pickle
import threading

import pytest
from conftest import need, pattern

import wattlock

LENGTHS = [0, 1, 16383, 16384, 16385, 65535, 65536, 65537, 1 << 20, (1 << 20) + 5]


@pytest.mark.parametrize("format", ["wattlock", "age"])
def test_opens_what_was_sealed(identity, format):
    for length in LENGTHS:
        data = pattern(length)
        sealed = wattlock.seal(data, identity.recipient, format=format)
        assert wattlock.open(sealed, identity) == data
        assert wattlock.opened_size(sealed) == length
        assert wattlock.sealed_size(length, [identity.recipient], format=format) == len(sealed)


@pytest.mark.parametrize("format", ["wattlock", "age"])
def test_buffers_of_ones_own(identity, format):
    for length in LENGTHS:
        data = pattern(length)
        room = bytearray(wattlock.sealed_size(length, identity.recipient, format=format) + 3)
        count = wattlock.seal_into(data, room, identity.recipient, format=format)
        assert count == len(room) - 3 and room[-3:] == bytes(3)
        plain = bytearray(length + 2)
        assert wattlock.open_into(memoryview(room)[:count], plain, identity) == length
        assert plain == data + bytes(2)


def test_all_kinds_of_buffers(identity):
    numpy = need("numpy")
    numbers = numpy.arange(1000, dtype="int64")
    data = numbers.tobytes()
    for source in [numbers, memoryview(data), bytearray(data)]:
        assert wattlock.open(wattlock.seal(source, identity.recipient), identity) == data
    room = mmap.mmap(-1, wattlock.sealed_size(len(data), identity.recipient))
    wattlock.seal_into(numbers, room, identity.recipient)
    back = numpy.zeros_like(numbers)
    wattlock.open_into(room, back, identity)
    assert (back == numbers).all()
    with pytest.raises(BufferError, match="not contiguous"):
        wattlock.seal(numbers[::2], identity.recipient)
    with pytest.raises(BufferError, match="read-only"):
        wattlock.seal_into(data, bytes(20000), identity.recipient)
    with pytest.raises(TypeError):
        wattlock.seal("text", identity.recipient)
    with pytest.raises(BufferError, match="references to objects"):
        wattlock.seal(numpy.array([None]), identity.recipient)


def test_keys_of_all_kinds(identity, tmp_path):
    other, quantum = wattlock.keygen(), wattlock.keygen(post_quantum=True)
    both = wattlock.seal(b"x", [identity.recipient, str(other.recipient)])
    for key in [identity, other, identity.secret(), [quantum, other]]:
        assert wattlock.open(both, key) == b"x"
    assert wattlock.open(wattlock.seal(b"x", quantum.recipient), quantum) == b"x"
    file = tmp_path / "key.txt"
    file.write_text(f"# two\n{identity.secret()}\n{other.secret()}\n")
    assert wattlock.Identity.from_file(file).recipients == [identity.recipient, other.recipient]
    assert wattlock.Identity(identity.secret().encode()).recipient == identity.recipient
    sealed = wattlock.seal(b"x", passphrase="correct horse")
    assert wattlock.open(sealed, passphrase="correct horse") == b"x"
    with pytest.raises(wattlock.WrongKey):
        wattlock.open(sealed, passphrase="wrong horse")
    with pytest.raises(wattlock.WrongKey):
        wattlock.open(sealed, identity)


def test_an_identity_does_not_show_its_secret(identity):
    for shown in [repr(identity), str(identity)]:
        assert "SECRET" not in shown and str(identity.recipient) in shown
    with pytest.raises(TypeError):
        pickle.dumps(identity)
    assert pickle.loads(pickle.dumps(identity.recipient)) == identity.recipient
    secret = identity.secret()
    with pytest.raises(ValueError) as refused:
        wattlock.Identity(secret[:-1])
    assert secret[20:40] not in str(refused.value)


def test_errors_say_what_is_wrong(identity):
    data = pattern(100_000)
    sealed = wattlock.seal(data, identity.recipient)
    with pytest.raises(wattlock.WrongKey):
        wattlock.open(sealed, wattlock.keygen())
    damaged = bytearray(sealed)
    damaged[-50_000] ^= 1
    with pytest.raises(wattlock.Tampered) as found:
        wattlock.open(damaged, identity)
    assert found.value.chunk == 3
    room = bytearray(b"\xff" * len(data))
    with pytest.raises(wattlock.Tampered):
        wattlock.open_into(damaged, room, identity)
    assert room == bytes(len(data)), "no plaintext without its tag"
    cut = len(sealed) - len(data) % 16384 - 16
    for end in [10, 200, cut - 16400 * 2 + 3]:
        with pytest.raises(wattlock.Truncated):
            wattlock.open(sealed[:end], identity)
    # At the border of a chunk, the end is missing all the same.
    with pytest.raises(wattlock.WattlockError):
        wattlock.open(sealed[:cut], identity)
    for nothing in [b"", b"no container", bytes(100)]:
        with pytest.raises(wattlock.WattlockError):
            wattlock.open(nothing, identity)
    assert issubclass(wattlock.WrongKey, wattlock.WattlockError)


def test_each_byte_counts(identity):
    sealed = wattlock.seal(b"short", identity.recipient)
    for at in range(len(sealed)):
        damaged = bytearray(sealed)
        damaged[at] ^= 1
        with pytest.raises(wattlock.WattlockError):
            wattlock.open(damaged, identity)


def test_wrong_calls(identity):
    sealed = wattlock.seal(b"x", identity.recipient)
    for call in [
        lambda: wattlock.seal(b"x"),
        lambda: wattlock.seal(b"x", []),
        lambda: wattlock.seal(b"x", "age1nonsense"),
        lambda: wattlock.seal(b"x", identity.recipient, passphrase="y"),
        lambda: wattlock.seal(b"x", passphrase=""),
        lambda: wattlock.seal(b"x", identity.recipient, format="zip"),
        lambda: wattlock.seal_into(b"x", bytearray(10), identity.recipient),
        lambda: wattlock.open(sealed),
        lambda: wattlock.open_into(sealed, bytearray(0), identity),
    ]:
        with pytest.raises(ValueError):
            call()
    for call in [
        lambda: wattlock.seal(b"x", identity),
        lambda: wattlock.seal(b"x", [identity.recipient, 5]),
        lambda: wattlock.open(sealed, identity.recipient),
    ]:
        with pytest.raises(TypeError, match="is a (Recipient|Identity), its text, or a list"):
            call()
    same = bytearray(1000)
    with pytest.raises(ValueError, match="same memory"):
        wattlock.seal_into(memoryview(same)[:10], memoryview(same)[5:], identity.recipient)
    same[: len(sealed)] = sealed
    with pytest.raises(ValueError, match="same memory"):
        wattlock.open_into(memoryview(same)[: len(sealed)], same, identity)


def test_armored_containers_open(identity):
    reader = need("wattlock.reader")
    assert reader
    import base64

    text = base64.b64encode(wattlock.seal(pattern(5000), identity.recipient, format="age")).decode()
    lines = [text[i : i + 64] for i in range(0, len(text), 64)]
    armored = "\n".join(
        ["-----BEGIN AGE ENCRYPTED FILE-----", *lines, "-----END AGE ENCRYPTED FILE-----", ""]
    )
    assert wattlock.open(armored.encode(), identity) == pattern(5000)


def test_memory_that_changes_meanwhile_gives_garbage_or_an_error(identity):
    data = bytearray(pattern(8 << 20))
    room = bytearray(wattlock.sealed_size(len(data), identity.recipient))
    back = bytearray(len(data))
    end = threading.Event()

    def change():
        while not end.is_set():
            for buffer in (data, room):
                buffer[len(buffer) // 3 : len(buffer) // 3 + 5000] = bytes(5000)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(20):
            wattlock.seal_into(data, room, identity.recipient)
            try:
                wattlock.open_into(room, back, identity)
            except wattlock.WattlockError:
                assert back == bytes(len(back))
    finally:
        end.set()
        changing.join()


def test_the_length_of_a_buffer_cannot_change_meanwhile(identity):
    """A bytearray that is exported refuses to grow; ours are released with the call."""
    data = bytearray(100)
    wattlock.seal(data, identity.recipient)
    data.extend(b"more")


def test_threads(identity):
    wattlock.set_threads(1)
    try:
        assert wattlock.threads() == 1
        data = pattern(3 << 20)
        assert wattlock.open(wattlock.seal(data, identity.recipient), identity) == data
    finally:
        wattlock.set_threads(None)
    with pytest.raises(ValueError):
        wattlock.set_threads(100_000)


def test_buffers_of_any_shape(identity, tmp_path):
    numpy = need("numpy")

    class Pair(ctypes.Structure):
        _fields_ = [("Oops", ctypes.c_int), ("right", ctypes.c_double)]

    def file(data):
        with wattlock.open_file(tmp_path / "x", "wb", recipients=identity.recipient, overwrite=True) as out:
            out.write(data)
        return wattlock.open((tmp_path / "x").read_bytes(), identity)

    for data in [
        numpy.array(5.0),
        numpy.eye(3),
        numpy.empty((0, 3)),
        numpy.zeros(3, dtype=[("Ob", "i4"), ("x", "f8")]),
        ctypes.c_int(5),
        (ctypes.c_int * 4)(1, 2, 3, 4),
        (ctypes.c_int * 0)(),
        (ctypes.c_char * 3)(b"a", b"b", b"c"),
        Pair(1, 2.0),
    ]:
        plain = bytes(memoryview(data))
        assert wattlock.open(wattlock.seal(data, identity.recipient), identity) == plain
        assert file(data) == plain
    room = (ctypes.c_int * 2)()
    assert wattlock.open_into(wattlock.seal(b"12345678", identity.recipient), room, identity) == 8
    assert bytes(room) == b"12345678"
    for wrong in [numpy.array([object()]), numpy.arange(10)[::2], (ctypes.py_object * 1)(5)]:
        with pytest.raises((BufferError, TypeError)):
            wattlock.seal(wrong, identity.recipient)
        with pytest.raises((BufferError, TypeError)):
            file(wrong)
    with pytest.raises(BufferError):
        wattlock.seal_into(b"x", memoryview(numpy.array(b"x")).toreadonly(), identity.recipient)
