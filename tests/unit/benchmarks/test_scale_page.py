"""What is told of fleets of any size is what the results give."""

import json

import pytest

from benchmarks.scale_goals import LISTS, NEXT, ONE, WITHIN, goals
from benchmarks.scale_page import BEGIN, END, IMAGE, PAGE, RESULT, draw, render_page

GROWN = "requests of a tick in the largest fleet beyond those in the smallest"


def tick(**found):
    return {
        "seconds": 3.0,
        "cpu_seconds": 2.0,
        "tick_seconds": 1.0,
        "tick_cpu_seconds": 0.5,
        "peak_mb": 200,
        "store_requests": 20,
        **found,
    }


def results(**largest):
    small = {f"{NEXT}release_due": tick(), "sensor:release_due": tick(store_requests=60)}
    return {
        "measured_at": "2026-03-01T12:00:00+00:00",
        "machine": {"cores": 2, "load_before": 0.5, "load_after": 1.5},
        "method": "as it is",
        "fleets": {"10x100000": {**small, **largest}, "10x100": small},
        "rows": {"100x100000": {name: tick() for name in LISTS}},
        "blocks": {"1000x100x100": {name: tick() for name in ONE}},
    }


def of(found):
    return {one.what: one for one in goals(found)}


def test_the_largest_fleet_counts_whatever_the_order_of_the_file():
    found = of(results(**{f"{NEXT}release_due": tick(store_requests=51)}))
    one = found["requests to the store of a tick"]
    assert (one.found, one.met, one.by) == (51, False, f"{NEXT}release_due")
    grown = found[GROWN]
    assert (grown.found, grown.met) == (31, False)
    assert found["and of the first tick of a process"].found == 60


@pytest.mark.parametrize(
    ("small", "large", "grown"),
    [
        ({"store_requests": 20}, {"store_requests": 23}, 3),
        ({"store_requests": 20}, {"store_requests": 23, "round_over": True}, None),
        ({"store_requests": 20, "round_over": True}, {"store_requests": 23}, None),
        (None, {"store_requests": 23}, None),
        ({"store_requests": 20}, None, None),
    ],
)
def test_within_a_round_ticks_within_one_compare(small, large, grown):
    name, within = f"{NEXT}offload_threshold", f"{WITHIN}offload_threshold"
    going = {"round_over": False}
    found = results(
        **{name: tick(store_requests=21, **going)},
        **({} if large is None else {within: tick(**going | large)}),
    )
    rest = {} if small is None else {within: tick(**going | small)}
    found["fleets"]["10x100"] |= {name: tick(store_requests=0, round_over=True), **rest}
    assert of(found)[GROWN].found == grown
    assert of(found)[GROWN].by in ("", within)


def test_a_tick_may_take_what_its_scan_may():
    found = of(results(**{f"{NEXT}catalogue": tick(tick_seconds=39.0)}))
    assert found["a tick beyond its scan budget"].found == pytest.approx(4.0)
    assert found["a tick beyond its scan budget"].met


def test_what_was_not_measured_or_failed_is_not_met():
    found = of(results(**{f"{NEXT}stuck": {**tick(), "failed": [1, "no broker"]}}))
    assert found["requests to the store of a tick"].found is None
    assert not found["requests to the store of a tick"].met
    assert found["coverage of all blocks"].found is None
    assert found["backlog, metrics, lists"].met
    assert not found["one ledger, one message, ten minutes of a topic"].met  # of 1.5 s


def test_the_page_has_every_goal_and_every_figure():
    found = results()
    page = render_page(f"# Scale\n\n{BEGIN}\nold\n{END}\n\nprose\n", found)
    assert "old" not in page
    assert page.endswith("prose\n")
    assert all(f"| {one.what} | " in page for one in goals(found))
    assert "| next tick of release_due | 1 | 0.5 | 200 | 20 |" in page
    assert "1,000,000 ledgers in 100,000 topics" in page
    assert "100,000 ledgers of 100 blocks in 100 topics" in page
    with pytest.raises(ValueError, match="lacks"):
        render_page("# Scale\n", found)


def test_the_same_results_give_the_same_picture():
    assert draw(results()) == draw(results())
    assert draw(results()) != draw(results(**{f"{NEXT}release_due": tick(store_requests=99)}))


def test_the_page_is_what_the_accepted_results_give():
    accepted = json.loads(RESULT.read_text())
    assert render_page(PAGE.read_text(), accepted) == PAGE.read_text()
    assert draw(accepted) == IMAGE.read_text()
    assert [one for one in goals(accepted) if one.found is None] == []
