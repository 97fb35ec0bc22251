"""What people look for is found: runs by topic, a topic's state and runs, why a ledger failed.

In Dagster's own runs on simulated servers.
"""

import re
from dataclasses import replace
from uuid import uuid4

import dagster as dg
import pytest
from dagster._core.storage.tags import TagType, get_tag_type

from tests.dagster.test_event_budget import (  # noqa: F401 - a fixture
    DAY_S,
    NAME,
    TOPIC,
    lived,
)
from tests.dagster.test_launchpad import launch, tags
from tests.dagster.test_sensors import (  # noqa: F401 - a fixture
    site,
)
from tests.support.default_cluster import CLUSTER, OFFLOADED_OBJECTS, TIERING_BACKLOG
from tests.support.sim_dagster import add_closed_ledgers
from tiering_assets.defs.explain.discover_assets import find_text
from tiering_assets.defs.shared.run_history import (
    BATCH_TAG,
    OLD_BATCH_TAG,
    TOPIC_TAG,
    TOPICS_TAG,
    count_of_batch,
    topic_tags,
)
from tiering_assets.defs.telling.batch_summary import RESULT_TAG
from tiering_assets.defs.telling.by_ledger import _kind

PLAIN = NAME.removeprefix("persistent://")
JOBS = ["discover", "offload", "verify", "release", "scrub"]


@pytest.fixture
def fleet(lived):  # noqa: F811
    """Ledgers 0 and 1 of one topic are published, and past the lag."""
    found = lived(by="ledger", ledgers=2)
    launch(found, "offload")
    found.world.scheduler.now += 30 * DAY_S
    return found


@pytest.mark.parametrize("name", JOBS)
def test_a_run_of_one_topic_names_it_and_says_what_it_came_to(fleet, name):
    chosen = {"ledger_ids": [0]} if name == "offload" else {}  # nothing else is due any more
    found = tags(fleet, launch(fleet, name, **chosen))
    assert found[TOPIC_TAG] == PLAIN
    assert TOPICS_TAG not in found
    assert found[RESULT_TAG]


@pytest.mark.parametrize("name", JOBS)
def test_a_run_of_several_topics_says_how_many(fleet, name):
    add_closed_ledgers(fleet.world, fleet.site, "t/ns/persistent/more", 1)
    if name != "offload":
        launch(fleet, "offload")
        fleet.world.scheduler.now += 30 * DAY_S
    else:
        add_closed_ledgers(fleet.world, fleet.site, "t/ns/persistent/most", 1)
    found = tags(fleet, launch(fleet, name))
    assert found[TOPICS_TAG] == "2"
    assert TOPIC_TAG not in found


def test_a_run_of_no_topic_names_none():
    assert topic_tags([]) == {}


def test_no_digest_is_among_the_tags_that_pages_show(site):  # noqa: F811
    [request] = site.tick("offload_threshold").run_requests
    shown = {name: value for name, value in request.tags.items() if "tierkeeper" in name}
    hidden = {name for name in shown if get_tag_type(name) is TagType.HIDDEN}
    assert hidden == {BATCH_TAG}
    assert re.search("[0-9a-f]{16}", shown.pop(BATCH_TAG))
    assert shown[TOPIC_TAG] == "t/ns/orders"
    assert not [value for value in shown.values() if re.search("[0-9a-f]{16}", value)]


def test_runs_of_a_batch_are_counted_under_the_name_that_they_had(site):  # noqa: F811
    for tag in (BATCH_TAG, OLD_BATCH_TAG, OLD_BATCH_TAG):
        site.instance.add_run(
            dg.DagsterRun(
                job_name="offload", run_id=str(uuid4()), tags={tag: "offload_threshold-x"}
            )
        )
    assert count_of_batch(site.instance, "offload_threshold-x") == 3


def backlog(fleet):
    assert launch(fleet, "discover").success
    [record] = fleet.instance.fetch_materializations(TIERING_BACKLOG, limit=1).records
    return record.asset_materialization.metadata


def row_of(fleet, name):
    lines = backlog(fleet)["by_topic"].value.splitlines()
    [row] = [line for line in lines if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in row.strip("|").split(" | ")]


def test_a_topics_row_has_its_states_places_lag_next_step_and_last_runs(fleet):
    launch(fleet, "release", ledger_ids=[0], dry_run=False)
    ids = [launch(fleet, "verify").run_id for _time in range(6)]
    topic, ledgers, step, runs = row_of(fleet, PLAIN)
    assert topic == PLAIN
    states, places = ledgers.split("; ")
    assert {*states.split(", ")} == {"1 released", "1 release_due", "1 open"}
    assert places == "9 B on bookies, 18 B in the bucket"
    due = "not admitted: `tierkeeper ledger release LEDGER --execute`"
    assert step == f"delete 30.0 d behind; {due}"
    links = re.findall(r"\[([^\]]+)\]\(/runs/([0-9a-f-]+)\)", runs)
    assert [run_id for _said, run_id in links] == ids[:0:-1]
    assert links[0][0].startswith("verify: ")


def test_a_topic_in_which_all_is_well_says_so(lived):  # noqa: F811
    fleet = lived(by="ledger", ledgers=1)
    launch(fleet, "offload")
    *_more, step, _runs = row_of(fleet, PLAIN)
    assert step == "nothing"


def observed(fleet, key="0"):
    found = fleet.instance.fetch_observations(
        dg.AssetRecordsFilter(asset_key=OFFLOADED_OBJECTS, asset_partitions=[key]), limit=9
    ).records
    return [record.asset_observation.description for record in found]


def test_a_failed_ledger_is_observed_once_for_each_change_of_reason(lived):  # noqa: F811
    fleet = lived(by="ledger", ledgers=2)
    sound = fleet.stack.judge

    def refusing(expectation):
        def judge(facts):
            return {
                i: replace(one, success=i != 0, failed=(expectation,) if i == 0 else ())
                for i, one in sound(facts).items()
            }

        return replace(fleet.stack, judge=judge)

    for expectation, runs in (("overlap", 3), ("gap", 2), ("overlap", 1)):
        fleet.stack = refusing(expectation)
        for _time in range(runs):
            assert not launch(fleet, "offload", ledger_ids=[0, 1]).success
    last, middle, first = observed(fleet)
    assert "gap" in middle
    assert "overlap" in first
    assert "overlap" in last
    assert observed(fleet, "1") == []


def test_a_ledger_that_waits_is_in_no_observation(fleet):
    launch(fleet, "release", ledger_ids=[0])
    found = fleet.instance.fetch_observations(CLUSTER.deleted_bookie_ledgers, limit=9).records
    assert [one for one in found if one.partition_key is not None] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ledger 7: entry 3 differs", "ledger 7: entry 12 differs"),
        (
            "attempt 12345678-1234-1234-1234-123456789abc is gone",
            "attempt abcdef01-1234-1234-1234-123456789abc is gone",
        ),
        ("bookie b1 is away; 1 attempt", "bookie b2 is away; 9 attempts; next try never"),
    ],
)
def test_a_reason_is_the_same_whatever_its_numbers(one, other):
    assert _kind(one) == _kind(other)


def test_another_reason_is_another():
    assert _kind("ledger 7: entry 3 differs") != _kind("ledger 7: entry 3 is missing")


def test_the_first_page_says_where_everything_is(fleet):
    for by_day in (False, True):
        cluster = replace(CLUSTER, by_day=by_day)
        said = find_text(cluster)
        for word in ("tierkeeper ledger show ID", "tierkeeper ledger why ID", TOPIC_TAG):
            assert word in said
        linked = set(re.findall(r"\(/assets/([^)]+)\)", said))
        known = {
            key.to_user_string() for key in fleet.defs.resolve_asset_graph().get_all_asset_keys()
        }
        assert linked <= known
        assert (f"{CLUSTER.name}/certificates" in linked) is not by_day
