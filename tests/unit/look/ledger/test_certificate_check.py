"""Is what lies in the store what its certificate says? Each difference alone, in words."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.audited_bucket import put_chain
from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.look.ledger.verification import (
    certificate_differences,
    head_differences,
    object_differences,
)
from tiering_assets.resources.object_store.store import StoredObject
from tiering_assets.tasks.descriptors import BlockRow, TaskKind

STORE = SimulatedObjectStore()
CERTIFICATE = put_chain(STORE, RecordBook(STORE, "inst"), 41).certificate
DATA: Any = STORE.head(CERTIFICATE.data.key)
INDEX: Any = STORE.get(CERTIFICATE.index.key)
ROWS = {
    block.part_number: BlockRow(
        kind=TaskKind.READ_BACK,
        attempt="a",
        ledger_id=41,
        part_number=block.part_number,
        entries=block.last_entry_id - block.first_entry_id + 1,
        payload_bytes=block.payload_bytes,
        block_length=block.block_length,
        sha256=block.sha256,
        entries_sha256=block.entries_sha256,
        seconds=0.1,
    )
    for block in CERTIFICATE.blocks
}


def differences(certificate=CERTIFICATE, *, data=DATA, index=INDEX, rows=ROWS):
    return certificate_differences(certificate, data=data, index=index, rows=rows)


def test_what_was_certified_does_not_differ():
    assert differences() == []


def test_the_whole_objects_digest_is_compared_where_all_of_it_was_read():
    other = replace(CERTIFICATE, data=replace(CERTIFICATE.data, sha256="0" * 64))
    [said] = differences(other)
    assert said.startswith("data object: digest: expected 000000")


def test_where_a_block_was_not_read_that_is_all_that_is_said():
    rows = {part: row for part, row in ROWS.items() if part != 2}
    assert differences(rows=rows) == ["block 2: not read"]


def test_an_index_that_is_gone_is_told_once():
    [said] = object_differences(CERTIFICATE, data=DATA, index=None)
    assert said.startswith(f"index object {CERTIFICATE.index.key}: expected")
    assert said.endswith("it is gone or archived")


def test_an_index_of_other_bytes_is_one_whatever_its_head_says():
    other = StoredObject(head=INDEX.head, body=INDEX.body[:-1] + b"?")
    [said] = object_differences(CERTIFICATE, data=DATA, index=other)
    assert said.startswith("index object: SHA-256: expected")


@pytest.mark.parametrize(
    ("certified", "found", "differs"),
    [
        (None, None, False),
        (None, "null", False),  # written before the bucket kept versions
        ("null", None, False),
        ("v1", "v1", False),
        ("v1", "v2", True),
        ("v1", None, True),
        ("v1", "null", True),
        (None, "v2", True),
    ],
)
def test_a_version_is_the_certified_one_or_is_not(certified, found, differs):
    facts = replace(CERTIFICATE.data, version_id=certified)
    said = head_differences("data", facts, replace(DATA, version_id=found))
    assert bool(said) is differs
