"""What is asked about one ledger does not grow with the fleet."""

from collections import Counter

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.steps.ledger_report import report_ledger
from tiering_assets.steps.survey import survey
from tiering_assets.tiering.states import LedgerState


def counted(scene, ledger_id):
    """The report, and how often the store was asked for it."""
    calls: Counter[str] = Counter()
    stack = scene.process("asker")
    really = scene.world.call

    def call(process, room, method, *rest):
        calls[room] += 1
        return really(process, room, method, *rest)

    scene.world.call = call
    try:
        return report_ledger(stack, ledger_id), calls["objects"]
    finally:
        scene.world.call = really


@pytest.mark.parametrize("state", [LedgerState.SEALED, LedgerState.VERIFIED, LedgerState.PUBLISHED])
def test_a_report_asks_the_store_a_bounded_number_of_times(state):
    scene = Scene(1)
    asked = {}
    for ledgers in (2, 60):
        while len([v for v in survey(scene.stack, [TOPIC]) if v.entries is not None]) < ledgers:
            ledger_id = scene.fill(TOPIC)
            scene.certify(ledger_id)
        wanted = scene.fill(TOPIC)
        if state is LedgerState.VERIFIED:
            scene.certify(wanted)
        elif state is LedgerState.PUBLISHED:
            scene.publish(wanted)
        report, asked[ledgers] = counted(scene, wanted)
        assert report.state is state
    publications = 2 if state is LedgerState.PUBLISHED else 0  # read twice, and one more here
    assert asked[60] <= asked[2] + publications, asked
    assert asked[2] <= 34, asked
