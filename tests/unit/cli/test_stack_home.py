"""Servers for trying things have a Dagster instance and a cluster name of their own."""

from types import SimpleNamespace
from typing import Any

from tiering_assets.cli import stack_cmd


def test_a_new_stack_has_a_dagster_home_of_its_own(tmp_path):
    stack: Any = SimpleNamespace(directory=tmp_path, environment=lambda: {"TIERKEEPER_X": "a b"})
    stack_cmd._give_dagster_home(stack)
    home = tmp_path / "dagster_home"
    (home / "left").touch()
    stack_cmd._give_dagster_home(stack)  # another cluster
    assert [path.name for path in home.iterdir()] == ["dagster.yaml"]
    script = (tmp_path / "environment.sh").read_text()
    assert script.splitlines() == [
        "export TIERKEEPER_X='a b'",
        f"export DAGSTER_HOME={home}",
        "export TIERKEEPER_DAGSTER_CLUSTER=stack",
    ]
