"""`tierkeeper dagster rebuild` without an instance: said at once, before any server is asked."""

import pytest

from tiering_assets.cli.main import run

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
def test_without_a_home_nothing_is_rebuilt(monkeypatch, capsys, home, said):
    if home is None:
        monkeypatch.delenv("DAGSTER_HOME", raising=False)
    else:
        monkeypatch.setenv("DAGSTER_HOME", home)
    assert run(["dagster", "rebuild"]) == REFUSED
    assert said in capsys.readouterr().err
