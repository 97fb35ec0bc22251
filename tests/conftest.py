"""One whole stack for every test that wants real servers, ended with the session however it
ends.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from contextlib import contextmanager
from dataclasses import replace

import hypothesis
import pytest

from tests.support.secrets_written import PASSWORD
from tests.support.spark_cluster import spark_cluster
from tiering_assets.cli.grammar import known_names
from tiering_assets.resources import kept_files
from tiering_assets.resources.devstack.options import SHORT_LIVED
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.spark.runner import open_spark_runner

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

# Servers and Sparks of tests live for minutes. Java's second compiler, which pays off later, takes
# more than half of what a start costs: 92 s of processor time for a whole stack, 44 s without it.
# Checking each class that is loaded is a fifth of the rest.
os.environ.setdefault("JAVA_TOOL_OPTIONS", SHORT_LIVED)

# A background job of a script starts with Ctrl-C ignored, and so would every process that tests
# start; tests about Ctrl-C mean the one of a person at a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def cache_of_no_person(monkeypatch, tmp_path):
    """What simulated clusters list is no name for a person's completion, nor are their blocks."""
    monkeypatch.setattr(known_names, "names_file", lambda: tmp_path / "names" / "names.json")
    monkeypatch.setattr(kept_files, "user_cache", lambda: tmp_path / "user-cache")


_SHARED: list[DevStack] = []  # that more modules than one use

_NEW_MODULES = 200  # so many that a library came with them
_looked_at = 0


def pytest_runtest_teardown():
    """Take what libraries keep for good out of what the garbage collector looks through.

    Great Expectations, Dagster and Spark leave half a million objects. Looked through again and
    again they took a third of the processor time of each offload and release.
    """
    global _looked_at
    if len(sys.modules) > _looked_at + _NEW_MODULES:
        gc.collect()
        gc.freeze()
        _looked_at = len(sys.modules)


@pytest.fixture
def closed_port():
    """A port of 127.0.0.1 that refuses connections: bound, so that no other process listens
    there.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@contextmanager
def _shared(directory):
    with DevStack.start(directory) as running:
        _SHARED.append(running)
        yield running
        _SHARED.remove(running)


@pytest.fixture(scope="session")
def stack(tmp_path_factory):
    """ZooKeeper, three bookies, a broker with its own offloader, and S3. Started once, on
    demand.
    """
    with _shared(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture(scope="session")
def stack_to_stop(tmp_path_factory):
    """A second stack, for the modules that stop servers of it: no other test waits for a broker to
    come back, or meets a bookie that is away.
    """
    with _shared(tmp_path_factory.mktemp("stack-to-stop")) as running:
        yield running


@pytest.fixture(autouse=True, scope="module")
def _servers_run_afterwards():
    """A module that stops servers of a stack that others use, too, starts them again."""
    yield
    for running in _SHARED:
        assert [one.name for one in running.status() if not one.alive] == []


@pytest.fixture(scope="session")
def endpoints(stack):
    return stack.endpoints


@pytest.fixture(scope="session")
def spark_runner(stack):
    """One session for every test that wants Spark: its JVM needs ten seconds to start."""
    with open_spark_runner(stack.settings()) as runner:
        yield runner


@pytest.fixture(scope="session")
def remote_spark(stack, tmp_path_factory):
    """A standalone master, two workers and a Connect server, which share nothing with us but files
    with the store's key pair and a ledger password.
    """
    home = tmp_path_factory.mktemp("spark")
    store = stack.settings().store
    mounted = {}
    for name in ("access_key", "secret_key"):
        (home / name).write_text(getattr(store, name))
        mounted[f"TIERKEEPER_STORE_{name.upper()}_FILE"] = str(home / name)
    (home / "ledger_password").write_text(PASSWORD)
    mounted["TIERKEEPER_BOOKIES_PASSWORD_FILE"] = str(home / "ledger_password")
    (home / "servers").mkdir()
    with spark_cluster(home / "servers", worker_environment=mounted) as running:
        yield running


@pytest.fixture(scope="session")
def connect(stack, remote_spark):
    """A runner at the Connect server, whose workers have none of our code until it is shipped."""
    spark = SparkSettings(master=remote_spark.connect, code="ship")
    with open_spark_runner(replace(stack.settings(), spark=spark)) as runner:
        yield runner


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    """No setting of the person who runs the tests reaches them."""
    for name in [n for n in os.environ if n.startswith("TIERKEEPER_")]:
        monkeypatch.delenv(name)
