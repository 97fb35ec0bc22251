"""Topics that a person took out of tiering: no new copies, and nothing else changes."""

from __future__ import annotations

import pytest

from tests.support.fault_lab import certificate_of, wait_of
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.steps.pipeline import offload_batch
from tiering_assets.steps.release import Released, release_topic
from tiering_assets.tiering.own_policy import parse_own_policies
from tiering_assets.tiering.reasons import Reason

pytestmark = [pytest.mark.stack, pytest.mark.fault]


def off(topic, mode):
    own = parse_own_policies(f'[topics."{topic.name}"]\ntiering = "{mode}"', "tiering.toml")
    return {"own_policies": own}


def test_a_topic_that_is_switched_off_gets_no_copy_and_what_it_has_is_served_and_released(lab):
    topic = lab.topic(lab.namespace("off"))
    attempts = keys.attempts_of(topic.ledger_id)
    with lab.open(**off(topic, "disabled")) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert wait_of(outcome).reason is Reason.DISABLED
        assert [*stack.book.iter_records(Attempt, attempts)] == []
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id], publish=False)
        certificate_of(outcome)
    with lab.open(**off(topic, "paused")) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert wait_of(outcome).reason is Reason.PAUSED
        assert lab.context_uid(stack, topic) is None  # a copy that was ready waits, too
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.state == "published"
        lab.older(stack)
    with lab.open(**off(topic, "disabled")) as stack:
        [noop] = offload_batch(stack, [topic.ledger_id])
        assert noop.noop
        [released] = release_topic(stack, topic.ml_name, [topic.ledger_id]).values()
        assert isinstance(released, Released)
    lab.readable(topic, reloaded=True)
