"""Goals of other commands' files, and requests without those that the bytes bring."""

import json

import pytest

from benchmarks.told import (
    BEFORE,
    backfilled,
    beyond_bytes,
    figures_told,
    lived,
    requested,
    waited,
)


def row(requests, mb, *, kind="1 KiB", ledgers=1, contender="ours-verify"):
    return {
        "contender": contender,
        "entries_of": kind,
        "store": "SeaweedFS",
        "ledgers": ledgers,
        "mb": mb,
        "requests_per_gb": {"median": requests / mb * 1000},
    }


@pytest.mark.parametrize(
    ("mb", "blocks", "gets"), [(10, 1, 2), (16, 1, 2), (33, 2, 4), (40, 3, 5), (100, 6, 12)]
)
def test_a_put_a_block_and_its_ranged_gets_are_no_overhead(mb, blocks, gets):
    assert beyond_bytes(row(20 + blocks + gets, mb), 16) == 20
    assert beyond_bytes(row(5 * (20 + blocks + gets), 5 * mb, ledgers=5), 16) == 20


def test_requests_are_compared_with_those_of_the_same_kind_before():
    before = {"settings": {"block_mib": 16}, "rows": [row(40, 60)]}
    (same,) = requested([row(40, 60)], before, 16)
    assert same.value == same.bound
    (more,) = requested([row(42, 60), row(90, 60, contender="ours-release")], before, 16)
    assert more.value == more.bound + 2
    (none,) = requested([], before, 16)
    assert none.value is None


def test_before_is_what_was_measured_before():
    before = json.loads(BEFORE.read_text())
    assert before["machine"]["versions"]["commit"] == "8b49b19"


def test_what_nobody_has_measured_is_told_with_what_measures_it():
    for figure in (backfilled({}), *lived({})):
        assert figure.value is None
        assert "make bench-backfill" in figure.why_none
    assert all(f.value is None for f in waited({}))


def test_a_backfill_is_judged_by_its_ratio_or_its_share_of_bare_clients():
    near = backfilled({"two_workers": {"ratio": 1.5, "share_of_ceiling": 0.8}})
    assert (near.value, near.otherwise[:3]) == (1.5, "80%")
    least = backfilled({"two_workers": {"ratio": 1.2, "share_of_least_work": 0.8}})
    assert least.otherwise.startswith("80% of the least work")
    assert backfilled({"two_workers": {"ratio": 1.2, "share_of_least_work": 0.79}}).otherwise == ""
    cores = {"two_workers": {"ratio": 1.2, "cores_bear": 1.3, "busy": {"one": 0.77}}}
    assert "one worker and the servers keep 77% of the cores busy" in backfilled(cores).otherwise
    assert backfilled({"two_workers": {"ratio": 1.1, "cores_bear": 1.3}}).otherwise == ""
    assert backfilled({"two_workers": {"ratio": 1.5, "share_of_ceiling": 0.79}}).otherwise == ""


def test_a_live_producer_may_wait_a_little_longer_however_short_it_waited():
    said = {"polite_p99_ratio": 1.4, "unpaced_p99_ratio": 3.0, "polite_share_of_rate": 0.3}
    p99, pace = lived(said | {"polite_p99_more_ms": 5.0})
    assert (p99.value, p99.otherwise[:9], pace.value) == (1.4, "5 ms more", 0.3)
    assert "without pacing it is 3" in p99.measure
    assert lived(said | {"polite_p99_more_ms": 5.1})[0].otherwise == ""


def test_waiting_is_what_its_committed_file_says():
    kinds = {
        "CLI offload, twenty topics, spark": {"after": {"first_s": 1.4, "end_s": 30.0}},
        "Dagster run, one ledger, local": {"after": {"first_s": 7.0, "end_s": 30.0}},
        "demo": {"after": {"first_s": 7.0, "end_s": 80.0}},
    }
    found = [f for f in waited({"kinds": kinds}) if f.value is not None]
    assert [(f.value, f.bound) for f in found] == [(1.4, 2.0), (7.0, 8.0), (80.0, 90.0)]
    assert [f.measure.partition(":")[0] for f in found] == list(kinds)


def test_all_of_them_come_together():
    assert len({figure.measure for figure in figures_told([], 16)}) >= 10
