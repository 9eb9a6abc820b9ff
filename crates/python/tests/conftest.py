"""What the tests share. A library that is missing is a skip, which REQUIRE turns into a failure."""

import importlib
import os
from pathlib import Path

import pytest

import wattlock

ROOT = Path(__file__).resolve().parents[3]


def pytest_report_header():
    return f"wattlock from {wattlock.__file__}"


def need(name):
    """The module of that name; skips the test if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        skip(name, f"the Python package {name} is not installed")


def skip(what, why):
    """Skips the test; fails it where REQUIRE has python-WHAT."""
    required = os.environ.get("REQUIRE", "").split()
    if f"python-{what}" in required or "all" in required:
        pytest.fail(f"{why}, and REQUIRE lists it")
    if record := os.environ.get("WATTLOCK_SKIPS"):
        name = os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]
        with open(record, "a") as skips:
            skips.write(f"python-{what}\t{name}\t{why}\n")
    pytest.skip(why)


@pytest.fixture
def identity():
    return wattlock.keygen()


def pattern(length, step=7):
    """Bytes without a short period."""
    block = bytes((i * step + i // 251) % 256 for i in range(65536 - 17))
    return (block * (length // len(block) + 1))[:length]
