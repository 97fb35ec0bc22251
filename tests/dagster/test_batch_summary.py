"""What runs tell people: a summary, a tag, and where a ledger is found once its partition is gone.

In Dagster's own runs, on simulated servers; what is told is held against the store's own listing.
"""

import re
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.default_cluster import (
    DELETED_BOOKIE_LEDGERS,
    OFFLOAD_CONTEXTS,
    PARTITION_SET,
    RELEASED_LEDGERS,
)
from tests.support.sim_clients import Process
from tests.support.sim_dagster import add_closed_ledgers, executing, hand_out
from tests.support.sim_world import World
from tiering_assets.batch.newest_releases import newest_releases
from tiering_assets.cli.terminal.words import human_bytes
from tiering_assets.definitions import defs
from tiering_assets.defs.shared.metadata import bytes_text, duration_text
from tiering_assets.defs.shared.partitions import partition_key
from tiering_assets.defs.telling.batch_summary import (
    RESULT_TAG,
    BatchSummary,
    Result,
    Row,
    summary_metadata,
)
from tiering_assets.records import keys
from tiering_assets.records.models import Publication

TOPIC = "t/ns/persistent/orders"
NAME = "persistent://t/ns/orders"
OPS = {"discover": "discovered", "offload": "offload_ledgers", "release": "release_ledgers"}
DAY_S = 24 * 3600
OFFLOADED_ONLY = ["offloaded_objects", "index_objects", "certificates"]


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def site(world):
    """Ledgers 0 to 3 are closed."""
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    add_closed_ledgers(world, site, TOPIC, 4)
    return site


@pytest.fixture
def stack(world, site, monkeypatch):
    found = Process(world, "dagster", site).stack()
    hand_out(monkeypatch, found)
    return found


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def run(instance, job, assets=None, **config):
    return defs.resolve_job_def(job).execute_in_process(
        instance=instance,
        asset_selection=assets and [dg.AssetKey(["pulsar", name]) for name in assets],
        raise_on_error=False,
        run_config={"ops": {OPS[job]: {"config": executing(job, config)}}},
    )


def tag_of(instance, result):
    return instance.get_run_by_id(result.run_id).tags[RESULT_TAG]


def observed(instance, result, asset):
    """What a run's summary says, by name of the metadata."""
    records = instance.all_logs(result.run_id, of_type=dg.DagsterEventType.ASSET_OBSERVATION)
    [event] = [
        record.dagster_event.event_specific_data.asset_observation
        for record in records
        if record.dagster_event.asset_key == asset
    ]
    return {name: value.value for name, value in event.metadata.items()}


def rows_of(metadata, name):
    return [record.data for record in metadata[name].records]


def newest(instance, asset):
    [record] = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=asset), limit=1
    ).records
    return record.asset_materialization.metadata


def test_a_run_counts_each_ledger_once_and_says_so_in_the_run_list(site, stack, instance):
    assert run(instance, "offload", ledger_ids=[0]).success
    site.broker.produce(TOPIC, [b"open"])
    open_id = stack.topics.read(TOPIC)[0].ledgers[-1].ledger_id
    result = run(instance, "offload", ledger_ids=[0, 1, open_id, 999])
    assert not result.success  # the summary was told before
    assert tag_of(instance, result) == "1 failed, 1 waiting, 1 done, 1 noop, 9 B"
    told = observed(instance, result, OFFLOAD_CONTEXTS)
    assert (told["ledgers_done"], told["ledgers_failed"], told["bytes"]) == (1, 1, 9)
    assert told["seconds"] >= 0
    rows = {row["ledger"]: row for row in rows_of(told, "ledgers")}
    assert [row["result"] for row in rows.values()] == ["failed", "waiting", "done", "noop"]
    assert list(rows) == ["999", str(open_id), "1", "0"]
    assert (rows["1"]["topic"], rows["1"]["size"], rows["0"]["size"]) == (
        "t/ns/orders",
        "9 B",
        "0 B",
    )
    assert rows[str(open_id)]["said"].startswith("open")
    assert told["summary"].startswith("**offload**: 1 failed, 1 waiting, 1 done, 1 noop; 9 B in ")
    assert "| missing from BookKeeper" in told["summary"]


def test_what_a_release_publishes_along_is_told_as_published(world, stack, instance):
    assert run(instance, "offload", ledger_ids=[0]).success
    assert run(instance, "offload", OFFLOADED_ONLY, ledger_ids=[1]).success
    world.scheduler.now += DAY_S
    result = run(instance, "release", ledger_ids=[0], publish_waiting=True)
    assert result.success
    info, _node = stack.topics.read(TOPIC)
    assert info.ledger(1).offload.complete  # by the topic's own node
    events = [
        event.event_specific_data.materialization
        for event in result.all_node_events
        if event.is_step_materialization and event.asset_key == OFFLOAD_CONTEXTS
    ]
    [event] = events
    assert event.partition == partition_key(1)
    (record,) = [
        stored
        for stored in stack.book.iter_records(Publication, keys.publications_of(TOPIC))
        if 1 in {one.ledger_id for one in stored.record.ledgers}
    ]
    assert event.metadata["publication"].value.endswith(stack.book.prefix + record.key)
    assert "noop" not in event.metadata
    status = instance.get_status_by_partition(
        OFFLOAD_CONTEXTS, [partition_key(1)], dg.DynamicPartitionsDefinition(name=PARTITION_SET)
    )
    assert [value.value for value in status.values()] == ["MATERIALIZED"]


def test_a_release_without_its_roll_up_still_says_what_it_came_to(world, stack, instance):
    assert run(instance, "offload", ledger_ids=[0, 1]).success
    world.scheduler.now += DAY_S
    result = run(instance, "release", ["deleted_bookie_ledgers"], ledger_ids=[0])
    assert tag_of(instance, result) == "1 done, 9 B"
    assert observed(instance, result, DELETED_BOOKIE_LEDGERS)["bytes"] == 9


def test_a_retired_ledger_is_found_with_its_record(world, stack, instance):
    assert run(instance, "offload", ledger_ids=[0, 1]).success
    world.scheduler.now += DAY_S
    assert run(instance, "release", ledger_ids=[1]).success
    world.scheduler.now += 60
    assert run(instance, "release", ledger_ids=[0]).success
    for key in instance.get_dynamic_partitions(PARTITION_SET):
        instance.delete_dynamic_partition(PARTITION_SET, key)
    assert run(instance, "discover").success
    told: dict[str, Any] = dict(newest(instance, RELEASED_LEDGERS))
    rows = rows_of(told, "newest_releases")
    assert [(row["ledger"], row["topic"], row["size"]) for row in rows] == [
        ("0", NAME, "9 B"),
        ("1", NAME, "9 B"),
    ]
    there = {summary.key for summary in stack.objects.list_objects()}
    assert stack.book.prefix + rows[0]["record"] in there
    assert "tierkeeper ledger show ID" in told["find_a_ledger"].value
    place = f"s3://{stack.settings.store.bucket}/{stack.book.prefix}"
    assert place in told["find_a_ledger"].value
    assert told["dagster/row_count"].value == 2


def test_the_roll_up_is_in_step_with_what_it_counts_whoever_made_it(world, stack, instance):
    """The tags that Dagster itself gives to what an op yields, on what `discover` logs."""
    assert run(instance, "offload", ledger_ids=[0]).success
    world.scheduler.now += DAY_S
    assert run(instance, "release", ledger_ids=[0]).success
    assert run(instance, "discover").success
    logged, yielded = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=RELEASED_LEDGERS), limit=2
    ).records
    assert logged.run_id != yielded.run_id
    ours, dagsters = logged.asset_materialization.tags, yielded.asset_materialization.tags
    assert set(ours) == set(dagsters)
    inputs = {name for name in dagsters if "input" in name}
    assert len(inputs) == 2
    assert {name: ours[name] for name in inputs} == {name: dagsters[name] for name in inputs}


def test_the_newest_releases_are_bounded_and_one_unreadable_record_hides_no_other(
    world, stack, instance
):
    assert run(instance, "offload", ledger_ids=[0, 1, 2]).success
    for ledger_id in (2, 0, 1):
        world.scheduler.now += DAY_S
        assert run(instance, "release", ledger_ids=[ledger_id], publish_waiting=False).success
    assert [one.ledger_id for one in newest_releases(stack, 2)] == [1, 0]
    [_one, zero, _two] = newest_releases(stack, 10)
    there = stack.objects.get(zero.key)
    stack.objects.put(zero.key, there.body.replace(b'"bytes_released":9', b'"bytes_released":8'))
    found = {one.ledger_id: one for one in newest_releases(stack, 10)}
    assert (found[0].topic, found[0].bytes) == (None, None)
    assert (found[1].topic, found[2].bytes) == (NAME, 9)


def row(ledger_id, result=Result.DONE, size=0, said="published"):
    return Row(ledger_id=ledger_id, topic=NAME, result=result, bytes=size, said=said)


def test_the_table_shows_what_went_wrong_first_and_is_bounded():
    rows = [row(i) for i in range(100)] + [row(200, Result.FAILED, said="ledger 200: gone")]
    told: Any = summary_metadata(BatchSummary(action="offload", rows=tuple(rows), seconds=0.0))
    records = rows_of(told, "ledgers")
    assert (records[0]["ledger"], len(records)) == ("200", 50)
    assert told["ledgers_done"].value == 100
    assert "/s" not in told["summary"].value.splitlines()[0]  # no time, no rate


def test_a_run_links_to_pages_of_its_ledgers_the_failed_first():
    rows = (*map(row, range(6)), row(9, Result.FAILED, said="gone"))
    asset = dg.AssetKey(["pulsar", "certificates"])
    summary = BatchSummary(action="x", rows=rows, seconds=1.0, pages=asset)
    told: Any = summary_metadata(summary)
    said = told["pages"].value
    page = "/assets/pulsar/certificates?view=partitions&partition"
    assert said.startswith(f"[9]({page}=9), [0]({page}=0), ")
    assert said.endswith(f"[3]({page}=3) and 2 more")
    without: Any = summary_metadata(replace(summary, pages=None))
    assert "pages" not in without


@pytest.mark.parametrize(("reasons", "length"), [(2, 30), (12, 100), (3, 900), (400, 60)])
def test_a_summary_is_short_enough_to_be_shown_and_tells_of_each_reason(reasons, length):
    rows = [row(i, Result.FAILED, said=f"{i} " + "x" * length) for i in range(reasons)]
    rows += [row(1000 + i, Result.WAITING, said=f"{i} " + "y" * length) for i in range(reasons)]
    seconds = dict.fromkeys(("plan", "copy", "verify", "publish"), 12345.6)
    told: Any = summary_metadata(
        BatchSummary(action="offload", rows=tuple(rows), seconds=1.0, phases=seconds)
    )
    said = told["summary"].value
    assert len(said) < 1000  # a longer one is hidden behind a click
    more = [int(n) for n in re.findall(r"^(\d+) more reasons", said, re.MULTILINE)]
    shown = re.findall(r"^\| \d+ [xy]+ \|", said, re.MULTILINE)
    assert len(shown) + sum(more) == 2 * reasons


def test_the_last_event_of_a_run_tabulates_the_seconds_of_its_phases(site, stack, instance):
    result = run(instance, "offload", ledger_ids=[0, 999])
    told = [row for row in instance.all_logs(result.run_id) if row.step_key or row.user_message]
    ours = [row for row in told if not _is_of_dagster(row)]
    assert ours[-1].dagster_event.asset_key == OFFLOAD_CONTEXTS
    _first, _empty, head, _line, seconds, *_rest = observed(instance, result, OFFLOAD_CONTEXTS)[
        "summary"
    ].splitlines()
    assert head == "| plan | copy | verify | publish |"
    assert re.fullmatch(r"(\| \d+\.\d s ){4}\|", seconds)


def _is_of_dagster(row):
    """An event about a step or the run itself."""
    kind = row.dagster_event
    return kind is not None and kind.event_type_value.startswith(("STEP", "PIPELINE", "ENGINE"))


def test_phases_that_were_not_reached_took_no_time():
    seconds = {"publish": 2.0, "plan": 0.25}
    told: Any = summary_metadata(
        BatchSummary(action="offload", rows=(row(1),), seconds=2.5, phases=seconds)
    )
    assert told["summary"].value.splitlines()[-1] == "| 0.2 s | 0.0 s | 0.0 s | 2.0 s |"


def test_equal_reasons_are_one_line_with_a_count():
    rows = [row(i, Result.FAILED, said=f"ledger {i}: no | bookie") for i in (7, 8)]
    told: Any = summary_metadata(BatchSummary(action="x", rows=tuple(rows), seconds=1.0))
    assert told["summary"].value.splitlines()[-1] == "| no \\| bookie | 2 | 7 |"


@given(st.lists(st.tuples(st.sampled_from(Result), st.integers(0, 2**40)), max_size=60))
def test_counts_add_up_and_only_done_bytes_count(found):
    rows = tuple(row(i, result, size) for i, (result, size) in enumerate(found))
    summary = BatchSummary(action="offload", rows=rows, seconds=1.0)
    assert sum(summary.counts.values()) == len(found)
    assert summary.bytes == sum(size for result, size in found if result is Result.DONE)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (12_345_678, "11.8 MiB"),
        (2**70, "1024.0 EiB"),
    ],
)
def test_bytes_are_told_as_in_a_terminal(size, text):
    assert bytes_text(size) == text
    assert size >= 2**60 or human_bytes(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (90, "1.5 min"), (7200, "2.0 h"), (1e6, "11.6 d")],
)
def test_times_are_told_in_the_largest_unit(seconds, text):
    assert duration_text(seconds) == text
