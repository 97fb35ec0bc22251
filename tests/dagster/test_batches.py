import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.default_cluster import CLUSTER, PARTITION_SET
from tiering_assets.defs.shared.batches import (
    Keyed,
    LedgerBatch,
    batch_failure,
    give_keys,
    reasons_table,
)
from tiering_assets.defs.shared.partitions import ledger_id_of, partition_key
from tiering_assets.resources.errors import FormatError


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_a_key_is_the_id_and_one_as_it_once_was_is_understood(ledger_id):
    assert partition_key(ledger_id) == str(ledger_id)
    assert ledger_id_of(partition_key(ledger_id)) == ledger_id
    assert ledger_id_of(f"{ledger_id:019d}") == ledger_id


@pytest.mark.parametrize("ledger_id", [-1, 2**63])
def test_no_ledger_id_is_no_key(ledger_id):
    with pytest.raises(ValueError, match="no ledger id"):
        partition_key(ledger_id)


@pytest.mark.parametrize(
    "key", ["", "07", "0" * 18 + "x", "٣" * 19, "0" * 20, "9" * 19, "...", "a|b", "2026-11-27"]
)
def test_no_other_text_is_a_ledger_key(key):
    with pytest.raises(ValueError, match="no ledger partition key"):
        ledger_id_of(key)


def test_keys_are_bounded_and_who_has_one_keeps_it():
    with dg.DagsterInstance.ephemeral() as instance:
        assert give_keys(instance, CLUSTER, [30, 10], live_max=3).fresh == {10, 30}
        found = give_keys(instance, CLUSTER, [40, 10, 20, 40], live_max=3)
        assert found == Keyed(frozenset({10}), frozenset({20}))
        keys = instance.get_dynamic_partitions(PARTITION_SET)
        assert keys == ["10", "30", "20"]
        assert give_keys(instance, CLUSTER, [10, 50], live_max=1) == Keyed(
            frozenset({10}), frozenset()
        )


def test_runs_that_give_keys_at_once_stay_within_the_bound(monkeypatch):
    """Another run gives its own between our look and our adding."""
    with dg.DagsterInstance.ephemeral() as instance:
        add = type(instance).add_dynamic_partitions

        def both(self, partitions_def_name, partition_keys):
            add(self, partitions_def_name, ["7", "8"])
            add(self, partitions_def_name, partition_keys)

        with monkeypatch.context() as raced:
            raced.setattr(type(instance), "add_dynamic_partitions", both)
            found = give_keys(instance, CLUSTER, [1, 2, 3], live_max=3)
        assert found.fresh == {1}
        assert set(instance.get_dynamic_partitions(PARTITION_SET)) == {"1", "7", "8"}


def test_a_failure_names_every_bad_ledger_and_is_not_retried():
    failure = batch_failure("offload", {7: "gone", 8: "bad | worse"}, done=3, waiting={9: "open"})
    assert failure.allow_retries is False
    assert "offload: 2 failed, 3 done, 1 waiting. ledger 7: gone; ledger 8: bad" in str(
        failure.description
    )
    assert str(failure.metadata["failed"].value).splitlines()[-1] == "| 8 | bad \\| worse |"
    assert "| 9 | open |" in str(failure.metadata["waiting"].value)


def test_a_long_table_says_how_much_it_leaves_out():
    table = str(reasons_table(dict.fromkeys(range(60), "x"), "error").value)
    assert table.endswith("10 more")


def test_topics_are_given_as_people_know_them():
    batch = LedgerBatch(topics=["persistent://public/default/a b"])
    assert batch.ml_names() == ["public/default/persistent/a+b"]
    assert LedgerBatch().ml_names() is None
    with pytest.raises(FormatError):
        LedgerBatch(topics=["nonsense"]).ml_names()
