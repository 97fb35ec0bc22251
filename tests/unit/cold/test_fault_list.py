"""No fault without a test in each mode, and no error of the cold rooms without a fault."""

import ast
from collections import Counter
from functools import cache

from tests.support.cold_fault_entries import TOPIC_FAULTS
from tests.support.cold_faults import FAULTS, MODES, OTHERWISE, raised
from tests.support.prove_cold import ids_of, summary
from tests.support.rooms import ROOT


def test_each_pair_of_a_fault_and_a_mode_has_a_test_or_a_reason_and_not_both():
    for fault in FAULTS:
        assert fault.tests.keys() | fault.reasons.keys() == MODES.keys(), fault.name
        assert fault.tests.keys() & fault.reasons.keys() == set(), fault.name
        assert all(fault.tests.values()), fault.name
        assert all(fault.reasons.values()), fault.name


def test_no_fault_is_there_twice_and_each_sort_of_entries_is_one():
    names = Counter(fault.name for fault in FAULTS)
    assert max(names.values()) == 1
    assert {fault.name for fault in TOPIC_FAULTS} <= names.keys()


@cache
def names_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_test_that_is_named_is_there():
    for one in ids_of(FAULTS):
        path, _, name = one.partition("::")
        assert (ROOT / path).is_file(), one
        assert not name or name.partition("[")[0] in names_in(path), one


def test_each_error_that_is_raised_is_given_by_a_fault():
    given = {error for fault in FAULTS for error in fault.errors}
    assert raised() - given - OTHERWISE.keys() == set()
    assert OTHERWISE.keys() - raised() == set()


def test_a_room_whose_error_no_fault_reaches_is_seen():
    assert {"FormatError", "CatalogueError", "LedgerNotFoundError"} <= raised()
    assert "SettingsError" in raised(["tiering_assets.resources.spark_master"])


def test_a_pair_is_proven_where_all_of_its_tests_passed():
    fault = FAULTS[0]
    [plain] = fault.tests["plain"]
    outcomes = {one: ["passed"] for one in ids_of(FAULTS)}
    report = summary(outcomes, 1.0)
    assert (report["anomalies"], report["missed"]) == (0, [])
    assert {row["mode"] for row in report["pairs"]} == {*MODES}
    told = {(row["fault"], row["mode"]): row["outcome"] for row in report["pairs"]}
    assert told[fault.name, "plain"] == "proven"
    assert told[fault.name, "connect"] == "the same as elsewhere"
    failed = summary({**outcomes, plain: ["passed", "failed"]}, 1.0)
    told = {(row["fault"], row["mode"]): row["outcome"] for row in failed["pairs"]}
    assert (told[fault.name, "plain"], failed["anomalies"]) == ("broken", 1)
    del outcomes[plain]
    assert summary(outcomes, 1.0)["missed"] == [f"{fault.name}, plain"]
