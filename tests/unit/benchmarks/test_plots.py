"""What is drawn is what the results say, and the committed pictures are of the committed files."""

import json
from xml.etree import ElementTree

from benchmarks.page import BEFORE, IMAGES, RESULTS
from benchmarks.plots import draw, panels_of, render_plots

SPREAD = {"min": 1.0, "median": 2.5, "max": 40.0}


def row(contender, *, kind="1 KiB", store="SeaweedFS"):
    spreads = {"mb_per_s": SPREAD, "cpu_s_per_gb": SPREAD}
    return {"contender": contender, "entries_of": kind, "store": store, **spreads}


RESULT = {
    "rows": [
        row("broker"),
        row("broker", store="versitygw"),
        row("ours-verify", kind="100 B"),
        row("read-ours-100ms"),
        row("ours-verify") | {"error": "expected a"},
    ]
}
OLD = {"rows": [{"contender": "ours-verify", "entries_of": "1 KiB", "mb_per_s": SPREAD}]}


def test_panels_have_each_store_before_and_after_and_no_row_with_an_error():
    panels = panels_of(RESULT, OLD | {"rows": [OLD["rows"][0] | {"cpu_s_per_gb": SPREAD}]})
    near, second = panels["performance-offload"]
    assert near.bars == {
        "broker": {"1 KiB": SPREAD},
        "ours-verify, before": {"1 KiB": SPREAD},
        "ours-verify": {"100 B": SPREAD},
    }
    assert second.bars == {"broker": {"1 KiB": SPREAD}}
    (far,) = panels["performance-read"]
    assert (far.title, list(far.bars)) == (
        "Cold reads of the same objects, store 100 ms away",
        ["read-ours-100ms"],
    )


def test_the_pictures_are_what_the_results_give():
    files = (json.loads(path.read_text()) for path in (RESULTS, BEFORE))
    for name, svg in render_plots(*files).items():
        assert (IMAGES / name).read_text() == svg, "run `python -m benchmarks.page`"


def test_a_picture_is_the_same_each_time_with_its_medians_written_on_it():
    panels = panels_of(RESULT, {"rows": []})["performance-offload"]
    svg = draw(panels)
    assert svg == draw(panels)
    texts = {node.text for node in ElementTree.fromstring(svg).iter() if node.text}
    assert {"2.5", "broker", "ours-verify", "1 KiB", "Offload, versitygw"} <= texts


def test_a_picture_of_nothing_is_still_one():
    ElementTree.fromstring(draw([]))
