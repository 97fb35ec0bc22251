"""The connection or the session to ZooKeeper dies around a commit: before, with, and after it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from kazoo.client import KazooClient

from tests.support.fault_lab import certificate_of
from tests.support.topic_halves import release_topic
from tests.support.zookeeper_proxy import MULTI, SET_DATA, ZooKeeperProxy
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.records import keys
from tiering_assets.records.models import Release
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import (
    MetadataConflictError,
    MetadataUnknownError,
    RefusedError,
)
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.topics import TopicDirectory

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("zookeeper")


@pytest.fixture
def proxy(lab):
    with ZooKeeperProxy(lab.endpoints.zookeeper) as proxy:
        yield proxy


def through(lab, proxy, **publish):
    return replace(
        lab.settings,
        metadata=replace(lab.settings.metadata, store=f"zk:{proxy.connect_string}"),
        publish=replace(lab.settings.publish, **publish),
    )


def published(lab, topic):
    """Offload a topic's ledger, and wait until it may be released; its attempt."""
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.state == "published"
        lab.older(stack)
        return certificate_of(outcome).uid


def assert_kept(lab, topic, uid):
    """The bookie copy is there, and no record says otherwise."""
    with lab.open() as stack:
        assert stack.ledgers.read(topic.ledger_id) is not None
        assert stack.book.read(Release, keys.release(topic.ledger_id, uid)) is None


def released_now(lab, topic):
    with lab.open() as stack:
        result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(result, Released)
        assert stack.ledgers.read(topic.ledger_id) is None
    lab.readable(topic, reloaded=True)


class SessionDies:
    """The session ends between a read and the next write of a kind, once; everything else
    passes.
    """

    def __init__(self, store, hosts, method):
        self._store, self._hosts, self._method = store, hosts, method
        self.deaths = 0

    def __getattr__(self, name):
        if name == self._method and not self.deaths:
            self.deaths += 1
            self._end_session()
        return getattr(self._store, name)

    def _end_session(self):
        """Whoever has a session's id and password may close it: the server drops it at once.

        The write then comes in a new session, with versions that are all still the ones it read.
        """
        theirs, before = self._store._client, self._store.session_id()
        second = KazooClient(hosts=self._hosts, client_id=theirs.client_id)
        second.start(timeout=60)
        second.stop()
        second.close()
        deadline = time.monotonic() + 60
        while self._store.session_id() == before:
            assert time.monotonic() < deadline, "the client keeps its dead session"
            time.sleep(0.02)


@contextmanager
def dying_session(lab, method):
    with lab.open() as stack:
        dies = SessionDies(stack.metadata, lab.endpoints.zookeeper, method)
        root = stack.settings.metadata.ledgers_root
        yield (
            replace(
                stack,
                metadata=dies,
                ledgers=LedgerDirectory(dies, root),
                topics=TopicDirectory(dies),
            ),
            dies,
        )


def test_a_context_that_never_arrived_is_written_again(lab, namespace, proxy):
    topic = lab.topic(namespace)
    with lab.open(through(lab, proxy)) as stack:
        proxy.drop_request_of(SET_DATA)
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert proxy.lost == 1
        assert outcome.state == "published"
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)


def test_a_delete_that_never_arrived_deletes_nothing_and_is_made_up_for(lab, namespace, proxy):
    topic = lab.topic(namespace)
    uid = published(lab, topic)
    with lab.open(through(lab, proxy)) as stack:
        proxy.drop_request_of(MULTI)
        with pytest.raises(MetadataUnknownError) as told:
            release_topic(stack, topic.ml_name, [topic.ledger_id])
        assert told.value.exit_code == 20
        assert proxy.lost == 1
    assert_kept(lab, topic, uid)
    lab.readable(topic, reloaded=True)
    released_now(lab, topic)


def test_a_session_that_ends_before_the_context_is_written_makes_it_read_again(lab, namespace):
    topic = lab.topic(namespace)
    with dying_session(lab, "set") as (stack, dies):
        before = stack.metadata.session_id()
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert dies.deaths == 1
        assert stack.metadata.session_id() != before
        assert outcome.error is None
        assert outcome.state == "published"
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)


def test_a_session_that_ends_before_the_delete_refuses_it(lab, namespace):
    """Whatever was read in the old session is no ground for a delete in the new one."""
    topic = lab.topic(namespace)
    uid = published(lab, topic)
    with dying_session(lab, "check_and_delete") as (stack, dies):
        with pytest.raises(MetadataConflictError, match="the session of the read") as told:
            release_topic(stack, topic.ml_name, [topic.ledger_id])
        assert told.value.exit_code == 19
        assert dies.deaths == 1
    assert_kept(lab, topic, uid)
    released_now(lab, topic)


@pytest.mark.parametrize("way", ["drop_request_of", "lose_answer_of"])
def test_marks_are_taken_back_although_the_connection_dies_with_it(lab, proxy, way):
    """The undo is a transaction, too: it is sent again, or found done."""
    namespace = lab.namespace("undone")
    topic = lab.topic(namespace)
    uid = published(lab, topic)
    wrong = {
        **lab.offload_policies(),
        "s3ManagedLedgerOffloadCredentialId": "nobody",
        "s3ManagedLedgerOffloadCredentialSecret": "no-secret-of-ours",
    }
    lab.admin("POST", f"/namespaces/{namespace}/offloadPolicies", wrong)
    with lab.open(through(lab, proxy, confirm_timeout_s=3.0)) as stack:
        getattr(proxy, way)(MULTI)
        with pytest.raises(RefusedError, match="nothing was deleted"):
            release_topic(stack, topic.ml_name, [topic.ledger_id])
        assert proxy.lost == 1
        listed = stack.topics.read(topic.ml_name)[0].ledger(topic.ledger_id)
        assert listed.offload.uid == uid
        assert not listed.offload.bookkeeper_deleted
    assert_kept(lab, topic, uid)
    lab.admin("DELETE", f"/namespaces/{namespace}/removeOffloadPolicies")
    lab.readable(topic, reloaded=True)
    released_now(lab, topic)
