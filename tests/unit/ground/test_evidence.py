"""How old each kind of evidence may be, and how that is told."""

import pytest

from tiering_assets.ground.evidence import (
    NEEDS,
    SLOW,
    Bounds,
    Dated,
    Effect,
    Kind,
    why_too_old,
)

BOUNDS = Bounds(fast_s=60.0, slow_s=600.0)


def why(dated, effect=Effect.DELETE, now_s=1000.0):
    return why_too_old(dated, effect, now_s=now_s, bounds=BOUNDS)


@pytest.mark.parametrize("kind", Kind)
def test_what_moves_slowly_may_be_older(kind):
    assert BOUNDS.of(kind) == (600.0 if kind in SLOW else 60.0)


@pytest.mark.parametrize("effect", Effect)
def test_an_effect_goes_ahead_on_what_was_just_asked(effect):
    assert why(Dated.at(1000.0, *NEEDS[effect]), effect) is None


@pytest.mark.parametrize("kind", sorted(NEEDS[Effect.DELETE]))
def test_each_kind_is_missed_and_named(kind):
    others = Dated.at(1000.0, *(NEEDS[Effect.DELETE] - {kind}))
    assert why(others) == f"{kind} were never asked for"


@pytest.mark.parametrize("kind", sorted(NEEDS[Effect.DELETE]))
def test_each_kind_may_be_as_old_as_its_bound_and_no_older(kind):
    bound = BOUNDS.of(kind)
    all_of_it = Dated.at(1000.0, *NEEDS[Effect.DELETE])
    assert why(all_of_it.renewed(Dated.at(1000.0 - bound, kind))) is None
    older = all_of_it.renewed(Dated.at(999.0 - bound, kind))
    assert why(older) == f"{kind}: {bound + 1:.0f} s old, at most {bound:g} s"
