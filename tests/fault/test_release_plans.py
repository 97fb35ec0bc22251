"""Plans are carried out to the letter; holds and the kill switch stop what has begun."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.batch.release_plan import execute_plan, make_plan, read_plan, write_plan
from tiering_assets.change.topic_edit import is_marked
from tiering_assets.clean.sweep import sweep
from tiering_assets.ground.reasons import NotNow
from tiering_assets.look.brakes import holds
from tiering_assets.look.brakes.scopes import EVERYTHING, Scope, ledger_scope
from tiering_assets.records import keys
from tiering_assets.records.models import HoldLift, Quarantine, ReleaseIntent, ReleasePlan
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import FormatError, RefusedError

pytestmark = [pytest.mark.stack, pytest.mark.fault]
WHO = {"reason": "audit 17", "author": "ops"}


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("plans")


def due_topic(lab, stack, namespace):
    topic = lab.topic(namespace)
    [outcome] = offload_batch(stack, [topic.ledger_id])
    assert outcome.state == "published"
    lab.older(stack)
    return topic


def plan_for(stack, *topics, **arguments):
    return make_plan(stack, {t.ml_name: [t.ledger_id] for t in topics}, **arguments)


def result_of(outcomes, topic):
    [result] = [o.result for o in outcomes if o.ledger_id == topic.ledger_id]
    return result


def assert_kept(lab, stack, topic):
    """The bookie copy is there, nothing is marked, and every message comes back."""
    assert stack.ledgers.read(topic.ledger_id) is not None
    info, _node = stack.topics.read(topic.ml_name)
    assert not info.ledger(topic.ledger_id).offload.bookkeeper_deleted
    lab.readable(topic, reloaded=True)


def test_a_written_plan_is_carried_out_exactly_and_again(lab, namespace, tmp_path):
    with lab.open() as stack:
        planned, other = (due_topic(lab, stack, namespace) for _ in range(2))
        [unpublished] = offload_batch(
            stack, [(early := lab.topic(namespace)).ledger_id], publish=False
        )
        assert unpublished.state == "verified"
        file = tmp_path / "plan.json"
        write_plan(plan_for(stack, planned, early), file)
        body = json.loads(file.read_text())
        [item] = body["release"]
        assert (item["ledger_id"], item["topic"]) == (planned.ledger_id, planned.name)
        assert item["bytes"] == stack.ledgers.read(planned.ledger_id).metadata.length
        assert item["certificate"].endswith(f"/{item['uid']}.json")
        assert item["age_s"] > 0
        assert "release.deletion_lag_s = 0" in item["allowed_by"]
        [left] = body["not_released"]
        assert left["ledger_id"] == early.ledger_id
        assert left["reasons"] == ["not published: the topic names no complete offload context"]
        assert stack.ledgers.read(planned.ledger_id) is not None  # writing it deletes nothing

        outcomes = execute_plan(stack, read_plan(file)).outcomes
        assert isinstance(result_of(outcomes, planned), Released)
        assert isinstance(result_of(outcomes, early), NotNow)
        assert stack.ledgers.read(planned.ledger_id) is None
        assert stack.ledgers.read(other.ledger_id) is not None  # due, and not in the plan
        digest = body["digest"]
        assert stack.book.read(ReleasePlan, keys.release_plan(digest)) is not None
        uid = lab.context_uid(stack, planned)
        intent = stack.book.read(ReleaseIntent, keys.release_intent(planned.ledger_id, uid))
        assert intent.record.plan == digest

        again = execute_plan(stack, read_plan(file)).outcomes
        assert result_of(again, planned) == replace(result_of(outcomes, planned), noop=True)
        with pytest.raises(Exception, match="cannot be written: File exists"):
            write_plan(plan_for(stack, other), file)
    lab.readable(planned, reloaded=True)


def test_an_edited_plan_is_refused(lab, namespace, tmp_path):
    with lab.open() as stack:
        topic, other = (due_topic(lab, stack, namespace) for _ in range(2))
        file = tmp_path / "plan.json"
        write_plan(plan_for(stack, topic), file)
        body = json.loads(file.read_text())
        [item] = body["release"]
        for edited in (
            {**body, "release": [{**item, "ledger_id": other.ledger_id}]},
            {name: value for name, value in body.items() if name != "digest"},
            {**body, "schema": "tierkeeper/release-plan/2"},
            [body],
        ):
            file.write_text(json.dumps(edited))
            with pytest.raises(FormatError, match=r"plan\.json"):
                read_plan(file)
        assert_kept(lab, stack, topic)


def test_what_moved_since_it_was_planned_is_skipped_with_the_reason(lab, namespace):
    """A plan forged with a right digest for another attempt gets no further than the gate."""
    with lab.open() as stack:
        topic, other = (due_topic(lab, stack, namespace) for _ in range(2))
        written = plan_for(stack, topic, other)
        mine, theirs = sorted(written.plan.release, key=lambda p: p.ledger_id != topic.ledger_id)
        swapped = replace(mine, certificate_sha256=theirs.certificate_sha256)
        forged = replace(written, plan=replace(written.plan, release=(swapped,)))
        result = result_of(execute_plan(stack, forged).outcomes, topic)
        assert isinstance(result, NotNow)
        assert "it moved since it was planned" in str(result)
        assert_kept(lab, stack, topic)


def test_a_plan_of_elsewhere_or_of_another_time_is_refused(lab, namespace):
    with lab.open() as stack:
        topic = due_topic(lab, stack, namespace)
        written = plan_for(stack, topic)
        plan = written.plan
        day = timedelta(days=1, minutes=1)
        for changed, said in (
            (replace(plan, instance="another"), "of instance another"),
            (replace(plan, bucket="another"), "bucket another"),
            (replace(plan, planned_at=plan.planned_at - day), "release.plan_valid_s"),
            (replace(plan, planned_at=plan.planned_at + day), "dated in the future"),
        ):
            with pytest.raises(RefusedError, match=said):
                execute_plan(stack, replace(written, plan=changed))
        assert_kept(lab, stack, topic)


def test_a_plan_over_the_tripwire_needs_an_acknowledgement(lab, namespace):
    with lab.open() as stack:
        topic = due_topic(lab, stack, namespace)
        written = plan_for(stack, topic)
        [item] = written.plan.release
        many = tuple(replace(item, ledger_id=item.ledger_id + 10**9 + n) for n in range(100))
        large = replace(written.plan, release=(item, *many), fleet=101)
        with pytest.raises(RefusedError, match="101 of 101 ledgers would go at once") as refused:
            execute_plan(stack, replace(written, plan=large))
        assert "--acknowledge" in str(refused.value)
        assert_kept(lab, stack, topic)
        accepted = replace(written, plan=replace(large, acknowledged="ops: the fleet moves"))
        outcomes = execute_plan(stack, accepted).outcomes
        assert isinstance(result_of(outcomes, topic), Released)
        assert sum(isinstance(o.result, Released) for o in outcomes) == 1
    lab.readable(topic, reloaded=True)


def test_caps_make_the_younger_ledger_wait(lab, namespace):
    with lab.open() as stack:
        old = due_topic(lab, stack, namespace)
        young = due_topic(lab, stack, namespace)
    with lab.open(lab.with_section("release", per_run_max=1)) as stack:
        plan = plan_for(stack, young, old).plan
        assert [p.ledger_id for p in plan.release] == [old.ledger_id]
        assert [n.reasons for n in plan.not_released] == [("capped: release.per_run_max = 1",)]


@contextmanager
def held(stack, scope, topic):
    namespace = keys.namespace_of(topic.ml_name)
    covering = {
        "ledger": (ledger_scope(topic.ledger_id), keys.hold(topic.ledger_id)),
        "topic": (Scope("topic", topic.ml_name), keys.topic_hold(topic.ml_name)),
        "namespace": (Scope("namespace", namespace), keys.namespace_hold(namespace)),
        "all": (EVERYTHING, keys.HOLD_ALL),
    }
    covered, key = covering[scope]
    assert holds.hold(stack, covered, **WHO)
    try:
        yield
    finally:
        holds.lift_hold(stack, covered, reason="done", author="ops")
    lifts = [*stack.book.iter_records(HoldLift, "hold-lifts/")]
    assert key in {lift.record.hold_key for lift in lifts}


@pytest.mark.parametrize("scope", ["ledger", "topic", "namespace", "all"])
def test_a_hold_set_between_plan_and_execution_keeps_the_ledger(lab, scope):
    namespace = lab.namespace("held")
    with lab.open() as stack:
        topic = due_topic(lab, stack, namespace)
        written = plan_for(stack, topic)
        assert len(written.plan.release) == 1
        with held(stack, scope, topic):
            result = result_of(execute_plan(stack, written).outcomes, topic)
            assert isinstance(result, NotNow)
            assert "under a release hold" in str(result)
            assert "audit 17 (ops)" in str(result)
            assert_kept(lab, stack, topic)
            if scope == "all":
                with pytest.raises(RefusedError, match="everything is held"):
                    sweep(stack, execute=True)
        assert isinstance(result_of(execute_plan(stack, written).outcomes, topic), Released)
    lab.readable(topic, reloaded=True)


def test_a_hold_set_after_the_gate_looked_takes_the_marks_back(lab, namespace):
    with lab.open() as stack:
        topic = due_topic(lab, stack, namespace)

        def hold_when_marked(line):
            if "marked for release" in line:
                holds.hold(stack, Scope("topic", topic.ml_name), **WHO)

        late = replace(stack, narrate=hold_when_marked)
        result = release_topic(late, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(result, NotNow)
        assert "since it was begun: under a release hold" in str(result)
        assert_kept(lab, stack, topic)
        holds.lift_hold(stack, Scope("topic", topic.ml_name), reason="done", author="ops")
        result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(result, Released)


def test_a_copy_given_up_after_the_gate_looked_is_not_released(lab, namespace):
    with lab.open() as stack:
        topic = due_topic(lab, stack, namespace)

        def give_up_when_marked(line):
            if "marked for release" in line:
                quarantine = Quarantine(
                    ledger_id=topic.ledger_id,
                    uid=uid,
                    ml_name=topic.ml_name,
                    reason="block 1: SHA-256 differs",
                    found_at=stack.now(),
                    writer=stack.writer,
                    previous="0" * 64,
                )
                stack.book.create(keys.quarantine(topic.ledger_id, uid), quarantine)

        uid = lab.context_uid(stack, topic)
        late = replace(stack, narrate=give_up_when_marked)
        result = release_topic(late, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(result, NotNow)
        assert "since it was begun: a check of this attempt failed" in str(result)
        assert_kept(lab, stack, topic)
        found = stack.topics.read(topic.ml_name)
        assert found is not None
        assert not is_marked(found[0], topic.ledger_id, uid)


def test_an_unreadable_hold_holds(lab, namespace):
    with lab.open() as stack:
        topic = due_topic(lab, stack, namespace)
        key = stack.book.prefix + keys.hold(topic.ledger_id)
        stack.objects.put(key, b"{", if_absent=True)
        result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(result, NotNow)
        assert "a hold record that cannot be read" in str(result)
        stack.objects.delete(key)
        assert_kept(lab, stack, topic)


def test_the_withdrawal_window_shows_a_due_ledger_before_it_may_go(lab, namespace):
    with lab.open(lab.with_section("release", withdrawal_window_s=3600.0)) as stack:
        topic = due_topic(lab, stack, namespace)
        [waiting] = plan_for(stack, topic).plan.not_released
        assert "deletion lag has not elapsed" in waiting.reasons[0]
    with lab.open() as stack:
        assert len(plan_for(stack, topic).plan.release) == 1


def test_a_hold_tells_what_it_cannot_stop(lab):
    namespace = lab.namespace("beyond")
    lab.admin(
        "POST",
        f"/namespaces/{namespace}/retention",
        {
            "retentionTimeInMinutes": 90,
            "retentionSizeInMB": -1,
        },
    )
    topic = lab.topic(namespace)
    with lab.open() as stack:
        said = holds.what_a_hold_cannot_stop(stack, topic.ml_name)
        assert "2.592e+06 s after publication by itself" in said[0]
        assert said[1].endswith("past 90 minutes and any size, from both tiers")
