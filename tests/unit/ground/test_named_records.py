"""Which ledgers a record is about, of every kind; and which records the day book names."""

from dataclasses import replace
from typing import get_args

import pytest

from tests.unit.records.examples import EXAMPLES
from tests.unit.records.test_key_kinds import EVERY_KEY
from tiering_assets.ground.named_records import ABOUT, is_lasting, is_named, ledgers_of
from tiering_assets.records.bucket_models import DayBookPage, RunBatch
from tiering_assets.records.codec import RECORD_TYPES, encode_record
from tiering_assets.records.models import HoldLift, Record, ReleasePlan

# Ledgers that stand in a record, and that it is not about: why.
NOT_ABOUT = {
    ReleasePlan: "not_released",  # reasons why a plan leaves them alone
    DayBookPage: "ledgers",  # a page has no page
    RunBatch: "ledger_ids",  # they are taken up by the run that is asked for
}
OF_NOW = {"brokers", "bucket-proofs", "budgets", "claims", "day-book", "failures", "pauses"} | {
    "run-batches"  # of use to its run
}
CHANGING = {"canaries", "damage", "holds", "scrubs", "sweeps"}
COUNTED = {"begun-releases", "disturbances", "loads"}  # for an hour; a rule may delete them then


def ledgers_in(value, name=""):
    """Every ledger id of a JSON value, by the names that records give them."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from ledgers_in(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from ledgers_in(one, name)
    elif name in ("ledger_id", "ledger_ids", "ledgers"):
        yield value


def test_every_kind_of_record_has_its_entry():
    assert set(ABOUT) == set(RECORD_TYPES) == set(get_args(Record))


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: record.kind)
def test_a_record_is_about_every_ledger_that_stands_in_it(record):
    body = encode_record(record)
    body.pop(NOT_ABOUT.get(type(record), ""), None)
    expected = {*ledgers_in(body)}
    if isinstance(record, HoldLift):
        expected = {42}  # by the key of the hold that it lifts
        assert record.hold_key == "holds/42.json"
    assert {*ledgers_of(record)} == expected


@pytest.mark.parametrize("key", ["holds/all.json", f"holds/topics/{'0' * 32}.json"])
def test_the_lift_of_a_wider_hold_is_about_no_ledger(key):
    lift = next(one for one in EXAMPLES if isinstance(one, HoldLift))
    assert ledgers_of(replace(lift, hold_key=key)) == ()


@pytest.mark.parametrize("key", EVERY_KEY)
def test_what_is_so_now_is_not_named_and_what_changes_need_not_last(key):
    folder = key.partition("/")[0]
    assert is_named(key) is (folder not in OF_NOW)
    assert is_lasting(key) is (folder not in OF_NOW | CHANGING | COUNTED)
