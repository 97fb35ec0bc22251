"""Commands about Dagster's instance without one: said at once, before any server is asked."""

import json
from datetime import timedelta

import pytest

from tiering_assets.automation.standing import OFF
from tiering_assets.cli.automation.dagster_cmd import _age
from tiering_assets.cli.doctor_cmd import look_at_automation
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session
from tiering_assets.resources.errors import SettingsError

REFUSED = 11


@pytest.mark.parametrize(
    ("home", "said"),
    [
        (None, "DAGSTER_HOME is not set"),
        ("", "DAGSTER_HOME is not set"),
        ("relative/home", "DAGSTER_HOME=relative/home is not an absolute path"),
        ("/nowhere/at/all", "DAGSTER_HOME=/nowhere/at/all is no folder: make it again"),
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        ("dagster", "rebuild"),
        ("dagster", "prune", "--older-than", "30d", "--plan"),
        ("auto", "on", "--execute"),
        ("auto", "status"),
    ],
)
def test_without_a_home_nothing_is_done(monkeypatch, capsys, tmp_path, home, said, words):
    monkeypatch.chdir(tmp_path)
    if home is None:
        monkeypatch.delenv("DAGSTER_HOME", raising=False)
    else:
        monkeypatch.setenv("DAGSTER_HOME", home)
    assert run([*words]) == REFUSED
    assert said in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("home", [None, "/nowhere/at/all"])
def test_without_a_home_automation_is_off_all_the_same_and_its_switches_are_told(
    monkeypatch, capsys, tmp_path, home
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("DAGSTER_HOME", home)
    assert run(["auto", "off"]) == 0
    printed = capsys.readouterr()
    assert "enabled = false" in (tmp_path / "tierkeeper.toml").read_text()
    assert printed.out == "automation is off from the next tick on\n"
    assert "switches of Dagster's UI stay as they are: DAGSTER_HOME" in printed.err


def test_with_a_home_the_switches_of_its_ui_follow(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert run(["auto", "off", "--json"]) == 0
    switched = json.loads(capsys.readouterr().out)["switched"]
    assert {"offload_threshold", "release_due", "run_failure"} <= {*switched}
    assert run(["auto", "status"]) == 0
    assert capsys.readouterr().out.startswith("wanted: off")
    assert run(["auto", "on", "--execute"]) == 1  # no daemon
    printed = capsys.readouterr()
    assert f"switched on: {', '.join(switched)}" in printed.err
    assert "no daemon has ever run" in printed.out


def told_by_doctor():
    return [(one.level.value, one.text) for one in look_at_automation(Session())]


def test_doctor_says_whether_automation_runs_as_far_as_it_can_know(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    assert told_by_doctor() == [("skip", OFF.removeprefix("automation is "))]
    monkeypatch.setenv("TIERKEEPER_AUTO_ENABLED", "true")
    [(level, text)] = told_by_doctor()
    assert level == "skip"
    assert "DAGSTER_HOME is not set" in text
    monkeypatch.setenv("DAGSTER_HOME", "/nowhere/at/all")
    [(level, text)] = told_by_doctor()
    assert level == "fail"
    assert "DAGSTER_HOME=/nowhere/at/all is no folder" in text
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    [(level, text)] = told_by_doctor()
    assert level == "fail"
    assert "no daemon has ever run" in text


@pytest.mark.parametrize(
    "age", ["30", "5h", "0d", "-1d", "30 D", "1y", "30MiB", "٣d", "999999d", "1e300d", "nan"]
)
def test_an_age_that_is_none_or_too_young_is_refused(age):
    with pytest.raises(SettingsError, match="--older-than"):
        _age(age)


@pytest.mark.parametrize(
    ("age", "hours"), [("30d", 720), ("30 days", 720), ("36h", 36), ("1d", 24), ("2w", 336)]
)
def test_an_age_is_days_or_hours(age, hours):
    assert _age(age) == timedelta(hours=hours)
