"""A claim keeps another run away while it lives; whose tasks are interrupted is a run that died."""

from datetime import timedelta

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.look.ledger.claims import claim_ledger, drop_claim, live_claims, read_claim
from tiering_assets.records import keys
from tiering_assets.resources.errors import ObjectExistsError


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def stack(scene):
    return scene.process("ours")


@pytest.fixture
def interrupted(stack):
    """Runs whose tasks we have interrupted."""
    found = []
    stack.runner.interrupt = lambda run_id, _attempts: found.append(run_id)
    return found


def another(scene):
    return scene.process("another")


def claim_of(stack):
    found = read_claim(stack, 0)
    assert found is not None
    return found


def who_has(stack):
    """Another run, where we do not get the ledger."""
    found = claim_ledger(stack, 0)
    return None if found is None else found.run_id


def lives_s(scene):
    return scene.stack.settings.offload.claim_ttl_s


def test_a_live_claim_of_another_run_is_told(scene, stack, interrupted):
    assert claim_ledger(another(scene), 0) is None
    assert who_has(stack) == "another"
    assert interrupted == []


def test_our_own_claim_is_renewed(scene, stack, interrupted):
    assert claim_ledger(stack, 0) is None
    scene.wait(5)
    until = claim_of(stack).record.expires_at
    assert claim_ledger(stack, 0) is None
    assert claim_of(stack).record.expires_at > until
    scene.wait(lives_s(scene) + 60)
    assert claim_ledger(stack, 0) is None
    assert interrupted == []


def test_a_run_that_let_its_claim_run_out_is_interrupted(scene, stack, interrupted):
    claim_ledger(another(scene), 0)
    scene.wait(lives_s(scene) + 60)
    assert claim_ledger(stack, 0) is None
    assert interrupted == ["another"]


@pytest.mark.parametrize("how", ["dropped", "long ago"])
def test_a_run_that_ended_is_not_interrupted(scene, stack, interrupted, how):
    """It may be at work on other ledgers, or its id may be another's by now."""
    claim_ledger(another(scene), 0)
    if how == "dropped":
        drop_claim(another(scene), 0)
    else:
        scene.wait(86400)
    assert claim_ledger(stack, 0) is None
    assert interrupted == []


def test_who_was_faster_has_the_ledger(scene, stack):
    """Between our look and our write another run claims it."""
    other = another(scene)
    scene.at_call("objects", "put", lambda: claim_ledger(other, 0))
    assert who_has(stack) == "another"


def test_a_claim_that_another_made_and_lost_at_once_is_not_ours(stack, monkeypatch):
    """What lies there now cannot be told, so the ledger waits for the next run."""

    def exists(_book, key, _record):
        raise ObjectExistsError(key)

    monkeypatch.setattr(type(stack.book), "create", exists)
    assert claim_ledger(stack, 0) is not None


def damage(scene, key):
    scene.world.objects.put(scene.stack.book.prefix + key, b"not a record")


def test_a_claim_that_cannot_be_read_lives_as_long_as_any_may(scene, stack):
    damage(scene, keys.claim(0))
    stored = claim_of(stack)
    assert stored.record.run_id == "unknown"
    assert stored.record.expires_at - stored.stored_at == timedelta(
        seconds=3600 + 2 * lives_s(scene)
    )


def test_one_that_cannot_be_read_and_went_meanwhile_is_none(scene, stack):
    key = scene.stack.book.prefix + keys.claim(0)
    damage(scene, keys.claim(0))
    scene.at_call("objects", "head", lambda: scene.world.objects.delete(key))
    assert read_claim(scene.process("ours"), 0) is None


def test_nothing_but_our_own_claim_is_dropped(scene, stack):
    claim_ledger(another(scene), 0)
    before = read_claim(stack, 0)
    drop_claim(stack, 0)
    assert read_claim(stack, 0) == before


def test_a_claim_that_goes_after_the_listing_is_nobodys(scene, stack, monkeypatch):
    assert claim_ledger(another(scene), 0) is None
    assert live_claims(stack, stack.objects.server_time()) == {0}
    really = stack.book.keys_since

    def then_gone(*given):
        listed = really(*given)
        scene.world.objects.delete(stack.book.prefix + keys.claim(0))
        return listed

    monkeypatch.setattr(stack.book, "keys_since", then_gone)
    assert live_claims(stack, stack.objects.server_time()) == set()
