"""What `make test` prints of its time."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.minutes import lines

ROOT = Path(__file__).parents[2]


def test_folders_are_summed_and_only_long_files_are_named():
    seconds = {
        "tests/stack/test_long.py": 181.0,
        "tests/stack/test_short.py": 179.0,
        "tests/unit/cli/test_one.py": 3.0,
        "tests/unit/test_two.py": 9.0,
    }
    assert lines(seconds) == [
        "   6.0 tests/stack",
        "   0.2 tests/unit",
        "   6.2 all, of every process",
        "   3.0 tests/stack/test_long.py, a file above 3",
    ]


def test_set_up_counts_once_when_two_processes_run_it(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "test_it.py").write_text(
        "import time, pytest\n"
        "@pytest.fixture(scope='module')\n"
        "def server():\n"
        "    time.sleep(5)\n"
        "def test_one(server): pass\n"
        "def test_two(server): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.minutes", "-n2"]
    done = subprocess.run(
        [*command, "--dist=loadfile", f"--rootdir={tmp_path}", "-c/dev/null", "room"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    said = re.search(r"^ +(\d\.\d) room$", done.stdout, re.M)
    assert said is not None, done.stdout
    assert said[1] == "0.1"  # 5 s; counted twice it would be 0.2
