"""Frames of rows, proofs that end a cell, and pictures that load nothing."""

from datetime import UTC, datetime
from xml.etree import ElementTree

import pandas as pd
import pytest

from tiering_assets.lineage.proof_rules import TruthCompared
from tiering_assets.notebook.frames import agreed, frame_of
from tiering_assets.notebook.pictures import ROWS_MAX, bars, moments
from tiering_assets.resources.errors import IntegrityError

GOOD, BAD = TruthCompared(True, "object: agrees"), TruthCompared(False, "object: is not there")
SVG = "{http://www.w3.org/2000/svg}"


def texts(picture):
    root = ElementTree.fromstring(picture._repr_svg_())
    return [one.text for one in root.iter(f"{SVG}text")]


def test_a_frame_has_its_columns_also_without_a_row():
    assert [*frame_of([], ("a", "b")).columns] == ["a", "b"]
    found = frame_of([{"b": 2, "a": 1, "c": 3}], ("a", "b"))
    assert found.to_dict("records") == [{"a": 1, "b": 2}]


def test_proofs_that_hold_are_rows():
    assert agreed([GOOD, GOOD])["agrees"].tolist() == [True, True]


@pytest.mark.parametrize(
    ("proofs", "said"),
    [
        ([], "nothing is proven"),
        ([GOOD, BAD], "1 of 2 do not agree: object: is not there"),
        ([BAD] * 25, "25 of 25 .*; and 5 more"),
    ],
    ids=["none", "one", "many"],
)
def test_a_proof_that_does_not_hold_ends_its_cell(proofs, said):
    with pytest.raises(IntegrityError, match=said):
        agreed(proofs)


def test_bars_stand_behind_each_other_by_name():
    frame = pd.DataFrame({"topic": ["a<b", "c"], "here": [3, None], "there": [1, 2]})
    found = bars(frame, name="topic", values=["here", "there"], title="t & u", unit="bytes")
    assert {"a<b", "c", "here", "there", "t & u", "bytes"} <= {*texts(found)}
    again = bars(frame, name="topic", values=["here", "there"], title="t & u", unit="bytes")
    assert found == again
    assert 'href="http' not in found.svg
    assert "<script" not in found.svg


def test_bars_are_as_many_as_can_be_read_and_none_is_a_picture_too():
    frame = pd.DataFrame({"topic": [f"topic-{n}" for n in range(ROWS_MAX + 5)], "n": 1})
    named = texts(bars(frame, name="topic", values=["n"], title="t", unit="u"))
    assert f"topic-{ROWS_MAX - 1}" in named
    assert f"topic-{ROWS_MAX}" not in named
    assert "t" in texts(bars(frame.head(0), name="topic", values=["n"], title="t", unit="u"))


def test_moments_leave_out_what_has_no_time():
    at = [datetime(2026, 11, 28, tzinfo=UTC), None, datetime(2026, 11, 29, tzinfo=UTC)]
    frame = pd.DataFrame({"step": ["closed", "released", "closed"], "at": pd.Series(at)})
    named = texts(moments(frame, name="step", at="at", title="steps"))
    assert "closed" in named
    assert "released" not in named
    assert "steps" in texts(moments(frame.head(0), name="step", at="at", title="steps"))
