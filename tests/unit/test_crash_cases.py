"""No crash point without a case in the crash matrix, and none without a line for people."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.support.crash_cases import CASES
from tests.support.crash_matrix import SCHEMA, Result, summary
from tiering_assets.ground.effects import POINTS

PAGE = Path(__file__).parents[2] / "docs" / "crash-points.md"


def test_every_point_has_a_case_and_no_case_names_another():
    assert {case.point for case in CASES} == set(POINTS)


def test_no_case_is_there_twice():
    assert max(Counter(case.name for case in CASES).values()) == 1


def test_the_page_says_of_every_point_what_is_left_and_who_finishes_it():
    rows = re.findall(r"^\| `([a-z_.]+)` \| [^|]+ \| [^|]+ \|$", PAGE.read_text(), re.MULTILINE)
    fields = {"schema", "kills"}
    assert Counter(row for row in rows if row not in fields) == Counter(POINTS)


def test_the_report_has_a_row_for_every_point_those_without_a_kill_included():
    kill = Result(point="publish.context_set", case="publish.context_set of plain", kills=1)
    bad = Result(
        point="publish.context_set",
        case="publish.context_set of scrub",
        kills=1,
        anomalies=["I1: x", "I4: y"],
        parts_resent=1,
    )
    report = summary([kill, bad], [], 1.0)
    assert report["schema"] == SCHEMA
    assert [row["name"] for row in report["points"]] == [*POINTS]
    [row] = [row for row in report["points"] if row["kills"]]
    assert row == {
        "name": "publish.context_set",
        "kills": 2,
        "anomalies": 2,
        "parts_resent": 1,
    }
    assert (report["kills"], report["anomalies"], report["parts_resent"]) == (2, 2, 1)
