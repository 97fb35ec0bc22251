"""Right before bookie copies go: whatever moved since the last look, nothing is deleted."""

from dataclasses import fields, replace
from uuid import UUID

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.records.models import LedgerFacts
from tiering_assets.release import work as release_finish
from tiering_assets.release.guarded_delete import delete_ledgers
from tiering_assets.resources.errors import (
    MetadataConflictError,
    MetadataUnknownError,
    RefusedError,
)
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

PATH = managed_ledger_path(TOPIC)


class _ReadyError(Exception):
    """The release got as far as its delete."""


class Ready:
    """A release stopped right before its delete: `go` calls that with what the release gave it."""

    def __init__(self, monkeypatch):
        self.scene = Scene()
        self.scene.publish()
        self.scene.past_the_lag()
        given = []

        def stop(stack, ml_name, certified, *, czxid, evidence):
            given.append((certified, czxid, evidence))
            raise _ReadyError

        with monkeypatch.context() as patch:
            patch.setattr(release_finish, "delete_ledgers", stop)
            with pytest.raises(_ReadyError):
                self.scene.release()
        [(self.certified, self.czxid, self.evidence)] = given

    @property
    def nodes(self):
        return self.scene.cluster.metadata.nodes

    @property
    def facts(self):
        return self.certified[0][1]

    def go(self, stack=None, *, facts=None, uid=None):
        was_uid, was_facts = self.certified[0]
        certified = {0: (uid or was_uid, facts or was_facts)}
        stack = stack or self.scene.process("deleter")
        delete_ledgers(stack, TOPIC, certified, czxid=self.czxid, evidence=self.evidence)


@pytest.fixture
def ready(monkeypatch):
    return Ready(monkeypatch)


def test_it_goes_when_nothing_moved(ready):
    ready.go()
    assert not ready.scene.cluster.has_node(0)


@pytest.mark.parametrize("name", [one.name for one in fields(LedgerFacts)])
def test_another_fact_than_the_certified_one_keeps_the_ledger(ready, name):
    was = getattr(ready.facts, name)
    other = not was if isinstance(was, bool) else f"{was}0" if isinstance(was, str) else 7919
    with pytest.raises(MetadataConflictError, match=r"ledger 0: expected .*, found .*; gate again"):
        ready.go(facts=replace(ready.facts, **{name: other}))
    assert ready.scene.cluster.has_node(0)


def test_a_ledger_that_is_gone_is_no_success(ready):
    ready.scene.cluster.delete_ledger(0)
    with pytest.raises(MetadataConflictError, match=r"ledger 0: expected .*, found None"):
        ready.go()


def test_a_context_of_another_attempt_keeps_the_ledger(ready):
    with pytest.raises(MetadataConflictError, match=r"the contexts of ledgers \[0\] changed"):
        ready.go(uid=UUID(int=1))
    assert ready.scene.cluster.has_node(0)


def test_a_mark_that_was_taken_back_keeps_the_ledger(ready):
    marked = ready.nodes[PATH]
    ready.nodes[PATH] = replace(marked, data=_without_mark(marked.data))
    with pytest.raises(MetadataConflictError, match=r"the contexts of ledgers \[0\] changed"):
        ready.go()
    assert ready.scene.cluster.has_node(0)


def test_a_topic_of_the_same_name_made_anew_keeps_the_ledger(ready):
    stored = ready.nodes[PATH]
    ready.nodes[PATH] = replace(stored, stat=replace(stored.stat, czxid=stored.stat.czxid + 1))
    with pytest.raises(RefusedError, match="the topic was deleted"):
        ready.go()
    assert ready.scene.cluster.has_node(0)


def test_a_topic_that_is_gone_keeps_the_ledger(ready):
    del ready.nodes[PATH]
    with pytest.raises(RefusedError, match="the topic was deleted"):
        ready.go()
    assert ready.scene.cluster.has_node(0)


def test_a_look_that_took_too_long_keeps_the_ledger(ready, monkeypatch):
    limit_s = ready.scene.stack.settings.release.check_to_delete_max_s
    really = LedgerDirectory.read

    def slow(ledgers, ledger_id):
        ready.scene.wait(limit_s + 1)
        return really(ledgers, ledger_id)

    monkeypatch.setattr(LedgerDirectory, "read", slow)
    with pytest.raises(MetadataConflictError, match=rf"since the last look, at most {limit_s:g} s"):
        ready.go()
    assert ready.scene.cluster.has_node(0)


@pytest.mark.parametrize("applied", [True, False])
def test_an_answer_that_was_lost_is_looked_up(ready, applied):
    stack = ready.scene.process("deleter")
    really = stack.metadata.check_and_delete

    def lose(**how):
        if applied:
            really(**how)
        raise MetadataUnknownError("no answer")

    stack.metadata.check_and_delete = lose
    if applied:
        ready.go(stack)
    else:
        with pytest.raises(MetadataUnknownError):
            ready.go(stack)
    assert ready.scene.cluster.has_node(0) is not applied


def test_it_goes_in_the_session_that_looked(ready):
    """A session that ended meanwhile is one in which a later write of another may have been
    seen.
    """
    stack = ready.scene.process("deleter")
    given = []
    really = stack.metadata.check_and_delete

    def note(**how):
        given.append(how["session_id"])
        return really(**how)

    stack.metadata.check_and_delete = note
    ready.go(stack)
    assert given == [stack.topics.read(TOPIC)[1].session_id]


def _without_mark(data):
    found = decode_managed_ledger(data)
    message = found.message_copy()
    message.ledgerInfo[0].offloadContext.bookkeeperDeleted = False
    return encode_managed_ledger(found.with_message(message))
