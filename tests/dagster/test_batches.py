import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.default_cluster import CLUSTER, PARTITION_SET
from tiering_assets.defs.shared.batches import (
    LedgerBatch,
    add_partitions,
    admit,
    batch_failure,
    reasons_table,
)
from tiering_assets.defs.shared.partitions import ledger_id_of, partition_key
from tiering_assets.resources.errors import FormatError


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_partition_keys_are_fixed_width_and_reversible(ledger_id):
    key = partition_key(ledger_id)
    assert len(key) == 19
    assert ledger_id_of(key) == ledger_id


@pytest.mark.parametrize("ledger_id", [-1, 2**63])
def test_no_ledger_id_is_no_key(ledger_id):
    with pytest.raises(ValueError, match="no ledger id"):
        partition_key(ledger_id)


@pytest.mark.parametrize("key", ["", "7", "0" * 18 + "x", "٣" * 19, "0" * 20, "...", "a|b"])
def test_no_other_text_is_a_ledger_key(key):
    with pytest.raises(ValueError, match="no ledger partition key"):
        ledger_id_of(key)


def test_admission_is_bounded_and_never_refuses_a_known_ledger():
    with dg.DagsterInstance.ephemeral() as instance:
        add_partitions(instance, CLUSTER, [30, 10])
        admission = admit(instance, CLUSTER, [40, 10, 20, 40], live_max=3)
        assert admission.ledger_ids == (10, 20)
        assert admission.full == (40,)
        assert admission.known == {10}
        keys = instance.get_dynamic_partitions(PARTITION_SET)
        assert keys == [partition_key(10), partition_key(30)]  # asking adds none
        assert admit(instance, CLUSTER, [10, 50], live_max=1).ledger_ids == (10,)


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
