"""What is told of cold messages is what the results give."""

import pytest

from benchmarks.cold_goals import (
    BATCHED,
    BOTH_CORES,
    SINGLE,
    SPARK,
    THROUGH_BROKER,
    goals,
)
from benchmarks.cold_page import BEGIN, END, PAGE, draw, render_page


def shape(**found):
    ways = {way: {"rows_per_s": 600_000} for way in (BOTH_CORES, SPARK, *THROUGH_BROKER)}
    ways[SPARK]["worker_rss_mb"] = 400
    return {
        "messages": 1000,
        "payload_bytes": 1024,
        "blocks": 2,
        "object_bytes": 2e6,
        "ways": ways,
        "times_broker": 6.5,
        "all_times_places": 12,
        "read_times_blocks": 1.0,
        **found,
    }


def results(**batched):
    case = {
        "rows_per_s": 2_000_000,
        "bytes_per_s": 7e8,
        "cpu_s_per_gb": 1.0,
        "arrays_cpu_s_per_gb": 5.0,
        "one_by_one_cpu_s_per_gb": 30.0,
    }
    names = (f"{BATCHED}, nine columns", f"{BATCHED}, all columns", f"{SINGLE}, nine columns")
    return {
        "measured_at": "2026-03-01T12:00:00+00:00",
        "machine": {"cores": 2, "load": 0.5, "loop_s": 0.8},
        "shapes": {BATCHED: shape(**batched), SINGLE: shape()},
        "decode": dict.fromkeys(names, case),
    }


def missed(found):
    return [one.what for one in goals(found) if not one.met]


def test_goals_of_the_results_are_met():
    assert missed(results()) == []
    assert len(goals(results())) == 10


@pytest.mark.parametrize(
    ("figure", "value", "what"),
    [
        ("times_broker", 5.9, "two processes"),
        ("all_times_places", 9.9, "CPU of all columns"),
        ("read_times_blocks", 1.21, "bytes read"),
    ],
)
def test_what_is_too_little_or_too_much_is_missed(figure, value, what):
    [found] = missed(results(**{figure: value}))
    assert found.startswith(what)


def test_memory_is_that_of_the_larger_worker():
    found = results()
    found["shapes"][SINGLE]["ways"][SPARK]["worker_rss_mb"] = 501
    [missed_one] = [one for one in goals(found) if not one.met]
    assert missed_one.said == "501 MB, goal \u2264 500 MB: missed"


def test_what_was_not_measured_is_not_met():
    found = results()
    del found["shapes"][BATCHED], found["decode"][f"{SINGLE}, nine columns"]
    assert len(missed(found)) == 6
    assert next(one for one in goals(found) if not one.met).said.startswith("not measured, goal")


def test_the_page_has_a_place_for_figures_and_ways_are_drawn():
    assert "2,000,000 rows/s" in render_page(PAGE.read_text(), results())
    assert SPARK in draw(results())


def test_a_page_without_markers_is_refused():
    made = render_page(f"before\n{BEGIN}\nBEFORE\n{END}\nafter\n", results())
    assert "600,000" in made
    assert "BEFORE" not in made
    with pytest.raises(ValueError, match="lacks"):
        render_page("nothing", results())
