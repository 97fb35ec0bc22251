"""Servers of `make test` end behind the last test that asks for them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.last_use import places_of

ROOT = Path(__file__).parents[2]
SERVERS = """
import pytest

def said(text):
    with open("said", "a") as file:
        file.write(text + " ")

@pytest.fixture(scope="session")
def server():
    said("start")
    yield
    said("end")

@pytest.fixture(scope="session")
def client(server):
    said("connect")
    yield
    said("close")
"""
TESTS = {
    "test_a.py": "def test_a(client): said('a')",
    "test_b.py": "def test_b(): said('b')",
    "test_c.py": "def test_c(server): said('c')",
    "test_d.py": "def test_d(): said('d')\ndef test_e(): said('e')",
}


def told(folder, *files):
    (folder / "conftest.py").write_text(SERVERS)
    for name, text in TESTS.items():
        (folder / name).write_text(f"from conftest import said\n{text}\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.last_use", *files],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "said").read_text().split()


def test_each_ends_behind_its_last_test_and_what_uses_it_before_it(tmp_path):
    expected = ["start", "connect", "a", "close", "b", "c", "end", "d", "e"]
    assert told(tmp_path) == expected


def test_what_is_asked_for_later_in_another_order_starts_again(tmp_path):
    expected = ["d", "e", "start", "c", "b", "connect", "a", "close", "end"]
    assert told(tmp_path, "test_d.py", "test_c.py", "test_b.py", "test_a.py") == expected


def test_files_that_go_to_one_process_together_have_the_place_of_the_first():
    found = ["fault/test_broker_leftovers.py", "stack/test_cli.py", "stack/test_tour.py", "x.py"]
    assert [*places_of(found).values()] == [0, 1, 0, 2]
