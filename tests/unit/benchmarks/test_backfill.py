"""A backfill is fast by its ratio or its share of bare clients, and its bytes are the same."""

import pytest

from benchmarks.backfill import Pace, summary


def paces(two=20.0, one=10.0, before=10.0, ceiling=40.0, *, hashes=("a", "a", "a")):
    speeds = {"two": two, "one": one, "before": before}
    found = [
        Pace(way, 1, 1_000_000_000, 1000 / speed, sha256)
        for (way, speed), sha256 in zip(speeds.items(), hashes, strict=True)
    ]
    return [*found, Pace("ceiling", 1, 1_000_000_000, 1000 / ceiling)]


def test_medians_are_compared_over_the_rounds():
    found = summary([*paces(two=17.0), *paces(two=18.0), *paces(two=90.0)])
    assert found["mb_per_s"] == {"two": 18.0, "one": 10.0, "before": 10.0, "ceiling": 40.0}
    assert (found["ratio"], found["share_of_ceiling"]) == (1.8, 0.45)
    assert (found["one_over_before"], found["identical"], found["met"]) == (1.0, True, True)


@pytest.mark.parametrize(
    ("speeds", "met"),
    [
        ({"two": 17.0}, True),
        ({"two": 16.9}, False),
        ({"two": 12.0, "ceiling": 15.0}, True),
        ({"two": 12.0, "ceiling": 15.1}, False),
        ({"before": 10.6}, False),
    ],
)
def test_it_is_met_by_the_ratio_or_the_ceiling_unless_one_worker_became_slower(speeds, met):
    assert summary(paces(**speeds))["met"] is met


def test_other_bytes_are_no_success():
    found = summary(paces(hashes=("a", "b", "a")))
    assert (found["identical"], found["met"]) == (False, False)


def test_without_an_earlier_commit_nothing_is_said_of_it():
    found = summary([pace for pace in paces() if pace.way != "before"])
    assert (found["one_over_before"], found["met"]) == (None, True)
