"""`config check`: all problems at once, without any server."""

import json

import pytest

from tiering_assets.cli import main as cli
from tiering_assets.resources.errors import SettingsError

WRONG = """
[store]
bukket = "b"
attempts_max = "5s"
[broker]
timeout_s = "2h"
[scrubb]
bytes_max = 1
"""
PROBLEMS = [
    "unknown variable TIERKEEPER_STORE_REGIN (environment); did you mean TIERKEEPER_STORE_REGION?",
    "store.attempts_max (file own.toml): '5s': expected a whole number without a unit, such as 100",
    "unknown setting store.bukket (file own.toml); did you mean store.bucket?",
    "broker.timeout_s (file own.toml): '2h': must be at most 1 h: a timeout; a longer wait is of no use",
    "offload.block_bytes (flag): '1 MiB': must be at least 5 MiB: S3 refuses smaller parts, and the "
    "format has 31 bits for a length",
    "unknown section [scrubb] (file own.toml); did you mean scrub?",
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def wrong(tmp_path, monkeypatch):
    (tmp_path / "own.toml").write_text(WRONG)
    monkeypatch.setenv("TIERKEEPER_STORE_REGIN", "x")
    return ["--config", "own.toml", "--set", "offload.block_bytes=1 MiB"]


def test_every_problem_is_a_line(capsys, wrong):
    assert cli.run(["config", "check", *wrong]) == SettingsError.exit_code
    printed = capsys.readouterr()
    assert sorted(printed.out.splitlines()) == sorted(PROBLEMS)
    assert printed.err == ""


def test_as_a_document(capsys, wrong):
    assert cli.run(["config", "check", *wrong, "--json"]) == SettingsError.exit_code
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["sound"]) == ("tierkeeper/config-check/1", False)
    assert (found["set"], found["from"]) == (None, [])
    assert sorted(found["problems"]) == sorted(PROBLEMS)


def test_another_command_tells_the_first_and_where_the_rest_is(capsys, wrong):
    assert cli.run(["config", "show", *wrong]) == SettingsError.exit_code
    [line] = capsys.readouterr().err.splitlines()
    assert PROBLEMS[0] in line
    assert line.endswith("(6 problems: see `tierkeeper config check`)")


def test_sound_settings_are_counted_with_their_sources(capsys, monkeypatch, tmp_path):
    (tmp_path / "tierkeeper.toml").write_text("[broker]\ntimeout_s = '10s'\n")
    (tmp_path / "token").write_text("hunter2\n")
    monkeypatch.setenv("TIERKEEPER_STORE_BUCKET", "b")
    monkeypatch.setenv("TIERKEEPER_STORE_REGION", "r")
    monkeypatch.setenv("TIERKEEPER_BROKER_TOKEN_FILE", "token")
    words = ["config", "check", "--set", "store.bucket=c"]
    assert cli.run(words) == 0
    assert capsys.readouterr().out == (
        "settings are sound: 4 set, from environment, file tierkeeper.toml, "
        "file token (TIERKEEPER_BROKER_TOKEN_FILE), flag\n"
    )
    assert cli.run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["sound"], found["set"], found["problems"]) == (True, 4, [])
    assert "flag" in found["from"]


def test_nothing_set_is_sound(capsys):
    assert cli.run(["config", "check"]) == 0
    assert capsys.readouterr().out == "settings are sound: 0 set, all is at its default\n"
