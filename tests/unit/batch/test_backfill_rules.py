"""Lots hold every ledger in its order, and what they took says how long the rest takes."""

import random
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.batch.backfill_rules import (
    LOT_LEDGERS_MIN,
    LOTS,
    TOLD_FROM,
    Costs,
    LotDone,
    cut_lots,
    figures_of,
    fit_costs,
)
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, decode_managed_ledger

NONE = LotDone(0, 0, 0.0)


def listed(sizes):
    message = ml_pb2.ManagedLedgerInfo()
    for number, size in enumerate(sizes):
        message.ledgerInfo.add(ledgerId=number, size=size, entries=1, timestamp=1)
    return decode_managed_ledger(message.SerializeToString()).ledgers


sizes_of_topics = st.lists(st.integers(0, 10**12), max_size=300)


@given(sizes=sizes_of_topics)
def test_every_ledger_is_in_one_lot_and_in_its_order(sizes):
    lots = cut_lots(listed(sizes))
    assert [one.ledger_id for lot in lots for one in lot] == list(range(len(sizes)))
    assert all(lots) or not sizes


@given(sizes=sizes_of_topics)
def test_lots_are_few_and_one_that_exceeds_its_share_does_by_one_ledger(sizes):
    lots = cut_lots(listed(sizes))
    assert len(lots) <= 2 * LOTS + 2
    if len(sizes) <= LOT_LEDGERS_MIN:
        assert len(lots) == 1
        return
    for lot in lots:
        assert len(lot) <= max(LOT_LEDGERS_MIN, len(sizes) / LOTS) + 1
        assert sum(one.size or 0 for one in lot[:-1]) <= sum(sizes) / LOTS or sum(sizes) == 0


@pytest.mark.parametrize(
    ("sizes", "lots"),
    [([10] * 400, 40), ([0] * 400, 40), ([10] * 20, 20), ([1] * 19 + [1000], 4), ([10] * 5, 1)],
)
def test_a_lot_is_a_fortieth_of_the_ledgers_or_of_the_bytes(sizes, lots):
    assert len(cut_lots(listed(sizes))) == lots


@pytest.mark.parametrize(("ledger_s", "byte_s"), [(2.0, 1e-8), (0.0, 1e-8), (2.0, 0.0)])
def test_lots_of_few_large_and_of_many_small_ledgers_tell_the_costs_apart(ledger_s, byte_s):
    true = Costs(ledger_s=ledger_s, byte_s=byte_s)
    lots = [(1, 10**9), (50, 10**7), (2, 10**9), (40, 10**8)]
    fitted = fit_costs(
        [LotDone(n, size, true.seconds(n, size)) for n, size in lots], ledgers=1000, size=10**11
    )
    assert fitted.seconds(900, 10**8) == pytest.approx(true.seconds(900, 10**8), rel=0.05, abs=1)
    assert fitted.seconds(1, 10**11) == pytest.approx(true.seconds(1, 10**11), rel=0.05, abs=1)


@given(
    lots=st.lists(
        st.tuples(st.integers(1, 50), st.integers(0, 10**12), st.just(0.0) | st.floats(1e-3, 1e6)),
        max_size=30,
    )
)
def test_whatever_lots_took_no_cost_is_below_zero(lots):
    done = [LotDone(*one) for one in lots]
    fitted = fit_costs(
        done, ledgers=sum(one.ledgers for one in done), size=sum(one.bytes for one in done)
    )
    assert fitted.ledger_s >= 0
    assert fitted.byte_s >= 0


def test_nothing_and_what_took_no_time_cost_nothing():
    assert fit_costs([], ledgers=0, size=0) == Costs(ledger_s=0.0, byte_s=0.0)
    assert fit_costs([LotDone(5, 100, 0.0)], ledgers=9, size=900).seconds(9, 900) < 0.01


@pytest.mark.parametrize(
    ("ledgers", "size", "left"), [(10, 99, None), (9, 100, None), (10, 100, 90.0)]
)
def test_the_finish_is_told_from_a_tenth_of_the_bytes_and_the_ledgers_on(ledgers, size, left):
    done = [LotDone(ledgers, size, 10.0)]
    found = figures_of(done, found=NONE, ledgers=100, size=1000, publish_s=0.0)
    assert found.seconds_left == (left if left is None else pytest.approx(left))
    assert figures_of([], found=NONE, ledgers=9, size=9, publish_s=0.0).seconds_left is None


def test_what_an_earlier_run_did_is_done_and_says_nothing_of_the_pace():
    done, found = [LotDone(10, 100, 10.0)], LotDone(50, 500, 0.0)
    told = figures_of(done, found=found, ledgers=100, size=1000, publish_s=0.0)
    assert (told.ledgers_done, told.bytes_done) == (60, 600)
    assert told.seconds_left == pytest.approx(40.0)


def test_publications_to_come_count():
    done = [LotDone(50, 500, 10.0)]
    found = figures_of(done, found=NONE, ledgers=100, size=1000, publish_s=25.0)
    assert found.seconds_left == pytest.approx(10.0 + 25.0)


def test_what_starts_once_in_the_first_lot_that_copied_says_nothing_of_the_rest():
    done = [LotDone(0, 0, 1.0), LotDone(10, 100, 60.0), LotDone(10, 100, 10.0)]
    told = figures_of(done, found=NONE, ledgers=100, size=1000, publish_s=0.0)
    assert told.seconds_left == pytest.approx(80.0)
    alone = figures_of(done[:2], found=NONE, ledgers=100, size=1000, publish_s=0.0)
    assert alone.seconds_left == pytest.approx(540.0)


def backfill(seed, *, ledger_s, byte_s, noise=0.1, start_s=0.0):
    """(estimates, truth) of a backfill of 200 ledgers, at each lot's end from a tenth on. Its
    first lot takes longer by what is started in it.
    """
    rng = random.Random(seed)
    sizes = [int(10 ** rng.uniform(6, 9)) for _ in range(200)]
    lots: list[list[LedgerInfo]] = cut_lots(listed(sizes))
    done: list[LotDone] = []
    for lot in lots:
        spent = sum(
            (ledger_s + byte_s * (one.size or 0)) * rng.uniform(1 - noise, 1 + noise) for one in lot
        )
        spent += start_s if not done else 0.0
        done.append(LotDone(len(lot), sum(one.size or 0 for one in lot), spent))
    ends = list(accumulate(one.seconds for one in done))
    return [
        (left, ends[-1], ends[i])
        for i in range(len(done))
        if (
            left := figures_of(
                done[: i + 1], found=NONE, ledgers=200, size=sum(sizes), publish_s=0.0
            ).seconds_left
        )
        is not None
    ]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(
    ("ledger_s", "byte_s", "start_s"),
    [(2.0, 2e-8, 0.0), (20.0, 2e-8, 0.0), (0.0, 2e-8, 0.0), (1.0, 0.0, 0.0), (1.0, 2e-8, 20.0)],
    ids=["bytes and number", "number most", "bytes alone", "number alone", "a slow start"],
)
def test_after_the_first_tenth_the_finish_is_known_within_15_percent(
    seed, ledger_s, byte_s, start_s
):
    """Sizes over three decades, a tenth of noise on each ledger."""
    [(left, end, now), *_rest] = backfill(seed, ledger_s=ledger_s, byte_s=byte_s, start_s=start_s)
    assert now + left == pytest.approx(end, rel=0.15)
    assert TOLD_FROM == 0.1
