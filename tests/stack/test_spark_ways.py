"""Each way to run on Spark's workers elsewhere, from real bookies to what the broker then reads."""

import json
import os
import subprocess
import sys
import uuid
from operator import attrgetter
from pathlib import Path

import pyspark
import pytest

from tests.support.cli_shell import Shell
from tests.support.secrets_written import HMAC_ATTEMPT, PASSWORD_KEYS, Written, hmac_tasks
from tests.support.spark_archive import pack_packages
from tests.support.spark_copies import errors_of
from tests.support.tiered_cluster import tiered_cluster
from tiering_assets.resources.devstack.traffic import KIB, TopicSpec
from tiering_assets.spark.runner import attempt_tag

pytestmark = [pytest.mark.stack, pytest.mark.spark]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        yield connected


def spark_submit(cluster, remote_spark, ledger_ids):
    """The example job, as a person submits it; its rows."""
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = {
        "spark.cores.max": "2",
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.pyspark.driver.python": sys.executable,
        "spark.pyspark.python": remote_spark.installed_python,
    }
    command = [
        *(str(submit), "--master", remote_spark.master),
        *(word for item in options.items() for word in ("--conf", "=".join(item))),
        *("deploy/spark/offload_job.py", *map(str, ledger_ids), "--execute"),
    ]
    done = subprocess.run(
        command,
        env={**os.environ, **cluster.running.environment(), "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def command(**spark):
    """`tierkeeper ledger offload` with these settings of Spark."""

    def run(cluster, remote_spark, ledger_ids):
        chosen = {
            f"TIERKEEPER_SPARK_{name.upper()}": value(remote_spark) if callable(value) else value
            for name, value in spark.items()
        }
        shell = Shell(cluster.running, remote_spark.home)
        words = ("ledger", "offload", *ledger_ids, "--runner", "spark", "--execute")
        return shell.document(*words, timeout_s=500, **chosen)["ledgers"]

    return run


def archive(remote_spark):
    path = remote_spark.home / "packages.tar.gz"
    return str(path if path.exists() else pack_packages(path))


WAYS = {
    "standalone, shipped with an archive": command(
        master=attrgetter("master"),
        code="ship",
        archive=archive,
        python=attrgetter("lean_python"),
        executor_memory="512m",
    ),
    "connect, shipped": command(master=attrgetter("connect"), code="ship"),
    "standalone, installed, by spark-submit": spark_submit,
}


EVERY_RUN = "connect, shipped"
PROVEN = pytest.mark.prove(
    instead="tests/stack/test_spark_cluster.py::"
    "test_connect_with_shipped_code_copies_and_reads_back"
)


@pytest.mark.parametrize(
    "way", [way if way == EVERY_RUN else pytest.param(way, marks=PROVEN) for way in WAYS]
)
def test_each_way_copies_from_bookies_what_the_broker_then_reads(cluster, remote_spark, way):
    name = f"public/default/spark-{uuid.uuid4().hex[:8]}"
    spec = TopicSpec(topic=name, messages=70, payload_bytes=100 * KIB)
    sent = cluster.fill(spec)
    ledger_ids = cluster.ledger_ids(spec)
    [row] = WAYS[way](cluster, remote_spark, ledger_ids)
    assert (row["state"], row["parts_sent"]) == ("published", 2)
    cluster.seal(spec)  # a topic loaded anew, with an empty cache
    assert cluster.content(spec) == sent
    cluster.release(spec, ledger_ids)
    cluster.seal(spec)
    assert cluster.content(spec) == sent


def test_no_secret_is_in_what_a_connect_server_and_its_workers_write(
    cluster, stack, connect, remote_spark
):
    """The workers found password and keys in their mounted files; the driver had the keys alone."""
    with hmac_tasks(cluster) as tasks:
        assert errors_of(connect.run(tasks)) == {("", False, "")}
    store = stack.settings().store
    written = Written.below({"servers": remote_spark.home})
    events = [name for _place, name in written.having(attempt_tag(HMAC_ATTEMPT))]
    assert any("/events/" in name for name in events)
    logs = [name for _place, name in written.having("Session with userId: tierkeeper")]
    assert any(name.endswith("connect.log") for name in logs)
    secrets = {
        **PASSWORD_KEYS,
        "access key": store.access_key,
        "secret key": store.secret_key,
    }
    assert {name: places for name, v in secrets.items() if (places := written.having(v))} == {}
