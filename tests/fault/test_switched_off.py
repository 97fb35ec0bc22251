"""Topics that a person took out of tiering: no new copies, and nothing else changes."""

from __future__ import annotations

import pytest

from tests.support.fault_lab import certificate_of, wait_of
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.own_policy import TieringMode, parse_own_policies
from tiering_assets.ground.reasons import Reason
from tiering_assets.look.brakes import pauses
from tiering_assets.look.brakes.scopes import topic_scope
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.release.work import Released

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


def test_a_topic_that_is_paused_by_record_is_served_and_released_and_tiers_on_when_resumed(lab):
    namespace = lab.namespace("pauses")
    topic, other = lab.topic(namespace), lab.topic(namespace)
    scope, who = topic_scope(topic.name), {"reason": "migration", "author": "ops"}
    with lab.open() as stack:
        assert pauses.pause(stack, scope, TieringMode.PAUSED, **who)
        paused, tiered = sorted(
            offload_batch(stack, [topic.ledger_id, other.ledger_id]),
            key=lambda outcome: outcome.ledger_id != topic.ledger_id,
        )
        assert (
            str(wait_of(paused)) == f"paused: by the pause of topic {topic.name}: migration (ops)"
        )
        assert [*stack.book.iter_records(Attempt, keys.attempts_of(topic.ledger_id))] == []
        assert tiered.state == "published"
        assert pauses.resume(stack, scope, reason="migrated", author="ops")
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.state == "published"
        assert pauses.pause(stack, scope, TieringMode.DISABLED, **who)
        lab.readable(topic, reloaded=True)
        [noop] = offload_batch(stack, [topic.ledger_id])
        assert noop.noop
        lab.older(stack)
        [released] = release_topic(stack, topic.ml_name, [topic.ledger_id]).values()
        assert isinstance(released, Released)
        assert pauses.resume(stack, scope, reason="over", author="ops")
    lab.readable(topic, reloaded=True)
