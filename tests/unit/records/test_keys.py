from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.offload_format.keys import parse_key
from tiering_assets.records import keys
from tiering_assets.resources.object_store.records import RecordStore

UID = UUID("1ecdf250-a9b4-4953-947e-0ace4164fb4a")
OTHER = UUID("317fad33-457f-4d7d-8c56-29d2d4e6f21e")


def all_keys(ledger_id, uid, ml_name):
    return [
        keys.claim(ledger_id),
        keys.failure(ledger_id),
        keys.attempt(ledger_id, uid),
        keys.certificate(ledger_id, uid),
        keys.quarantine(ledger_id, uid),
        keys.outcome(ledger_id, uid),
        keys.publication(ml_name, 1),
        keys.release_intent(ledger_id, uid),
        keys.release(ledger_id, uid),
        keys.canary(ml_name),
        keys.hold(ledger_id),
    ]


@given(ledger_id=st.integers(0, 2**63 - 1), uid=st.uuids(), ml_name=st.text())
def test_no_key_looks_like_a_brokers_object(ledger_id, uid, ml_name):
    try:
        ml_name.encode()
    except UnicodeEncodeError:
        return
    for key in all_keys(ledger_id, uid, f"a/b/persistent/{ml_name}-ledger-7"):
        assert "-ledger-" not in key
        assert parse_key(f"tierkeeper/instance/{key}") is None


def test_no_two_kinds_share_a_key_and_the_store_takes_them_all():
    found = all_keys(42, UID, "public/default/persistent/orders")
    assert len(set(found)) == len(found)
    records = RecordStore(SimulatedObjectStore(), "instance")
    for key in found:
        records.create(key, {"schema": "test/1"})
    assert sorted(records.list()) == sorted(found)


def test_an_attempts_keys_differ_from_every_other_attempts():
    ours, theirs = all_keys(42, UID, "a/b/persistent/x"), all_keys(42, OTHER, "a/b/persistent/x")
    shared = {keys.claim(42), keys.failure(42), keys.hold(42)}
    shared |= {keys.publication("a/b/persistent/x", 1)}
    assert set(ours) & set(theirs) == shared | {keys.canary("a/b/persistent/x")}


def test_the_attempts_of_one_ledger_are_not_those_of_a_longer_id():
    assert keys.attempt(4, UID).startswith(keys.attempts_of(4))
    assert not keys.attempt(42, UID).startswith(keys.attempts_of(4))


def test_publications_list_in_the_order_of_writing():
    written = [keys.publication("a/b/persistent/x", number) for number in (1, 2, 10, 999_999_999)]
    assert sorted(written) == written


@pytest.mark.parametrize(
    ("ml_name", "namespace"),
    [
        ("public/default/persistent/orders", "public/default"),
        ("tenant/cluster/ns/persistent/orders", "tenant/cluster/ns"),
        ("public/default/persistent/a%2Fpersistent%2Fb", "public/default"),
        ("public/persistent/persistent/orders", "public/persistent"),  # a namespace of that name
        ("persistent/persistent/persistent/persistent", "persistent/persistent"),
    ],
)
def test_namespace_of_a_managed_ledger(ml_name, namespace):
    assert keys.namespace_of(ml_name) == namespace


def test_a_canary_is_shared_by_a_namespace_and_by_nobody_else():
    assert keys.canary("a/b/persistent/x") == keys.canary("a/b/persistent/y")
    assert keys.canary("a/b/persistent/x") != keys.canary("a/c/persistent/x")
