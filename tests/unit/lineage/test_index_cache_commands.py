"""What commands and programs print of the index cache, and which of them fill it."""

import base64
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.support.pulsar_entries import message
from tests.support.sim_scene import TOPIC
from tests.unit.lineage.test_commands import TIME
from tiering_assets.lineage.in_spark import ledger_parts
from tiering_assets.lineage.in_spark.ledger_parts import partitions_of, read_partition
from tiering_assets.lineage.messages import as_arrow
from tiering_assets.lineage.messages.options import cold_options
from tiering_assets.lineage.messages.plan import plan_messages
from tiering_assets.resources.settings import CacheSettings

NAME = TOPIC.replace("/persistent/", "/")
DAY = ("--from", "2026-11-21")


@pytest.fixture
def folder(scene, tmp_path):
    """Where the cache of the commands lies."""
    cache = CacheSettings(root=str(tmp_path / "cache"))
    scene.stack = replace(scene.stack, settings=replace(scene.stack.settings, cache=cache))
    return tmp_path / "cache"


@pytest.fixture
def ledger(scene, posted):
    """Of several blocks."""
    entries = [message(TIME + n, payload=b"%d" % n * 90) for n in range(8)]
    found = scene.fill(TOPIC, *entries)
    scene.publish(found)
    posted()
    return found


def files_in(folder):
    return sorted(one for one in folder.rglob("*") if one.is_file())


def test_a_message_says_what_it_took_and_whether_the_cache_was_used(told, ledger, folder):
    cold = told("message", f"{ledger}:1", "--show")
    assert any(line.endswith(" bytes, index cache filled") for line in cold)
    warm = told("message", f"{ledger}:1", "--show")
    assert any("; 1 requests for " in one and one.endswith("index cache used") for one in warm)
    assert len(files_in(folder)) == 1
    found = told.document("message", f"{ledger}:0", "--show")["entry"]
    assert (found["requests"], found["index_cache"]) == (1, "used")
    assert 0 < found["bytes_read"] < 500
    assert base64.b64decode(found["messages"][0]["payload"]) == b"0" * 90


def test_a_byte_says_it_too_whatever_it_belongs_to(told, ledger, folder, scene):
    key = f"{scene.context(ledger).uid}-ledger-{ledger}"
    nothing = {"requests": 0, "bytes_read": 0, "index_cache": "not used"}
    assert told.document("object", key, "--offset", 5)["read"] == nothing
    assert "0 requests for 0 bytes, index cache not used" in told("object", key, "--offset", 5)
    found = told.document("object", key, "--offset", 130)
    assert (found["read"]["requests"], found["read"]["index_cache"]) == (1, "filled")
    assert {name: found["entry"][name] for name in found["read"]} == found["read"]
    assert told.document("object", key, "--offset", 130)["read"]["index_cache"] == "used"


def test_without_a_cache_it_is_said_that_none_was_used(told, ledger, scene, tmp_path):
    for _ in range(2):
        found = told.document("message", f"{ledger}:0", "--show")["entry"]
        assert found["index_cache"] == "not used"
    assert files_in(tmp_path / "user-cache") == []


def test_what_topic_read_read_is_known(told, ledger, folder):
    told("topic", "read", NAME, *DAY)
    before = files_in(folder)
    assert len(before) > 1
    for entry in range(8):
        found = told.document("message", f"{ledger}:{entry}", "--show")["entry"]
        assert (found["requests"], found["index_cache"]) == (1, "used")
    assert files_in(folder) == before


def test_what_a_program_read_is_known(told, ledger, folder, scene, monkeypatch):
    @contextmanager
    def opened(_settings):
        yield scene.stack

    monkeypatch.setattr(as_arrow, "open_stack", opened)
    read = as_arrow.messages(NAME, begin="2026-11-21", settings=scene.stack.settings).read_all()
    assert read.num_rows == 8
    found = told.document("message", f"{ledger}:7", "--show")["entry"]
    assert found["index_cache"] == "used"


class OfWorkers:
    """The store as a worker opens it."""

    def __init__(self, objects):
        self.get_range, self.close = objects.get_range, lambda: None


def test_a_task_of_spark_writes_on_no_disk(told, ledger, folder, scene, monkeypatch):
    """Whoever reads single messages later is on another machine."""
    store = OfWorkers(scene.stack.objects)
    monkeypatch.setattr(ledger_parts, "S3ObjectStore", lambda *_given, **_named: store)
    monkeypatch.setattr(ledger_parts, "worker_settings", lambda _plain: scene.stack.settings)
    asked = cold_options({"topic": NAME})
    parts = partitions_of(scene.stack, plan_messages(scene.stack, asked))
    assert [part.settings.get("cache") for part in parts] == [None]
    monkeypatch.setattr("tempfile.mkstemp", None)
    found = [one for part in parts for one in read_partition(part, asked.messages)]
    assert sum(one.num_rows for one in found) == 8
    assert not folder.exists()
