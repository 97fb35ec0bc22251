"""Masters that are refused before any JVM starts, and a machine without Java."""

from __future__ import annotations

import os

import pytest

from resources.errors import PrerequisiteError, SettingsError
from resources.settings import SparkSettings
from resources.spark_session import local_cores, spark_session


@pytest.mark.parametrize("master", ["sc://host:15002", "spark://host:7077"])
def test_a_remote_master_is_refused_by_name(master):
    with (
        pytest.raises(SettingsError, match=r"remote masters are not supported yet"),
        spark_session(SparkSettings(master=master)),
    ):
        pass


@pytest.mark.parametrize(
    "master", ["", "local", "local[2]", "local[2,1]", "local[0,4]", "local[x,4]", "yarn"]
)
def test_a_master_that_loses_a_batch_with_a_worker_is_refused(master):
    with pytest.raises(SettingsError, match=r"spark\.master is"):
        local_cores(master)


def test_cores():
    assert local_cores("local[2,4]") == 2
    assert local_cores("local[16,2]") == 16
    assert local_cores("local[*,4]") == os.cpu_count()


def test_without_java_there_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="Java is missing"), spark_session(SparkSettings()):
        pass


def test_a_java_that_is_too_old_is_named(monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="Java 11"), spark_session(SparkSettings()):
        pass
