"""Transactions of a real coordinator: what was aborted is never told as committed."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.support.cli_shell import Shell
from tests.support.live_topic import read_payloads
from tests.support.tiered_cluster import post_all, tables_apart, tiered_cluster
from tests.support.untame import send_in_transactions
from tiering_assets.cold.transactions import ABORT, COMMIT
from tiering_assets.resources.devstack.traffic import TopicSpec

pytestmark = pytest.mark.stack
NAME = "transactions"
SPEC = TopicSpec(topic="public/default/in-transactions", messages=0, payload_bytes=0)
EVERY = ("topic", "read", SPEC.topic, "--from", "2020-01-01", "--until", "2100-01-01")
COMMITTED = ("--transactions", "committed")
CLIENTS = {"committed": False, "aborted": True, "later": False}
"""What each client sends, one after the other, and whether it aborts its transactions."""


@pytest.fixture(scope="module")
def cluster(stack_to_stop):
    root = tables_apart(stack_to_stop, NAME)
    with tiered_cluster(stack_to_stop, catalogue_root=root) as connected:
        connected.restart_broker(transactionCoordinatorEnabled="true")
        yield reloads_in_transactions(connected)
        connected.restart_broker()


def reloads_in_transactions(cluster):
    """Each client leaves a transaction open: how long one keeps us off is not what we test here."""
    settings = cluster.steps.settings
    disturb = replace(settings.disturb, transactions_max=len(CLIENTS))
    steps = replace(cluster.steps, settings=replace(settings, disturb=disturb))
    return replace(cluster, steps=steps)


@pytest.fixture(scope="module")
def shell(stack_to_stop, tmp_path_factory):
    root = tables_apart(stack_to_stop, NAME)
    return Shell(stack_to_stop, tmp_path_factory.mktemp(NAME), TIERKEEPER_CATALOGUE_ROOT=root)


@pytest.fixture(scope="module")
def sent(cluster, tmp_path_factory):
    """What a consumer gets, of transactions that were committed and of some that were aborted."""
    folder, topic = tmp_path_factory.mktemp("perf"), f"persistent://{SPEC.topic}"
    for words, abort in CLIENTS.items():
        send_in_transactions(cluster.running, topic, words, folder, messages=20, abort=abort)
        cluster.seal(SPEC)
    cluster.offload(cluster.ledger_ids(SPEC))
    post_all(cluster.steps)
    return read_payloads(cluster.endpoints, topic)


def test_committed_messages_are_those_that_a_consumer_gets(shell, sent):
    rows = shell.document(*EVERY, *COMMITTED)["rows"]
    assert [row["payload"].encode() for row in rows] == sent
    assert {one.partition(b" ")[0] for one in sent} == {b"committed", b"later"}


def test_all_messages_and_what_became_of_them_are_told_where_that_is_asked_for(shell, sent):
    rows = shell.document(*EVERY, "--columns", "all", "--markers")["rows"]
    became = {txn_of(row): row["marker"] for row in rows if row["marker"] is not None}
    assert min(list(became.values()).count(kind) for kind in (COMMIT, ABORT)) >= 2
    messages = [row for row in rows if row["marker"] is None]
    committed, aborted = (
        [row["payload"].encode() for row in messages if became.get(txn_of(row)) == kind]
        for kind in (COMMIT, ABORT)
    )
    assert committed == sent
    assert len(aborted) >= 20
    # Each client ends within a transaction that it neither commits nor aborts. The coordinator
    # aborts it when its time is over, which on a slow machine is before the last client has ended.
    left = {
        (txn_of(row), row["payload"].partition(" ")[0])
        for row in messages
        if became.get(txn_of(row)) == ABORT and not row["payload"].startswith("aborted ")
    }
    assert max(Counter(word for _txn, word in left).values(), default=0) <= 1
    of_open = {txn_of(row) for row in messages} - set(became)
    assert len(of_open) <= len(CLIENTS)
    assert (None, None) not in of_open


def txn_of(row):
    return row["txn_most"], row["txn_least"]
