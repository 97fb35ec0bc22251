"""How values become text and JSON."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from uuid import UUID

import pytest

from tiering_assets.cli.shared.output import (
    human_age,
    human_bytes,
    print_document,
    print_facts,
    print_table,
    to_json,
)
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.resources.errors import ObjectStoreError


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Thing:
    uid: UUID
    when: datetime
    colour: Colour
    password: bytes = field(repr=False)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (5 * 1024**2, "5.0 MiB"),
        (3 * 1024**5, "3.0 PiB"),
        (5000 * 1024**5, "5000.0 PiB"),
    ],
)
def test_sizes_for_people(count, text):
    assert human_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.4, "0 s"),
        (-3, "-3 s"),
        (59, "59 s"),
        (60, "1.0 min"),
        (5400, "1.5 h"),
        (-7200, "-2.0 h"),
        (129_600, "1.5 d"),
    ],
)
def test_ages_for_people(seconds, text):
    assert human_age(seconds) == text


def test_json_of_a_value_leaves_out_what_repr_hides():
    thing = Thing(UUID(int=1), datetime(2026, 1, 2, tzinfo=UTC), Colour.RED, b"hunter2")
    assert to_json({7: (thing,)}) == {
        "7": [
            {
                "uid": str(UUID(int=1)),
                "when": "2026-01-02T00:00:00+00:00",
                "colour": "red",
            }
        ]
    }


def test_json_of_an_error_has_its_class_and_code():
    said = to_json(ObjectStoreError("away"))
    assert said["error"] == "ObjectStoreError"
    assert said["exit_code"] == ObjectStoreError.exit_code
    assert said["retryable"] is True


def test_a_document_names_its_schema_first(capsys):
    print_document("ledger-list", {"ledgers": []})
    assert list(json.loads(capsys.readouterr().out)) == ["schema", "ledgers"]


def test_columns_are_aligned_and_whole(capsys):
    print_table(
        (Column("A", ValueKind.ID), Column("LONGER")), [(1, "x" * 200), (None, "two\nlines")]
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["A  LONGER", "1  " + "x" * 200, r"-  two\nlines"]
    print_facts({"a": 1, "long name": Colour.RED})
    assert capsys.readouterr().out == "a          1\nlong name  red\n"
