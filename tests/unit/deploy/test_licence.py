"""What is not ours is named, and goes with the wheel."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_definition_of_others_is_named_with_where_it_is_from():
    notice = (ROOT / "NOTICE").read_text()
    for proto in sorted((ROOT / "proto").glob("*.proto")):
        upstream = proto.read_text().splitlines()[0]
        assert upstream.startswith("// Upstream: apache/")
        path, release = upstream.split()[3].rstrip(","), upstream.split("release ")[1].rstrip(".")
        section = notice.split(f"proto/{proto.name}\n")[1]
        assert path in section
        assert f"release {release}" in section


def test_licence_and_notice_go_with_the_wheel():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE", "NOTICE"]
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert "urls" not in project  # nothing is served anywhere yet
