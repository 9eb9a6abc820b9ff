"""The stubs say what the module has."""

import subprocess
import sys

from conftest import need


def test_the_stubs_are_those_of_the_module():
    need("mypy")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "wattlock._wattlock", "--concise"],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
