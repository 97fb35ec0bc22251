"""One whole stack for every test that wants real servers, ended with the session however it ends."""

from __future__ import annotations

import signal

import hypothesis
import pytest

from resources.devstack.stack import DevStack
from tiering_assets.spark.runner import open_spark_runner

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

# A background job of a script starts with Ctrl-C ignored, and so would every process that tests
# start; tests about Ctrl-C mean the one of a person at a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def stack(tmp_path_factory):
    """ZooKeeper, three bookies, a broker with its own offloader, and S3. Started once, on demand."""
    with DevStack.start(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture(scope="session")
def endpoints(stack):
    return stack.endpoints


@pytest.fixture(scope="session")
def spark_runner(stack):
    """One session for every test that wants Spark: its JVM needs ten seconds to start."""
    with open_spark_runner(stack.settings()) as runner:
        yield runner


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    """No setting of the person who runs the tests reaches them."""
    import os

    for name in [n for n in os.environ if n.startswith("TIERKEEPER_")]:
        monkeypatch.delenv(name)
