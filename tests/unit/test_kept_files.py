"""Small files that processes share: whole or not there, within their bytes, and never an error."""

import logging
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path

import pytest

from tiering_assets.resources import kept_files as module
from tiering_assets.resources.kept_files import FILE_BYTES_MAX, SHELVES, Held, KeptFiles, kept_files
from tiering_assets.resources.user_cache import UNFINISHED, replace_file, user_cache

MIB = 1024 * 1024
PAGE = 4096
USER_CACHE = user_cache


def name_of(number, shelf=""):
    digest = sha256(b"%d" % number).hexdigest()
    return shelf + digest[len(shelf) :]


@pytest.fixture
def files(tmp_path):
    return KeptFiles(tmp_path / "cache", 16 * MIB)


def everything_below(folder):
    return sorted(one for one in folder.rglob("*") if one.is_file())


def test_what_was_kept_is_read_until_it_is_dropped(files):
    name = name_of(1)
    assert files.read(name) is None
    assert not files.has(name)
    assert files.keep(name, b"one")
    assert files.keep(name_of(2), b"two")
    assert (files.read(name), files.has(name)) == (b"one", True)
    assert files.keep(name, b"another")
    assert files.read(name) == b"another"
    files.drop(name)
    files.drop(name)
    assert (files.read(name), files.read(name_of(2))) == (None, b"two")
    assert files.held() == Held(files=1, bytes=PAGE)


def test_folders_and_files_are_their_owners_alone(files, tmp_path):
    before = os.umask(0)
    try:
        files.keep(name_of(1), b"one")
    finally:
        os.umask(before)
    assert {one.stat().st_mode & 0o777 for one in everything_below(tmp_path)} == {0o600}
    folders = [one for one in tmp_path.rglob("*") if one.is_dir()]
    assert len(folders) == 2
    assert {one.stat().st_mode & 0o777 for one in folders} == {0o700}


def test_what_another_user_put_there_is_not_read(files, monkeypatch):
    files.keep(name_of(1), b"one")
    us = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: us + 1)
    assert files.read(name_of(1)) is None
    monkeypatch.setattr(os, "geteuid", lambda: us)
    assert files.read(name_of(1)) == b"one"


def used_at(files, name, seconds):
    os.utime(files._path(name), (seconds, seconds))


def test_a_shelf_keeps_its_share_and_what_was_used_longest_ago_goes_first(tmp_path):
    files = KeptFiles(tmp_path, 8 * PAGE * SHELVES)
    names = [name_of(number, "aa") for number in range(8)]
    for age, name in enumerate(names):
        assert files.keep(name, b"x" * 100)
        used_at(files, name, 1000 + age)
    assert files.read(names[0]) is not None  # used just now
    assert files.keep(name_of(8, "aa"), b"x" * (PAGE + 1))  # takes two pages
    assert [files.has(name) for name in names] == [True, False, False, *[True] * 5]
    assert files.keep(name_of(1, "bb"), b"x")  # of another shelf
    assert files.held() == Held(files=8, bytes=9 * PAGE)


def test_the_bound_is_kept_whatever_is_written(tmp_path):
    files, source = KeptFiles(tmp_path, 4 * PAGE * SHELVES), random.Random(5)
    for number in range(300):
        files.keep(
            name_of(number, source.choice(("00", "7f", "ff"))), bytes(source.randrange(9000))
        )
        for shelf in tmp_path.iterdir():
            used = sum(-(-one.stat().st_size // PAGE) * PAGE for one in shelf.iterdir())
            assert used <= 4 * PAGE
    assert files.held().bytes <= 12 * PAGE


def test_nothing_but_its_own_files_is_read_counted_or_deleted(tmp_path):
    files = KeptFiles(tmp_path, PAGE * SHELVES)
    files.keep(name_of(1, "aa"), b"x")
    shelf = tmp_path / "aa"
    others = [shelf / "notes.txt", shelf / ("b" * 62), tmp_path / "zz" / ("c" * 62 + ".kept")]
    for other in others:
        other.parent.mkdir(exist_ok=True)
        other.write_bytes(b"y" * 5 * PAGE)
        os.utime(other, (1, 1))
    (shelf / ("d" * 62 + ".kept")).mkdir()
    files.keep(name_of(2, "aa"), b"x")
    assert files.held() == Held(files=1, bytes=PAGE)
    assert all(one.exists() for one in others)
    assert files.read("aa" + "d" * 62) is None  # a folder is no file


def test_what_is_larger_than_any_file_of_ours_is_not_read_to_its_end(tmp_path):
    files = KeptFiles(tmp_path, 1024 * MIB)
    files.keep(name_of(1), bytes(FILE_BYTES_MAX + 100))
    assert files.read(name_of(1)) == bytes(FILE_BYTES_MAX + 1)


def test_the_folder_may_go_at_any_moment(files):
    assert files.keep(name_of(1), b"one")
    shutil.rmtree(files.root)
    assert (files.read(name_of(1)), files.held()) == (None, Held(0, 0))
    files.drop(name_of(1))
    assert files.keep(name_of(1), b"again")
    assert files.read(name_of(1)) == b"again"


def test_a_folder_that_goes_while_a_file_is_written_is_no_error(files, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)

    def gone(path, data):
        shutil.rmtree(files.root, ignore_errors=True)
        return replace_file(path, data) if not data else os.stat(path)

    monkeypatch.setattr(module, "replace_file", gone)
    assert files.keep(name_of(1), b"one") is False
    assert caplog.messages == []


@pytest.fixture
def no_folder(tmp_path):
    """Where no folder can be: below a file, for whoever runs the tests."""
    (tmp_path / "file").write_bytes(b"")
    return KeptFiles(tmp_path / "file" / "cache", 16 * MIB)


def test_a_disk_that_does_not_serve_is_told_once(no_folder, caplog):
    caplog.set_level(logging.INFO, logger=module.__name__)
    for _ in range(3):
        assert no_folder.keep(name_of(1), b"one") is False
        assert no_folder.read(name_of(1)) is None
        no_folder.drop(name_of(1))
    assert (no_folder.can_keep(name_of(1)), no_folder.has(name_of(1))) == (False, False)
    assert no_folder.held() == Held(0, 0)
    [told] = caplog.messages
    assert str(no_folder.root) in told


def test_whether_it_would_be_written_is_known_before(files, monkeypatch):
    assert files.can_keep(name_of(1))
    files.keep(name_of(1), b"one")
    assert files.can_keep(name_of(1))
    monkeypatch.setattr(module, "_FREE_MIN", 2**62)  # as if the disk were full
    assert not files.can_keep(name_of(1))


FULL = """
import resource, signal, sys
from pathlib import Path
from tiering_assets.resources.kept_files import KeptFiles
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
files = KeptFiles(Path(sys.argv[1]), 1 << 24)
print([files.keep("ab" * 32, b"one") for _ in range(2)])
"""


def run_python(code, *words):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False
    )


def test_a_write_that_the_disk_refuses_leaves_nothing(tmp_path):
    ended = run_python(FULL, tmp_path / "cache")
    assert (ended.returncode, ended.stdout) == (0, "[False, False]\n"), ended.stderr
    assert everything_below(tmp_path) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from tiering_assets.resources.kept_files import KeptFiles
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
KeptFiles(Path(sys.argv[1]), 1 << 24).keep("ab" * 32, b"killed")
"""


def test_a_process_that_is_killed_while_it_writes_leaves_nothing_that_is_read(files):
    assert run_python(KILLED, files.root).returncode == -signal.SIGKILL
    [left] = everything_below(files.root)
    assert left.name.startswith(UNFINISHED)
    assert (files.read("ab" * 32), files.held()) == (None, Held(0, 0))
    assert files.keep("ab" * 32, b"one")
    assert left.exists()  # somebody may be writing it
    os.utime(left, (time.time() - 7200,) * 2)
    assert files.keep(name_of(3, "ab"), b"two")
    assert not left.exists()
    assert files.held() == Held(2, 2 * PAGE)


def payload_of(name, size):
    """Bytes of which each part tells whose they are."""
    return (name.encode() * (size // len(name) + 1))[:size]


def use(root, seed, until):
    """What one process does; prints nothing, and fails by its exit code."""
    files, source = KeptFiles(Path(root), PAGE * 4 * SHELVES), random.Random(seed)
    names = [name_of(number, "aa") for number in range(12)]
    kept = read = 0
    while time.monotonic() < until or not (kept and read):
        name = source.choice(names)
        act = source.randrange(10)
        if act < 4:
            kept += files.keep(name, payload_of(name, source.randrange(1, 9000)))
        elif act < 9:
            found = files.read(name)
            read += found is not None
            if found is not None and found != payload_of(name, len(found)):
                sys.exit(3)
        else:
            files.drop(name)
    sys.exit(0)


def test_many_processes_use_it_at_once_while_it_is_deleted(tmp_path):
    root, spawn = tmp_path / "cache", multiprocessing.get_context("spawn")
    until = time.monotonic() + 3
    processes = [spawn.Process(target=use, args=(root, seed, until)) for seed in range(3)]
    for one in processes:
        one.start()
    done = threading.Event()

    def delete():
        while not done.wait(0.05):
            shutil.rmtree(root, ignore_errors=True)

    deleting = threading.Thread(target=delete)
    deleting.start()
    for one in processes:
        one.join(60)
    done.set()
    deleting.join(10)
    assert [one.exitcode for one in processes] == [0, 0, 0]


def test_the_bound_holds_behind_many_processes(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    until = time.monotonic() + 1
    processes = [spawn.Process(target=use, args=(tmp_path, seed, until)) for seed in range(3)]
    for one in processes:
        one.start()
    for one in processes:
        one.join(60)
    assert [one.exitcode for one in processes] == [0, 0, 0]
    assert 0 < KeptFiles(tmp_path, MIB).held().bytes <= 4 * PAGE
    assert [one for one in everything_below(tmp_path) if one.name.startswith(UNFINISHED)] == []


def root_of(root, bytes_max=16 * MIB):
    found = kept_files(root, bytes_max)
    return None if found is None else found.root


def test_where_it_lies_by_default_and_that_none_may_be_wanted(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "user_cache", USER_CACHE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert root_of("") == tmp_path / "tierkeeper" / "index-cache"
    assert root_of("/somewhere") == Path("/somewhere")
    assert [root_of("/somewhere", few) for few in (0, 16 * MIB - 1)] == [None, None]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert root_of("") == tmp_path / "home" / ".cache/tierkeeper/index-cache"


def test_nobodys_home_is_no_error(monkeypatch):
    monkeypatch.setattr(module, "user_cache", USER_CACHE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless(_path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    assert root_of("") is None
    with pytest.raises(FileNotFoundError, match="XDG_CACHE_HOME is not set"):
        user_cache()
