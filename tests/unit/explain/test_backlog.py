"""The backlog's reasons from simulated servers: what records, nodes and policies make of each
ledger.

At first no broker answers, as when a fleet is looked at while its brokers are away; then one that
answers from a table. A real one answers in tests/stack/test_cli_backlog.py.
"""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.admin_sim import running_admin_simulator, tell_broker
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tests.support.topic_halves import release_topic
from tiering_assets.automation.admission import Offloads
from tiering_assets.automation.rounds import walk
from tiering_assets.automation.tick_memory import TickMemory
from tiering_assets.batch import pipeline
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.change.disturb import record_disturbance
from tiering_assets.copy.offload import give_up
from tiering_assets.explain import backlog_evidence
from tiering_assets.explain.backlog import counted, explain_backlog, explain_ledger
from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy, TieringMode
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import ledger_scope
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.policy.policies import open_policies
from tiering_assets.records import keys
from tiering_assets.records.models import Claim, Outcome, Quarantine
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.bookkeeper.ledger_metadata import encode_ledger_metadata
from tiering_assets.resources.errors import BrokerError, LedgerNotFoundError
from tiering_assets.resources.metastore.ledger_info import encode_managed_ledger
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.pulsar.admin import HttpBrokerAdmin
from tiering_assets.resources.settings import AutoSettings, BrokerSettings

TOPIC = "t/ns/persistent/orders"
BYTES = "managedLedgerOffloadThresholdInBytes"
R = BacklogReason


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def site(world):
    """Ledger 0 is closed with nine bytes, and one more is open."""
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    site.broker.produce(TOPIC, [b"first", b"last"])
    site.broker.roll_over(TOPIC)
    set_namespace(site, offload_threshold=0)
    return site


@pytest.fixture
def stack(world, site):
    with running_admin_simulator() as gone:
        address = BrokerSettings(admin_url=gone.url, timeout_s=2)
    found = Process(world, "backlog", site).stack()
    return replace(found, settings=replace(found.settings, broker=address))


def set_namespace(site, **policies):
    site.cluster.metadata.put("/admin/policies/t/ns", json.dumps(policies).encode())


def reasons(stack, **how):
    return {one.view.ledger_id: one.because for one in explain_backlog(stack, **how)}


def reason(stack, ledger_id=0):
    fleet = reasons(stack)[ledger_id]
    assert explain_ledger(stack, ledger_id).because == fleet  # one function, one answer
    return fleet


def test_a_ledger_past_its_threshold_waits_for_brokers_that_are_away(stack):
    """Where they read is unknown, which is not the same as right."""
    found = reasons(stack)
    assert (found[0].reason, found[1].reason) == (R.CANNOT_READ, R.OPEN)
    assert "unknown" in reason(stack).detail


def test_the_counts_add_up_over_the_topics(stack, site):
    site.broker.create_topic("t/ns/persistent/more")
    explained = list(explain_backlog(stack))
    figures = count_figures(map(counted, explained), disturbances_last_hour=0, now=stack.now())
    rows = figures.total.reasons
    assert sum(row.ledgers for row in rows) == len(explained) > 2
    assert sum(row.bytes for row in rows) == 9
    assert {row.reason for row in rows if row.oldest_s is not None} == {R.CANNOT_READ}


def test_below_threshold_with_both_numbers(stack, site):
    set_namespace(site, offload_threshold=9)
    found = reason(stack)
    assert found.reason is R.BELOW_THRESHOLD
    assert found.detail == "9 bytes from here on <= 9"


def test_no_threshold_excludes_and_so_does_a_policy_that_cannot_be(stack, site):
    set_namespace(site)
    assert str(reason(stack)) == "excluded: no threshold is set"
    set_namespace(
        site,
        offload_threshold=5 * 1024 * 1024,
        retention_policies={"retentionTimeInMinutes": 60, "retentionSizeInMB": 5},
    )
    assert str(reason(stack)).startswith("excluded: offload_size: offload size 5242880 bytes")


def test_a_policy_that_cannot_be_read_admits_nothing(stack, site):
    set_namespace(site, offload_threshold="5")
    found = reason(stack)
    assert found.reason is R.NOT_ADMITTED
    assert "offload_threshold: expected a whole number" in found.detail


@pytest.mark.parametrize("mode", [TieringMode.DISABLED, TieringMode.PAUSED])
def test_a_topic_that_tiering_toml_takes_out(stack, mode):
    own = OwnPolicies(default=OwnPolicy(mode=mode))
    assert str(reason(replace(stack, own_policies=own))) == (
        f"{mode.value}: by the default level of tiering.toml"
    )


def test_copying_while_a_claim_lives(stack):
    now = stack.objects.server_time()
    stack.book.create(
        keys.claim(0),
        Claim(ledger_id=0, run_id="r", attempt=None, expires_at=now.replace(year=now.year + 1)),
    )
    assert reason(stack).reason is R.COPYING


def test_from_published_by_way_of_lag_and_hold_to_done(stack, world):
    [outcome] = offload_batch(stack, [0])
    assert outcome.published is not None
    lagging = reason(stack)
    assert lagging.reason is R.IN_LAG
    assert lagging.detail.startswith("due after ")
    world.scheduler.now += 30 * 24 * 3600
    assert str(reason(stack)) == "not admitted: due for release; no run has taken it up"
    none_an_hour = replace(stack.settings.release, per_hour_max=0)
    capped = replace(stack, settings=replace(stack.settings, release=none_an_hour))
    assert str(reason(capped)) == (
        "capped: release.per_hour_max = 0, 0 were released in the last hour"
    )
    release_topic(stack, TOPIC, [0])
    assert reason(stack).reason is R.DONE


def test_of_one_ledger_that_is_due_the_release_gate_is_asked(stack, world):
    offload_batch(stack, [0])
    world.scheduler.now += 30 * 24 * 3600
    for key in [key for key in world.objects.peek_keys() if key.endswith("-index")]:
        world.objects.delete(key)
    assert reasons(stack)[0].reason is R.NOT_ADMITTED
    asked = explain_ledger(stack, 0).because
    assert asked.reason is R.UNSAFE
    assert "the index object is gone" in asked.detail


def test_a_held_ledger_names_who_and_why(stack):
    offload_batch(stack, [0])
    hold(stack, ledger_scope(0), reason="audit", author="kim")
    assert str(reason(stack)) == "held: audit (kim)"


def test_published_without_its_records_is_unconfirmed_or_unsafe(stack, world):
    offload_batch(stack, [0])
    for part, expected in (("/publications/", R.UNCONFIRMED), ("/certificates/", R.UNSAFE)):
        for key in [key for key in world.objects.peek_keys() if part in key]:
            world.objects.delete(key)
        assert reason(stack).reason is expected


def test_a_ledger_that_bookkeeper_lost_is_unsafe(stack, site):
    site.cluster.delete_ledger(0)
    assert str(reason(stack)).startswith("unsafe: BookKeeper has no such ledger")


def test_an_unknown_ledger_is_no_reason(stack):
    with pytest.raises(LedgerNotFoundError, match="ledger 99: BookKeeper does not have it"):
        explain_ledger(stack, 99)


def test_a_ledger_that_its_topic_no_longer_lists_has_expired(stack, site):
    offload_batch(stack, [0])
    path = managed_ledger_path(TOPIC)
    listed, _node = stack.topics.read(TOPIC)
    message = listed.message_copy()
    del message.ledgerInfo[0]
    site.cluster.metadata.put(path, encode_managed_ledger(listed.with_message(message)))
    assert str(explain_ledger(stack, 0).because) == (
        "expired: persistent://t/ns/orders does not list it any more"
    )


# ----- a broker that answers


@pytest.fixture
def answered(stack):
    """The same when a broker tells its settings; it reads our bucket. Nobody asks for topics."""
    with running_admin_simulator() as admin:
        tell_broker(admin, stack.settings)
        address = BrokerSettings(admin_url=admin.url, timeout_s=10)
        own = OwnPolicies(default=OwnPolicy(threshold_bytes=0))
        settings = replace(stack.settings, broker=address)
        yield replace(stack, settings=settings, own_policies=own), admin


@pytest.fixture
def verified(answered, stack):
    """Ledger 0 has its certificate; the broker was away when it was to be published."""
    away = HttpBrokerAdmin(stack.settings.broker)
    [outcome] = offload_batch(replace(stack, broker=away), [0])
    assert outcome.certificate is not None
    assert outcome.published is None
    away.close()
    return answered[0]


def test_policy_wants_it_and_no_run_has_taken_it_up(answered):
    stack, admin = answered
    assert str(reasons(stack)[0]) == "not admitted: policy wants it; no run has taken it up"
    asked = [line for line, _token in admin.requests]
    assert not [line for line in asked if "/persistent/" in line]  # or it would own the bundle


def test_who_names_a_topic_gets_its_own_level_asked(answered):
    stack, admin = answered
    admin.get("/persistent/t/ns/orders/offloadPolicies", {BYTES: 9})
    admin.get("/persistent/t/ns/orders/offloadPolicies?applied=true", {BYTES: 9})
    assert reasons(stack)[0].reason is R.NOT_ADMITTED
    assert reasons(stack, ml_names=[TOPIC], ask_topics=True)[0].reason is R.BELOW_THRESHOLD
    assert explain_ledger(stack, 0).because.reason is R.BELOW_THRESHOLD


def test_a_level_that_was_not_asked_is_no_outage(answered):
    stack, admin = answered
    told = explain_ledger(stack, 0, loads_nothing=True).because
    assert str(told) == "not admitted: policy wants it; no run has taken it up"
    assert not [line for line, _token in admin.requests if "/persistent/" in line]


def test_sensors_ask_for_no_run_where_the_reason_is_that_none_may(answered):
    """publish.coexist = false said excluded here, while a sensor asked for its runs."""
    stack, admin = answered
    admin.get("/namespaces/t/ns", {"offload_threshold": 0})
    for level in ("offloadPolicies", "offloadPolicies?applied=true"):
        admin.get(f"/persistent/t/ns/orders/{level}", {BYTES: 0})
    for coexist in (True, False):
        publish = replace(stack.settings.publish, coexist=coexist)
        now = replace(stack, settings=replace(stack.settings, publish=publish))
        told = reasons(now)[0]
        with open_policies(now) as policies:
            offloads = Offloads(now, policies, lambda _ledger_id: True, TickMemory())
            found = walk(
                now,
                offloads.look,
                after=None,
                seconds=9,
                room=9,
            )
        assert bool(found.found) is (told.reason is R.NOT_ADMITTED) is coexist, (told, found)


def test_a_topics_level_that_was_asked_and_not_told_is_unknown(answered):
    stack, admin = answered
    admin.get("/persistent/t/ns/orders/offloadPolicies", {"reason": "busy"}, status=500)
    assert reasons(stack)[0].reason is R.NOT_ADMITTED
    told = explain_ledger(stack, 0).because
    assert told.reason is R.CANNOT_READ
    assert "topic level: " in told.detail


def test_a_ledger_that_bookkeeper_does_not_call_closed(answered, site, monkeypatch):
    stack, _admin = answered
    metadata = replace(stack.ledgers.read(0).metadata, state=BookKeeperState.IN_RECOVERY)
    site.cluster.metadata.put(site.cluster.path(0), encode_ledger_metadata(metadata))
    assert str(reasons(stack)[0]).startswith(
        "unsealed in BookKeeper: BookKeeper says IN_RECOVERY; its owner must close it"
    )
    monkeypatch.setattr(backlog_evidence, "READS_MAX", 0)
    assert reasons(stack)[0].reason is R.NOT_ADMITTED  # not asked beyond the bound


def test_a_broker_that_reads_another_bucket_cannot_read_ours(answered):
    stack, _admin = answered
    store = replace(stack.settings.store, bucket="other")
    other = replace(stack, settings=replace(stack.settings, store=store))
    mine = stack.settings.store.bucket
    assert str(reasons(other)[0]) == (f"broker cannot read: bucket is {mine!r}, ours is 'other'")


def test_a_broker_may_release_first_or_offload_on_its_own(answered):
    stack, admin = answered
    admin.get("/namespaces/t/ns", {"offload_deletion_lag_ms": 5000, "offload_threshold": 0})

    def because(**publish):
        settings = replace(
            stack.settings,
            release=replace(stack.settings.release, deletion_lag_s=60),
            publish=replace(stack.settings.publish, **publish),
        )
        return str(reasons(replace(stack, settings=settings))[0])

    assert because(broker_may_release=False, coexist=False).startswith(
        "broker may release first: its deletion lag is 5 s, ours is 60 s"
    )
    assert because(broker_may_release=True, coexist=False).startswith(
        "excluded: publish.coexist = false"
    )
    assert because(broker_may_release=True, coexist=True).startswith("not admitted")


def test_a_verified_ledger_waits_for_its_topics_next_publication(verified):
    assert reasons(verified)[0].reason is R.WAITING_TO_DISTURB


def test_a_verified_ledger_whose_topics_node_would_be_too_large(verified):
    small = replace(verified.settings.publish, node_bytes_max=10)
    tight = replace(verified, settings=replace(verified.settings, publish=small))
    found = reasons(tight)[0]
    assert found.reason is R.NODE_TOO_LARGE
    assert "publish.node_bytes_max is 10" in found.detail


@pytest.mark.parametrize(
    ("name", "whose"), [("per_topic_hour_max", "this topic's"), ("per_cluster_hour_max", "the")]
)
def test_a_verified_ledger_when_a_budget_of_reloads_is_used_up(verified, name, whose):
    record_disturbance(verified, TOPIC, None, "test")
    one = replace(verified.settings.disturb, **{name: 1})
    spent = replace(verified, settings=replace(verified.settings, disturb=one))
    found = reasons(spent)[0]
    assert found.reason is R.OVER_BUDGET
    assert found.detail.startswith(whose)
    assert found.detail.endswith(f"disturb.{name} = 1")


def forget_proof(world):
    for key in [k for k in world.objects.peek_keys() if "/certificates/" in k or "-index" in k]:
        world.objects.delete(key)


def test_an_attempt_that_was_given_up_tells_error_and_attempts(verified, world):
    forget_proof(world)
    assert str(reasons(verified)[0]).startswith(
        "failed: its run ended without a certificate, and it recorded no error; 1 attempt; next try"
    )
    [attempt] = attempts_of(verified, 0)
    give_up(verified, attempt, reason="too few bookies answer", upload_id=None)
    assert str(reasons(verified)[0]) == (
        "failed: too few bookies answer; 1 attempt; next try with the next run that takes it up"
    )
    automatic = AutoSettings(enabled=True, retry_first_s=60)
    settings = replace(verified.settings, auto=automatic)
    ended = verified.book.read(Outcome, keys.outcome(0, attempt.record.uid)).stored_at
    assert str(reasons(replace(verified, settings=settings))[0]).endswith(
        f"; next try not before {ended + timedelta(seconds=60):%Y-%m-%d %H:%M:%S}Z"
    )


def test_a_verified_ledger_that_runs_cannot_publish_says_why(verified, monkeypatch):
    def away(*_args):
        raise BrokerError("no broker answers")

    monkeypatch.setattr(pipeline, "not_due", away)
    [outcome] = offload_batch(verified, [0], when_due=True)
    assert isinstance(outcome.error, BrokerError)
    assert str(reasons(verified)[0]).startswith("failed: no broker answers; 1 attempt; next try")
    offload_batch(verified, [0], publish=False)
    assert reasons(verified)[0].reason is R.WAITING_TO_DISTURB


def test_a_quarantined_copy(verified):
    [attempt] = attempts_of(verified, 0)
    record = attempt.record
    verified.book.create(
        keys.quarantine(0, record.uid),
        Quarantine(
            ledger_id=0,
            uid=record.uid,
            ml_name=TOPIC,
            reason="block 2 differs",
            found_at=verified.now(),
            writer=verified.writer,
            previous=attempt.sha256,
        ),
    )
    assert reasons(verified)[0].reason is R.QUARANTINED
