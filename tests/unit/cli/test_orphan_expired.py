"""`orphan expired` over simulated servers: a trim whose broker could not delete the objects."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from resources.metastore.topic_names import managed_ledger_path
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.cli.main import run
from tiering_assets.cli.session import Session
from tiering_assets.records import keys
from tiering_assets.records.models import Outcome
from tiering_assets.records.sweep_models import ExpiredPlan, Swept
from tiering_assets.steps.holds import hold_all, hold_topic
from tiering_assets.steps.pipeline import offload_batch
from tiering_assets.steps.release import Released, release_topic
from tiering_assets.steps.sweep import sweep

TOPIC = "t/ns/persistent/orders"
DAY_S, HOUR_S = 86_400, 3_600


class Cluster:
    """Ledgers 0 to 2 are published, 3 is open; 0 was released and then trimmed, its objects stay."""

    def __init__(self, monkeypatch):
        self.world = World(1)
        self.site = self.world.add_site("alpha", lag_s=None, bookkeeper_first=False)
        self.broker = self.site.broker
        # An offloader that cannot delete: only the bookie copies go.
        monkeypatch.setattr(
            self.broker, "_delete_all", lambda info: self.site.cluster.delete_ledger(info.ledgerId)
        )
        self.broker.create_topic(TOPIC)
        for _ in range(3):
            self.broker.produce(TOPIC, [b"first", b"last"])
            self.broker.roll_over(TOPIC)
        self.stack = Process(self.world, "cli", self.site).stack()
        assert {one.state for one in offload_batch(self.stack, [0, 1, 2])} == {"published"}
        self.world.scheduler.now += DAY_S
        [released] = release_topic(self.stack, TOPIC, [0]).values()
        assert isinstance(released, Released)
        self.pairs = sorted(self.stack.book.pairs("outcomes/"))
        self.before = self.objects()

    def trim(self):
        assert self.broker.trim(TOPIC) == 0
        self.world.scheduler.now += DAY_S

    def objects(self):
        return sorted(k for k in self.world.objects.peek_keys() if "-ledger-" in k)

    def restore(self, data):
        """The topic's node as it once was, by somebody who restored a snapshot."""
        self.broker.restart()
        path = managed_ledger_path(TOPIC)
        self.site.cluster.metadata.put(path, data)


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    cluster = Cluster(monkeypatch)

    @contextmanager
    def opened(_session, _runner=None):
        yield cluster.stack

    monkeypatch.setattr(Session, "stack", opened)
    return cluster


def document(capsys, *words, code=0):
    capsys.readouterr()
    assert run(["orphan", "expired", *words, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "tierkeeper/orphan-expired/1"
    return found


def test_what_topics_list_is_not_even_mentioned(cluster, capsys):
    assert document(capsys)["copies"] == []
    assert document(capsys, "--plan") == {
        "schema": "tierkeeper/orphan-expired/1",
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
    [early] = document(capsys, "--execute", plan)["copies"]
    assert early["decision"] == "keep"
    assert early["reason"].startswith("planned ")
    assert cluster.objects() == cluster.before
    cluster.world.scheduler.now += HOUR_S + 60
    [done] = document(capsys, "--execute", plan)["copies"]
    assert done["decision"] == "deleted"
    assert done["bytes_freed"] > 0
    assert cluster.objects() == [k for k in cluster.before if k not in one["objects"]]
    pair = cluster.pairs[0]
    swept = cluster.stack.book.require(Swept, keys.swept(*pair)).record
    outcome = cluster.stack.book.require(Outcome, keys.outcome(*pair))
    assert swept.previous == outcome.sha256
    assert cluster.stack.book.keys(keys.attempts_of(0))  # records stay
    assert document(capsys, "--execute", plan)["copies"] == []
    assert document(capsys)["copies"] == []


def planned(cluster, capsys):
    cluster.trim()
    plan = document(capsys, "--plan")["plan"]
    cluster.world.scheduler.now += 2 * HOUR_S
    return plan


def test_what_changed_since_the_plan_stays(cluster, capsys):
    plan = planned(cluster, capsys)
    hold_topic(cluster.stack, TOPIC, reason="court", author="ops")
    [one] = document(capsys, "--execute", plan)["copies"]
    assert one["decision"] == "keep"
    assert "court" in one["reason"]
    assert cluster.objects() == cluster.before


def test_a_plan_takes_nothing_that_it_does_not_list(cluster, capsys):
    plan = planned(cluster, capsys)
    assert cluster.broker.trim(TOPIC) == 1
    cluster.world.scheduler.now += 2 * HOUR_S
    copies = document(capsys, "--execute", plan)["copies"]
    assert [one["ledger_id"] for one in copies] == [0]
    assert [one["ledger_id"] for one in document(capsys)["copies"]] == [1]


def test_a_run_that_died_after_its_deletes_is_recorded_by_the_next(cluster, capsys):
    plan = planned(cluster, capsys)
    [stored] = cluster.stack.book.iter_records(ExpiredPlan, "expired-plans/")
    [copy] = stored.record.copies
    for key in copy.objects:
        cluster.world.objects.delete(key)
    assert document(capsys, "--execute", plan)["copies"] == []
    swept = cluster.stack.book.require(Swept, keys.swept(*cluster.pairs[0])).record
    assert (swept.objects, swept.bytes_freed) == ((), None)


@pytest.mark.parametrize("wrong", ["kill switch", "too old", "other cluster", "no plan"])
def test_a_plan_that_may_not_be_carried_out_deletes_nothing(cluster, capsys, wrong):
    plan = planned(cluster, capsys)
    if wrong == "kill switch":
        hold_all(cluster.stack, reason="incident", author="ops")
    elif wrong == "too old":
        cluster.world.scheduler.now += DAY_S
    elif wrong == "other cluster":
        [stored] = cluster.stack.book.iter_records(ExpiredPlan, "expired-plans/")
        cluster.stack.book.replace(stored, replace(stored.record, instance="another"))
    else:
        plan = "0" * 64
    assert run(["orphan", "expired", "--execute", plan]) not in (0, 1)
    said = capsys.readouterr().err
    expected = {
        "kill switch": "everything is held",
        "too old": "more than release.plan_valid_s",
        "other cluster": "the plan is of instance another",
        "no plan": "no such plan",
    }
    assert expected[wrong] in said
    assert cluster.objects() == cluster.before


def test_a_topic_that_was_deleted_leaves_copies_that_may_go(cluster, capsys):
    cluster.broker.delete_topic(TOPIC)
    cluster.world.scheduler.now += DAY_S
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
    cluster.world.scheduler.now += DAY_S
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
    cluster.world.scheduler.now += DAY_S
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
    assert run(["orphan", "expired", "--execute", plan]) not in (0, 1)
    assert "went back in time" in capsys.readouterr().err
    assert cluster.objects() == cluster.before
