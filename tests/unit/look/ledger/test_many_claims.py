"""Claims stay for ever; what a look at them costs depends on those of late."""

from datetime import timedelta

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.automation.stuck import dead_claims
from tiering_assets.look.ledger.claims import claim_ledger
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import survey
from tiering_assets.records import keys
from tiering_assets.records.models import Claim

DAY_S = 86400


@pytest.fixture
def scene():
    return Scene(1)


def claims(scene, ledger_ids, *, run_id, ago_s):
    """Of a run that died so long ago that its claims ran out then, as the store dates them."""
    ended = scene.stack.objects.server_time() - timedelta(seconds=ago_s)
    for ledger_id in ledger_ids:
        claim = Claim(ledger_id=ledger_id, run_id=run_id, attempt=None, expires_at=ended)
        scene.stack.book.create(keys.claim(ledger_id), claim)


def reads_of_claims(scene):
    """Keys of claims that were fetched from now on."""
    seen = []
    really = scene.world.objects.get

    def get(key, **how):
        if "/claims/" in key:
            seen.append(key)
        return really(key, **how)

    scene.world.objects.get = get
    return seen


def test_a_survey_reads_no_claim_that_cannot_be_live(scene):
    claims(scene, range(100, 150), run_id="run-old", ago_s=0)
    scene.wait(3 * 3600)
    stack = scene.process("another")
    assert claim_ledger(stack, 0) is None
    seen = reads_of_claims(scene)
    [view] = [view for view in survey(scene.process(), [TOPIC]) if view.ledger_id == 0]
    assert view.state is LedgerState.COPYING
    assert seen == [scene.stack.book.prefix + keys.claim(0)]


def test_dead_claims_are_told_bit_by_bit_where_time_is_short(scene):
    claims(scene, range(100, 700), run_id="run-7", ago_s=60)
    stack = scene.process()
    found, resume, rounds = [], None, 0
    while rounds == 0 or resume is not None:
        some, resume = dead_claims(stack, after=resume, seconds=0.0)
        found += some
        rounds += 1
    assert rounds == 3
    assert {int(one.subject) for one in found} == set(range(100, 700))
    assert len(found) == 600
    scene.wait(2 * DAY_S)
    seen = reads_of_claims(scene)
    assert dead_claims(stack, after=None, seconds=0.0) == ([], None)
    assert seen == []
