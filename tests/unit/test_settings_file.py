"""The one setting that a command writes: nothing else of a person's file may change."""

import stat

import pytest

from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings_file import write_switch
from tiering_assets.resources.settings_sources import load_settings

FILE = """\
# ours, do not touch
[store]
bucket = "archive"   # the brokers' bucket

[auto]  # automation
interval_s = 10
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tierkeeper.toml"
    path.write_text(FILE)
    path.chmod(0o640)
    return path


def enabled(path):
    return load_settings(environ={}, file=path).settings.auto.enabled


def test_only_the_setting_changes(file):
    assert write_switch("auto.enabled", True, environ={}, file=file) == file
    assert enabled(file)
    lines = file.read_text().splitlines()
    assert [line for line in lines if line != "enabled = true"] == FILE.splitlines()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in file.parent.iterdir()] == ["tierkeeper.toml"]
    write_switch("auto.enabled", False, environ={}, file=file)
    assert not enabled(file)


def test_a_file_that_says_so_already_is_not_written(file):
    write_switch("auto.enabled", True, environ={}, file=file)
    before = file.stat().st_mtime_ns, file.stat().st_ino
    write_switch("auto.enabled", True, environ={}, file=file)
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before


def test_a_file_is_made_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_switch("auto.enabled", True, environ={})
    assert enabled(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(file, tmp_path):
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    write_switch("auto.enabled", True, environ={}, file=link)
    assert link.is_symlink()
    assert enabled(file)


def test_what_the_environment_sets_is_not_written_over(file):
    with pytest.raises(SettingsError, match="TIERKEEPER_AUTO_ENABLED=false, which beats the file"):
        write_switch("auto.enabled", True, environ={"TIERKEEPER_AUTO_ENABLED": "false"}, file=file)
    assert file.read_text() == FILE


@pytest.mark.parametrize("text", ["[auto", "[auto]\nunknown = 1\n", "auto = 7\n", "\xff"])
def test_a_file_that_is_wrong_is_left_as_it_is(tmp_path, text):
    path = tmp_path / "tierkeeper.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(SettingsError):
        write_switch("auto.enabled", True, environ={}, file=path)
    assert path.read_bytes() == text.encode("latin-1")
