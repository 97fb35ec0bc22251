"""A backfill is fast by its ratio or its share of bare clients, and its bytes are the same."""

import time
from dataclasses import replace

import pytest

from benchmarks.backfill import Pace, summary
from benchmarks.meters import machine_busy


def paces(two=20.0, one=10.0, before=10.0, ceiling=40.0, least=40.0, *, hashes=("a", "a", "a")):
    speeds = {"two": two, "one": one, "before": before}
    found = [
        Pace(way, 1, 1_000_000_000, 1000 / speed, sha256)
        for (way, speed), sha256 in zip(speeds.items(), hashes, strict=True)
    ]
    bare = {"ceiling": ceiling, "least work": least}
    return found + [Pace(way, 1, 1_000_000_000, 1000 / speed) for way, speed in bare.items()]


def test_medians_are_compared_over_the_rounds():
    found = summary([*paces(two=17.0), *paces(two=18.0), *paces(two=90.0)])
    assert found["mb_per_s"] == {"two": 18.0, "one": 10.0, "before": 10.0} | {
        "ceiling": 40.0,
        "least work": 40.0,
    }
    assert (found["ratio"], found["share_of_ceiling"]) == (1.8, 0.45)
    assert (found["one_over_before"], found["identical"], found["met"]) == (1.0, True, True)


@pytest.mark.parametrize(
    ("speeds", "met"),
    [
        ({"two": 17.0}, True),
        ({"two": 16.9}, False),
        ({"two": 12.0, "ceiling": 15.0}, True),
        ({"two": 12.0, "ceiling": 15.1}, False),
        ({"two": 12.0, "least": 15.0}, True),
        ({"two": 12.0, "least": 15.1}, False),
        ({"before": 10.6}, False),
    ],
)
def test_it_is_met_by_the_ratio_or_a_ceiling_unless_one_worker_became_slower(speeds, met):
    assert summary(paces(**speeds))["met"] is met


def test_other_bytes_are_no_success():
    found = summary(paces(hashes=("a", "b", "a")))
    assert (found["identical"], found["met"]) == (False, False)


def test_without_an_earlier_commit_nothing_is_said_of_it():
    found = summary([pace for pace in paces() if pace.way != "before"])
    assert (found["one_over_before"], found["met"]) == (None, True)


@pytest.mark.parametrize(("busy", "met"), [(0.8, True), (0.6, False), (0.0, False)])
def test_two_workers_need_not_be_faster_than_the_cores_that_one_leaves(busy, met):
    """12 over 10 where one keeps four fifths busy: 1.25 is all that the cores give."""
    found = summary([replace(pace, busy=busy) for pace in paces(two=12.0)])
    assert found["cores_bear"] == (round(1 / busy, 3) if busy else None)
    assert found["met"] is met


def test_the_machine_is_as_busy_as_its_idle_time_leaves():
    with machine_busy() as spent:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            pass
    with machine_busy() as nothing:
        pass
    assert 0 < spent[0] <= 1
    assert 0 <= nothing[0] <= 1
