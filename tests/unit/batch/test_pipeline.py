"""A batch takes each ledger on from where it is, and publishes no copy that waits or is doubted."""

from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.support.sim_judge import judge
from tests.support.sim_scene import TOPIC, Scene
from tests.support.unchecked import unchecked
from tiering_assets.batch import pipeline
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.catalogue.facts.read_pages import ReadPages
from tiering_assets.catalogue.pages import read_pages
from tiering_assets.copy import offload
from tiering_assets.ground.own_policy import TieringMode
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import _preparing
from tiering_assets.ground.task_progress import phases_of
from tiering_assets.look.brakes.pauses import pause
from tiering_assets.look.brakes.scopes import EVERYTHING
from tiering_assets.look.ledger.plan import plan_ledger
from tiering_assets.look.ledger.resume import find_certified, list_failures, read_failure
from tiering_assets.quality.expectations_run import prepare_aside
from tiering_assets.records import keys
from tiering_assets.resources.errors import IntegrityError, ObjectStoreError, PrerequisiteError
from tiering_assets.resources.settings import Settings
from tiering_assets.spark.runner import SparkRunner
from tiering_assets.tasks.runner import LocalRunner


@pytest.fixture
def scene():
    return Scene()


def attempts(scene, ledger_id=0):
    return scene.stack.book.keys(keys.attempts_of(ledger_id))


def pause_all(scene):
    pause(scene.stack, EVERYTHING, TieringMode.PAUSED, reason="a move", author="a test")


def unprove(scene, uid):
    """Both objects are there, and no certificate."""
    scene.world.objects.delete(scene.stack.book.prefix + keys.certificate(0, uid))


def certify_another(scene, monkeypatch):
    """A second copy of ledger 0, by a run that did not see the first."""
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "find_resumable", lambda *_: None)
        return scene.certify().certificate


# ----- the judge


def test_the_judge_gets_ready_while_ledgers_are_copied(scene):
    """Importing the library takes seconds, in which a process that has sent tasks only waits."""
    steps: list[object] = []

    def judged(facts):
        steps.append(("judged", len(facts)))
        return judge(facts)

    stack = replace(
        scene.process(),
        prepare_judge=lambda: steps.append(("ready", attempts(scene))),
        judge=judged,
    )
    [outcome] = offload_batch(stack, [0], publish=False)
    assert outcome.state == "verified"
    assert steps == [("ready", []), ("judged", 1)]


def test_the_judge_does_not_get_ready_where_nothing_is_copied(scene):
    scene.certify()
    asked = []
    [outcome] = offload_batch(
        replace(scene.process(), prepare_judge=lambda: asked.append("ready")), [0], publish=False
    )
    assert outcome.state == "verified"
    assert asked == []


def test_only_a_process_that_leaves_the_work_to_others_gets_its_judge_ready_meanwhile():
    settings = Settings()
    for runner in (None, LocalRunner(settings)):
        assert _preparing(runner) is not prepare_aside
        assert _preparing(runner)() is None
    assert _preparing(SparkRunner.__new__(SparkRunner)) is prepare_aside


# ----- copies that wait


def test_a_pause_keeps_a_ledger_from_being_copied(scene):
    pause_all(scene)
    outcome = scene.offload()
    assert outcome.wait.reason is Reason.PAUSED
    assert not outcome.copied
    assert attempts(scene) == []


def test_a_proven_copy_of_a_paused_topic_waits(scene):
    scene.certify()
    pause_all(scene)
    assert scene.offload(publish=False).wait.reason is Reason.PAUSED
    assert scene.offload().wait.reason is Reason.PAUSED
    assert scene.context() is None


def test_what_is_published_is_done_whatever_is_paused(scene):
    scene.publish()
    pause_all(scene)
    assert scene.publish().noop


def test_a_proven_copy_of_a_ledger_that_its_topic_trimmed_is_expired(scene):
    scene.certify()
    scene.fill(TOPIC)
    scene.trim()
    outcome = scene.offload()
    assert outcome.wait.reason is Reason.EXPIRED
    assert "does not list it any more" in outcome.wait.detail


def test_a_proven_copy_of_a_ledger_that_bookkeeper_lost_is_published(scene):
    scene.certify()
    scene.cluster.delete_ledger(0)
    assert scene.publish().published is not None
    assert scene.context() is not None


def test_a_copy_that_was_taken_back_and_is_broken_is_quarantined_and_tried_no_more(scene):
    scene.broker.load(TOPIC)
    scene.broker.blind_until = scene.world.clock(600).timestamp()
    record = scene.offload().certificate.record
    scene.wait(1200)
    scene.world.monitor.damaged.add(record.uid)
    scene.world.rot(record.data.key)
    outcome = scene.offload()
    assert outcome.wait.reason is Reason.QUARANTINED
    assert outcome.error is None
    assert scene.is_quarantined(0, record.uid)
    assert len(scene.withdrawals()) == 1


# ----- copies of two runs


def test_of_two_copies_the_one_that_is_published_is_gone_on_with(scene, monkeypatch):
    """Its publisher may have died before it recorded that."""
    first = scene.certify().certificate
    scene.wait(5)
    second = certify_another(scene, monkeypatch)
    uid = first.record.uid
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "find_resumable", lambda stack, i: find_certified(stack, i, uid))
        scene.publish()
    outcome = scene.offload()
    assert outcome.certificate.record.uid == first.record.uid != second.record.uid
    assert outcome.noop


def test_a_copy_beside_a_brokers_waits(scene):
    scene.certify()
    assert scene.broker.offload(TOPIC)
    assert scene.offload().wait.reason is Reason.PUBLISHED


# ----- copies that are complete


def test_a_complete_copy_is_verified_and_not_made_again(scene):
    uid = scene.certify().certificate.record.uid
    unprove(scene, uid)
    outcome = scene.certify()
    assert not outcome.copied
    assert outcome.verified
    assert outcome.certificate.record.uid == uid


def test_a_complete_copy_of_another_layout_is_made_again(scene):
    uid = scene.certify().certificate.record.uid
    unprove(scene, uid)
    settings = scene.world.settings
    larger = unchecked(settings.offload, block_bytes=500)
    scene.world.settings = replace(settings, offload=larger)
    outcome = scene.certify()
    assert outcome.copied
    assert outcome.certificate.record.uid != uid
    assert not scene.is_quarantined(0, uid)


# ----- when


def when_due(scene, **publish):
    settings = scene.world.settings
    scene.world.settings = replace(settings, publish=replace(settings.publish, **publish))
    return scene.offload(when_due=True)


def test_a_topic_is_left_alone_until_it_is_worth_it(scene):
    outcome = when_due(scene, pending_bytes=10**9, pending_age_s=10**6)
    assert outcome.wait.reason is Reason.WAITING_TO_DISTURB
    assert outcome.verified
    assert scene.context() is None
    assert when_due(scene, pending_bytes=1).published is not None


def test_a_batch_tells_how_long_each_ledger_took(scene):
    outcome = scene.publish()
    assert outcome.seconds == outcome.certificate.record.seconds > 0
    done = scene.publish()
    assert done.noop
    assert isinstance(done.seconds, float)
    assert done.seconds > 0
    assert done.seconds != outcome.seconds


# ----- failures


def error_of(scene, ledger_id):
    found = read_failure(scene.stack, ledger_id)
    assert found is not None
    return found.record.error


def test_a_failure_that_no_attempt_tells_of_is_recorded(scene, monkeypatch):
    def fail(*_args):
        raise ObjectStoreError("the store is away")

    monkeypatch.setattr(offload, "_new_attempt", fail)
    assert "the store is away" in str(scene.offload().error)
    assert set(list_failures(scene.stack)) == {0}
    assert "the store is away" in error_of(scene, 0)


def failures_told(scene):
    """Of each close page whether it says that its run failed."""
    pages = ReadPages(read_pages(scene.stack, 0), {}).readable
    return [one.failed for one in pages if one.phase == "close"]


def test_the_day_book_says_of_a_batch_whether_a_ledger_failed(scene, monkeypatch):
    def gap(*_args):
        raise IntegrityError("a gap")

    with monkeypatch.context() as away:
        away.setattr(pipeline, "plan_ledger", gap)
        assert scene.offload().error is not None
    assert failures_told(scene) == [True]
    assert scene.offload().error is None
    assert failures_told(scene) == [True, False]


def test_the_day_book_says_so_of_a_batch_that_ends_by_a_bug(scene, monkeypatch):
    def bug(*_args):
        raise ZeroDivisionError

    monkeypatch.setattr(pipeline, "_copy_and_verify", bug)
    with pytest.raises(ZeroDivisionError):
        offload_batch(scene.process(), [0])
    assert failures_told(scene) == [True]


def test_a_run_that_does_not_start_fails_what_it_would_have_copied_alone(scene, monkeypatch):
    """What is proven has lost nothing, and what failed before failed by its own error."""
    proven, broken = 0, scene.fill(TOPIC)
    scene.certify(proven)
    wanted = scene.fill(TOPIC)

    def plan(stack, ledger_id):
        if ledger_id == broken:
            raise IntegrityError("a gap")
        return plan_ledger(stack, ledger_id)

    def start():
        raise PrerequisiteError("no Spark")

    monkeypatch.setattr(pipeline, "plan_ledger", plan)
    stack = scene.process()
    stack.runner.start = start
    with pytest.raises(PrerequisiteError):
        offload_batch(stack, [proven, broken, wanted])
    assert set(list_failures(scene.stack)) == {broken, wanted}
    assert error_of(scene, broken) == "a gap"
    assert error_of(scene, wanted) == "no Spark"


def test_what_is_not_copied_starts_no_workers(scene):
    scene.certify()
    stack = scene.process()
    stack.runner.start = pytest.fail
    [outcome] = offload_batch(stack, [0])
    assert outcome.published is not None


def test_what_is_not_copied_gets_nothing_ready(scene):
    """A run that finds nothing to do pays for no JVM, and for no expectation library."""
    scene.publish()
    stack = replace(scene.process(), prepare_judge=pytest.fail)
    stack.runner.begin = pytest.fail
    [outcome] = offload_batch(stack, [0])
    assert outcome.noop


def test_what_is_to_be_copied_gets_all_ready_before_the_runner_is_waited_for(scene):
    did = []
    stack = replace(scene.process(), prepare_judge=lambda: did.append("suites"))
    stack.runner.begin = lambda: did.append("begin")
    stack.runner.start = lambda: did.append("start")
    offload_batch(stack, [0])
    assert did[:3] == ["begin", "suites", "start"]


def test_what_is_to_be_done_is_told_before_the_runner_is_waited_for(scene):
    said: list[str] = []
    stack = replace(scene.process(), narrate=said.append)
    stack.runner.start = lambda: said.append("started")
    offload_batch(stack, [0])
    first = said[: said.index("started")]
    assert any("1 ledgers to copy and 0 to read back, of 1 topics, " in line for line in first)


def test_a_run_tells_how_far_it_is_in_each_phase_and_how_long_each_took(scene):
    said: list[Any] = []

    @contextmanager
    def at_the_end(_seconds, act):
        yield
        act()

    stack = replace(scene.process(), narrate=said.append, every=at_the_end)
    offload_batch(stack, [0])
    told = [line.event["progress"] for line in said if "progress" in getattr(line, "event", {})]
    assert [(one["action"], one["ledgers_done"], one["ledgers"]) for one in told] == [
        ("copying", 1, 1),
        ("reading back", 1, 1),
        ("publishing", 1, 1),
    ]
    assert all(one["bytes_done"] == one["bytes"] > 0 for one in told)
    assert [*phases_of(stack).seconds] == ["plan", "copy", "verify", "publish"]


@pytest.mark.parametrize(("plan_s", "told_first"), [(0.1, True), (3.0, False)])
def test_a_session_begins_after_the_first_line_or_within_long_planning(
    scene, monkeypatch, plan_s, told_first
):
    """What it imports would put the line off; a long planning hides the seconds that it takes."""
    said: list[str] = []

    def plan(stack, ledger_id):
        scene.wait(plan_s)
        return plan_ledger(stack, ledger_id)

    monkeypatch.setattr(pipeline, "plan_ledger", plan)
    stack = replace(scene.process(), narrate=said.append)
    stack.runner.begin = lambda: said.append("begun")
    offload_batch(stack, [0])
    [line] = [n for n, text in enumerate(said) if "ledgers to copy" in text]
    assert (line < said.index("begun")) is told_first


def test_a_long_planning_that_finds_nothing_to_do_begins_no_session(scene, monkeypatch):
    def plan(stack, ledger_id):
        scene.wait(3.0)
        return Wait(Reason.MISSING, "it vanished")

    monkeypatch.setattr(pipeline, "plan_ledger", plan)
    stack = scene.process()
    stack.runner.begin = pytest.fail
    [outcome] = offload_batch(stack, [0])
    assert outcome.state == Reason.MISSING.value
