"""Commands about Dagster's instance without one: said at once, before any server is asked."""

from datetime import timedelta

import pytest

from tiering_assets.cli.automation.dagster_cmd import _age
from tiering_assets.cli.main import run
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
