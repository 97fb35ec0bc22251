"""What `make test` prints of its time."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.minutes import Spent, lines

ROOT = Path(__file__).parents[2]


def test_folders_are_summed_and_only_long_and_busy_files_are_named():
    spent = {
        "tests/stack/test_long.py": Spent(181, 6),
        "tests/stack/test_short.py": Spent(179, 12),
        "tests/unit/cli/test_busy.py": Spent(69, 66),
        "tests/unit/test_two.py": Spent(9, 6),
    }
    assert lines(spent) == [
        "   6.0    0.3 tests/stack",
        "   1.3    1.2 tests/unit",
        "   7.3    1.5 all, of every process",
        "   3.0    0.1 tests/stack/test_long.py, a file above 3",
        "   1.1    1.1 tests/unit/cli/test_busy.py, a file above 1 of CPU",
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
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "test_busy.py").write_text(
        "import time\n"
        "def test_one():\n"
        "    began = time.process_time()\n"
        "    while time.process_time() < began + 5: pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.minutes", "-n2"]
    done = subprocess.run(
        [*command, "--dist=loadfile", f"--rootdir={tmp_path}", "-c/dev/null", "room", "desk"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    said = re.findall(r"^ +(\d\.\d +\d\.\d) (room|desk)$", done.stdout, re.M)
    found = {name: took.split() for took, name in said}
    assert found.keys() == {"room", "desk"}, done.stdout
    assert found["room"] == ["0.1", "0.0"]  # 5 s; counted twice it would be 0.2
    assert found["desk"][1] == "0.1"
