"""Users' suites can hold a ledger, and whatever is wrong with one holds them all."""

import json

import pytest

from tests.support.ledger_facts import SOUND
from tiering_assets.quality.expectations_run import run_suite
from tiering_assets.quality.ledger_frame import ledger_frame
from tiering_assets.quality.user_suites import (
    load_user_suites,
    user_findings,
    validate_user_suites,
)
from tiering_assets.resources.errors import SettingsError

ROWS = [SOUND.row(20), SOUND.row(21)._replace(listed_entries=90)]


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
    path = directory / f"{name}.json"
    path.write_text(json.dumps(suite))
    return str(path)


def judged(*paths):
    return validate_user_suites(ROWS, load_user_suites(",".join(paths)))


def test_a_user_suite_holds_the_ledger_it_fails_and_no_other(tmp_path):
    results = judged(
        write(tmp_path, "size", between("data_bytes", max_value=5 << 20)),
        write(
            tmp_path,
            "b-topic",
            between("listed_entries", min_value=91),
            between("blocks", min_value=1),
        ),
    )
    assert [r.name for r in results[20]] == ["user/size", "user/b-topic"]
    assert [r.success for r in results[20]] == [True, True]
    assert user_findings(results[20]) == ()
    assert [r.success for r in results[21]] == [True, False]
    held = results[21][1]
    assert held.failed == ("expect_column_values_to_be_between:listed_entries",)
    assert (held.evaluated, held.successful) == (2, 1)
    assert user_findings(results[21]) == (
        "held by suite user/b-topic: expect_column_values_to_be_between:listed_entries",
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[]", "a list `expectations`"),
        (b'{"expectations": []}', "not empty"),
        (b'{"expectations": [7]}', "expectation 1 lacks"),
        (b'{"expectations": [{"type": "expect_column_values_to_be_unique"}]}', "lacks `type` or"),
    ],
)
def test_a_file_that_is_no_suite_is_refused_at_the_start(tmp_path, content, reason):
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(SettingsError, match=reason) as refused:
        load_user_suites(str(tmp_path / "bad.json"))
    assert "quality.suites" in str(refused.value)
    assert "bad.json" in str(refused.value)


def test_a_file_that_is_not_there_is_refused_at_the_start(tmp_path):
    with pytest.raises(SettingsError, match=r"quality\.suites: .*gone\.json cannot be read"):
        load_user_suites(str(tmp_path / "gone.json"))


def test_two_files_of_one_name_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    paths = [write(d, "one", between("blocks", min_value=1)) for d in (tmp_path, tmp_path / "a")]
    with pytest.raises(SettingsError, match="user/one"):
        load_user_suites(", ".join(paths))


@pytest.mark.parametrize(
    ("expectations", "reason"),
    [
        ([{"type": "expect_what", "kwargs": {}}], "expect_what"),
        # the library itself would leave it out and judge by the rest
        ([between("part"), between("part", min_value=0)], "cannot both be None"),
        ([{"type": "expect_table_row_count_to_equal", "kwargs": {"value": 2}}], "a whole batch"),
        ([between("part", min_value=0, mostly=0.9)], "tolerates wrong rows"),
    ],
)
def test_a_suite_that_cannot_be_evaluated_holds_every_ledger(tmp_path, expectations, reason):
    results = judged(write(tmp_path, "bad", *expectations))
    assert list(results) == [20, 21]
    for (result,) in results.values():
        assert (result.name, result.success, result.evaluated) == ("user/bad", False, 0)
        [finding] = user_findings([result])
        assert finding.startswith("held by suite user/bad: not evaluated: ")
        assert reason in finding


def test_an_expectation_that_raises_holds_every_ledger(tmp_path):
    results = judged(
        write(tmp_path, "bad", between("no_such_column", min_value=0), between("part", min_value=0))
    )
    for (result,) in results.values():
        assert not result.success
        assert "no_such_column" in result.failed[0]
        assert (result.evaluated, result.successful) == (2, 1)


def test_a_bad_suite_does_not_keep_the_next_from_being_judged(tmp_path):
    bad = write(tmp_path, "a", {"type": "expect_what", "kwargs": {}})
    good = write(tmp_path, "b", between("part", min_value=0))
    assert [r.success for r in judged(bad, good)[20]] == [False, True]


def test_no_suites_hold_nothing():
    assert load_user_suites("") == ()
    assert load_user_suites(" , ") == ()
    assert validate_user_suites(ROWS, ()) == {20: (), 21: ()}


def test_a_suite_of_nothing_passes_nobody():
    """Such a file is refused before; here, it would pass every ledger."""
    with pytest.raises(SettingsError, match="it holds no expectation"):
        run_suite({"name": "nothing", "expectations": []}, ledger_frame(ROWS))
