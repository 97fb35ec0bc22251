"""Each check of segments is needed, reports what it should and no other, and no bytes get past."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.segment_damage import DAMAGES, Spelled, encoded
from tests.support.sim_judge import judge_segment
from tiering_assets.quality.findings import FailedCheck
from tiering_assets.quality.segment_frame import SegmentFacts
from tiering_assets.quality.segment_suite import SEGMENT_CHECKS, validate_segment

BASE = Spelled().facts()


def failed_names(result):
    return {FailedCheck.parse(text).name for text in result.failed}


def damaged(damage):
    spelled = Spelled()
    damage(spelled)
    return spelled.facts()


def test_a_sound_segment_passes():
    assert BASE.index == encoded()
    result = validate_segment(BASE)
    assert (result.success, result.evaluated) == (True, len(SEGMENT_CHECKS))


def test_every_check_has_a_damage_of_its_own():
    assert {name for name, _damage in DAMAGES} == {check.name for check in SEGMENT_CHECKS}


@pytest.mark.parametrize(
    ("name", "damage"), DAMAGES, ids=[f"{n}-{name}" for n, (name, _damage) in enumerate(DAMAGES)]
)
def test_a_damage_is_reported_by_its_check_alone(name, damage):
    facts = damaged(damage)
    result = validate_segment(facts)
    assert failed_names(result) == {name}
    assert judge_segment(facts) == result


@settings(max_examples=40, deadline=None)
@given(
    index=st.binary(max_size=300)
    | st.binary(max_size=200).map(lambda tail: BASE.index[:24] + tail)
    | st.integers(0, len(BASE.index) - 1).map(lambda size: BASE.index[:size]),
    headers=st.lists(st.binary(max_size=130), max_size=6),
)
def test_arbitrary_bytes_never_raise_and_never_pass(index, headers):
    facts = SegmentFacts(
        number=1,
        index=index,
        index_size=len(index),
        data_size=BASE.data_size,
        headers=dict(enumerate(headers, start=1)),
        assigned=BASE.assigned,
    )
    result = judge_segment(facts)
    assert not result.success
    assert failed_names(validate_segment(facts)) == failed_names(result)
