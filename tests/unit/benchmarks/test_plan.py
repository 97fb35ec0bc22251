"""A run ends in time by its own reckoning, and its single ledgers have 50 MB."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.content import KINDS, LEDGERS, TOPICS
from benchmarks.figures import CONTENDERS, SEAWEED, VERSITY
from benchmarks.plan import (
    ALL_KINDS,
    FEWEST_ROUNDS,
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
    st.lists(st.floats(min_value=1, max_value=60), min_size=1, max_size=len(ALL_KINDS)),
    st.floats(min_value=-10, max_value=4000),
    st.integers(min_value=1, max_value=5),
)
def test_no_more_rounds_than_fit_with_the_least_ledgers_and_as_many_as_do(took, left_s, asked):
    both = {"versity": True, "far": True}
    warm = warmed(took)

    def takes(rounds):
        return seconds_of(warm, 0.0, rounds=rounds, least=True, **both)

    rounds = rounds_that_fit(warm, size=1, rounds=asked, left_s=left_s, **both)
    assert min(asked, FEWEST_ROUNDS) <= rounds <= asked
    assert rounds <= FEWEST_ROUNDS or takes(rounds) <= left_s
    assert rounds == asked or takes(rounds + 1) > left_s


def test_a_whole_run_fits_half_an_hour_where_rounds_take_what_they_took_here():
    """Warm-ups of a quarter, as two cores took them, with 60 s for servers and the last lines."""
    warm = warmed((40, 12, 10, 9, 12, 15, 16))
    left_s = 0.9 * (30 * 60 - 60 - sum(one.seconds for one in warm))
    both = {"versity": True, "far": True}
    rounds = rounds_that_fit(warm, size=1, rounds=3, left_s=left_s, **both)
    share = share_that_fits(warm, size=1, rounds=rounds, left_s=left_s, **both)
    assert seconds_of(warm, share, rounds=rounds, least=True, **both) <= left_s


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
