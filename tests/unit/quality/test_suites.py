"""Each check is needed, reports what it should and nothing else, and no bytes get past them."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.golden_objects import golden_ledger, golden_ledgers
from tests.support.index_damage import DAMAGES
from tests.support.index_facts import golden_index_facts
from tiering_assets.offload_format.decoder import decode_index
from tiering_assets.quality import expectations_run
from tiering_assets.quality.checks import CHECKS, CHECKS_BY_NAME, suite_digest
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.quality.findings import FailedCheck
from tiering_assets.quality.suites import validate_indexes
from tiering_assets.resources.errors import PrerequisiteError

BASE = golden_index_facts(golden_ledger("multi-block", 20))


def failed_names(result):
    return {FailedCheck.parse(text).name for text in result.failed}


@pytest.fixture(scope="module")
def damaged():
    """All damages in one batch: ledger 1000 + n has the n-th."""
    facts = [replace(damage(BASE), ledger_id=1000 + n) for n, (_name, damage) in enumerate(DAMAGES)]
    return validate_indexes(facts)


def test_every_index_that_a_broker_wrote_passes():
    ledgers = golden_ledgers()
    results = validate_indexes([golden_index_facts(ledger) for ledger in ledgers])
    assert len(results) == len(ledgers) > 15
    assert [(id_, r.failed) for id_, r in results.items() if not r.success] == []
    assert {(r.evaluated, r.successful) for r in results.values()} == {(len(CHECKS), len(CHECKS))}


def test_a_topic_without_counts_passes():
    facts = replace(BASE, topic_entries=None, topic_bytes=None)
    assert validate_indexes([facts])[20].success


def test_every_check_has_a_damage_of_its_own():
    assert {name for name, _damage in DAMAGES} == set(CHECKS_BY_NAME)
    assert len(CHECKS) == len(CHECKS_BY_NAME)


@pytest.mark.parametrize(
    ("ledger_id", "name"), [(1000 + n, name) for n, (name, _damage) in enumerate(DAMAGES)]
)
def test_a_damage_is_reported_by_its_check_alone(damaged, ledger_id, name):
    result = damaged[ledger_id]
    assert failed_names(result) == {name}
    assert not result.success
    assert result.successful == result.evaluated - 1


@pytest.mark.parametrize("name", ["blocks_end", "data_holds_ledger", "header_magic", "topic_bytes"])
def test_the_suite_fails_where_the_index_alone_decodes(name):
    damage = dict(DAMAGES)[name]
    assert decode_index(damage(BASE).index).data_object_length == BASE.data_size


def test_headers_that_could_not_be_read_fail_what_needs_them():
    result = validate_indexes([replace(BASE, headers={})])[20]
    assert failed_names(result) == {
        "blocks_end",
        "block_offset",
        "header_magic",
        "header_length",
        "header_first_entry_id",
        "block_holds_entries",
    }


def test_an_index_without_entries_fails_all_that_is_said_of_entries():
    result = validate_indexes([replace(BASE, index=BASE.index[:-80])])[20]
    per_block = {check.name for check in CHECKS if check.per_block}
    assert per_block <= failed_names(result)


def test_one_bad_ledger_of_200_is_the_only_one_marked():
    facts = [replace(BASE, ledger_id=n) for n in range(200)]
    facts[117] = replace(dict(DAMAGES)["block_offset"](BASE), ledger_id=117)
    results = validate_indexes(facts)
    assert [n for n in range(200) if not results[n].success] == [117]
    assert results[117].failed == ("block_offset (part 3)",)


@settings(max_examples=8)
@given(
    st.lists(
        st.tuples(
            st.binary(max_size=300)
            | st.binary(max_size=200).map(lambda tail: BASE.index[:32] + tail)
            | st.integers(0, len(BASE.index) - 1).map(lambda size: BASE.index[:size]),
            st.lists(st.binary(max_size=130), max_size=4),
            st.integers(-1, 2**63 - 1),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_arbitrary_bytes_never_raise_and_never_pass(garbage):
    facts = [
        IndexFacts(
            ledger_id=n,
            index=index,
            index_size=len(index),
            data_size=BASE.data_size,
            headers=dict(enumerate(headers, start=1)),
            last_entry_id=last_entry_id,
            ledger_length=BASE.ledger_length,
            payload_bytes=BASE.payload_bytes,
        )
        for n, (index, headers, last_entry_id) in enumerate(garbage)
    ]
    results = validate_indexes(facts)
    assert [n for n in range(len(facts)) if results[n].success] == []


def test_validations_at_once_keep_their_results_apart():
    bad = dict(DAMAGES)["index_magic"](BASE)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda facts: validate_indexes([facts])[20], [BASE, bad] * 4))
    assert [result.success for result in results] == [True, False] * 4


def test_nothing_to_judge_gives_no_result():
    assert validate_indexes([]) == {}


def test_a_ledger_given_twice_is_refused():
    with pytest.raises(ValueError, match=r"\[20\]"):
        validate_indexes([BASE, BASE])


def test_a_changed_suite_needs_a_new_name():
    """Certificates name suite and digest: index_objects/1 must stay what it was."""
    assert suite_digest() == ("977508b389f3834bd6106f921d5e4f4949238545f093a676c33c36a81c0768c8")


def test_importing_the_room_imports_neither_great_expectations_nor_pandas():
    code = (
        "import sys\n"
        "from tiering_assets.quality import checks, expectations_run, facts, findings\n"
        "from tiering_assets.quality import index_frame, suites\n"
        "print([m for m in ('great_expectations', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_a_program_without_a_file_can_judge_too():
    """Runs that Dagster's daemon launches are `python -c`, which PySpark takes for a doctest
    run.
    """
    code = (
        "import pandas as pd\n"
        "from tiering_assets.quality.expectations_run import run_suite\n"
        "frame = pd.DataFrame({'ledger_id': [1, 2], 'part': [1, 1], 'size': [5, -5]})\n"
        "one = {'type': 'expect_column_values_to_be_between',\n"
        "       'kwargs': {'column': 'size', 'min_value': 0}}\n"
        "[found] = run_suite({'name': 's', 'expectations': [one]}, frame)\n"
        "print([int(i) for i in found.unexpected], found.broken)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "[2] None\n"), done.stderr


def test_a_library_that_is_prepared_aside_is_there_when_it_is_needed():
    code = (
        "import sys\n"
        "from tiering_assets.quality.expectations_run import prepare_aside, run_suite\n"
        "thread = prepare_aside()\n"
        "print('great_expectations.validator.validator' in sys.modules)\n"  # it did not wait
        "thread.join()\n"
        "print('great_expectations.validator.validator' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\nTrue\n", "")


def test_a_library_that_cannot_be_prepared_is_an_error_of_who_judges(monkeypatch, capsys):
    def broken():
        raise PrerequisiteError("it cannot be imported")

    monkeypatch.setattr(expectations_run, "_batch_definition", broken)
    monkeypatch.setattr(expectations_run, "_KEPT", {})
    expectations_run.prepare_aside().join()
    assert capsys.readouterr().err == ""
    with pytest.raises(PrerequisiteError, match="cannot be imported"):
        validate_indexes([BASE])
