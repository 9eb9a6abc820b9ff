"""The joules of a block."""

import os
import threading
import time

import pytest

import wattlock


def test_a_block_is_measured(tmp_path):
    zone = tmp_path / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    (zone / "energy_uj").write_text("1000000\n")
    with wattlock.measure(root=tmp_path) as measured:
        assert measured.joules is None and measured.class_ is None
        # Some watts at most, however long it takes: more would not be believed.
        time.sleep(0.1)
        (zone / "energy_uj").write_text("1250000\n")
    assert measured.joules == pytest.approx(0.25) and measured.class_ == "measured"
    low, high = measured.interval
    assert low <= 0.25 <= high and measured.covers
    assert measured.seconds > 0 and measured.cpu_seconds >= 0
    assert "0.250 J" in repr(measured)


def test_without_a_meter_there_is_no_number(tmp_path):
    with pytest.raises(KeyError):
        with wattlock.measure(root=tmp_path) as measured:
            raise KeyError
    assert measured.joules is None and measured.interval is None
    assert measured.class_ == "unavailable" and "no joules" in repr(measured)
    low, high = measured.modelled_interval
    assert 0 <= low <= high
    with pytest.raises(ValueError):
        with measured:
            pass


def test_others_may_look_while_it_begins_and_ends(tmp_path):
    measured, end = wattlock.measure(root=tmp_path), threading.Event()

    def look():
        while not end.is_set():
            assert measured.joules is None

    looking = threading.Thread(target=look)
    looking.start()
    with measured:
        child = os.fork()
        if child == 0:
            os._exit(0 if measured.__exit__(None, None, None) is False else 1)
        assert os.waitpid(child, 0)[1] == 0
    end.set()
    looking.join()
    assert measured.class_ == "unavailable"
