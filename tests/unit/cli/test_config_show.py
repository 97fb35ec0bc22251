"""`config show`: where values come from, which one wins, and that no secret is shown."""

import json

import pytest

from tiering_assets.cli import main as cli
from tiering_assets.resources.settings import SECTIONS, Settings

SECRETS = ("store.access_key", "store.secret_key", "broker.token", "bookies.password")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def shown(capsys, *arguments):
    assert cli.run(["config", "show", *arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "tierkeeper/config-show/1"
    return {row["name"]: row for row in document["settings"]}


def test_flags_beat_environment_beats_file_beats_default(capsys, monkeypatch, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('[store]\nbucket = "of-file"\nregion = "of-file"\nattempts_max = 7\n')
    monkeypatch.setenv("TIERKEEPER_STORE_BUCKET", "of-environment")
    monkeypatch.setenv("TIERKEEPER_STORE_REGION", "of-environment")
    rows = shown(capsys, "--config", str(file), "--set", "store.bucket=of-flag")
    assert (rows["store.bucket"]["value"], rows["store.bucket"]["origin"]) == ("of-flag", "flag")
    assert rows["store.region"]["value"] == "of-environment"
    assert rows["store.region"]["origin"] == "environment TIERKEEPER_STORE_REGION"
    assert rows["store.attempts_max"]["value"] == "7"
    assert rows["store.attempts_max"]["origin"] == f"file {file}"
    assert rows["store.read_timeout_s"]["origin"] == "default"


def test_every_setting_is_a_row(capsys):
    rows = shown(capsys)
    plain = Settings()
    assert len(rows) == sum(len(getattr(plain, s).__dataclass_fields__) for s in SECTIONS)
    assert all(row["help"] for row in rows.values())


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--changed",), ("-vv",)])
def test_no_secret_is_ever_printed(capsys, monkeypatch, arguments):
    monkeypatch.setenv("TIERKEEPER_STORE_ACCESS_KEY", "an-access-key")
    for name in SECRETS:
        monkeypatch.setenv("TIERKEEPER_" + name.replace(".", "_").upper(), "hunter2-hunter2")
    assert cli.run(["config", "show", *arguments]) == 0
    printed = capsys.readouterr()
    assert "hunter2" not in printed.out + printed.err
    assert all(name in printed.out for name in SECRETS)
    assert printed.out.count("***") == len(SECRETS)


def test_a_wrong_value_of_a_secret_is_not_repeated(capsys):
    assert cli.run(["config", "show", "--set", "hunter2"]) == 2
    assert cli.run(["config", "show", "--set", "store.secret_key=hunter2"]) != 0
    printed = capsys.readouterr()
    assert "hunter2" not in printed.out
    assert printed.err.count("hunter2") <= 1  # the name of a setting that is none


def test_changed_leaves_the_defaults_out(capsys):
    rows = shown(capsys, "--changed", "--set", "store.bucket=b")
    assert list(rows) == ["store.bucket"]


def test_plain_columns_in_a_pipe_are_not_wrapped(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    long = "http://" + "a" * 150 + ".example:9000"
    assert cli.run(["config", "show", "--set", f"store.endpoint={long}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("store.endpoint ")] == [long]
