"""A ledger's reason is true where records come, go, cannot be read, or are more than may be
read.
"""

from dataclasses import replace

import pytest

from tests.support.admin_sim import running_admin_simulator, tell_broker
from tests.support.left_behind import PATH, leave_unproven
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.explain import backlog, backlog_evidence
from tiering_assets.explain.backlog import explain_backlog, explain_ledger
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy
from tiering_assets.look.ledger.quarantine import quarantine, win_outcome
from tiering_assets.records import keys
from tiering_assets.records.models import LedgerFailure
from tiering_assets.resources.errors import FormatError, LedgerNotFoundError
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.settings import BrokerSettings

R = BacklogReason
DIED = "its run ended without a certificate, and it recorded no error"


@pytest.fixture
def admin():
    with running_admin_simulator() as admin:
        yield admin


@pytest.fixture
def scene(admin):
    """Ledger 0 is closed, and policy wants everything; the broker tells its settings."""
    scene = Scene()
    settings = scene.world.settings
    tell_broker(admin, settings)
    scene.world.settings = replace(
        settings, broker=BrokerSettings(admin_url=admin.url, timeout_s=10)
    )
    return scene


def stack_of(scene, name="looker"):
    wanted = OwnPolicies(default=OwnPolicy(threshold_bytes=0))
    return replace(scene.process(name), own_policies=wanted)


def because(scene, ledger_id=0, **changes):
    """What both say, the look at all and the look at one."""
    stack = replace(stack_of(scene), **changes)
    found = {one.view.ledger_id: one.because for one in explain_backlog(stack)}[ledger_id]
    assert explain_ledger(stack, ledger_id, loads_nothing=True).because == found
    return found


def fail(scene, error="the bookies do not answer"):
    scene.stack.book.create(
        keys.failure(0),
        LedgerFailure(
            ledger_id=0,
            ml_name=TOPIC,
            error=error,
            error_class="EntryUnavailableError",
            tries=3,
            first_at=scene.stack.now(),
            last_at=scene.stack.now(),
            writer=scene.stack.writer,
        ),
    )


def died(scene):
    """A run was killed when both objects of its attempt were there; returns the attempt."""
    attempt = leave_unproven(scene)
    forget(scene, keys.failure(0))
    return attempt


def spoil(scene, key):
    scene.world.objects.overwrite(scene.stack.book.prefix + key, b"{")


def forget(scene, key):
    scene.world.objects.delete(scene.stack.book.prefix + key)


def edit(scene, change, path=PATH):
    nodes = scene.cluster.metadata.nodes
    found = decode_managed_ledger(nodes[path].data)
    message = found.message_copy()
    change(message)
    data = encode_managed_ledger(found.with_message(message))
    nodes[path] = replace(nodes[path], data=data)
    scene.broker.restart()


# ----- how the newest run failed


def test_a_failure_without_an_attempt_tells_its_own_number_of_tries(scene):
    fail(scene)
    assert because(scene).detail.startswith("the bookies do not answer; 3 attempts; ")


def die(scene, times):
    """So many runs were killed, each at an attempt of its own."""
    for _ in range(times):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tiering_assets.batch.pipeline.find_resumable", lambda *_a: None)
            patch.setattr("tiering_assets.copy.offload.find_unfinished", lambda *_a: None)
            died(scene)


@pytest.mark.parametrize(
    ("times", "told"), [(0, "1 attempt;"), (1, "1 attempt;"), (2, "2 attempts;")]
)
def test_a_failure_that_cannot_be_read_tells_the_attempts_there_are(scene, times, told):
    die(scene, times)
    fail(scene)
    spoil(scene, keys.failure(0))
    found = because(scene).detail
    assert found.startswith("failed, and the record cannot be read: ")
    assert f"; {told} next try" in found


@pytest.mark.parametrize(("times", "told"), [(0, "1 attempt;"), (2, "2 attempts;")])
def test_beyond_the_reads_of_one_look_the_record_is_named(scene, monkeypatch, times, told):
    die(scene, times)
    fail(scene)
    monkeypatch.setattr(backlog_evidence, "READS_MAX", 0)
    named = f"failed; the record {keys.failure(0)} has the error; {told} next try"
    assert because(scene).detail.startswith(named)


def test_a_failure_that_goes_after_it_was_listed_is_over(scene, monkeypatch):
    """Its ledger moved on meanwhile."""
    fail(scene)
    monkeypatch.setattr(backlog_evidence, "read_failure", lambda *_a: None)
    assert because(scene).reason is R.NOT_ADMITTED


# ----- what the newest attempt came to


def test_an_attempt_without_an_outcome_died(scene):
    died(scene)
    assert because(scene).detail.startswith(f"{DIED}; 1 attempt")


def test_an_attempt_that_was_given_up_tells_why(scene):
    win_outcome(scene.stack, died(scene), "abandon", reason="too few bookies")
    assert because(scene).detail.startswith("too few bookies; 1 attempt")


def test_an_attempt_that_won_and_has_no_proof_was_not_given_up(scene):
    win_outcome(scene.stack, died(scene), "publish", reason="publish")
    assert because(scene).detail.startswith(f"{DIED}; 1 attempt")


def test_an_outcome_that_goes_after_it_was_listed_tells_nothing(scene, monkeypatch):
    attempt = died(scene)
    win_outcome(scene.stack, attempt, "abandon", reason="too few bookies")
    key = keys.outcome(0, attempt.record.uid)
    really = type(scene.stack.book).read
    monkeypatch.setattr(
        type(scene.stack.book),
        "read",
        lambda book, kind, wanted: None if wanted == key else really(book, kind, wanted),
    )
    assert because(scene).detail.startswith(f"{DIED}; 1 attempt")


def test_beyond_the_reads_of_one_look_the_command_is_named(scene, monkeypatch):
    win_outcome(scene.stack, died(scene), "abandon", reason="too few bookies")
    monkeypatch.setattr(backlog_evidence, "READS_MAX", 0)
    assert because(scene).detail.startswith(
        "given up; `tierkeeper ledger show 0` prints the error; 1 attempt"
    )


# ----- what BookKeeper says of one that is due


def test_a_node_that_goes_after_it_was_listed_is_missing(scene, monkeypatch):
    monkeypatch.setattr(LedgerDirectory, "read", lambda *_a: None)
    stack = stack_of(scene)
    found = {one.view.ledger_id: one.because for one in explain_backlog(stack)}[0]
    assert found.reason is R.UNSAFE
    assert "BookKeeper" in found.detail


def test_a_node_that_cannot_be_read_is_missing(scene, monkeypatch):
    def unreadable(*_args):
        raise FormatError("no ledger metadata")

    monkeypatch.setattr(LedgerDirectory, "read", unreadable)
    found = {one.view.ledger_id: one.because for one in explain_backlog(stack_of(scene))}[0]
    assert (found.reason, "cannot be read" in found.detail) == (R.UNSAFE, True)


# ----- whose copy it is


def test_a_brokers_copy_is_a_brokers(scene):
    assert scene.broker.offload(TOPIC)
    assert because(scene).reason is R.PUBLISHED_BY_BROKER


@pytest.mark.parametrize("left", ["attempt", "certificate", "publication"])
def test_any_record_of_ours_tells_that_a_copy_is_no_brokers(scene, left):
    uid = scene.publish().certificate.record.uid
    for name, key in (
        ("attempt", keys.attempt(0, uid)),
        ("certificate", keys.certificate(0, uid)),
        ("publication", keys.publication(TOPIC, 1)),
    ):
        if name != left:
            forget(scene, key)
    assert because(scene).reason is not R.PUBLISHED_BY_BROKER


# ----- what is asked only where it can matter


def asked_of_topics(admin):
    return [line for line, _auth in admin.requests if "/persistent/" in line]


def test_of_a_published_ledger_no_policy_of_its_topic_is_asked(scene, admin):
    """Asking may make a broker load topics."""
    edit(scene, lambda message: message.ledgerInfo.__delitem__(slice(1, None)))
    scene.broker.offload(TOPIC)
    list(explain_backlog(stack_of(scene), [TOPIC], ask_topics=True))
    edit(scene, lambda message: message.ledgerInfo.__delitem__(slice(1, None)))
    admin.requests.clear()
    explain_ledger(stack_of(scene), 0)
    assert asked_of_topics(admin) == []


def test_the_last_ledger_of_a_terminated_topic_is_told_by_its_policy(scene):
    """Whatever became of the others."""
    scene.publish()
    scene.broker.restart()

    def change(message):
        last = message.ledgerInfo[-1]
        message.terminatedPosition.ledgerId, message.terminatedPosition.entryId = last.ledgerId, 1

    edit(scene, change)
    last = scene.stack.topics.read(TOPIC)[0].ledgers[-1].ledger_id
    found = because(scene, last)
    assert found.reason is R.EXCLUDED
    assert "policy.terminated_last_ledger = false" in found.detail


@pytest.fixture
def gate(monkeypatch):
    """How often the release gate is asked; it finds nothing."""
    asked = []
    monkeypatch.setattr(backlog, "why_not_released", lambda seen: asked.append(seen))
    return asked


def test_the_release_gate_is_asked_of_a_ledger_that_is_due_alone(scene, gate):
    scene.publish()
    explain_ledger(stack_of(scene), 0)
    assert gate == []
    scene.past_the_lag()
    explain_ledger(stack_of(scene), 0)
    assert len(gate) == 1


@pytest.mark.parametrize("owned", [True, False])
def test_where_nothing_may_be_loaded_the_gate_is_asked_of_a_topic_that_a_broker_owns(
    scene, admin, gate, owned
):
    scene.publish()
    scene.past_the_lag()
    bundles: dict[str, object] = {"t/ns/0x00000000_0xffffffff": {}} if owned else {}
    admin.get(f"/brokers/c1/{admin.address}/ownedNamespaces", bundles)
    admin.get(f"/brokers/c1/{admin.address.replace(':', '%3A')}/ownedNamespaces", bundles)
    explain_ledger(stack_of(scene), 0, loads_nothing=True)
    assert len(gate) == int(owned)


# ----- caps and sizes of what is really due or verified


def test_only_what_is_due_counts_for_the_caps_of_a_run(scene):
    """One that was published before it is doubted, and never due."""
    first, second = 0, scene.fill(TOPIC)
    uid = scene.publish(first).certificate.record.uid
    scene.wait(60)
    scene.publish(second)
    quarantine(scene.stack, first, uid, ml_name=TOPIC, reason="rot", previous="")
    scene.past_the_lag()
    settings = scene.world.settings
    one = replace(settings.release, per_run_max=1)
    scene.world.settings = replace(settings, release=one)
    found = {x.view.ledger_id: x.because for x in explain_backlog(stack_of(scene))}
    assert str(found[second]) == "not admitted: due for release; no run has taken it up"


def test_only_what_is_verified_counts_for_the_size_of_the_node(scene):
    """Of three copies one is proven, and its context alone still fits."""
    ids = [0, scene.fill(TOPIC), scene.fill(TOPIC)]
    for ledger_id in ids[1:]:
        leave_unproven(scene, ledger_id)
    scene.certify(0)
    now = scene.stack.topics.read(TOPIC)[0].uncompressed_bytes
    settings = scene.world.settings
    for room, reason in ((400, R.WAITING_TO_DISTURB), (10, R.NODE_TOO_LARGE)):
        publish = replace(settings.publish, node_bytes_max=now + room)
        scene.world.settings = replace(settings, publish=publish)
        found = {x.view.ledger_id: x.because for x in explain_backlog(stack_of(scene))}
        assert found[0].reason is reason


# ----- ledgers that no topic of users lists


def reason_of(scene, ledger_id):
    found = explain_ledger(stack_of(scene), ledger_id, loads_nothing=True)
    return found.view, found.because


def test_a_ledger_of_pulsar_itself_is_never_touched(scene):
    scene.broker.create_topic("t/ns/persistent/__change_events")
    ledger_id = scene.broker.load("t/ns/persistent/__change_events").open_id
    view, found = reason_of(scene, ledger_id)
    assert (view, found.reason) == (None, R.EXCLUDED)
    path = managed_ledger_path("t/ns/persistent/__change_events")
    edit(scene, lambda message: message.ClearField("ledgerInfo"), path)
    view, found = reason_of(scene, ledger_id)
    assert (view, found.reason) == (None, R.EXCLUDED)


def test_a_ledger_that_a_shadow_lists_is_never_touched(scene):
    shadow = scene.broker.make_shadow(TOPIC)
    info = decode_managed_ledger(scene.cluster.metadata.nodes[PATH].data).message_copy()
    edit(
        scene,
        lambda m: m.ledgerInfo.add().CopyFrom(info.ledgerInfo[0]),
        managed_ledger_path(shadow),
    )
    edit(scene, lambda message: message.ledgerInfo.__delitem__(0))
    scene.cluster.owner[0] = shadow
    scene.cluster._write(0, scene.cluster._metadata(0, closed=True))
    view, found = reason_of(scene, 0)
    assert (view, found.reason) == (None, R.EXCLUDED)
    assert "does not list" not in found.detail


def test_a_ledger_of_no_topic_is_somebody_elses(scene):
    scene.cluster.owner[77], scene.cluster.written[77] = "", [b"x"]
    scene.cluster._write(77, scene.cluster._metadata(77, closed=False))
    view, found = reason_of(scene, 77)
    assert (view, found.reason) == (None, R.EXCLUDED)


def test_a_ledger_that_was_trimmed_is_known_by_its_records(scene):
    scene.fill(TOPIC)
    scene.certify()
    scene.broker.load(TOPIC)
    assert scene.broker.trim(TOPIC) == 0
    view, found = reason_of(scene, 0)
    assert (view, found.reason) == (None, R.EXPIRED)
    for key in scene.stack.book.keys("attempts/0/"):
        forget(scene, key)
    with pytest.raises(LedgerNotFoundError):
        reason_of(scene, 0)


def test_a_topic_that_lists_a_ledger_since_a_moment_ago_is_looked_at_again(scene, monkeypatch):
    """Between the look and the judgement nothing is left that a run would wait for."""
    scene.broker.create_topic("t/ns/persistent/__system")
    ledger_id = scene.broker.load("t/ns/persistent/__system").open_id
    monkeypatch.setattr(backlog, "decide_sight", lambda _sight: None)
    _view, found = reason_of(scene, ledger_id)
    assert found.detail == "its topic lists it since just now; look again"
