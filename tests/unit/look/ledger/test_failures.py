"""A run that fails before it has an attempt says so in the bucket, and only there and only so long.

Simulated servers: bookies that lost entries, a store that refuses, a node that is denied.
"""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.admin_sim import running_admin_simulator
from tests.support.sim_clients import Process
from tests.support.sim_faults import Fate
from tests.support.sim_world import World
from tests.support.two_checkers import kinds, second_opinion
from tiering_assets.audit.audit import audit_store
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.explain import backlog_evidence
from tiering_assets.explain.backlog import explain_backlog, explain_ledger
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.look.ledger import resume as failures
from tiering_assets.look.ledger.claims import claim_ledger
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.policy.admission_rules import retry_after
from tiering_assets.records import keys
from tiering_assets.records.models import LedgerFailure
from tiering_assets.resources.errors import (
    EntryUnavailableError,
    IntegrityError,
    MetadataError,
    ObjectStoreError,
    PrerequisiteError,
)
from tiering_assets.resources.settings import AutoSettings, BrokerSettings
from tiering_assets.spark.runner import open_spark_runner

TOPIC = "t/ns/persistent/orders"
AUTO = AutoSettings(enabled=True, retry_first_s=60)


class Cluster:
    """Ledgers 0 and 1 are closed, 2 is open, and policy wants the first two."""

    def __init__(self):
        self.world = World(1)
        self.site = self.world.add_site("alpha", lag_s=None, bookkeeper_first=False)
        self.site.broker.create_topic(TOPIC)
        for payloads in ([b"first", b"last"], [b"one", b"two"]):
            self.site.broker.produce(TOPIC, payloads)
            self.site.broker.roll_over(TOPIC)
        self.site.cluster.metadata.put(
            "/admin/policies/t/ns", json.dumps({"offload_threshold": 0}).encode()
        )
        self.process = Process(self.world, "run", self.site)
        stack = self.process.stack()
        with running_admin_simulator() as gone:
            away = BrokerSettings(admin_url=gone.url, timeout_s=2)
        self.told: list[str] = []
        self.stack = replace(
            stack,
            settings=replace(stack.settings, auto=AUTO, broker=away),
            narrate=self.told.append,
        )

    def lose(self, ledger_id=0):
        """Its bookies do not answer; returns what makes them answer again."""
        kept = self.site.cluster.bookies.pop(ledger_id)
        return lambda: self.site.cluster.bookies.update({ledger_id: kept})

    def failure(self, ledger_id=0):
        return failures.read_failure(self.stack, ledger_id)

    def reason(self, ledger_id=0):
        found = {one.view.ledger_id: one.because for one in explain_backlog(self.stack)}
        assert explain_ledger(self.stack, ledger_id).because == found[ledger_id]
        return found[ledger_id]

    def findings(self, ledger_ids=None):
        report = audit_store(self.stack.objects, self.stack.settings, ledger_ids=ledger_ids)
        ours = kinds(report.findings)
        assert second_opinion(self.stack.objects, "alpha", ledger_ids)[0] == ours
        return ours

    @property
    def full_key(self):
        return self.stack.book.prefix + keys.failure(0)


@pytest.fixture
def cluster():
    return Cluster()


def test_runs_that_fail_while_planning_are_the_reason_until_one_succeeds(cluster):
    mend = cluster.lose()
    [first] = offload_batch(cluster.stack, [0])
    cluster.world.scheduler.now += 3600
    [second] = offload_batch(cluster.stack, [0])
    assert isinstance(first.error, EntryUnavailableError)
    assert attempts_of(cluster.stack, 0) == []
    found = cluster.failure()
    record = found.record
    assert (record.ledger_id, record.ml_name, record.tries) == (0, TOPIC, 2)
    assert (record.error, record.error_class) == (str(second.error), "EntryUnavailableError")
    assert timedelta(minutes=59) < record.last_at - record.first_at < timedelta(minutes=61)
    because = cluster.reason()
    assert because.reason is BacklogReason.FAILED
    next_try = found.stored_at + retry_after(2, AUTO)
    assert because.detail == (
        f"{second.error}; 2 attempts; next try not before {next_try:%Y-%m-%d %H:%M:%S}Z"
    )
    assert cluster.findings() == set()
    mend()
    [done] = offload_batch(cluster.stack, [0])
    assert done.published is not None
    assert cluster.failure() is None
    assert cluster.reason().reason is BacklogReason.IN_LAG
    assert cluster.findings() == set()


def test_entries_that_contradict_the_ledgers_length_are_told_too(cluster):
    cluster.site.cluster.bookies[0] = [b"first" * 100, b"last"]
    [outcome] = offload_batch(cluster.stack, [0])
    assert isinstance(outcome.error, IntegrityError)
    assert cluster.failure().record.error_class == "IntegrityError"
    assert cluster.reason().reason is BacklogReason.FAILED


def test_one_ledgers_failure_is_not_the_others(cluster):
    cluster.lose()
    offload_batch(cluster.stack, [0, 1])
    assert list(failures.list_failures(cluster.stack)) == [0]
    assert cluster.reason(1).reason is BacklogReason.IN_LAG


def test_the_newer_of_failure_and_attempt_is_the_reason(cluster):
    cluster.lose()
    offload_batch(cluster.stack, [0])
    cluster.world.scheduler.now += 60
    cluster.site.cluster.bookies[0] = [b"first", b"last"]
    cluster.process.fates = [
        Fate("objects", ("put",), "store answers 503", naming="-ledger-0"),
        Fate("objects", ("delete",), "store answers 503", naming="/failures/"),
    ]
    [outcome] = offload_batch(cluster.stack, [0])
    assert isinstance(outcome.error, ObjectStoreError)
    assert len(attempts_of(cluster.stack, 0)) == 1
    assert cluster.failure() is not None  # the store would not remove it
    assert "503; 1 attempt" in cluster.reason().detail
    cluster.world.scheduler.now += 60
    cluster.lose()
    offload_batch(cluster.stack, [0])
    assert "no ledger 0); 2 attempts" in cluster.reason().detail


def test_a_run_that_got_no_spark_says_so_of_each_ledger_until_the_next(cluster, closed_port):
    spark = replace(cluster.stack.settings.spark, master=f"spark://127.0.0.1:{closed_port}")
    with (
        open_spark_runner(replace(cluster.stack.settings, spark=spark)) as runner,
        pytest.raises(PrerequisiteError, match="no server listens there") as ended,
    ):
        offload_batch(replace(cluster.stack, runner=runner), [0, 1, 2])
    for ledger_id in (0, 1):
        assert attempts_of(cluster.stack, ledger_id) == []
        because = cluster.reason(ledger_id)
        assert because.reason is BacklogReason.FAILED
        assert because.detail.startswith(f"{ended.value}; 1 attempt; next try not before")
    assert cluster.failure(2) is None  # open: no run's fault
    outcomes = offload_batch(cluster.stack, [0, 1])
    assert [one.state for one in outcomes] == ["published", "published"]
    assert (cluster.failure(0), cluster.failure(1)) == (None, None)
    assert cluster.findings() == set()


def test_a_failure_goes_once_an_attempt_tells_what_became_of_the_ledger(cluster):
    mend = cluster.lose()
    offload_batch(cluster.stack, [0])
    mend()
    cluster.process.fates = [Fate("objects", ("put",), "store answers 503", naming="-ledger-0")]
    offload_batch(cluster.stack, [0])
    assert cluster.failure() is None
    assert "503; 1 attempt" in cluster.reason().detail


def test_a_copy_that_could_not_be_read_back_tells_why(cluster):
    cluster.process.fates = [Fate("objects", ("get",), "store answers 503", naming="-ledger-0")]
    [outcome] = offload_batch(cluster.stack, [0])
    assert isinstance(outcome.error, ObjectStoreError)
    assert "503; 1 attempt" in cluster.reason().detail
    [done] = offload_batch(cluster.stack, [0])
    assert (done.published is not None, cluster.failure()) == (True, None)


def test_a_run_that_finds_another_at_work_says_nothing(cluster):
    cluster.lose()
    offload_batch(cluster.stack, [0])
    before = cluster.failure()
    claim_ledger(replace(cluster.stack, run_id="other"), 0)
    [outcome] = offload_batch(cluster.stack, [0])
    assert outcome.state == "another run works on it"
    assert cluster.failure() == before


def test_a_denied_node_writes_nothing_at_all(cluster, monkeypatch):
    class Denied:
        def __getattr__(self, name):
            return getattr(cluster.stack.metadata, name)

        def require_writable(self, path):
            raise MetadataError(f"{path}: access denied")

    before = {key: cluster.world.objects.peek(key) for key in cluster.world.objects.peek_keys()}
    [outcome] = offload_batch(replace(cluster.stack, metadata=Denied()), [0])
    assert isinstance(outcome.error, MetadataError)
    after = {key: cluster.world.objects.peek(key) for key in cluster.world.objects.peek_keys()}
    assert after == before


@pytest.mark.parametrize("fault", ["store answers 503", "answer lost"])
def test_a_store_that_refuses_the_record_hides_no_error(cluster, fault):
    cluster.lose()
    cluster.process.fates = [Fate("objects", ("put",), fault, naming="/failures/")]
    [outcome] = offload_batch(cluster.stack, [0])
    assert isinstance(outcome.error, EntryUnavailableError)
    assert cluster.process.fates == []
    assert any("its failure could not be recorded" in line for line in cluster.told)


def test_a_store_that_will_not_remove_the_record_stops_no_publication(cluster):
    mend = cluster.lose()
    offload_batch(cluster.stack, [0])
    mend()
    cluster.process.fates = [Fate("objects", ("delete",), "store answers 503", naming="/failures/")]
    [outcome] = offload_batch(cluster.stack, [0])
    assert outcome.published is not None
    assert cluster.process.fates == []
    assert cluster.reason().reason is BacklogReason.IN_LAG  # whatever the record says
    offload_batch(cluster.stack, [0])
    assert cluster.failure() is None


@pytest.mark.parametrize("tries_before", [0, 1])
def test_who_loses_the_race_to_record_it_leaves_the_winners(cluster, monkeypatch, tries_before):
    cluster.lose()
    for _ in range(tries_before + 1):
        stale = cluster.failure()
        offload_batch(cluster.stack, [0])
    winner = cluster.failure()
    monkeypatch.setattr(failures, "read_failure", lambda _stack, _ledger_id: stale)
    cluster.world.scheduler.now += 60
    [outcome] = offload_batch(cluster.stack, [0])
    monkeypatch.undo()
    assert isinstance(outcome.error, EntryUnavailableError)
    assert cluster.failure() == winner
    assert winner.record.tries == tries_before + 1


def test_an_error_that_is_no_text_or_has_no_end_is_cut_to_what_a_record_holds(cluster):
    error = IntegrityError("\udcff" + "x" * 5000)
    failures.settle_failures(cluster.stack, {0: failures.Failed(error, None)}, ())
    record = cluster.failure().record
    assert len(record.error) == failures.ERROR_CHARS_MAX
    assert record.error.startswith("?xx")
    assert record.ml_name is None


def test_a_damaged_record_is_a_finding_of_both_checkers_and_hides_nothing(cluster):
    mend = cluster.lose()
    offload_batch(cluster.stack, [0])
    body = cluster.world.objects.peek(cluster.full_key)[0]
    cluster.world.objects.rot(cluster.full_key, body.replace(b'"tries":1', b'"tries":7'))
    assert cluster.findings() == {("record_damaged", 0)}
    assert ("record_damaged", 0) in cluster.findings([0])
    because = cluster.reason()
    assert because.reason is BacklogReason.FAILED
    assert "the record cannot be read" in because.detail
    [outcome] = offload_batch(cluster.stack, [0])
    assert isinstance(outcome.error, EntryUnavailableError)
    mend()
    offload_batch(cluster.stack, [0])
    assert cluster.failure() is None
    assert cluster.findings() == set()


def test_a_record_at_another_ledgers_key_or_of_another_kind_is_a_finding_of_both(cluster):
    cluster.lose()
    offload_batch(cluster.stack, [0])
    body = cluster.world.objects.peek(cluster.full_key)[0]
    for name in ("5.json", "five.json"):
        cluster.world.objects.put(f"{cluster.stack.book.prefix}failures/{name}", body)
    assert cluster.findings() == {("record_misplaced", 5), ("record_misplaced", None)}
    assert cluster.findings([0]) == {("record_missing", 0)}  # there is no copy to be audited
    cluster.world.objects.rot(cluster.full_key, body.replace(b"failure/1", b"failure/2"))
    assert ("record_damaged", 0) in cluster.findings()


def test_a_record_that_goes_while_it_is_audited_is_no_finding(cluster, monkeypatch):
    cluster.lose()
    offload_batch(cluster.stack, [0])
    listed = [*cluster.world.objects.list_objects(cluster.full_key)]
    cluster.world.objects.delete(cluster.full_key)
    found = cluster.world.objects.list_objects

    def stale(prefix=""):
        return iter(listed) if "/failures/" in prefix else found(prefix)

    monkeypatch.setattr(cluster.world.objects, "list_objects", stale)
    assert cluster.findings() == set()
    assert cluster.reason(1).reason is not BacklogReason.FAILED
    assert cluster.reason(0).reason is not BacklogReason.FAILED


def test_only_failures_that_are_listed_are_read_and_no_more_than_the_bound(cluster, monkeypatch):
    cluster.lose()
    offload_batch(cluster.stack, [0])
    asked = []
    read = failures.read_failure

    def noted(stack, ledger_id):
        asked.append(ledger_id)
        return read(stack, ledger_id)

    monkeypatch.setattr(backlog_evidence, "read_failure", noted)
    assert {one.view.ledger_id for one in explain_backlog(cluster.stack)} == {0, 1, 2}
    assert asked == [0]
    monkeypatch.setattr(backlog_evidence, "READS_MAX", 0)
    assert f"the record {keys.failure(0)} has the error" in cluster.reason().detail
    assert asked == [0]


def test_it_is_a_record_of_its_own_kind(cluster):
    cluster.lose()
    offload_batch(cluster.stack, [0])
    body = json.loads(cluster.world.objects.peek(cluster.full_key)[0])
    assert body["schema"] == LedgerFailure.kind == "tierkeeper/failure/1"
    assert body["writer"]["run_id"] == "run"
