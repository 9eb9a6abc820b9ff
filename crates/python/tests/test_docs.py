"""The lines of Python in the handbook's chapter, one block after the other."""

import os

from conftest import ROOT, need


def test_the_chapter_of_the_handbook(tmp_path):
    need("pandas")
    need("pyarrow")
    text = (ROOT / "docs/python.md").read_text()
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert len(blocks) == 5
    before, names = os.getcwd(), {}
    os.chdir(tmp_path)
    try:
        for block in blocks:
            exec(compile(block, "docs/python.md", "exec"), names)
    finally:
        os.chdir(before)
