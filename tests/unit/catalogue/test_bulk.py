"""Who reads much for the catalogue has a client of its own; all others keep the proven one."""

from dataclasses import dataclass
from typing import Any, cast

import pytest

from tests.unit.catalogue.desk import page
from tiering_assets.catalogue import post as posting
from tiering_assets.catalogue.bulk import in_bulk
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.s3_bulk import BulkS3ObjectStore
from tiering_assets.resources.settings import Settings, StoreSettings

SETTINGS = Settings(store=StoreSettings(bucket="b", access_key="a", secret_key="s"))


@dataclass(frozen=True)
class Parts:
    """What is asked of a stack."""

    objects: Any
    book: RecordBook
    settings: Settings = SETTINGS
    rates: Any = None


def parts(objects):
    return cast(Any, Parts(objects, RecordBook(objects, "inst")))


def test_a_store_of_s3_is_read_by_the_other_client():
    stack = parts(S3ObjectStore(SETTINGS.store))
    bulk = in_bulk(stack)
    assert type(bulk.objects) is BulkS3ObjectStore
    assert bulk.objects.bucket == "b"
    assert bulk.book._objects is bulk.objects
    assert type(stack.objects) is S3ObjectStore
    assert in_bulk(bulk) is bulk


def test_another_store_is_read_as_ever(desk):
    stack = parts(desk.objects)
    assert in_bulk(stack) is stack


@pytest.mark.parametrize(("number", "fast"), [(2, False), (3, True)])
def test_a_posting_of_many_records_reads_by_it(desk, monkeypatch, number, fast):
    monkeypatch.setattr(posting, "BULK_FROM", 2)
    names = [desk.scrub(ledger_id) for ledger_id in range(number)]
    asked = []

    def bulk(stack):
        asked.append(stack)
        return stack

    monkeypatch.setattr(posting, "in_bulk", bulk)
    found = posting.read_named(desk.stack, [page(1, names=names)])
    assert sorted(found) == sorted(names)
    assert bool(asked) is fast
