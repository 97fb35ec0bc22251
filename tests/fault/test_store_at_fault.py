"""The whole path while the store refuses, resets, cuts, stalls: some share of all requests,
mixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.crash_audit import at_end, at_once
from tests.support.crash_scene import Scene
from tests.support.crash_subject import Workshop
from tests.support.fault_lab import Lab
from tests.support.http_proxy import HttpProxy
from tests.support.s3_chaos import FAULTS, Chaos
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.clean.sweep import sweep
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import TierkeeperError

pytestmark = [pytest.mark.stack, pytest.mark.fault]

READ_TIMEOUT_S = 1.0
STORE, REFUSED = 21, 26  # refused: the broker could not read through the proxy, and it was undone


@pytest.fixture(scope="module")
def work(lab) -> Iterator[Workshop]:
    """The product, the broker's policy and the contexts all name one proxy."""
    with HttpProxy(lab.endpoints.s3_endpoint, stall_s=2 * READ_TIMEOUT_S) as proxy:
        yield Workshop(lab, proxy)


def scene_of(work: Workshop, *, attempts_max: int) -> Scene:
    store = replace(work.settings.store, attempts_max=attempts_max, read_timeout_s=READ_TIMEOUT_S)
    settings = replace(work.settings, store=store)
    return Scene(subject=work.multi_block(), step="offload", arguments={}, settings=settings)


def tier_at_fault(lab: Lab, work: Workshop, scene: Scene) -> TierkeeperError | None:
    """Offload and release one ledger through the proxy; how it ended."""
    topic = scene.subject.topic
    with work.open() as clean:
        lab.older(clean)  # the claim of a run whose drop was struck has run out
    try:
        with lab.open(scene.settings) as stack:
            [outcome] = offload_batch(stack, [topic.ledger_id])
            if outcome.error is not None:
                return outcome.error
            assert outcome.state == "published"
            with work.open() as clean:
                lab.older(clean)
            released = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
    except TierkeeperError as error:
        return error
    if isinstance(released, TierkeeperError):
        return released
    assert isinstance(released, Released)
    return None


def finish(lab: Lab, work: Workshop, scene: Scene) -> None:
    """Run what is left without faults, sweep, and audit every byte and record."""
    topic = scene.subject.topic
    with work.open() as stack:
        lab.older(stack)
        if stack.ledgers.read(topic.ledger_id) is not None:
            [outcome] = offload_batch(stack, [topic.ledger_id])
            assert outcome.state == "published", outcome
            lab.older(stack)
        released = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(released, Released), released
        lab.older(stack)
        sweep(stack, execute=True)
        assert [*at_end(stack, scene, lab.settings.store)] == []
        keys = [u.key for u in stack.objects.list_uploads()]
        assert not [key for key in keys if key.endswith(f"-ledger-{topic.ledger_id}")]
    lab.readable(topic, reloaded=True)


def test_a_few_struck_requests_only_cost_time(lab, work):
    percent, seed = 5, 1  # `make simulate` strikes fewer, and by every schedule
    scene = scene_of(work, attempts_max=5)
    chaos = Chaos(rate=percent / 100, seed=seed)
    work.obey(chaos)
    try:
        assert tier_at_fault(lab, work, scene) is None
    finally:
        work.obey(None)
    assert chaos.struck.total() >= percent
    with work.open() as stack:
        assert [*at_once(stack, scene)] == []
    finish(lab, work, scene)


def test_many_struck_requests_end_well_or_by_name_and_lose_nothing(lab, work):
    percent, seed, runs = 50, 1, 2
    scene = scene_of(work, attempts_max=4)
    chaos = Chaos(rate=percent / 100, seed=seed)
    while runs > 0 or len(chaos.struck) < len(FAULTS) - 2:  # a run may end early
        runs -= 1
        work.obey(chaos)
        try:
            error = tier_at_fault(lab, work, scene)
        finally:
            work.obey(None)
        if error is not None:
            assert error.exit_code in (STORE, REFUSED), error
            lab.assert_no_secret(str(error))
        with work.open() as stack:
            assert [*at_once(stack, scene)] == []
    finish(lab, work, scene)
