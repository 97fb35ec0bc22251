"""Which word on tiering wins, against a literal table of all combinations."""

from itertools import product

import pytest

from tiering_assets.ground.own_policy import (
    OwnPolicies,
    OwnPolicy,
    PauseInForce,
    TieringMode,
    mode_words,
    switched_off,
)

TOPIC = "persistent://t/ns/orders"
RANK = {None: 0, TieringMode.ENABLED: 0, TieringMode.PAUSED: 1, TieringMode.DISABLED: 2}
PAUSES = (None, TieringMode.PAUSED, TieringMode.DISABLED)


def pause(mode, scope="all"):
    return PauseInForce(scope=scope, mode=mode, text=f"by the pause of {scope}")


@pytest.mark.parametrize(
    ("said", "wide", "narrow"), [*product((None, *TieringMode), PAUSES, PAUSES)]
)
def test_the_strongest_word_wins_and_every_one_that_switches_off_is_named(said, wide, narrow):
    own = OwnPolicies(default=OwnPolicy(mode=said))
    pauses = [pause(m, s) for m, s in ((wide, "all"), (narrow, "topic")) if m is not None]
    wait = switched_off(own, TOPIC, pauses)
    rank = max(RANK[said], RANK[wide], RANK[narrow])
    assert (wait is None) is (rank == 0)
    if wait is not None:
        assert wait.reason.value == {1: "paused", 2: "disabled"}[rank]
        assert ("tiering.toml" in wait.detail) is (RANK[said] > 0)
        assert ("pause of all" in wait.detail) is (wide is not None)
        assert ("pause of topic" in wait.detail) is (narrow is not None)


def test_inside_the_file_the_nearest_level_speaks_and_lifts_no_pause():
    own = OwnPolicies(
        default=OwnPolicy(mode=TieringMode.DISABLED),
        topics={TOPIC: OwnPolicy(mode=TieringMode.ENABLED)},
    )
    assert switched_off(own, TOPIC, []) is None
    assert str(switched_off(own, TOPIC, [pause(TieringMode.PAUSED)])) == (
        "paused: by the pause of all"
    )
    assert [word.origin for word in mode_words(own, TOPIC, [pause(TieringMode.PAUSED)])] == [
        "pause of all",
        "tiering.toml topic",
    ]
