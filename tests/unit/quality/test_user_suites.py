"""Users' suites can hold a ledger, and whatever is wrong with one holds them all."""

import json
from dataclasses import replace

import pytest

from tests.support.golden_objects import golden_ledger
from tests.support.index_facts import golden_index_facts
from tiering_assets.quality.suites import load_user_suites, validate_user_suites

BASE = golden_index_facts(golden_ledger("multi-block", 20))
BATCH = [BASE, replace(BASE, ledger_id=21, topic_entries=100)]


def between(column, **kwargs):
    return {"type": "expect_column_values_to_be_between", "kwargs": {"column": column, **kwargs}}


def write(directory, name, *expectations):
    # The other keys are those of a suite that Great Expectations saved itself.
    suite = {
        "name": "theirs",
        "id": None,
        "notes": None,
        "meta": {"great_expectations_version": "1.24.1"},
        "expectations": list(expectations),
    }
    (directory / f"{name}.json").write_text(json.dumps(suite))


def test_a_user_suite_holds_the_ledger_it_fails_and_no_other(tmp_path):
    write(
        tmp_path, "b-topic", between("topic_entries", min_value=101), between("part", min_value=1)
    )
    write(tmp_path, "a-blocks", between("header_block_length", max_value=5 << 20))
    results = validate_user_suites(BATCH, tmp_path)
    assert [r.name for r in results[20]] == ["user/a-blocks", "user/b-topic"]
    assert [r.success for r in results[20]] == [True, True]
    assert [r.success for r in results[21]] == [True, False]
    held = results[21][1]
    assert held.failed == ("expect_column_values_to_be_between:topic_entries (parts 1, 2, 3, 4)",)
    assert (held.evaluated, held.successful) == (2, 1)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "JSONDecodeError"),
        (b"\xff\xfe\x00", "Error"),
        (b"[]", "no object with a list `expectations`"),
        (b'{"expectations": []}', "it holds no expectation"),
        (b'{"expectations": [7]}', "Error"),
        (b'{"expectations": [{"type": "expect_column_values_to_be_unique"}]}', "KeyError"),
        (b'{"expectations": [{"type": "expect_what", "kwargs": {}}]}', "expect_what"),
        (  # the library itself would leave it out and judge by the rest
            json.dumps({"expectations": [between("part"), between("part", min_value=0)]}).encode(),
            "cannot both be None",
        ),
        (
            b'{"expectations": [{"type": "expect_table_row_count_to_equal", "kwargs": {"value": 8}}]}',
            "judges a whole batch",
        ),
        (
            json.dumps({"expectations": [between("part", min_value=0, mostly=0.9)]}).encode(),
            "tolerates wrong rows",
        ),
    ],
)
def test_a_suite_that_cannot_be_used_holds_every_ledger(tmp_path, content, reason):
    (tmp_path / "bad.json").write_bytes(content)
    results = validate_user_suites(BATCH, tmp_path)
    for (result,) in results.values():
        assert (result.name, result.success, result.evaluated) == ("user/bad", False, 0)
        assert result.failed[0].startswith("not evaluated: ")
        assert reason in result.failed[0]


def test_an_expectation_that_raises_holds_every_ledger(tmp_path):
    write(tmp_path, "bad", between("no_such_column", min_value=0), between("part", min_value=0))
    results = validate_user_suites(BATCH, tmp_path)
    assert list(results) == [20, 21]
    for (result,) in results.values():
        assert not result.success
        assert "no_such_column" in result.failed[0]
        assert (result.evaluated, result.successful) == (2, 1)


def test_a_bad_file_does_not_keep_the_next_from_being_judged(tmp_path):
    (tmp_path / "a.json").write_bytes(b"{")
    write(tmp_path, "b", between("part", min_value=0))
    assert [r.success for r in validate_user_suites(BATCH, tmp_path)[20]] == [False, True]


def test_a_directory_that_is_not_there_holds_every_ledger(tmp_path):
    results = validate_user_suites(BATCH, tmp_path / "suites")
    assert [r.success for (r,) in results.values()] == [False, False]
    assert "FileNotFoundError" in results[20][0].failed[0]


def test_an_empty_directory_holds_nothing(tmp_path):
    (tmp_path / "README.md").write_text("suites go here")
    assert load_user_suites(tmp_path) == ()
    assert validate_user_suites(BATCH, tmp_path) == {20: (), 21: ()}
