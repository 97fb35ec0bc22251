"""Damage is red wherever people look: the check, the run, the backlog's first line, the webhook.

In Dagster's own runs on simulated servers, with a byte of an object changed behind our back.
"""

import dagster as dg
import pytest

from tests.dagster.test_event_budget import (  # noqa: F401 - a fixture
    NAME,
    lived,
)
from tests.dagster.test_failures import Posting, failure_context
from tests.dagster.test_launchpad import events, launch, tags, why_failed
from tests.support.default_cluster import TIERING_BACKLOG
from tests.unit.test_webhook import receiver
from tiering_assets.definitions import defs
from tiering_assets.defs.telling.batch_summary import RESULT_TAG

CHECKED = dg.DagsterEventType.ASSET_CHECK_EVALUATION


@pytest.fixture(params=["ledger", "day"])
def damaged(request, lived):  # noqa: F811
    """Ledgers 0 and 1 are published; a byte of the data object of 0 is another."""
    fleet = lived(by=request.param, ledgers=2)
    assert launch(fleet, "offload").success
    objects = fleet.world.objects
    [key] = [key for key in objects.peek_keys() if key.endswith("-ledger-0")]
    body = bytearray(fleet.stack.objects.get(key).body)
    body[len(body) // 2] ^= 1
    objects.rot(key, bytes(body))
    return fleet


def verdicts(fleet, result):
    """By partition, what `read_back_equal` said."""
    found = [row.dagster_event.event_specific_data for row in events(fleet, result, CHECKED)]
    return {one.partition: one for one in found if one.check_name == "read_back_equal"}


def test_the_check_names_ledger_and_topic_and_the_run_fails(damaged):
    result = launch(damaged, "verify")
    assert not result.success
    found = verdicts(damaged, result)
    by_day = damaged.stack.settings.dagster.partition_by == "day"
    assert {key: one.passed for key, one in found.items()} == (
        {None: False} if by_day else {"0": False, "1": True, None: False}
    )
    red = found[None if by_day else "0"]
    assert red.severity is dg.AssetCheckSeverity.ERROR
    assert f"ledger 0 of {NAME}: " in red.description
    assert f"1 ledgers passed, 1 failed; such as ledger 0 of {NAME}: " in found[None].description
    said = why_failed(result)
    assert "ledger 0: damaged: " in said
    assert NAME in said
    assert "Next: `tierkeeper ledger why 0`" in said
    assert tags(damaged, result)[RESULT_TAG].startswith("1 checks failed")


def test_it_is_the_first_line_of_the_backlog(damaged):
    launch(damaged, "verify")
    assert launch(damaged, "discover").success
    [record] = damaged.instance.fetch_materializations(TIERING_BACKLOG, limit=1).records
    [first, *_rest] = record.asset_materialization.metadata["summary"].value.splitlines()
    assert first.startswith(f"**DAMAGED: 1 ledgers, 9 B**, of {NAME}. Next: `tierkeeper scrub run")


def test_it_stays_red_where_it_is_known_and_nothing_heals_it(damaged):
    launch(damaged, "verify")
    again = launch(damaged, "verify")
    assert not verdicts(damaged, again)[None].passed
    scrubbed = launch(damaged, "scrub", deep=True, heal=False)
    assert not scrubbed.success
    assert not verdicts(damaged, scrubbed)[None].passed
    assert "ledger 0: " in why_failed(scrubbed)


def test_the_webhook_says_it_in_its_text(damaged):
    result = launch(damaged, "verify")
    sensor = defs.get_repository_def().get_sensor_def("run_failure")
    with receiver(200) as (url, got):
        sensor(failure_context(damaged.instance, result, {"tiering_stack": Posting(url=url)}))
    [document] = got
    assert f"run {result.run_id} failed: verify: 1 failed" in document["text"]
    assert "ledger 0: damaged: " in document["text"]
    assert NAME in document["error"]
