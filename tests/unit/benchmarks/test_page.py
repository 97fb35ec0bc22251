"""The page and its pictures are what the results file gives."""

import json

import pytest

from benchmarks.figures import METRICS, RATIO_METRICS, check_results
from benchmarks.page import BEFORE, BEGIN, END, IMAGES, PAGE, RESULTS, render_page
from benchmarks.plots import TITLES

AGAIN = "run `python -m benchmarks.page`"


@pytest.fixture(scope="module")
def results():
    return json.loads(RESULTS.read_text())


@pytest.fixture(scope="module")
def before():
    return json.loads(BEFORE.read_text())


def test_the_results_file_is_one(results):
    assert check_results(results) == []


def test_the_page_is_what_the_results_give(results, before):
    page = PAGE.read_text()
    assert page == render_page(page, results, before), AGAIN


def test_the_page_shows_every_picture_there_is():
    assert {path.stem for path in IMAGES.glob("performance-*")} == set(TITLES)
    assert all(f"images/{name}.svg" in PAGE.read_text() for name in TITLES)


def test_every_row_is_on_the_page(results):
    page = PAGE.read_text()
    for row in results["rows"]:
        assert f"| {row['entries_of']} | {row['store']} | {row['contender']} |" in page


def test_every_goal_is_on_the_page_with_what_became_of_it(results):
    page = PAGE.read_text()
    for goal in results["goals"]:
        (line,) = (
            x
            for x in page.splitlines()
            if x.startswith(
                f"| {goal['measure']} | {goal.get('entries_of', '')} | {goal.get('store', '')} |"
            )
        )
        assert f"| {goal['goal']} |" in line
        assert f"| {goal['state']} |" in line


def test_a_page_shows_figures_errors_and_what_was_not_run(results, before):
    figures = {"min": 1.0, "median": 2.345, "max": 1234.5}
    metrics = dict.fromkeys(METRICS, figures)
    place = {"entries_of": "1 KiB", "store": "SeaweedFS", "rounds": 3, "mb": 12.0, "ledgers": 2}
    good = {"contender": "broker", **place, **metrics, "requests_by_kind": {"s3_PutObject": 6}}
    good["cpu_s_per_gb_by_role"] = {"broker": figures, "store": figures, "worker": figures}
    bad = {"contender": "ours-copy", **place, "error": "expected a|b"}
    ours = good | {"contender": "ours-verify"}
    ceiling = good | {"contender": "ceiling-put-get"}
    ceiling["mb_per_s"] = figures | {"median": 4.69}
    ratio = {"contender": "ours-copy", "over": "broker", "entries_of": "1 KiB", "store": "x"}
    limited = {"measure": "m", "goal": ">= 1", "by": "make x", "value": 0.5, "state": "limit"}
    changed = results | {
        "rows": [good, bad, ours, ceiling],
        "ratios": [ratio | dict.fromkeys(RATIO_METRICS, figures)],
        "goals": [limited | {"limit": "the disk writes no more"}],
        "not_run": [
            {
                "contender": "spark-copy",
                "entries_of": kind,
                "store": "x",
                "rounds": 1,
                "reason": "no time",
            }
            for kind in ("1 KiB", "10 KiB")
        ],
    }
    page = render_page(f"before\n{BEGIN}\nold\n{END}\nafter\n", changed, before)
    assert "| 1 KiB | SeaweedFS | broker | 12 | 3 | 1 / 2.35 / 1,234 |" in page
    assert "| 1 KiB | SeaweedFS | ours-copy | 12 | 3 | error: expected a\\|b |" in page
    assert "| 1 KiB | x | ours-copy | broker | 1 / 2.35 / 1,234 | 1 / 2.35 / 1,234 |" in page
    assert "| 1 KiB | SeaweedFS | broker | 2.35 | 2.35 | 2.35 |" in page
    assert "| spark-copy | 1 KiB, 10 KiB | x | no time | 1 |" in page
    assert "| 1 KiB | broker | 23.1 → 2.35 |" in page
    assert "| 1 KiB | SeaweedFS | 2.35 |  |  | 4.69 |  | 50% |  |" in page
    assert "| 1 KiB | SeaweedFS | broker | 3 PutObject |" in page
    assert "| m |  |  | >= 1 | 0.5 | limit | make x |" in page
    assert "* m: the disk writes no more." in page
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "\nold\n" not in page


def test_a_page_without_markers_is_refused(results, before):
    with pytest.raises(ValueError, match="lacks"):
        render_page("# Performance\n", results, before)
