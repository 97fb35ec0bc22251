"""The estimate's sums, by hand, from what a real store was seen to be asked."""

from typing import Any

import pytest

from tests.support.layouts import plan_layout_from_sizes
from tiering_assets.batch.offload_estimate_rules import (
    ASSUMED_BYTES_PER_S,
    LeftOut,
    Limits,
    PlannedLedger,
    estimate_offload,
)

MIB = 1024 * 1024
A, B, C = "t/one/persistent/a", "t/one/persistent/b", "t/two/persistent/c"


def ledger(ledger_id, ml_name, *sizes):
    return PlannedLedger(
        ledger_id=ledger_id,
        ml_name=ml_name,
        entries=len(sizes),
        payload_bytes=sum(sizes),
        blocks=plan_layout_from_sizes(sizes, block_bytes_max=5 * MIB),
        index_metadata_bytes=100,
        exact=True,
    )


def limits(**changes):
    plain: dict[str, Any] = {
        "read_range_bytes": 8 * MIB,
        "budgets": {},
        "task_bytes_per_s": None,
        "task_origin": "",
        "reloads_hour_max": 2000,
    }
    return Limits(**plain | changes)


def estimate(*planned, left_out=(), first=(), **changes):
    return estimate_offload(planned, left_out, limits=limits(**changes), first_in_namespace=first)


def test_objects_parts_and_bytes_are_those_of_the_layout():
    small, large = ledger(1, A, 1000, 1000), ledger(2, B, *[MIB] * 12)
    found = estimate(small, large)
    assert (found.topics, found.ledgers, found.entries) == (2, 2, 14)
    assert (found.objects, found.parts) == (4, 3)  # a single block is no part: one PUT
    assert small.object_bytes == 128 + 2 * 12 + 2000
    assert found.object_bytes == small.object_bytes + large.object_bytes
    assert found.index_bytes == 2 * (32 + 100) + (1 + 3) * 20
    assert found.payload_bytes == 2000 + 12 * MIB


PAGES = 2  # of the day book, a batch


def test_requests_are_those_of_each_ledger_topic_and_canary():
    one, two, other = ledger(1, A, 10), ledger(2, A, 10), ledger(3, C, 10)
    alone = estimate(one)
    assert (alone.requests.put, alone.requests.post, alone.unloads) == (7 + 1 + 2 + PAGES, 0, 1)
    canary = estimate(one, two, first=[A])
    assert canary.unloads == 2  # the canary goes out, and is read, before the other
    assert canary.requests.put == 2 * 7 + 2 + 2 * 2 + 1 + PAGES
    assert estimate(one, two, first=[C]).unloads == 1
    assert estimate(one, other, first=[A, C]).unloads == 2  # one ledger each: the canary is all
    several = estimate(ledger(4, A, *[MIB] * 12)).requests
    assert (several.put, several.post) == (3 + 6 + 1 + 2 + PAGES, 2)


def test_without_ledgers_there_is_nothing_and_reasons_are_added_up():
    left = (LeftOut(1, A, 10, "open"), LeftOut(2, B, 5, "open"), LeftOut(3, A, 7, "no entries"))
    found = estimate(left_out=left, first=[A])
    assert (found.requests.total, found.seconds, found.unloads, found.bounds) == (0, 0, 0, ())
    assert [(row.reason, row.ledgers, row.bytes) for row in found.left_out] == [
        ("no entries", 1, 7),
        ("open", 2, 15),
    ]


def test_the_time_is_that_of_the_slowest_bound_with_its_origin():
    big = ledger(1, A, *[MIB] * 12)
    assumed = estimate(big)
    assert assumed.seconds == pytest.approx(12 * MIB / ASSUMED_BYTES_PER_S)
    assert "assumed" in assumed.bounds[0].origin
    measured = estimate(big, task_bytes_per_s=MIB, task_origin="measured")
    assert measured.seconds == pytest.approx(12)
    assert "measured" in measured.bounds[0].origin
    budgets = {"upload_bytes_per_s": 1000, "bookie_read_bytes_per_s": 0, "store_requests_per_s": 1}
    bounded = estimate(big, task_bytes_per_s=MIB, task_origin="", budgets=budgets)
    assert bounded.seconds == pytest.approx((big.object_bytes + big.index_bytes) / 1000)
    assert [bound.what for bound in bounded.bounds] == [
        "copying and reading back",
        "budget.upload_bytes_per_s",
        "budget.store_requests_per_s",
    ]
    assert bounded.requests.get > measured.requests.get  # budgets are read again each 10 s


def test_a_topics_own_budget_bounds_the_largest_topic_and_reloads_an_hour_bound_the_cluster():
    budgets = {"topic_bookie_read_bytes_per_s": 100}
    found = estimate(ledger(1, A, 1000), ledger(2, A, 500), ledger(3, B, 1200), budgets=budgets)
    assert found.seconds == pytest.approx(15)
    many = [ledger(i, f"t/one/persistent/{i}", 10) for i in range(5)]
    assert estimate(*many, reloads_hour_max=2).seconds == pytest.approx(1.5 * 3600)
