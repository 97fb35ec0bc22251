"""A run that somebody ends, with Ctrl-C or as Dagster ends one: nothing is held, and `why` says
so.
"""

import dataclasses

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.batch import pipeline
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.change.change_topic import change_topic
from tiering_assets.explain.backlog import explain_ledger
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.look.ledger.claims import claim_ledger, live_claims
from tiering_assets.look.ledger.plan import plan_ledger
from tiering_assets.look.ledger.resume import list_failures, read_failure
from tiering_assets.resources.errors import IntegrityError

OTHER = "t/ns/persistent/others"


def claims(scene):
    return live_claims(scene.stack, scene.stack.objects.server_time())


def failure(scene, ledger_id):
    found = read_failure(scene.stack, ledger_id)
    assert found is not None
    return found.record.error


class EndedBy(BaseException):
    """Like Dagster's own, which is no Exception either."""


class Ended:
    """A runner that somebody ends when its tasks are done."""

    def __init__(self, runner, error):
        self._runner, self._error = runner, error

    def __getattr__(self, name):
        return getattr(self._runner, name)

    def run(self, tasks, **how):
        self._runner.run(tasks, **how)
        raise self._error


class Once:
    """Calls the function, but for the first time, when it raises."""

    def __init__(self, function, error):
        self._function, self._error = function, error

    def __call__(self, *args, **how):
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._function(*args, **how)


@pytest.mark.parametrize("error", [KeyboardInterrupt, EndedBy])
def test_an_interrupted_runs_ledgers_are_free_and_say_why_until_the_next_run(error):
    scene = Scene()
    stack = scene.process("ended")
    stack = dataclasses.replace(stack, runner=Ended(stack.runner, error()))
    with pytest.raises(error):
        offload_batch(stack, [0])
    assert not claims(scene)
    scene.cluster.metadata.put("/admin/policies/t/ns", b'{"offload_threshold": 0}')
    because = explain_ledger(scene.stack, 0).because
    assert because.reason is BacklogReason.FAILED
    assert because.detail.startswith(
        "interrupted: run ended was ended; the next run goes on where it stopped"
    )
    assert scene.publish().copied
    assert not list_failures(scene.stack)


def test_what_was_done_or_waits_is_not_told_as_interrupted(monkeypatch):
    """Ended while the second topic is published: the first one's ledger is, the third one's waits,
    and the fourth failed.
    """
    scene = Scene()
    scene.broker.create_topic(OTHER)
    second = scene.fill(OTHER)
    claim_ledger(scene.process("another"), third := scene.fill(OTHER))
    fourth = scene.fill(OTHER)
    stack = scene.process("ended")

    def ended_at_the_second(stack, ml_name, **how):
        if ml_name == OTHER:
            raise KeyboardInterrupt
        return change_topic(stack, ml_name, **how)

    def broken(stack, ledger_id):
        if ledger_id == fourth:
            raise IntegrityError("a gap")
        return plan_ledger(stack, ledger_id)

    monkeypatch.setattr(pipeline, "change_topic", ended_at_the_second)
    monkeypatch.setattr(pipeline, "plan_ledger", broken)
    with pytest.raises(KeyboardInterrupt):
        offload_batch(stack, [0, second, third, fourth])
    assert scene.context(0) is not None
    assert {i: failure(scene, i)[:11] for i in list_failures(scene.stack)} == {
        second: "interrupted",
        fourth: "a gap",
    }
    assert claims(scene) == {third}


def test_a_copy_alone_is_done_when_it_is_proven(monkeypatch):
    scene = Scene()
    scene.certify()
    stack = scene.process("ended")
    monkeypatch.setattr(pipeline, "_settle", Once(pipeline._settle, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        offload_batch(stack, [0], publish=False)
    assert not list_failures(scene.stack)
