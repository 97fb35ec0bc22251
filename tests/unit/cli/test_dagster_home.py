"""Commands about Dagster's instance without one: said at once, before any server is asked."""

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
@pytest.mark.parametrize("words", [("dagster", "rebuild"), ("auto", "on"), ("auto", "status")])
def test_without_a_home_nothing_is_done(monkeypatch, capsys, tmp_path, home, said, words):
    monkeypatch.chdir(tmp_path)
    if home is None:
        monkeypatch.delenv("DAGSTER_HOME", raising=False)
    else:
        monkeypatch.setenv("DAGSTER_HOME", home)
    assert run([*words]) == REFUSED
    assert said in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
