"""The page and its pictures are what the results file gives."""

import json
import re
from xml.etree import ElementTree

import pytest

from benchmarks.figures import check_results
from benchmarks.page import BEGIN, END, IMAGES, PAGE, RESULTS, bar_chart, render_page, render_plots

AGAIN = "run `python -m benchmarks.page`"


@pytest.fixture(scope="module")
def results():
    return json.loads(RESULTS.read_text())


def test_the_results_file_is_one(results):
    assert check_results(results) == []


def test_the_page_is_what_the_results_give(results):
    page = PAGE.read_text()
    assert page == render_page(page, results), AGAIN


def test_the_pictures_are_what_the_results_give(results):
    for name, svg in render_plots(results).items():
        assert (IMAGES / name).read_text() == svg, AGAIN
        assert f"images/{name}" in PAGE.read_text()


def test_every_row_is_on_the_page(results):
    page = PAGE.read_text()
    for row in results["rows"]:
        assert f"| {row['entries_of']} | {row['contender']} |" in page


def test_a_page_shows_figures_errors_and_what_was_not_run(results):
    figures = {"min": 1.0, "median": 2.345, "max": 1234.5}
    metrics = dict.fromkeys(("mb_per_s", "cpu_s_per_gb", "peak_rss_mb", "requests_per_gb"), figures)
    good = {"contender": "broker", "entries_of": "1 KiB", "rounds": 3, "mb": 12.0, **metrics}
    good["cpu_s_per_gb_by_role"] = {"broker": figures, "store": figures}
    bad = {"contender": "ours-copy", "entries_of": "1 KiB", "rounds": 3, "mb": 12.0}
    ratio = {"contender": "ours-copy", "over": "broker", "entries_of": "1 KiB"}
    changed = results | {
        "rows": [good, bad | {"error": "expected a|b"}],
        "ratios": [ratio | {"mb_per_s": figures, "cpu_s_per_gb": figures}],
        "not_run": [
            {"contender": "spark-copy", "entries_of": kind, "rounds": 1, "reason": "no time"}
            for kind in ("1 KiB", "10 KiB")
        ],
    }
    page = render_page(f"before\n{BEGIN}\nold\n{END}\nafter\n", changed)
    assert "| 1 KiB | broker | 12 | 3 | 1 / 2.35 / 1,234 |" in page
    assert "| 1 KiB | ours-copy | 12 | 3 | error: expected a\\|b |" in page
    assert "| 1 KiB | ours-copy | broker | 1 / 2.35 / 1,234 | 1 / 2.35 / 1,234 |" in page
    assert "| 1 KiB | broker | 2.35 | 2.35 |" in page
    assert "| spark-copy | 1 KiB, 10 KiB | no time | 1 |" in page
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "\nold\n" not in page
    plots = render_plots(changed)
    assert all(">broker<" in plots[f"performance-{name}.svg"] for name in ("offload", "cpu"))
    assert all(">ours-copy<" not in svg for svg in plots.values())


def test_a_page_without_markers_is_refused(results):
    with pytest.raises(ValueError, match="lacks"):
        render_page("# Performance\n", results)


def test_bars_are_as_long_as_their_medians():
    spreads = [
        ("one", {"min": 1.0, "median": 2.0, "max": 4.0}),
        ("two & more", dict.fromkeys(("min", "median", "max"), 1.0)),
    ]
    svg = bar_chart("A < B", [("1 KiB", spreads)])
    ElementTree.fromstring(svg)
    first, second = (float(x) for x in re.findall(r'<rect x="\d+" y="\d+" width="([0-9.]+)"', svg))
    assert first == pytest.approx(2 * second, abs=0.2)


def test_a_picture_of_nothing_is_still_one():
    ElementTree.fromstring(bar_chart("nothing", []))
