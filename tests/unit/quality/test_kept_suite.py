"""The first look says of any frame what the library says of it, and costs a fraction."""

import copy
from dataclasses import replace

import great_expectations as gx
import pandas as pd
import pytest
from great_expectations.expectations.expectation import Expectation
from great_expectations.validator.validation_graph import ValidationGraph
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import index_damage, ledger_damage
from tests.support.golden_objects import golden_ledger
from tests.support.index_facts import golden_index_facts
from tests.support.ledger_facts import SOUND
from tiering_assets.quality import expectations_run
from tiering_assets.quality.checks import suite_json
from tiering_assets.quality.expectations_run import ExpectationOutcome, run_suite
from tiering_assets.quality.index_frame import index_frame
from tiering_assets.quality.kept_suite import keep
from tiering_assets.quality.ledger_checks import ledger_suites_json
from tiering_assets.quality.ledger_frame import ledger_frame

BASE = golden_index_facts(golden_ledger("multi-block", 20))
INDEX_FRAMES = {
    "sound": index_frame([BASE]),
    **{name: index_frame([damage(BASE)]) for name, damage in index_damage.DAMAGES},
}
LEDGER_FRAMES = {
    "sound": ledger_frame([SOUND.row()]),
    **{name: ledger_frame([damage(SOUND).row()]) for name, damage in ledger_damage.DAMAGES},
}
CASES = [
    *((suite_json(), name, frame) for name, frame in INDEX_FRAMES.items()),
    *((ledger_suites_json(), name, frame) for name, frame in LEDGER_FRAMES.items()),
]


@pytest.fixture(scope="module")
def library():
    """Great Expectations as its own pages use it: a context of its own, and nothing of ours."""
    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_pandas("plain").add_dataframe_asset("frame")
    batches = asset.add_batch_definition_whole_dataframe("all")

    def holds(suite, frame):
        built = gx.ExpectationSuite(name="plain", expectations=copy.deepcopy(suite["expectations"]))
        assert len(built.expectations) == len(suite["expectations"])
        batch = batches.get_batch(batch_parameters={"dataframe": frame})
        return batch.validate(built, result_format="BOOLEAN_ONLY").success

    return holds


def prepare(suite, frame):
    kept = keep(expectations_run._build(suite).expectations, frame)
    assert kept is not None, "the library's parts are not as this version uses them"
    return kept


def first_look(suite, frame):
    return prepare(suite, frame).holds(frame)


@pytest.fixture(scope="module")
def prepared():
    """Our suites, each prepared once."""
    return {suite["name"]: prepare(suite, frame) for suite, name, frame in CASES if name == "sound"}


@pytest.mark.parametrize(("suite", "name", "frame"), CASES, ids=[name for _, name, _ in CASES])
def test_the_first_look_says_of_each_damage_what_the_library_says(
    library, prepared, suite, name, frame
):
    assert prepared[suite["name"]].holds(frame) == library(suite, frame) == (name == "sound")


@settings(max_examples=25)
@given(st.lists(st.sampled_from(sorted(INDEX_FRAMES)), min_size=1, max_size=4))
def test_one_preparation_serves_frame_after_frame(prepared, names):
    """A metric of the frame before would pass a damage, or hold a sound ledger."""
    kept = prepared[suite_json()["name"]]
    said = [kept.holds(INDEX_FRAMES[name]) for name in names]
    assert said == [name == "sound" for name in names]


def column(values):
    return pd.DataFrame(
        {"ledger_id": range(len(values)), "part": 0, "c": values, "d": [1] * len(values)},
        dtype=object,
    )


KINDS = {
    "expect_column_values_to_be_between": ({"column": "c", "max_value": 5}, [1, 5], [1, 6]),
    "expect_column_values_to_not_be_null": ({"column": "c"}, [1, 2], [1, None]),
    "expect_column_values_to_be_null": ({"column": "c"}, [None, None], [1, None]),
    "expect_column_values_to_be_in_set": ({"column": "c", "value_set": [1]}, [1, None], [1, 2]),
    "expect_column_values_to_not_be_in_set": ({"column": "c", "value_set": [1]}, [2, 3], [1, 2]),
    "expect_column_values_to_be_unique": ({"column": "c"}, [1, 2], [1, 1]),
    "expect_column_values_to_match_regex": ({"column": "c", "regex": "^a"}, ["a"], ["a", "b"]),
    "expect_column_values_to_not_match_regex": ({"column": "c", "regex": "^a"}, ["b"], ["a"]),
    "expect_column_value_lengths_to_equal": ({"column": "c", "value": 2}, ["ab"], ["a", "ab"]),
    "expect_column_value_lengths_to_be_between": (
        {"column": "c", "max_value": 1},
        ["a"],
        ["a", "ab"],
    ),
    "expect_column_values_to_be_of_type": ({"column": "c", "type_": "int"}, [1, 2], [1, "a"]),
    "expect_column_values_to_be_in_type_list": (
        {"column": "c", "type_list": ["int"]},
        [1],
        ["a", 1],
    ),
    "expect_column_pair_values_to_be_equal": ({"column_A": "c", "column_B": "d"}, [1], [1, 2]),
    "expect_column_pair_values_a_to_be_greater_than_b": (
        {"column_A": "c", "column_B": "d"},
        [2, 3],
        [2, 1],
    ),
    "expect_select_column_values_to_be_unique_within_record": (
        {"column_list": ["c", "d"]},
        [2, 3],
        [2, 1],
    ),
    "expect_multicolumn_sum_to_equal": (
        {"column_list": ["c", "d"], "sum_total": 3},
        [2, 2],
        [2, 1],
    ),
    "expect_compound_columns_to_be_unique": ({"column_list": ["c", "d"]}, [2, 3], [2, 2]),
}
CONDITIONED = {
    "row_condition": {
        "type": "comparison",
        "column": {"name": "d"},
        "operator": ">",
        "parameter": 1,
    }
}


@pytest.mark.parametrize("more", [{}, CONDITIONED], ids=["all rows", "no row by a condition"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_look_says_of_every_kind_that_users_may_name_what_the_library_says(
    library, kind, more
):
    kwargs, good, bad = KINDS[kind]
    suite = {"name": "s", "expectations": [{"type": kind, "kwargs": kwargs | more}]}
    said = [first_look(suite, column(values)) for values in (good, bad)]
    assert said == [library(suite, column(values)) for values in (good, bad)]
    assert said == [True, bool(more)]


def suite_of(*expectations):
    return {"name": "s", "expectations": list(expectations)}


def between(name, **kwargs):
    return {"type": "expect_column_values_to_be_between", "kwargs": {"column": name, **kwargs}}


def test_a_column_that_is_not_there_is_left_to_the_library():
    suite = suite_of(between("nowhere", max_value=1))
    assert not first_look(suite, column([1]))
    [outcome] = run_suite(suite, column([1]))
    assert "nowhere" in str(outcome.broken)


def test_a_metric_that_is_missing_is_no_good_news(monkeypatch):
    """The library takes a count that is not there for no wrong row."""
    suite = suite_of(between("c", max_value=1))
    resolve = ValidationGraph.resolve

    def without_counts(self, **kwargs):
        found, aborted = resolve(self, **kwargs)
        kept = {key: value for key, value in found.items() if "unexpected" not in key.metric_name}
        return kept, aborted

    monkeypatch.setattr(ValidationGraph, "resolve", without_counts)
    assert not first_look(suite, column([1]))


def test_metrics_that_were_given_up_are_no_good_news(monkeypatch):
    suite = suite_of(between("c", max_value=1))
    resolve = ValidationGraph.resolve
    monkeypatch.setattr(
        ValidationGraph,
        "resolve",
        lambda self, **how: (resolve(self, **how)[0], {"one": "given up"}),
    )
    assert not first_look(suite, column([1]))


def test_an_outcome_says_what_the_suite_says_of_its_expectation():
    """As the library's own results do; a suite need not say anything."""
    one = between("c", max_value=1)
    for meta in ({}, {"meta": None}, {"meta": {"check": "a check"}}):
        [outcome] = run_suite(suite_of(one | meta), column([1]))
        assert outcome == ExpectationOutcome(
            kind=one["type"], kwargs=one["kwargs"], meta=meta.get("meta") or {}
        )


# ----- with the library behind it


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(expectations_run, "_KEPT", {})


def wrong(outcomes):
    return {outcome.meta["check"]: dict(outcome.unexpected) for outcome in outcomes}


def test_outcomes_are_the_same_without_the_first_look(monkeypatch):
    facts = [replace(BASE, ledger_id=1)]
    facts += [
        replace(damage(BASE), ledger_id=n)
        for n, (_name, damage) in enumerate(index_damage.DAMAGES, start=2)
    ]
    frames = [index_frame([one]) for one in facts[:3]] + [index_frame(facts)]
    found = [run_suite(suite_json(), frame) for frame in frames]
    monkeypatch.setattr(expectations_run, "_kept", lambda *_args: None)
    for frame, outcomes in zip(frames, found, strict=True):
        by_library = run_suite(suite_json(), frame)
        assert wrong(outcomes) == wrong(by_library)
        assert sorted(o.kind for o in outcomes) == sorted(o.kind for o in by_library)
        assert [o.broken for o in outcomes] == [o.broken for o in by_library]


@pytest.fixture
def no_library(monkeypatch):
    """Only the first look may judge from now on."""

    def forget():
        def validate():
            raise AssertionError("the library prepared the suite anew")

        monkeypatch.setattr(expectations_run, "_batch_definition", validate)

    return forget


def test_a_frame_in_which_all_holds_is_looked_at_once(no_library):
    frames = [index_frame([replace(BASE, ledger_id=n)]) for n in range(3)]
    run_suite(suite_json(), frames[0])
    no_library()
    for frame in frames:
        assert all(one.broken is None for one in run_suite(suite_json(), frame))


def test_a_second_validation_asks_no_expectation_for_its_configuration_again(monkeypatch):
    """One validation of 33 expectations did so 4,660 times."""
    run_suite(suite_json(), INDEX_FRAMES["sound"])
    asked = []
    plain = vars(Expectation)["configuration"].fget

    def counted(self):
        asked.append(self)
        return plain(self)

    monkeypatch.setattr(Expectation, "configuration", property(counted))
    run_suite(suite_json(), INDEX_FRAMES["sound"])
    # Three times by each, for what it tolerates and for the form of its result.
    assert len(asked) <= 3 * len(suite_json()["expectations"])


def test_a_frame_with_other_columns_is_prepared_for_anew():
    """Which metrics an expectation asks for can depend on the type of its column."""
    suite = suite_of({"type": "expect_column_values_to_be_of_type", "kwargs": {}})
    suite["expectations"][0]["kwargs"] = {"column": "c", "type_": "int"}
    objects, numbers = column([1, "a"]), column([1, 2]).astype({"c": "int64"})
    [mixed] = run_suite(suite, objects)
    assert dict(mixed.unexpected) == {1: (0,)}
    [typed] = run_suite(suite, numbers)
    assert typed.unexpected == {}
    assert len(expectations_run._KEPT) == 2


def test_what_a_suite_leaves_open_is_left_to_the_library():
    suite = suite_of(between("c", max_value={"$PARAMETER": "limit"}))
    assert expectations_run._kept(suite, column([1])) is None
    assert expectations_run._kept(suite_of(between("c", max_value=1)), column([1])) is not None


@pytest.mark.parametrize("name", ["build_metric_dependency_graph", "resolve"])
def test_a_library_whose_parts_have_changed_judges_by_its_public_door(monkeypatch, name):
    suite = suite_of(between("c", max_value=1))
    used = []

    class Changed(ValidationGraph):
        pass

    def changed(self, *_args, **_how):
        used.append(name)
        raise TypeError("it takes other arguments now")

    setattr(Changed, name, changed)
    monkeypatch.setattr("great_expectations.validator.validation_graph.ValidationGraph", Changed)
    [sound] = run_suite(suite, column([1]))
    [held] = run_suite(suite, column([1, 2]))
    assert used
    assert (sound.broken, dict(sound.unexpected)) == (None, {})
    assert (held.broken, dict(held.unexpected)) == (None, {1: (0,)})


def test_suites_without_end_are_not_kept_without_end():
    for limit in range(2 * expectations_run._KEPT_MAX):
        expectations_run._kept(suite_of(between("c", max_value=limit)), column([1]))
    assert 0 < len(expectations_run._KEPT) <= expectations_run._KEPT_MAX
