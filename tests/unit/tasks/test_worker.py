"""A worker works with what it is given, and tells of each part that it sent."""

import hashlib
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.sim_ledger import SimBookies, SimLedger
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings import BookieSettings, Settings, StoreSettings
from tiering_assets.tasks.descriptors import ListedPart, TaskKind
from tiering_assets.tasks.rates import Rates
from tiering_assets.tasks.runner import LocalRunner
from tiering_assets.tasks.worker import Worker

BLOCK = 4096
SETTINGS = Settings(
    bookies=BookieSettings(request_timeout_s=1.5, connect_timeout_s=1.5, password="pw")
)


@pytest.fixture
def bookies():
    with ExitStack() as stack:
        yield SimBookies(stack)


@pytest.fixture
def objects():
    return SimulatedObjectStore(part_bytes_min=1)


@pytest.fixture
def reached():
    return []


@pytest.fixture
def run(objects, reached):
    def worker():
        return Worker(
            SETTINGS, store=objects, reached=lambda point, *_ids, **_about: reached.append(point)
        )

    return LocalRunner(SETTINGS, make_worker=worker).run


def test_without_a_store_of_its_own_it_uses_the_one_that_is_set():
    settings = replace(SETTINGS, store=StoreSettings(bucket="b", endpoint="http://127.0.0.1:9"))
    with Worker(settings) as worker:
        assert isinstance(worker.store, S3ObjectStore)
        assert worker.store.bucket == "b"


def test_it_spends_from_the_rates_that_it_is_given(objects):
    rates = Rates(SETTINGS.budget, parts=lambda: 1)
    with Worker(SETTINGS, store=objects, rates=rates) as worker:
        assert worker.rates is rates
        assert worker.store is objects


def test_each_part_that_is_sent_is_told_and_no_other(bookies, objects, run, reached):
    """What a run before it had sent is known by its SHA-256, whatever the store's ETag is."""
    ledger = SimLedger.store(bookies, 5, [b"x" * 300] * 40, block_bytes=BLOCK)
    upload_id = objects.create_upload(ledger.key, metadata={})
    task = ledger.task(upload_id=upload_id)
    first = run([task])
    assert reached == ["copy.part_sent"] * len(ledger.blocks)
    reached.clear()
    listed = ListedPart(
        part_number=2, size=first[1].block_length, etag='"an own one"', sha256=first[1].sha256
    )
    rows = run([replace(task, listed=(listed,))])
    assert [row.sent for row in rows] == [row.part_number != 2 for row in rows]
    assert rows[1].etag == '"an own one"'
    assert reached == ["copy.part_sent"] * (len(ledger.blocks) - 1)


@pytest.mark.parametrize("then", ["the same", "other bytes", "gone"])
def test_a_block_that_is_there_already_is_ours_only_with_our_bytes(bookies, objects, run, then):
    ledger = SimLedger.store(bookies, 5, [b"x" * 300], block_bytes=BLOCK)
    [sent] = run([ledger.task()])
    if then == "other bytes":
        objects.overwrite(ledger.key, b"y" * sent.block_length)
    elif then == "gone":
        objects.head = lambda _key: None
    [again] = run([ledger.task()])
    if then == "the same":
        assert again.etag == sent.etag
        assert again.sha256 == hashlib.sha256(ledger.object_bytes()).hexdigest()
    else:
        assert again.error_class == "IntegrityError"
        assert "already exists with other bytes" in again.error


def test_its_reads_are_polite_to_the_bookies_of_its_task_as_the_address_map_has_them(objects):
    settings = replace(
        SETTINGS, bookies=replace(SETTINGS.bookies, address_map="bk.example:8000=127.0.0.1:8001")
    )
    pages = {"bk0": ("bk.example", 8000), "bk1": ("other.example", 8000)}
    with ExitStack() as stack, Worker(settings, store=objects) as worker:
        ledger = SimLedger.store(SimBookies(stack), 7, [b"x"], block_bytes=BLOCK)
        task = replace(ledger.task(), source=replace(ledger.source, pages=pages))
        worker.reader(task.source)
        assert worker.reads.pages == [("127.0.0.1", 8001), ("other.example", 8000)]


def test_what_its_threads_send_is_polite_to_the_same_bookies(objects):
    pages = {"bk0": ("bk.example", 8000)}
    with ExitStack() as stack, Worker(SETTINGS, store=objects) as worker:
        ledger = SimLedger.store(SimBookies(stack), 7, [b"x"], block_bytes=BLOCK)
        worker.reader(replace(ledger.source, pages=pages))
        with worker.uploader() as uploader:
            assert uploader.submit(worker.sends._pages).result() == worker.reads.pages
        assert worker.sends._pages() == ()
        with worker.beside() as beside:
            assert beside.sends is worker.sends


def test_workers_of_a_process_share_what_bookies_told_and_none_looks_where_it_is_off(objects):
    rates = Rates(SETTINGS.budget, parts=lambda: 1)
    off = replace(SETTINGS, budget=replace(SETTINGS.budget, add_latency_max_s=0.0))
    odd = replace(SETTINGS, spark=replace(SETTINGS.spark, master="no master"))
    with (
        Worker(SETTINGS, store=objects, rates=rates) as one,
        Worker(SETTINGS, store=objects, rates=rates) as two,
        Worker(off, store=objects, rates=rates) as three,
        Worker(odd, store=objects, rates=rates) as four,
    ):
        assert one.reads.politeness is two.reads.politeness is not None
        assert three.reads.politeness is None
        assert four.reads.politeness is not None


@pytest.mark.parametrize("kind", list(TaskKind))
def test_the_time_of_tasks_that_read_bookies_counts_for_the_speed_of_reads(objects, kind):
    with ExitStack() as stack, Worker(SETTINGS, store=objects) as worker:
        ledger = SimLedger.store(SimBookies(stack), 7, [b"x"], block_bytes=BLOCK)
        politeness = worker.reads.politeness
        assert politeness is not None
        with worker.taking_up(replace(ledger.task(), kind=kind)):
            assert politeness._tasks == (kind is not TaskKind.READ_BACK)
        assert politeness._tasks == 0


def test_a_worker_leaves_its_store_s_client_to_the_next_one():
    settings = replace(SETTINGS, store=StoreSettings(bucket="b", endpoint="http://127.0.0.1:1"))

    def client():
        with Worker(settings) as worker:
            assert isinstance(worker.store, S3ObjectStore)
            return worker.store._connection._client()

    assert client() is client()
