"""Doctor's look at Dagster's partitions: would days be better than ledgers, or the other way round?

A ledger needs its key until it is released, so those closed within the deletion lag and a day need
theirs at once. Counted from the nodes of all topics; the reads overlap. Nothing waits for a key,
and so this is never a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from tiering_assets.ground.finding import Finding, ok, warn
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.topic.user_topics import readable_topics, user_topic_names
from tiering_assets.resources.settings import Settings

_CHECK = "dagster partitions"
_DAY = timedelta(days=1)
NEAR, FAR = 0.8, 0.1  # of the keys that there may be


def check(settings: Settings) -> Iterator[Finding]:
    with open_stack(settings) as stack:
        yield from check_partitions(stack)


def check_partitions(stack: Stack) -> Iterator[Finding]:
    """Whether dagster.partition_by suits the number of ledgers that are closed."""
    dagster, lag = stack.settings.dagster, stack.deletion_lag
    since_ms = (stack.now() - lag - _DAY).timestamp() * 1000
    count = sum(
        (listed.closed_at_ms or 0) >= since_ms
        for topic in readable_topics(stack, user_topic_names(stack))
        for listed in topic.info.ledgers
    )
    said = f"{count} ledgers were closed within the deletion lag ({lag}) and a day"
    change = "in tierkeeper.toml, reload the code location, then `tierkeeper dagster rebuild`"
    if dagster.partition_by == "ledger" and count >= NEAR * dagster.partitions_max:
        yield warn(
            _CHECK,
            f"{said}, and Dagster has keys for {dagster.partitions_max}: no ledger waits for one, "
            "but its pages show fewer and fewer of them",
            f'set dagster.partition_by = "day" {change}',
        )
    elif dagster.partition_by == "day" and count < FAR * dagster.partitions_max:
        yield ok(
            _CHECK,
            f'{said}: dagster.partition_by = "ledger" would show each of them ({change})',
        )
    else:
        yield ok(_CHECK, f"{said}: dagster.partition_by = {dagster.partition_by} suits them")
