"""Faults of cold reads where workers are elsewhere: by Connect, and on a standalone cluster."""

import time
from dataclasses import replace

import pytest

from tests.stack.cold_fault_fixture import KEPT, LONG, MARKS, cold_lab
from tests.stack.test_cold_faults import BY_NAME, by_random_predicates, named, source
from tests.support.spark_cluster import connect_server
from tiering_assets.lineage.in_spark.ledger_frame import messages_frame
from tiering_assets.lineage.in_spark.registered import register
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.spark.session import open_session

pytestmark = MARKS
WRONG = "planted-key-without-access-3e81"


@pytest.fixture(scope="module")
def lab(stack):
    with cold_lab(stack, "cold-faults-elsewhere") as found:
        yield found


@pytest.fixture(scope="module")
def connect(lab, tmp_path_factory):
    """A session at a server that has settings and keys of its own."""
    with connect_server(tmp_path_factory.mktemp("connect"), lab.environment) as address:
        settings = replace(lab.settings, spark=SparkSettings(master=address))
        with open_session(settings) as session:
            register(session)
            yield session


def test_an_error_comes_back_by_connect(lab, connect):
    for name in ("batch-cut", "not-pulsars-text", "transaction-undecided", "first-piece-trimmed"):
        fault = BY_NAME[name]
        (n, entry_id), words = next(iter(fault.bad.items()))
        place = rf"ledger {lab.ids[name][n]}, entry {entry_id}: .*{words}"
        with pytest.raises(Exception, match=place):
            source(connect, lab, fault).collect()
    sound = BY_NAME["codec-LZ4-batch"]
    assert source(connect, lab, sound).count() == len(sound.rows)


def test_random_predicates_give_what_a_full_read_does_by_connect(lab, connect):
    connect.conf.set("spark.sql.session.timeZone", "UTC")
    by_random_predicates(connect, range(100, 108))


def test_keys_without_access_are_named_by_connect(lab, tmp_path):
    """The client plans with good keys; those of the workers are not the store's."""
    keys = {
        "TIERKEEPER_STORE_ACCESS_KEY": lab.settings.store.access_key,
        "TIERKEEPER_STORE_SECRET_KEY": WRONG,
    }
    with connect_server(tmp_path, keys) as address:
        # This process asks the tables itself, and holds the lock that the proxy's threads need.
        ours = lab.cluster.steps.settings
        settings = replace(ours, spark=SparkSettings(master=address))
        with open_session(settings) as session:
            frame = messages_frame(session, settings, **lab.options(KEPT[0]))
            with pytest.raises(Exception, match=named(lab, KEPT[0])) as told:
                frame.collect()
    said = str(told.value)
    assert "SignatureDoesNotMatch" in said or "AccessDenied" in said
    assert WRONG not in said
    assert lab.settings.store.secret_key not in said
    logs = "".join(path.read_text(errors="replace") for path in tmp_path.glob("*.log"))
    assert WRONG not in logs


def test_a_worker_that_is_killed_costs_no_row(lab, remote_spark, monkeypatch):
    """The executor that reads is killed when it asks for the last block of its partition."""
    for name, value in lab.environment.items():
        monkeypatch.setenv(name, value)
    spark = SparkSettings(
        master=remote_spark.master, python=remote_spark.installed_python, executor_memory="512m"
    )
    settings, since = replace(lab.settings, spark=spark), time.time()
    [key] = lab.keys(LONG)
    asked: list[str] = []
    killed: list[int] = []

    def kill_once(method, path, answer):
        if method == "GET" and path.partition("?")[0].endswith(f"/{key}"):
            asked.append(path)
            if len(asked) == 30 and not killed:
                for process in remote_spark.executors(since=since):
                    killed.append(process.pid)
                    process.kill()
        return answer

    with open_session(settings) as session, lab.altered(kill_once):
        register(session)
        found = source(session, lab, LONG).collect()
    assert killed
    assert len(asked) > 40  # some blocks were asked for again
    assert [row.entry_id for row in found] == [*range(40)]
