"""A sample of `make simulate`: the real steps, simulated servers, a schedule a seed."""

from collections import Counter

import pytest

from tests.support.sim_faults import NAMES
from tests.support.sim_run import run_seed
from tests.support.simulate import violations_of

SAMPLE = range(125)


@pytest.fixture(scope="module")
def outcomes():
    return [run_seed(seed) for seed in SAMPLE]


def test_no_schedule_of_the_sample_breaks_an_invariant(outcomes):
    assert [violation for outcome in outcomes for violation in violations_of(outcome)] == []


def test_the_sample_works_and_is_disturbed(outcomes):
    coverage: Counter[str] = sum((outcome.coverage for outcome in outcomes), Counter())
    assert sum(outcome.released for outcome in outcomes) > len(SAMPLE)
    assert len(coverage) > len(NAMES) * 0.8
    assert set(coverage) <= set(NAMES)


def test_a_seed_replays_exactly():
    first, again = run_seed(7, traced=True), run_seed(7, traced=True)
    assert len(first.trace) > 100
    assert _without_run(first.trace) == _without_run(again.trace)
    assert first.coverage == again.coverage


def _without_run(trace):
    """ETags are digests of records, which name the process that wrote them."""
    return [line for line in trace if "if_match=" not in line]
