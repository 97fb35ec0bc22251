"""Doctor's question about the size of the fleet: do Dagster's partitions and catalogue suit it?

A ledger needs its key until it is released, so those closed within the deletion lag and a day need
theirs at once. Counted from the nodes of all topics; the reads overlap. Nothing waits for a key or
for the catalogue, so that neither size is ever a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from tiering_assets.fleet.source import FRESH, SURVEYED_MAX, Unasked, said_of, tables_or_why_not
from tiering_assets.ground.finding import Finding, ok, warn
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.topic.user_topics import readable_topics, user_topic_names
from tiering_assets.resources.settings import Settings

_PARTITIONS = "dagster partitions"
_CATALOGUE = "catalogue"
_DAY = timedelta(days=1)
NEAR, FAR = 0.8, 0.1  # of the keys that there may be


def check(settings: Settings) -> Iterator[Finding]:
    with open_stack(settings) as stack:
        yield from check_fleet_size(stack)


def check_fleet_size(stack: Stack) -> Iterator[Finding]:
    """What depends on how many ledgers topics list, and how many of them were closed lately."""
    since_ms = (stack.now() - stack.deletion_lag - _DAY).timestamp() * 1000
    recent = every = 0
    for topic in readable_topics(stack, user_topic_names(stack)):
        every += len(topic.info.ledgers)
        recent += sum((listed.closed_at_ms or 0) >= since_ms for listed in topic.info.ledgers)
    yield _partitions(stack, recent)
    yield _catalogue(stack, every)


def _partitions(stack: Stack, count: int) -> Finding:
    """Whether dagster.partition_by suits the number of ledgers that are closed."""
    dagster = stack.settings.dagster
    said = f"{count} ledgers were closed within the deletion lag ({stack.deletion_lag}) and a day"
    change = "in tierkeeper.toml, reload the code location, then `tierkeeper dagster rebuild`"
    if dagster.partition_by == "ledger" and count >= NEAR * dagster.partitions_max:
        return warn(
            _PARTITIONS,
            f"{said}, and Dagster has keys for {dagster.partitions_max}: no ledger waits for one, "
            "but its pages show fewer and fewer of them",
            f'set dagster.partition_by = "day" {change}',
        )
    if dagster.partition_by == "day" and count < FAR * dagster.partitions_max:
        return ok(
            _PARTITIONS,
            f'{said}: dagster.partition_by = "ledger" would show each of them ({change})',
        )
    return ok(_PARTITIONS, f"{said}: dagster.partition_by = {dagster.partition_by} suits them")


def _catalogue(stack: Stack, count: int) -> Finding:
    """Whether so many ledgers are read one by one wherever somebody lists or counts them."""
    found = tables_or_why_not(stack)
    if isinstance(found, Unasked):
        said = f"{found.why}: sensors, lists and counts read all {count} ledgers that topics list"
        if count > SURVEYED_MAX:
            return warn(
                _CATALOGUE, f"{said}, which is slow above {SURVEYED_MAX:,}", found.next_step
            )
        return ok(_CATALOGUE, f"{said}, which is fine up to {SURVEYED_MAX:,}")
    if stack.now() - found.scanned_at > FRESH:
        return warn(
            _CATALOGUE,
            f"{said_of(found)}: that is too long ago, so that sensors wait for it",
            "look at the sensor `catalogue`, or run `tierkeeper catalogue post`",
        )
    return ok(
        _CATALOGUE, f"it is asked about all {count} ledgers that topics list; {said_of(found)}"
    )
