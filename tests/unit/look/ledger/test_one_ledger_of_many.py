"""What is asked about one ledger does not grow with the fleet, nor with what its topic has lived
through.
"""

from collections import Counter

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.explain.backlog import explain_ledger
from tiering_assets.explain.ledger_report import report_ledger
from tiering_assets.look.brakes import holds
from tiering_assets.look.brakes.scopes import ledger_scope
from tiering_assets.look.ledger.plan import plan_ledger
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import survey
from tiering_assets.resources.errors import LedgerNotFoundError, TierkeeperError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

CALLS_MAX = 15


def counted(scene, ask):
    """What was answered, and how often the store was asked for it."""
    calls: Counter[str] = Counter()
    stack = scene.process("asker")
    really = scene.world.call

    def call(process, room, method, *rest):
        calls[room] += 1
        return really(process, room, method, *rest)

    scene.world.call = call
    try:
        return ask(stack), calls["objects"]
    finally:
        scene.world.call = really


def nothing(_scene, _ledger_id):
    """The ledger is closed, and nobody has looked at it."""


def certify(scene, ledger_id):
    scene.certify(ledger_id)


def publish(scene, ledger_id):
    scene.publish(ledger_id)


def due(scene, ledger_id):
    scene.publish(ledger_id)
    scene.past_the_lag()


def hold(scene, ledger_id):
    due(scene, ledger_id)
    holds.hold(scene.stack, ledger_scope(ledger_id), reason="audit", author="kim")


def release(scene, ledger_id):
    due(scene, ledger_id)
    scene.release(ledger_id)


STATES = {
    LedgerState.SEALED: nothing,
    LedgerState.VERIFIED: certify,
    LedgerState.PUBLISHED: publish,
    LedgerState.RELEASE_DUE: due,
    LedgerState.HELD: hold,
    LedgerState.RELEASED: release,
}


def plan(stack, ledger_id):
    try:
        return plan_ledger(stack, ledger_id)
    except TierkeeperError as error:
        return error


@pytest.mark.parametrize("ask", [report_ledger, explain_ledger, plan])
@pytest.mark.parametrize("state", STATES)
def test_one_ledger_costs_the_same_at_any_size_of_the_fleet(ask, state):
    scene = Scene(1)
    asked = {}
    for ledgers in (2, 40):
        while len([v for v in survey(scene.stack, [TOPIC]) if v.entries is not None]) < ledgers:
            scene.publish(scene.fill(TOPIC))  # a publication record each
            scene.wait(60)
        wanted = scene.fill(TOPIC)
        STATES[state](scene, wanted)
        assert report_ledger(scene.stack, wanted).state is state
        _answer, asked[ledgers] = counted(scene, lambda stack, i=wanted: ask(stack, i))
    of_hold = 1 if state is LedgerState.HELD else 0  # who holds it, and why
    assert asked[40] == asked[2] <= CALLS_MAX + of_hold, asked


def test_the_report_and_the_survey_say_the_same():
    scene = Scene(1)
    for act in STATES.values():
        act(scene, scene.fill(TOPIC))
        scene.wait(60)
    for view in survey(scene.stack, [TOPIC]):
        assert report_ledger(scene.stack, view.ledger_id).view == view


def test_a_topic_that_cannot_be_read_is_named_where_it_may_list_the_ledger():
    """A ledger without metadata of its own, whose topic's node does not decode."""
    scene = Scene(1)
    ledger_id = scene.fill(TOPIC)
    path = managed_ledger_path(TOPIC)
    scene.cluster.metadata.put(path, b"\xff\xff not a managed ledger")
    del scene.cluster.metadata.nodes[scene.stack.ledgers.path(ledger_id)]
    for ask in (report_ledger, explain_ledger):
        with pytest.raises(LedgerNotFoundError, match=f"a topic that cannot be read .*{path}"):
            ask(scene.stack, ledger_id)
