"""A run ends in time by its own reckoning, and its single ledgers have 50 MB."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.content import KINDS, LEDGERS, TOPICS
from benchmarks.figures import CONTENDERS, SEAWEED, VERSITY
from benchmarks.plan import (
    ALL_KINDS,
    FEWEST_ROUNDS,
    LATER_SHARE,
    Warm,
    rounds_that_fit,
    seconds_of,
    share_that_fits,
    wanted_rows,
    warm_share,
)


def warmed(seconds):
    return [
        Warm(kind=kind, share=warm_share(kind), seconds=took)
        for kind, took in zip(ALL_KINDS, seconds, strict=False)
    ]


@given(
    st.lists(st.floats(min_value=1, max_value=60), min_size=1, max_size=len(ALL_KINDS)),
    st.floats(min_value=-10, max_value=2000),
    st.booleans(),
    st.booleans(),
)
def test_the_share_fits_the_time_left_by_its_own_reckoning(took, left_s, versity, far):
    both = {"versity": versity, "far": far}
    share = share_that_fits(warmed(took), size=0.5, rounds=3, left_s=left_s, **both)
    assert 0.02 <= share <= 1
    planned = seconds_of(warmed(took), share * 0.5, rounds=3, least=False, **both)
    assert planned <= left_s or share == 0.02


@given(
    st.lists(st.floats(min_value=1, max_value=200), min_size=1, max_size=len(ALL_KINDS)),
    st.floats(min_value=-10, max_value=4000),
    st.integers(min_value=1, max_value=5),
)
def test_rounds_are_as_many_as_end_in_time_after_what_the_first_took(took, left_s, asked):
    both = {"versity": True, "far": True}
    first_s = dict(zip(ALL_KINDS, took, strict=False))
    messages = {kind: kind.least or kind.messages for kind in first_s}

    def chosen(left_s):
        return rounds_that_fit(first_s, messages, rounds=asked, left_s=left_s, **both)

    rounds = chosen(left_s)
    assert min(asked, FEWEST_ROUNDS) <= rounds <= asked
    assert chosen(left_s + 100) >= rounds
    if rounds > FEWEST_ROUNDS:  # another one fits where its own time was there, and its reads'
        assert (rounds - 1) * LATER_SHARE * sum(took) <= left_s
    assert chosen(1e9) == asked


def test_three_rounds_fit_half_an_hour_on_a_quick_machine_and_two_on_a_slow_one():
    """Seconds of a first round of each kind, and what was left after it, as two machines had."""
    least = {kind: kind.scaled(0, least=True) for kind in ALL_KINDS}
    both = {"versity": True, "far": True}
    slow = dict(zip(ALL_KINDS, (138, 60, 53, 42, 95, 55, 26), strict=True))
    assert rounds_that_fit(slow, least, rounds=3, left_s=1000, **both) == 2
    quick = {kind: 0.5 * seconds for kind, seconds in slow.items()}
    assert rounds_that_fit(quick, least, rounds=3, left_s=1400, **both) == 3


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_round_of_full_size_is_never_cut_below_what_makes_50_mb(kind):
    assert kind.scaled(0.02, least=True) == kind.least
    assert kind.least * kind.message_bytes >= (38e6 if kind.message_bytes == 100 else 49e6)
    assert kind.scaled(0.02) < kind.least
    assert kind.scaled(1.0, least=True) == kind.messages


def test_messages_divide_evenly_among_ledgers():
    assert LEDGERS.scaled(0.0371) % LEDGERS.ledgers == 0
    assert LEDGERS.scaled(1.0, least=True) // LEDGERS.ledgers * LEDGERS.message_bytes >= 50e6


def test_a_kind_takes_longer_the_larger_it_is():
    warm = Warm(kind=KINDS[0], share=0.25, seconds=10)
    assert warm.at(0.25, least=False) == pytest.approx(10)
    assert warm.at(1.0, least=False) == pytest.approx(6 + 4 * 4)


def test_every_contender_is_wanted_of_single_ledgers_and_only_ours_of_many():
    wanted = set(wanted_rows())
    for kind in KINDS:
        names = {name for name, of, store in wanted if (of, store) == (kind.name, SEAWEED)}
        assert names == {c.name for c in CONTENDERS} - {"ours-release (signed)"}
        assert ("broker", kind.name, VERSITY) in wanted
    for kind in (LEDGERS, TOPICS):
        names = {name for name, of, _store in wanted if of == kind.name}
        assert names == {"ours-copy", "ours-verify", "ours-release (signed)"}
