"""What doctor says of the loop over entries, with the library and without it, and of the cache."""

import os
import subprocess
import sys

from tiering_assets.doctor.machine import check_cache, check_machine
from tiering_assets.ground.finding import Level
from tiering_assets.resources import kept_files
from tiering_assets.resources.kept_files import KeptFiles
from tiering_assets.resources.settings import CacheSettings

SAID = """
from tiering_assets.doctor.machine import check_machine
[found] = [one for one in check_machine() if one.check == "loop over entries"]
print(found.level.name, found.text)
"""


def test_the_library_is_told():
    [found] = [one for one in check_machine() if one.check == "loop over entries"]
    assert found.level is Level.OK
    assert found.text.startswith("native: core-")


def test_pythons_loop_is_told_with_its_reason_and_the_price():
    ended = subprocess.run(
        [sys.executable, "-c", SAID],
        env=os.environ | {"TIERKEEPER_NATIVE": "off"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.startswith("WARN Python's: TIERKEEPER_NATIVE is off")


def cache_finding(**settings):
    [found] = check_cache(CacheSettings(**settings))
    assert found.check == "index cache"
    return found


def test_the_index_cache_is_told_with_its_place_and_how_full_it_is(tmp_path):
    found = cache_finding(root=str(tmp_path / "cache"))
    assert (found.level, found.text) == (
        Level.OK,
        f"{tmp_path}/cache: 0 blocks, 0 B of 256 MiB",
    )
    assert not (tmp_path / "cache").exists()
    for name in ("aa" * 32, "bb" * 32):
        KeptFiles(tmp_path / "cache", 2**30).keep(name, bytes(5000))
    assert cache_finding(root=str(tmp_path / "cache"), bytes_max=2**30).text == (
        f"{tmp_path}/cache: 2 blocks, 16 KiB of 1 GiB"
    )
    assert cache_finding().text.startswith(f"{tmp_path}/user-cache/index-cache: 0 blocks")


def test_that_no_cache_is_wanted_is_no_problem():
    for bytes_max, said in ((0, "0 B"), (2**24 - 1, "16777215 B")):
        found = cache_finding(bytes_max=bytes_max)
        assert (found.text, found.level) == (f"none: cache.bytes_max is {said}", Level.OK)
    assert "16 MiB" in cache_finding(bytes_max=2**24).text


def test_a_cache_that_cannot_be_written_is_a_warning_with_its_price(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    found = cache_finding(root=str(tmp_path / "file" / "cache"))
    assert found.level is Level.WARN
    assert "0 blocks, 0 B of 256 MiB; it cannot be written, or its disk is full" in found.text

    def homeless():
        raise FileNotFoundError

    monkeypatch.setattr(kept_files, "user_cache", homeless)
    found = cache_finding()
    assert (found.level, "set cache.root" in found.text) == (Level.WARN, True)


def test_a_cache_that_cannot_be_looked_at_is_a_warning(tmp_path, monkeypatch):
    def refused(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refused)
    found = cache_finding(root=str(tmp_path))
    assert (found.level, found.text) == (Level.WARN, f"{tmp_path}: Permission denied")
