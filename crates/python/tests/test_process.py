"""What a program does around the calls: threads, forks, signals."""

import mmap
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest
from conftest import ROOT, pattern

import wattlock


def test_threads_work_at_once(identity):
    data = pattern(4 << 20)
    failed = []

    def work():
        for _ in range(5):
            if wattlock.open(wattlock.seal(data, identity.recipient), identity) != data:
                failed.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_child_works_after_a_fork(identity):
    data = pattern(4 << 20)
    sealed = wattlock.seal(data, identity.recipient)
    child = os.fork()
    if child == 0:
        ok = False
        try:
            ok = wattlock.open(sealed, identity) == data
            ok &= wattlock.open(wattlock.seal(data, identity.recipient), identity) == data
        finally:
            os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0


def _roundtrip(task):
    secret, number = task
    identity = wattlock.Identity(secret)
    data = pattern((2 << 20) + number)
    return wattlock.open(wattlock.seal(data, identity.recipient), identity) == data


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(identity, method):
    _roundtrip((identity.secret(), 0))
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert all(pool.map(_roundtrip, [(identity.secret(), i) for i in range(6)]))


def test_a_fork_while_others_work(identity):
    """Whatever the other threads hold in that moment, the child has engines and locks of its own."""
    data = pattern(1 << 20)
    end = threading.Event()

    def work():
        while not end.is_set():
            wattlock.seal(data, identity.recipient)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                ok = False
                try:
                    ok = wattlock.open(wattlock.seal(data, identity.recipient), identity) == data
                finally:
                    os._exit(0 if ok else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        end.set()
        for thread in threads:
            thread.join()


def test_a_container_in_parts_does_not_go_on_in_a_child(identity, tmp_path):
    """Both would seal under the same nonces."""
    with wattlock.open_file(tmp_path / "x", "wb", recipients=identity.recipient) as file:
        file.write(b"before")
        child = os.fork()
        if child == 0:
            ok = False
            try:
                file.close()
            except RuntimeError as error:
                ok = "before a fork" in str(error)
            finally:
                os._exit(0 if ok else 1)
        assert os.waitpid(child, 0)[1] == 0
        file.write(b" and after")
    assert wattlock.open((tmp_path / "x").read_bytes(), identity) == b"before and after"


def _interrupt_once(begun):
    """Sends Ctrl-C to this process when `begun()` is true."""
    main = threading.get_ident()

    def send():
        while not begun():
            pass
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_ctrl_c_ends_long_work(identity):
    size = 4 << 30
    with mmap.mmap(-1, size) as data, mmap.mmap(-1, size + (16 << 20)) as room:
        sending = _interrupt_once(lambda: room[1 << 20] != 0)
        with pytest.raises(KeyboardInterrupt):
            wattlock.seal_into(data, room, identity.recipient)
        sending.join()
        assert room[size : size + 1000] == bytes(1000), "it went on to the end"


def test_ctrl_c_leaves_no_output(identity, tmp_path):
    file, out = tmp_path / "big", tmp_path / "big.wlk"
    with open(file, "wb") as sparse:
        sparse.truncate(8 << 30)
    code = (
        "import sys, wattlock\n"
        "print(flush=True)\n"
        "wattlock.protect(sys.argv[1], recipients=sys.argv[2])\n"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", code, file, str(identity.recipient)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    program.stdout.readline()
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate()
    assert b"KeyboardInterrupt" in errors
    assert os.listdir(tmp_path) == ["big"] and not out.exists()


def test_a_handler_that_does_not_raise_lets_it_go_on(identity):
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    try:
        data = bytes(256 << 20)
        timer = threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGUSR1))
        timer.start()
        sealed = wattlock.seal(data, identity.recipient)
        timer.join()
        assert wattlock.opened_size(sealed) == len(data) and seen == [1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_importing_starts_nothing():
    """No thread, no file and no child, until something is sealed."""
    code = (
        "import os, wattlock\n"
        "assert len(os.listdir('/proc/self/task')) == 1\n"
        "assert not [f for f in os.listdir('/proc/self/fd') if int(f) > 2 and "
        "os.path.exists('/proc/self/fd/' + f)]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdin=subprocess.DEVNULL)


def test_without_threads_the_work_is_done_here(identity):
    """RLIMIT_NPROC forbids them; root is exempt, so another user does it."""
    code = (
        "import os, resource, wattlock\n"
        "if os.getuid() == 0:\n"
        "    os.setgid(65534); os.setuid(65534)\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\n"
        "identity = wattlock.keygen()\n"
        "data = bytes(20 << 20)\n"
        "try:\n"
        "    wattlock.seal(data, identity.recipient)\n"
        "except RuntimeError as error:\n"
        "    assert 'thread' in str(error), error\n"
        "wattlock.set_threads(1)\n"
        "assert wattlock.open(wattlock.seal(data, identity.recipient), identity) == data\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_reader_works_without_compiled_code(identity, tmp_path):
    package = tmp_path / "wattlock"
    package.mkdir()
    for file in (ROOT / "crates/python/python/wattlock").glob("*.py"):
        (package / file.name).write_bytes(file.read_bytes())
    (tmp_path / "key.txt").write_text(identity.secret())
    (tmp_path / "x.wlk").write_bytes(wattlock.seal(b"content", identity.recipient))
    read = subprocess.run(
        [sys.executable, "-m", "wattlock.reader", "-i", "key.txt", "x.wlk"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": ""},
        capture_output=True,
    )
    assert read.stdout == b"content", read.stderr
    used = subprocess.run(
        [sys.executable, "-c", "import wattlock; wattlock.seal"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "no compiled code" in used.stderr
