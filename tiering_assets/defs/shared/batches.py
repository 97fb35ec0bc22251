"""What the batched ops share: the config, which ledgers a run works on, their keys, the failure.

Owns: a run gets its ledgers by id in its config and carries no partition tag, because a range tag
marks every ledger in the range failed when one of them is. A ledger gets a key when a run has
something to tell of it, and only while there is room: thousands of live keys slow every page down.
No ledger waits for a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from tiering_assets.defs.shared.failures import failure
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.partitions import ledger_id_of, partition_key
from tiering_assets.defs.shared.preview_api import Context
from tiering_assets.defs.shared.run_history import SENSOR_TAG
from tiering_assets.resources.metastore.topic_names import parse_topic_name

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack

RUN_LEDGERS_MAX = 200
NO_SIZE = -1
_SHOWN_MAX = 50  # rows of a table people read; the rest is in the records


class TopicChoice(dg.Config):
    """Which topics a run looks at."""

    topics: list[str] = Field(
        default=[],  # a factory's value is not in the launchpad's form
        description="full topic names (persistent://tenant/namespace/topic); empty means all",
    )

    def ml_names(self) -> list[str] | None:
        """Managed-ledger names of the chosen topics; None for all. FormatError for no topic."""
        return [parse_topic_name(name).managed_ledger_name for name in self.topics] or None


class Discovery(TopicChoice):
    max_ledgers: int = Field(
        default=200, ge=1, description="how many sealed ledgers to admit at most, oldest first"
    )


class LedgerBatch(TopicChoice):
    """A batch. With neither ids nor partitions of a backfill it is whatever is ready."""

    ledger_ids: list[int] = Field(
        default=[], description="ledgers to work on; empty means all that are ready"
    )
    max_ledgers: int = Field(
        default=100,
        ge=1,
        description=(
            "how many ledgers to take at most when no ids are given; never more than 200 where "
            "partitions are ledgers"
        ),
    )
    batch_key: str = Field(
        default="", description="key of the record with the ledgers of a large run; of sensors"
    )
    batch_sha256: str = Field(
        default="", description="SHA-256 of that record's bytes; the run refuses any other"
    )


class OffloadBatch(LedgerBatch):
    """A batch to offload. Publishing makes a loaded topic reload.

    With `before` or `keep_bytes` it is what one topic has before a position, by offload_prefix.py.
    """

    before: str = Field(
        default="",
        description=(
            "LEDGER:ENTRY: offload all ledgers of the one topic in `topics` that are before this "
            "message's ledger; empty means whatever is ready"
        ),
    )
    keep_bytes: int | None = Field(
        default=NO_SIZE,  # null is not in the launchpad's form
        description=(
            "offload what is older than the newest so many bytes of the one topic in `topics`; "
            "-1 or null means whatever is ready"
        ),
    )
    when_due: bool = Field(
        default=False,
        description=(
            "publish a topic only when publish.pending_bytes or publish.pending_age_s is reached; "
            "its ledgers stay verified until then"
        ),
    )

    @property
    def bytes_to_keep(self) -> int | None:
        """None where no size chooses ledgers."""
        return None if self.keep_bytes == NO_SIZE else self.keep_bytes


class ReleaseBatch(LedgerBatch):
    dry_run: bool = Field(
        default=True,
        description=(
            "only say what would be released, and why not; false deletes the bookie copies that "
            "are due"
        ),
    )
    acknowledge: str = Field(
        default="",
        description="who accepts that more than release.fleet_share_max of the fleet goes, and why",
    )
    publish_waiting: bool = Field(
        default=True,
        description="publish what waits of the topics that are reloaded, with the same reload",
    )


def by_hand(context: Context) -> bool:
    """Whether a person asked for this run. One that a sensor asked for tells only what is new."""
    return SENSOR_TAG not in context.op_execution_context.run.tags


def chosen_keys(context: Context) -> list[str]:
    """The partitions of a person's own backfill; none of any other run."""
    operation = context.op_execution_context
    if operation.has_partition_key or operation.has_partition_key_range:
        return [*operation.partition_keys]
    return []


def chosen_ids(
    context: Context, cluster: ClusterNames, config: LedgerBatch, stack: Stack
) -> list[int]:
    """Ids given by the config or by the record it names, else those of a person's own backfill of
    ledgers, else none.

    dg.Failure for more than a run takes, and for a record of other bytes.
    """
    ids = sorted(set(config.ledger_ids))
    if config.batch_key:
        ids = _written(config, stack)
        if cluster.by_day:
            return ids
    if not ids and not cluster.by_day:
        ids = sorted(map(ledger_id_of, chosen_keys(context)))
    if len(ids) > RUN_LEDGERS_MAX:
        raise failure(
            f"{len(ids)} ledgers are given by id, and a run takes {RUN_LEDGERS_MAX} at most",
            next_step="give the others to other runs, or no ids and `topics`",
        )
    return ids


def _written(config: LedgerBatch, stack: Stack) -> list[int]:
    from tiering_assets.automation.run_batches import read_run_batch

    if config.ledger_ids:
        raise failure(
            "ledgers are given by ledger_ids or by batch_key, not by both",
            next_step="leave one of them empty, then launch it again",
        )
    return [*read_run_batch(stack, config.batch_key, config.batch_sha256)]


def most_ledgers(cluster: ClusterNames, wanted: int) -> int:
    """How many of `wanted` a run takes: it tells of each one, unless partitions are days."""
    return wanted if cluster.by_day else min(wanted, RUN_LEDGERS_MAX)


@dataclass(frozen=True, slots=True)
class Keyed:
    """Ledgers that have a key: `known` had it before, `fresh` got it now."""

    known: frozenset[int]
    fresh: frozenset[int]


def give_keys(
    instance: dg.DagsterInstance,
    cluster: ClusterNames,
    ledger_ids: Iterable[int],
    *,
    live_max: int,
) -> Keyed:
    """Give ledgers keys while there is room, lowest ids first.

    All in one request and in order, so that a batch is one range of keys. Where other runs give
    keys at the same moment, those that are too many are taken back.
    """
    wanted = sorted(set(ledger_ids))
    live = set(instance.get_dynamic_partitions(cluster.partition_set))
    known = frozenset(i for i in wanted if partition_key(i) in live)
    fresh = [i for i in wanted if i not in known][: max(0, live_max - len(live))]
    if fresh:
        instance.add_dynamic_partitions(cluster.partition_set, [partition_key(i) for i in fresh])
        over = max(0, len(instance.get_dynamic_partitions(cluster.partition_set)) - live_max)
        for ledger_id in fresh[len(fresh) - over :]:
            instance.delete_dynamic_partition(cluster.partition_set, partition_key(ledger_id))
        fresh = fresh[: len(fresh) - over]
    return Keyed(known, frozenset(fresh))


def batch_failure(
    action: str,
    failures: Mapping[int, str],
    *,
    done: int,
    waiting: Mapping[int, str],
    also: str = "",
) -> dg.Failure:
    """The failure that ends a run after its good ledgers were recorded. Never retried blindly.

    `also` is what is wrong with no single ledger.
    """
    named = "; ".join(f"ledger {i}: {said}" for i, said in sorted(failures.items())[:_SHOWN_MAX])
    said = "; ".join(part for part in (also, named) if part)
    return failure(
        f"{action}: {len(failures)} failed, {done} done, {len(waiting)} waiting. {said}",
        next_step=f"`tierkeeper ledger why {min(failures)}` says what is done about it"
        if failures
        else "docs/runbook.md begins with a list of symptoms",
        metadata={
            "failed": reasons_table(failures, "error"),
            "waiting": reasons_table(waiting, "reason"),
        },
    )


def reasons_table(said: Mapping[int, str], column: str) -> dg.MetadataValue:
    """One line per ledger for people; the first fifty."""
    if not said:
        return dg.MetadataValue.md("none")
    lines = [f"| ledger | {column} |", "|---|---|"]
    lines += [
        f"| {ledger_id} | {markdown_cell(text)} |"
        for ledger_id, text in sorted(said.items())[:_SHOWN_MAX]
    ]
    if len(said) > _SHOWN_MAX:
        lines.append(f"\n{len(said) - _SHOWN_MAX} more")
    return dg.MetadataValue.md("\n".join(lines))


def markdown_cell(text: str) -> str:
    """Text that cannot end its cell or its row."""
    return " ".join(text.replace("|", "\\|").split())
