"""What a master's name says, masters that are refused before any JVM starts, a machine without
Java.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tiering_assets.resources.errors import PrerequisiteError, SettingsError
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.resources.spark_master import (
    MIB,
    Master,
    Way,
    memory_overhead_mib,
    parse_master,
    ships_code,
)
from tiering_assets.resources.spark_session import spark_session


def parsed(master, **others):
    return parse_master(SparkSettings(master=master, **others))


@pytest.mark.parametrize(
    "master",
    [
        *("", "local", "local[2]", "local[2,1]", "local[0,4]", "local[x,4]", "yarn", "k8s://h:1"),
        *("spark://host", "sc://", "sc://host:15002/;token=t", "spark://a:1,b:1", "mesos://h:1"),
    ],
)
def test_a_master_that_is_not_one_of_three_ways_or_loses_batches_is_refused_by_name(master):
    with pytest.raises(SettingsError, match=r"spark\.master is '" + re.escape(master)):
        parsed(master)


def test_local_masters_say_their_cores():
    assert parsed("local[2,4]") == Master(way=Way.LOCAL, url="local[2,4]", cores=2)
    assert parsed("local[16,2]", cores=3).cores == 16
    assert parsed("local[*,4]").cores == os.cpu_count()


def test_remote_masters_say_where_they_are_and_settings_their_cores():
    standalone, connect = parsed("spark://spark.example:7077", cores=12), parsed("sc://[::1]:15002")
    assert (standalone.way, standalone.host, standalone.port) == (
        Way.STANDALONE,
        "spark.example",
        7077,
    )
    assert standalone.cores == 12
    assert not standalone.on_loopback
    assert (connect.way, connect.host, connect.on_loopback) == (Way.CONNECT, "::1", True)


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_a_master_where_nobody_listens_is_told_at_once(scheme, closed_port):
    with (
        pytest.raises(PrerequisiteError, match=f"127.0.0.1:{closed_port}: no server listens there"),
        spark_session(SparkSettings(master=f"{scheme}://127.0.0.1:{closed_port}")),
    ):
        pass


def test_code_is_installed_or_shipped():
    assert [ships_code(SparkSettings(code=code)) for code in ("installed", "ship")] == [False, True]
    with pytest.raises(SettingsError, match=r"spark\.code is 'copy', expected installed or ship"):
        ships_code(SparkSettings(code="copy"))


def test_memory_beside_the_heap_is_three_blocks_and_150_mb_a_core():
    assert memory_overhead_mib(block_bytes=64 * MIB, cores=1) == 372
    assert memory_overhead_mib(block_bytes=64 * MIB, cores=4) == 1488
    assert memory_overhead_mib(block_bytes=5 * MIB + 1, cores=1) == 196  # rounded up


def test_without_java_there_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="Java is missing"), spark_session(SparkSettings()):
        pass


def test_a_jvm_that_ends_on_a_machine_without_a_name_says_so(tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "17.0.2"\' >&2 && exit\nexit 1\n'
    )
    java.chmod(0o755)
    program = """
import socket
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.resources.spark_session import spark_session
socket.gethostname = lambda: "nowhere.invalid"
with spark_session(SparkSettings()):
    pass
"""
    done = subprocess.run(
        [sys.executable, "-c", program],  # this process may have a session already
        env=os.environ | {"JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "did not start with 1g of heap; this machine's own name nowhere.invalid" in done.stderr
    assert "put it into /etc/hosts (" in done.stderr


def test_a_java_that_is_too_old_is_named(monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="Java 11"), spark_session(SparkSettings()):
        pass
