"""The canary of a namespace says once that its brokers read our objects, until that is too old."""

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.change.publish_record import read_canary, record_canary


@pytest.fixture
def scene():
    return Scene()


def canary_of(stack):
    found = read_canary(stack, TOPIC)
    assert found is not None
    return found


def test_a_canary_that_stands_is_not_written_again(scene):
    certificate = scene.publish().certificate.record
    stack = scene.process()
    before = canary_of(stack)
    scene.wait(60)
    record_canary(stack, TOPIC, before.record.policy_digest, certificate)
    assert canary_of(stack).etag == before.etag
    record_canary(stack, TOPIC, "another place", certificate)
    now = canary_of(stack)
    assert (now.record.policy_digest, now.etag != before.etag) == ("another place", True)


def test_a_canary_that_got_too_old_is_written_again(scene):
    certificate = scene.publish().certificate.record
    stack = scene.process()
    before = canary_of(stack)
    scene.wait(stack.settings.evidence.canary_age_max_s + 60)
    record_canary(stack, TOPIC, before.record.policy_digest, certificate)
    assert canary_of(stack).etag != before.etag
