"""`gone-record` over simulated servers: what is left of ledgers that a trim took, objects and
all.
"""

from dataclasses import replace

import pytest

from tests.support import trimmed_cluster as orphans
from tests.support.trimmed_cluster import DAY_S, HOUR_S, TOPIC, WRONG_PLANS, TrimmedCluster
from tests.support.two_checkers import kinds, second_opinion
from tiering_assets.audit.audit import audit_store
from tiering_assets.cli.main import run
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import Scope
from tiering_assets.look.ledger.resume import Failed, settle_failures
from tiering_assets.records import keys
from tiering_assets.records.sweep_models import ForgetPlan
from tiering_assets.resources.errors import IntegrityError, ObjectStoreError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.object_store.deletion import delete_object


class Cluster(TrimmedCluster):
    """The broker deletes what it trims, objects too."""

    def records(self, ledger_id):
        return [key for key in self.stack.book.keys("") if f"/{ledger_id}/" in key]

    def audited(self, *ledger_ids):
        """What both checkers find in the bucket, or of some ledgers, and how many they forget."""
        objects, some = self.stack.objects, [*ledger_ids] or None
        report = audit_store(objects, self.stack.settings, ledger_ids=some)
        ours = kinds(report.findings), report.forgotten
        assert second_opinion(objects, self.stack.instance, some) == ours
        return ours


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    cluster = Cluster()
    cluster.serve_commands(monkeypatch, tmp_path)
    return cluster


def document(capsys, *words, code=0):
    return orphans.document(capsys, "gone-record", *words, code=code)


def decided(found):
    return [(one["ledger_id"], one["decision"]) for one in found["ledgers"]]


def planned(cluster, capsys):
    cluster.trim()
    cluster.later(31 * DAY_S)
    plan = document(capsys, "--plan")["plan"]
    cluster.later(2 * HOUR_S)
    return plan


def test_what_topics_list_is_not_even_mentioned(cluster, capsys):
    cluster.later(90 * DAY_S)
    assert document(capsys, "--plan") == {
        "schema": "tierkeeper/gone-record-delete/1",
        "executed": False,
        "plan": None,
        "ledgers": [],
    }
    assert cluster.stack.book.keys("forget-plans/") == []


def test_records_stay_for_a_month_and_go_by_a_plan_that_is_an_hour_old(cluster, capsys):
    cluster.trim()
    [young] = document(capsys)["ledgers"]
    assert (young["ledger_id"], young["decision"]) == (0, "keep")
    assert "release.records_kept_s" in young["reason"]
    assert cluster.audited() == ({("object_missing", 0)}, 0)
    cluster.later(31 * DAY_S)
    before = cluster.records(0)
    plan = document(capsys, "--plan")["plan"]
    [early] = document(capsys, "--approved", plan, "--execute")["ledgers"]
    assert early["decision"] == "keep"
    assert early["reason"].startswith("planned ")
    assert cluster.records(0) == before
    cluster.later(HOUR_S + 60)
    [done] = document(capsys, "--approved", plan, "--execute")["ledgers"]
    assert (done["decision"], done["deleted"]) == ("deleted", len(before) + 1)  # and its claim
    assert cluster.records(0) == []
    assert cluster.stack.book.keys("claims/0.json") == []
    assert cluster.records(1)
    assert document(capsys, "--approved", plan, "--execute")["ledgers"] == []
    assert cluster.audited() == (set(), 1)  # the publication still names it
    assert cluster.audited(0, 1) == (set(), 1)
    assert cluster.audited(0, 7) == ({("record_missing", 7)}, 1)


def test_the_failure_record_of_a_ledger_goes_with_its_records(cluster, capsys):
    for ledger_id in (0, 1):
        failed = Failed(IntegrityError("lengths contradict each other"), TOPIC)
        settle_failures(cluster.stack, {ledger_id: failed}, ())
    plan = planned(cluster, capsys)
    assert decided(document(capsys, "--approved", plan, "--execute")) == [(0, "deleted")]
    assert cluster.stack.book.keys("failures/") == [keys.failure(1)]
    assert cluster.audited() == (set(), 1)


def test_objects_that_came_back_keep_the_records(cluster, capsys):
    plan = planned(cluster, capsys)
    [pair] = [pair for pair in cluster.stack.book.pairs("attempts/") if pair[0] == 0]
    cluster.stack.objects.put(f"{pair[1]}-ledger-0", b"late")
    [one] = document(capsys, "--approved", plan, "--execute")["ledgers"]
    assert "expired-copy delete" in one["reason"]
    assert cluster.records(0)


def test_a_hold_set_since_the_plan_keeps_the_records(cluster, capsys):
    plan = planned(cluster, capsys)
    hold(cluster.stack, Scope("topic", TOPIC), reason="court", author="ops")
    [one] = document(capsys, "--approved", plan, "--execute")["ledgers"]
    assert "court" in one["reason"]
    assert cluster.records(0)


def test_a_plan_takes_nothing_that_it_does_not_list(cluster, capsys):
    plan = planned(cluster, capsys)
    cluster.trim(1)
    cluster.later(20 * HOUR_S)
    assert decided(document(capsys, "--approved", plan, "--execute")) == [(0, "deleted")]
    assert decided(document(capsys)) == [(1, "may go")]


@pytest.mark.parametrize("survive", range(1, 6))
def test_a_run_that_died_between_its_deletes_is_finished_by_the_next(
    cluster, capsys, monkeypatch, survive
):
    """Between two deletes no audit misses what is gone, and the next run begins where it ended."""
    plan = planned(cluster, capsys)
    went: list[str] = []

    def dying(objects, key, *, allowed):
        if len(went) == survive:
            raise ObjectStoreError("the store is away")
        went.append(key)
        return delete_object(objects, key, allowed=allowed)

    with monkeypatch.context() as patch:
        patch.setattr("tiering_assets.retention.forget.delete_object", dying)
        [failed] = document(capsys, "--approved", plan, "--execute", code=1)["ledgers"]
    assert (failed["decision"], failed["reason"]) == ("failed", "the store is away")
    assert cluster.audited() == (set(), 1)
    assert decided(document(capsys, "--approved", plan, "--execute")) == [(0, "deleted")]
    assert cluster.records(0) == []


@pytest.mark.parametrize("wrong", WRONG_PLANS)
def test_a_plan_that_may_not_be_carried_out_deletes_nothing(cluster, capsys, wrong):
    plan = planned(cluster, capsys)
    before = cluster.records(0)
    plan = cluster.spoil(plan, ForgetPlan, keys.FORGET_PLANS, wrong)
    assert run(["gone-record", "delete", "--approved", plan, "--execute"]) not in (0, 1)
    assert WRONG_PLANS[wrong] in capsys.readouterr().err
    assert cluster.records(0) == before


def test_metadata_that_went_backwards_stops_all(cluster, capsys):
    plan = planned(cluster, capsys)
    path = managed_ledger_path(TOPIC)
    node = cluster.site.cluster.metadata.nodes[path]
    cluster.site.cluster.metadata.nodes[path] = replace(node, stat=replace(node.stat, version=0))
    assert run(["gone-record", "delete", "--approved", plan, "--execute"]) not in (0, 1)
    assert "went back in time" in capsys.readouterr().err
    assert cluster.records(0)


def test_a_forged_plan_hides_nothing(cluster, capsys):
    """A plan's key is the digest of what it says; one that was changed is a finding itself."""
    planned(cluster, capsys)
    [key] = cluster.stack.book.keys(keys.FORGET_PLANS)
    full = cluster.stack.book.prefix + key
    body = cluster.stack.objects.get(full).body
    cluster.stack.objects.put(full, body.replace(b'"ledger_id":0', b'"ledger_id":1'))
    findings, forgotten = cluster.audited()
    assert findings == {("record_damaged", None), ("object_missing", 0)}
    assert forgotten == 0
