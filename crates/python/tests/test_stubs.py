"""The stubs say what the module has."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import ROOT, need

import wattlock


def test_the_stubs_are_those_of_the_module():
    need("mypy")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "wattlock._wattlock", "--concise"],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_type_checker_knows_what_programs_use(tmp_path):
    need("mypy")
    readme = (ROOT / "crates/python/README.md").read_text()
    program = readme.split("```python\n")[1].split("```")[0]
    program += """
from wattlock.fs import WattlockFileSystem

with wattlock.open_file("x", "wb", recipients=identity.recipient) as file:
    reveal_type(file.write(b"x"))
with wattlock.open_file("x", "w", recipients=identity.recipient) as text:
    reveal_type(text.publish())
with wattlock.open_file("x", "r", identities=identity) as lines:
    reveal_type(lines.readlines())
fs = WattlockFileSystem(identities=identity)
reveal_type(fs.cat_file("x", 0, 5))
reveal_type(fs.size("x"))
file.write("text")
WattlockFileSystem(identities=5)
fs.cat_file("x", "0")
"""
    (tmp_path / "program.py").write_text(program)
    place = Path(wattlock.__file__).parents[1]
    environment = {**os.environ, "MYPYPATH": str(place)}
    if place.name == "site-packages":
        del environment["MYPYPATH"]
    options = ["--strict", "--follow-imports=silent", "--no-error-summary", "--no-incremental"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "program.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    said = [line.split(": ", 1)[1] for line in checked.stdout.splitlines()]
    kinds = [line.split("[")[-1].rstrip("]") for line in said if line.startswith("error")]
    types = [line.split('"')[1].replace("builtins.", "") for line in said if "Revealed" in line]
    assert kinds == ["arg-type"] * 3, checked.stdout
    assert types == ["int", "None", "list[str]", "bytes", "int | None"], checked.stdout
    assert "open" in wattlock.__all__
