"""Copy, read-back and second reading against simulated bookies and a simulated object store."""

from __future__ import annotations

import hashlib
import random
import struct
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.support.bookie_sim import NO_LEDGER
from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.pulsar_entries import MESSAGES_IN_BATCH, message
from tests.support.sim_ledger import PASSWORD, SimBookies, SimLedger
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.settings import BookieSettings, OffloadSettings, Settings
from tiering_assets.tasks.descriptors import (
    BlockRow,
    ListedPart,
    TaskKind,
    decode_task,
    encode_task,
)
from tiering_assets.tasks.runner import LocalRunner
from tiering_assets.tasks.worker import Worker, run_task

BLOCK = 4096
SETTINGS = Settings(
    bookies=BookieSettings(
        request_timeout_s=1.5, connect_timeout_s=1.5, batch_bytes_max=1500, password="pw"
    ),
    offload=OffloadSettings(read_range_bytes=1000),
)


@pytest.fixture
def bookies():
    with ExitStack() as stack:
        yield SimBookies(stack)


@pytest.fixture
def objects():
    return SimulatedObjectStore(part_bytes_min=1)


@pytest.fixture
def run(objects):
    """Run one task and return its rows; the descriptor crosses as text, as it does to a worker."""
    runner = LocalRunner(SETTINGS, make_worker=lambda: Worker(SETTINGS, store=objects))
    return lambda task: runner.run([decode_task(encode_task(task))])


def payloads(count, *, seed=7, largest=400):
    source = random.Random(seed)
    return [source.randbytes(source.randint(0, largest)) for _ in range(count)]


def copied(objects, ledger, run):
    """Copy all blocks by multipart upload and complete it; return the rows."""
    upload_id = objects.create_upload(ledger.key, metadata={})
    rows = run(ledger.task(upload_id=upload_id))
    assert not [row.error for row in rows if row.error]
    objects.complete_upload(ledger.key, upload_id, objects.list_parts(ledger.key, upload_id))
    return rows


def digest_of(ledger, block):
    """The digest over header and frames that both readings must agree on."""
    head = struct.pack(">Iqqq100x", 0xFBDBABCB, 128, block.block_length, block.first_entry_id)
    summed = hashlib.sha256(head)
    for entry_id in range(block.first_entry_id, block.last_entry_id + 1):
        payload = ledger.payloads[entry_id]
        summed.update(struct.pack(">iq", len(payload), entry_id) + payload)
    return summed.hexdigest()


def test_the_copy_equals_a_sequential_writers_bytes(bookies, objects, run):
    ledger = SimLedger.store(bookies, 5, payloads(200), block_bytes=BLOCK)
    rows = copied(objects, ledger, run)
    assert len(rows) == len(ledger.blocks) > 5
    assert objects.get(ledger.key).body == ledger.object_bytes()
    for row, block in zip(rows, ledger.blocks, strict=True):
        assert row.kind is TaskKind.COPY
        assert (row.ledger_id, row.attempt) == (5, "attempt-5")
        assert row.part_number == block.part_number
        assert (row.entries, row.payload_bytes) == (block.entries, block.payload_bytes)
        assert row.sha256 == hashlib.sha256(ledger.block_bytes(block)).hexdigest()
        assert row.entries_sha256 == digest_of(ledger, block)


def test_each_part_is_sent_once(bookies, objects, run):
    ledger = SimLedger.store(bookies, 5, payloads(100), block_bytes=BLOCK)
    copied(objects, ledger, run)
    sent = [key for method, key in objects.calls if method == "upload_part"]
    assert len(sent) == len(ledger.blocks)


@pytest.mark.parametrize("with_checksums", [True, False], ids=["SHA-256", "MD5 ETag"])
def test_only_parts_that_are_not_listed_with_the_right_checksum_are_sent(
    bookies, objects, run, with_checksums
):
    ledger = SimLedger.store(bookies, 5, payloads(100), block_bytes=BLOCK)
    assert len(ledger.blocks) > 4
    upload_id = objects.create_upload(ledger.key, metadata={})
    first = run(ledger.task(upload_id=upload_id, blocks=ledger.blocks[:3]))
    junk = b"x" * ledger.blocks[1].block_length
    objects.upload_part(
        ledger.key, upload_id, part_number=2, body=junk, sha256=hashlib.sha256(junk).digest()
    )
    listed = tuple(
        ListedPart(
            part_number=part.part_number,
            size=part.size,
            etag=part.etag,
            sha256=part.sha256.hex() if with_checksums and part.sha256 else "",
        )
        for part in objects.list_parts(ledger.key, upload_id)
    )
    rows = run(replace(ledger.task(upload_id=upload_id), listed=listed))
    assert [row.sent for row in rows] == [False, True, False] + [True] * (len(rows) - 3)
    assert [replace(row, seconds=0) for row in rows if not row.sent] == [
        replace(row, seconds=0, sent=False) for row in (first[0], first[2])
    ]
    objects.complete_upload(ledger.key, upload_id, objects.list_parts(ledger.key, upload_id))
    assert objects.get(ledger.key).body == ledger.object_bytes()


def test_a_row_has_the_etag_that_the_store_lists(bookies, objects, run):
    ledger = SimLedger.store(bookies, 5, payloads(100), block_bytes=BLOCK)
    upload_id = objects.create_upload(ledger.key, metadata={})
    rows = run(ledger.task(upload_id=upload_id))
    listed = objects.list_parts(ledger.key, upload_id)
    assert [row.etag for row in rows] == [part.etag for part in listed]


def test_reading_back_and_reading_again_agree_with_the_copy(bookies, objects, run):
    ledger = SimLedger.store(bookies, 5, payloads(200), block_bytes=BLOCK)
    rows = copied(objects, ledger, run)
    back = run(ledger.task(TaskKind.READ_BACK))
    source = run(ledger.task(TaskKind.READ_SOURCE))
    assert {row.kind for row in back} == {TaskKind.READ_BACK}
    for copy, found, again, block in zip(rows, back, source, ledger.blocks, strict=True):
        assert copy.entries_sha256 == found.entries_sha256 == again.entries_sha256
        assert copy.sha256 == found.sha256
        assert (found.entries, found.payload_bytes) == (copy.entries, copy.payload_bytes)
        assert (again.entries, again.payload_bytes) == (copy.entries, copy.payload_bytes)
        assert found.header == ledger.block_bytes(block)[:128].hex()
        assert again.sha256 == ""


def test_a_header_is_whole_however_small_the_ranges_are(bookies, objects, run):
    ledger = SimLedger.store(bookies, 5, payloads(40), block_bytes=BLOCK)
    copied(objects, ledger, run)
    small = replace(SETTINGS, offload=OffloadSettings(read_range_bytes=50))
    runner = LocalRunner(small, make_worker=lambda: Worker(small, store=objects))
    rows = runner.run([ledger.task(TaskKind.READ_BACK)])
    headers = [ledger.block_bytes(block)[:128].hex() for block in ledger.blocks]
    assert [row.header for row in rows] == headers


def test_the_second_reading_is_from_other_bookies(bookies, objects, run):
    ledger = SimLedger.store(bookies, 5, payloads(100), block_bytes=BLOCK)
    copied(objects, ledger, run)
    first = {name for name, sim in bookies.sims.items() if sim.seen}
    for sim in bookies.sims.values():
        sim.seen.clear()
    run(ledger.task(TaskKind.READ_SOURCE))
    second = {name for name, sim in bookies.sims.items() if sim.seen}
    assert len(first) == len(second) == 1
    assert first != second


def test_without_digests_the_second_reading_is_from_all_replicas(bookies, objects, run):
    """The copy believed one bookie, whose entry has rotted; nobody but the others can tell."""
    ledger = SimLedger.store(
        bookies, 5, payloads(100), block_bytes=BLOCK, digest_type=DigestType.DUMMY
    )
    copied(objects, ledger, run)
    assert not [row.error for row in run(ledger.task(TaskKind.READ_SOURCE)) if row.error]
    assert all(len(sim.seen) >= 100 for sim in bookies.sims.values())
    bookies.sims["bk1"].faults.flipped = {(5, 60)}
    failed = [row for row in run(ledger.task(TaskKind.READ_SOURCE)) if row.error]
    assert [(row.error_class, row.retryable) for row in failed] == [("IntegrityError", False)]
    assert "its replicas differ: bk" in failed[0].error
    for name in ("bk1", "bk2"):
        bookies.sims[name].faults.status_for_all = NO_LEDGER
    failed = [row for row in run(ledger.task(TaskKind.READ_SOURCE)) if row.error]
    assert [(row.error_class, row.retryable) for row in failed] == [("EntryUnavailableError", True)]


@pytest.mark.parametrize("loop", ["native", "Python's"])
@pytest.mark.parametrize("digest", ["frames", "entries"])
def test_reading_back_tells_the_messages_of_each_block(bookies, objects, loop, digest):
    made = [message(1000 + i, (MESSAGES_IN_BATCH, 10), payload=b"x" * 90) for i in range(60)]
    made[-1] = b"nothing of Pulsar's"
    ledger = SimLedger.store(bookies, 5, made, block_bytes=BLOCK)
    objects.put(ledger.key, ledger.object_bytes())
    with Worker(SETTINGS, store=objects) as worker:
        if loop != "native":
            worker.core = None
        task = replace(ledger.task(TaskKind.READ_BACK), digest=digest)
        rows = list(run_task(task, worker))
    assert [row.error for row in rows] == ["", ""]
    first, last = ((row.messages, row.publish_min_ms, row.publish_max_ms) for row in rows)
    entries = ledger.blocks[0].entries
    assert first == (10 * entries, 1000, 1000 + entries - 1)
    assert last == (None, None, None)


@pytest.mark.parametrize("kind", [TaskKind.COPY, TaskKind.READ_SOURCE])
def test_messages_are_told_of_the_object_alone(bookies, run, kind):
    ledger = SimLedger.store(bookies, 5, [message(1000)], block_bytes=BLOCK)
    [row] = run(ledger.task(kind))
    assert (row.messages, row.publish_min_ms, row.publish_max_ms) == (None, None, None)


@pytest.mark.parametrize("where", ["header", "frame", "payload", "padding"])
def test_a_flipped_bit_in_the_store_is_found(bookies, objects, run, where):
    ledger = SimLedger.store(bookies, 5, [b"x" * 300] * 40, block_bytes=BLOCK)
    rows = copied(objects, ledger, run)
    damaged = bytearray(objects.get(ledger.key).body)
    block = ledger.blocks[1]
    at = {"header": 15, "frame": 130, "payload": 300, "padding": block.block_length - 1}[where]
    assert block.padding_bytes > 0
    damaged[block.offset + at] ^= 1
    objects.overwrite(ledger.key, bytes(damaged))
    back = run(ledger.task(TaskKind.READ_BACK))
    if where == "payload":
        differing = [a.entries_sha256 != b.entries_sha256 for a, b in zip(rows, back, strict=True)]
        assert differing == [number == 1 for number in range(len(rows))]
        assert back[1].sha256 != rows[1].sha256
    else:
        assert [row.part_number for row in back] == [1, 2]
        assert back[1].error_class == "FormatError"
        assert "at byte" in back[1].error
        assert not back[1].sha256


def test_an_entry_larger_than_a_block_has_one_of_its_own(bookies, objects, run):
    ledger = SimLedger.store(
        bookies, 5, [b"a" * 100, b"b" * 20_000, b"", b"c" * 100], block_bytes=BLOCK
    )
    copied(objects, ledger, run)
    assert max(block.block_length for block in ledger.blocks) == 128 + 12 + 20_000
    assert objects.get(ledger.key).body == ledger.object_bytes()
    back = run(ledger.task(TaskKind.READ_BACK))
    assert sum(row.entries for row in back) == 4
    assert [row.entries_sha256 for row in back] == [digest_of(ledger, b) for b in ledger.blocks]


def test_a_single_block_is_put_whole_and_a_second_run_accepts_it(bookies, objects, run):
    ledger = SimLedger.store(bookies, 5, [b"hello", b"world"], block_bytes=BLOCK)
    [first] = run(ledger.task())
    [second] = run(ledger.task())
    assert (first.error, second.error) == ("", "")
    assert replace(first, seconds=0.0) == replace(second, seconds=0.0)
    found = objects.get(ledger.key)
    assert found.body == ledger.object_bytes()
    assert found.head.metadata == {"role": "data"}


@pytest.mark.parametrize("other", ["shorter", "longer", "flipped"])
def test_a_single_block_never_replaces_other_bytes(bookies, objects, run, other):
    ledger = SimLedger.store(bookies, 5, [b"hello", b"world"], block_bytes=BLOCK)
    right = ledger.object_bytes()
    there = {
        "shorter": right[:-1],
        "longer": right + b"x",
        "flipped": right[:-1] + bytes([right[-1] ^ 1]),
    }[other]
    objects.put(ledger.key, there)
    [row] = run(ledger.task())
    assert row.error_class == "IntegrityError"
    assert not row.retryable
    assert ledger.key in row.error
    assert objects.get(ledger.key).body == there


def test_a_bookie_that_flips_a_bit_costs_no_entry(bookies, objects, run):
    ledger = SimLedger.store(bookies, 5, payloads(60), block_bytes=BLOCK)
    for name in ("bk0", "bk1"):
        bookies.sims[name].faults.flipped = {(5, entry_id) for entry_id in range(0, 60, 7)}
    copied(objects, ledger, run)
    assert objects.get(ledger.key).body == ledger.object_bytes()


def test_an_entry_that_no_bookie_gives_is_a_row_and_the_blocks_before_it_are_done(
    bookies, objects, run
):
    ledger = SimLedger.store(bookies, 5, payloads(100), block_bytes=BLOCK)
    lost = ledger.blocks[2].first_entry_id + 1
    for sim in bookies.sims.values():
        sim.faults.flipped = {(5, lost)}
    upload_id = objects.create_upload(ledger.key, metadata={})
    *good, failed = run(ledger.task(upload_id=upload_id))
    assert [row.part_number for row in good] == [1, 2]
    assert not any(row.error for row in good)
    assert failed.part_number == 3
    assert failed.error_class == "EntryUnavailableError"
    assert failed.retryable
    assert f"ledger 5 entry {lost}" in failed.error
    sent = [part.part_number for part in objects.list_parts(ledger.key, upload_id)]
    assert sent == [1, 2], "a block was sent before all its entries were verified"


def test_one_bad_ledger_does_not_stop_the_others(bookies, objects):
    good = SimLedger.store(bookies, 5, payloads(30), block_bytes=1 << 20)
    bad = SimLedger.store(bookies, 6, payloads(30), block_bytes=1 << 20)
    for sim in bookies.sims.values():
        sim.faults.flipped = {(6, 3)}
    runner = LocalRunner(SETTINGS, make_worker=lambda: Worker(SETTINGS, store=objects))
    told: list[BlockRow] = []
    rows = runner.run([bad.task(), good.task()], progress=told.append)
    assert {row.ledger_id: bool(row.error) for row in rows} == {5: False, 6: True}
    assert told == rows


def test_a_bookie_without_an_address_is_a_row(bookies, objects, run):
    ledger = SimLedger.store(bookies, 5, payloads(10), block_bytes=1 << 20)
    task = replace(ledger.task(), source=replace(ledger.source, addresses={}))
    [row] = run(task)
    assert row.error_class == "EntryUnavailableError"
    assert "its address is unknown" in row.error


def test_a_failing_store_is_the_row_of_the_part_it_failed(bookies, objects, run):
    ledger = SimLedger.store(bookies, 5, payloads(100), block_bytes=BLOCK)
    upload_id = objects.create_upload(ledger.key, metadata={})
    objects.fail("upload_part", nth=2, error=ObjectStoreError("503 slow down"))
    *before, failed = run(ledger.task(upload_id=upload_id))
    assert (
        failed.error == "503 slow down"
    )  # of whichever of two at a time was the second to be sent
    assert {row.error for row in before} <= {""}
    assert [row.part_number for row in before] == [*range(1, failed.part_number)]
    sent = {part.part_number for part in objects.list_parts(ledger.key, upload_id)}
    assert failed.part_number not in sent


def test_no_password_travels(bookies, objects):
    ledger = SimLedger.store(bookies, 5, [b"x"], block_bytes=BLOCK)
    assert PASSWORD == b"pw"
    assert '"pw"' not in encode_task(ledger.task())
    assert "password" not in encode_task(ledger.task())


def test_a_wrong_password_is_no_entry_at_all(bookies, objects):
    wrong = replace(SETTINGS, bookies=replace(SETTINGS.bookies, password="other"))
    ledger = SimLedger.store(bookies, 5, [b"x"], block_bytes=BLOCK)
    task = ledger.task()
    hmac = replace(task, source=replace(task.source, digest_type=DigestType.HMAC.name))
    runner = LocalRunner(wrong, make_worker=lambda: Worker(wrong, store=objects))
    [row] = runner.run([hmac])
    assert row.error_class == "EntryUnavailableError"
    assert objects.get(ledger.key) is None


def test_a_worker_leaves_no_connection_behind(bookies, objects, monkeypatch):
    closed = []
    close = BookiePool.close

    def noted(pool):
        closed.append(pool)
        close(pool)

    monkeypatch.setattr(BookiePool, "close", noted)
    ledger = SimLedger.store(bookies, 5, [b"x"], block_bytes=BLOCK)
    LocalRunner(SETTINGS, make_worker=lambda: Worker(SETTINGS, store=objects)).run([ledger.task()])
    assert len(closed) == 1
