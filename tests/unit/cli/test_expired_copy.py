"""`expired-copy` over simulated servers: a trim whose broker could not delete the objects."""

from dataclasses import replace

import pytest

from tests.support import trimmed_cluster as orphans
from tests.support.trimmed_cluster import DAY_S, HOUR_S, TOPIC, WRONG_PLANS, TrimmedCluster
from tiering_assets.clean.sweep import sweep
from tiering_assets.cli.main import run
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import Scope
from tiering_assets.records import keys
from tiering_assets.records.models import Outcome
from tiering_assets.records.sweep_models import ExpiredPlan, Swept
from tiering_assets.resources.metastore.topic_names import managed_ledger_path


class Cluster(TrimmedCluster):
    """The broker's offloader cannot delete: a trim takes the bookie copies only."""

    def __init__(self, monkeypatch):
        super().__init__()
        monkeypatch.setattr(
            self.broker, "_delete_all", lambda info: self.site.cluster.delete_ledger(info.ledgerId)
        )
        self.pairs = sorted(self.stack.book.pairs("outcomes/"))
        self.before = self.objects()

    def trim(self, ledger_id=0):
        super().trim(ledger_id)
        self.later(DAY_S)

    def objects(self):
        return sorted(k for k in self.world.objects.peek_keys() if "-ledger-" in k)

    def restore(self, data):
        """The topic's node as it once was, by somebody who restored a snapshot."""
        self.broker.restart()
        path = managed_ledger_path(TOPIC)
        self.site.cluster.metadata.put(path, data)


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    cluster = Cluster(monkeypatch)
    cluster.serve_commands(monkeypatch, tmp_path)
    return cluster


def document(capsys, *words, code=0):
    return orphans.document(capsys, "expired-copy", *words, code=code)


def test_what_topics_list_is_not_even_mentioned(cluster, capsys):
    assert document(capsys)["copies"] == []
    assert document(capsys, "--plan") == {
        "schema": "tierkeeper/expired-copy-delete/1",
        "executed": False,
        "plan": None,
        "copies": [],
    }
    assert cluster.stack.book.keys("expired-plans/") == []


def test_a_trimmed_ledgers_objects_go_by_a_plan_that_is_an_hour_old(cluster, capsys):
    cluster.trim()
    [one] = document(capsys)["copies"]
    assert (one["ledger_id"], one["decision"], one["reason"]) == (0, "may go", "trimmed")
    assert one["only_copy"] is True
    assert len(one["objects"]) == 2
    kept = [str(left.decision) for left in sweep(cluster.stack, execute=True)]
    assert any("only copy" in reason for reason in kept)  # the ordinary sweep never takes it
    plan = document(capsys, "--plan")["plan"]
    assert cluster.objects() == cluster.before
    [early] = document(capsys, "--approved", plan, "--execute")["copies"]
    assert early["decision"] == "keep"
    assert early["reason"].startswith("planned ")
    assert cluster.objects() == cluster.before
    cluster.later(HOUR_S + 60)
    [done] = document(capsys, "--approved", plan, "--execute")["copies"]
    assert done["decision"] == "deleted"
    assert done["bytes_freed"] > 0
    assert cluster.objects() == [k for k in cluster.before if k not in one["objects"]]
    pair = cluster.pairs[0]
    swept = cluster.stack.book.require(Swept, keys.swept(*pair)).record
    outcome = cluster.stack.book.require(Outcome, keys.outcome(*pair))
    assert swept.previous == outcome.sha256
    assert cluster.stack.book.keys(keys.attempts_of(0))  # records stay
    assert document(capsys, "--approved", plan, "--execute")["copies"] == []
    assert document(capsys)["copies"] == []


def planned(cluster, capsys):
    cluster.trim()
    plan = document(capsys, "--plan")["plan"]
    cluster.later(2 * HOUR_S)
    return plan


def test_what_changed_since_the_plan_stays(cluster, capsys):
    plan = planned(cluster, capsys)
    hold(cluster.stack, Scope("topic", TOPIC), reason="court", author="ops")
    [one] = document(capsys, "--approved", plan, "--execute")["copies"]
    assert one["decision"] == "keep"
    assert "court" in one["reason"]
    assert cluster.objects() == cluster.before


def test_a_plan_takes_nothing_that_it_does_not_list(cluster, capsys):
    plan = planned(cluster, capsys)
    assert cluster.broker.trim(TOPIC) == 1
    cluster.later(2 * HOUR_S)
    copies = document(capsys, "--approved", plan, "--execute")["copies"]
    assert [one["ledger_id"] for one in copies] == [0]
    assert [one["ledger_id"] for one in document(capsys)["copies"]] == [1]


def test_a_run_that_died_after_its_deletes_is_recorded_by_the_next(cluster, capsys):
    plan = planned(cluster, capsys)
    [stored] = cluster.stack.book.iter_records(ExpiredPlan, "expired-plans/")
    [copy] = stored.record.copies
    for key in copy.objects:
        cluster.world.objects.delete(key)
    assert document(capsys, "--approved", plan, "--execute")["copies"] == []
    swept = cluster.stack.book.require(Swept, keys.swept(*cluster.pairs[0])).record
    assert (swept.objects, swept.bytes_freed) == ((), None)


@pytest.mark.parametrize("wrong", WRONG_PLANS)
def test_a_plan_that_may_not_be_carried_out_deletes_nothing(cluster, capsys, wrong):
    plan = cluster.spoil(planned(cluster, capsys), ExpiredPlan, "expired-plans/", wrong)
    assert run(["expired-copy", "delete", "--approved", plan, "--execute"]) not in (0, 1)
    assert WRONG_PLANS[wrong] in capsys.readouterr().err
    assert cluster.objects() == cluster.before


def test_a_topic_that_was_deleted_leaves_copies_that_may_go(cluster, capsys):
    cluster.broker.delete_topic(TOPIC)
    cluster.later(DAY_S)
    copies = document(capsys)["copies"]
    assert {(one["ledger_id"], one["reason"]) for one in copies} == {
        (i, "topic deleted") for i in (0, 1, 2)
    }
    cluster.broker.create_topic(TOPIC)
    assert {one["reason"] for one in document(capsys)["copies"]} == {"topic deleted and made again"}


def test_a_bookie_copy_that_is_still_there_keeps_the_objects(cluster, monkeypatch, capsys):
    monkeypatch.setattr(cluster.broker, "_delete_all", lambda _info: None)
    for ledger_id in (0, 1):
        assert cluster.broker.trim(TOPIC) == ledger_id
    cluster.later(DAY_S)
    found = {one["ledger_id"]: one for one in document(capsys)["copies"]}
    assert found[0]["decision"] == "may go"  # its bookie copy was released
    assert found[1]["decision"] == "keep"
    assert "BookKeeper has the ledger" in found[1]["reason"]


def test_a_restored_snapshot_is_no_trim(cluster, capsys):
    """What a trim leaves is younger than what it took; an older list, or an empty one, is none."""
    message = cluster.stack.topics.read(TOPIC)[0].message_copy()
    info = next(one for one in message.ledgerInfo if one.ledgerId == 1)
    message.ledgerInfo.remove(info)  # 0 is still listed
    cluster.restore(message.SerializeToString())
    cluster.site.cluster.delete_ledger(1)
    cluster.later(DAY_S)
    [one] = document(capsys)["copies"]
    assert (one["ledger_id"], one["decision"]) == (1, "keep")
    assert "lists the older ledger 0" in one["reason"]
    cluster.restore(b"")
    assert {one["decision"] for one in document(capsys)["copies"]} == {"keep"}
    assert document(capsys, "--plan")["plan"] is None


def test_metadata_that_went_backwards_stops_all(cluster, capsys):
    plan = planned(cluster, capsys)
    path = managed_ledger_path(TOPIC)
    node = cluster.site.cluster.metadata.nodes[path]
    cluster.site.cluster.metadata.nodes[path] = replace(node, stat=replace(node.stat, version=0))
    assert run(["expired-copy", "delete", "--approved", plan, "--execute"]) not in (0, 1)
    assert "went back in time" in capsys.readouterr().err
    assert cluster.objects() == cluster.before
