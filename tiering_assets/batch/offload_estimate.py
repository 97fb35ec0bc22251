"""The dry run of an offload: which ledgers, which not and why, and what it would take. Reads only.

Owns: nothing is loaded, claimed or written. Metadata says what is eligible; where a ledger takes
more than one block its boundaries come from point reads of the bookies, as in the offload itself,
and after LAYOUTS_MAX of them, or where a bookie is away, from sizes alone: then entries are taken
as equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tiering_assets.batch.offload_estimate_rules import (
    Estimate,
    LeftOut,
    Limits,
    PlannedLedger,
    estimate_offload,
)
from tiering_assets.batch.offload_prefix_rules import (
    KeepBytes,
    Until,
    choose_prefix,
    is_offloaded,
    keep_newest,
)
from tiering_assets.change.publish_record import read_canary
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.plan import (
    LedgerSight,
    decide_sight,
    facts_of,
    lay_out,
    source_of,
)
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.offload_format.layout import BlockPlan, block_bytes_for, plan_layout
from tiering_assets.policy.policies import open_policies, user_topics
from tiering_assets.records import keys
from tiering_assets.records.keys import namespace_of
from tiering_assets.records.models import Certificate
from tiering_assets.resources.bookkeeper.ledger_metadata import index_ledger_metadata
from tiering_assets.resources.errors import (
    BookieError,
    EntryUnavailableError,
    FormatError,
    IntegrityError,
)
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.ledgers import LedgerNode
from tiering_assets.resources.metastore.store import Node
from tiering_assets.tasks.budget_record import read_budget
from tiering_assets.tasks.rate_budget import wanted_rates

LAYOUTS_MAX = 500
CERTIFICATES_MAX = 20
NOT_ASKED_FOR = "newer than what was asked for"
_PROGRESS_S = 5.0


@dataclass(slots=True)
class _Found:
    planned: list[PlannedLedger] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    layouts: int = 0


def estimate_topics(stack: Stack, until: Until, ml_names: Iterable[str] | None = None) -> Estimate:
    """What it takes to offload these topics (all user topics without) as far as `until`.

    To keep bytes, an open ledger counts as empty: its size is in its broker's memory alone.
    """
    found = _Found()
    told = stack.monotonic()
    names = list(ml_names) if ml_names is not None else list(user_topics(stack))
    with open_policies(stack, loads_nothing=True) as policies:
        for done, ml_name in enumerate(names, start=1):
            seen = stack.topics.read(ml_name)
            if seen is not None and seen[0].ledgers:
                off = policies.switched_off(topic_of(ml_name))
                _plan_topic(stack, ml_name, *seen, until, off, found)
            if stack.monotonic() - told >= _PROGRESS_S:
                told = stack.monotonic()
                stack.narrate(
                    f"{done} of {len(names)} topics, {len(found.planned)} ledgers to offload"
                )
    topics = sorted({one.ml_name for one in found.planned})
    return estimate_offload(
        found.planned,
        found.left_out,
        limits=_limits(stack),
        first_in_namespace=_first_in_namespace(stack, topics),
    )


def _plan_topic(
    stack: Stack,
    ml_name: str,
    topic: ManagedLedger,
    node: Node,
    until: Until,
    off: Wait | None,
    found: _Found,
) -> None:
    before = until
    if isinstance(before, KeepBytes):
        before = keep_newest(topic.ledgers, before, open_bytes=0)
    wanted = {info.ledger_id for info in choose_prefix(topic.ledgers, before).to_offload}
    for info in topic.ledgers:
        why: str | None = None
        if info.is_open:
            why = Reason.OPEN.value
        elif is_offloaded(info):
            why = Reason.PUBLISHED.value
        elif off is not None:
            why = off.reason.value
        elif not info.size:
            why = Reason.EMPTY.value
        elif info.ledger_id not in wanted:
            why = NOT_ASKED_FOR
        else:
            ledger = stack.ledgers.read(info.ledger_id)
            sight = LedgerSight(
                ledger_id=info.ledger_id,
                ml_name=ml_name,
                node=ledger,
                topic=topic,
                topic_node=node,
            )
            decision = decide_sight(sight)
            if isinstance(decision, Wait) or ledger is None:
                reason = decision.reason if isinstance(decision, Wait) else Reason.MISSING
                why = reason.value
            else:
                found.planned.append(_planned(stack, ml_name, ledger, found))
        if why is not None:
            found.left_out.append(LeftOut(info.ledger_id, ml_name, info.size or 0, why))


def _planned(stack: Stack, ml_name: str, node: LedgerNode, found: _Found) -> PlannedLedger:
    facts = facts_of(node)
    entries = node.metadata.entries
    block_bytes = block_bytes_for(facts.length, entries, stack.settings.offload.block_bytes)
    blocks = _from_sizes(facts.length, entries, block_bytes)
    exact = len(blocks) == 1
    if not exact and found.layouts < LAYOUTS_MAX:
        found.layouts += 1
        try:
            source = source_of(stack, node)
            with stack.spending_for(ml_name):
                blocks, exact = lay_out(stack, source, block_bytes), True
        except (BookieError, EntryUnavailableError, IntegrityError) as error:
            stack.tell(
                f"ledger {facts.ledger_id}: its parts are computed from sizes: {error}",
                facts.ledger_id,
            )
    metadata = index_ledger_metadata(node.data, ledger_id=facts.ledger_id, ctime_ms=facts.ctime_ms)
    return PlannedLedger(
        ledger_id=facts.ledger_id,
        ml_name=ml_name,
        entries=entries,
        payload_bytes=facts.length,
        blocks=blocks,
        index_metadata_bytes=len(metadata),
        exact=exact,
    )


def _from_sizes(length: int, entries: int, block_bytes: int) -> tuple[BlockPlan, ...]:
    """The layout if all entries were of equal size; exact where one block takes them all."""
    return plan_layout(
        last_entry_id=entries - 1,
        ledger_length=length,
        block_bytes_max=block_bytes,
        cumulative_length=lambda entry_id: length * (entry_id + 1) // entries,
    )


def _limits(stack: Stack) -> Limits:
    rate, origin = _measured(stack)
    settings = stack.settings
    budget = read_budget(stack.objects, stack.budget_key)
    return Limits(
        read_range_bytes=settings.offload.read_range_bytes,
        budgets=wanted_rates(settings.budget, budget),
        task_bytes_per_s=rate,
        task_origin=origin,
        reloads_hour_max=settings.disturb.per_cluster_hour_max,
    )


def _measured(stack: Stack) -> tuple[float | None, str]:
    """Bytes per second of tasks that copied and read back, by the newest certificates."""
    listed = sorted(
        (summary for _key, summary in stack.book.listed("certificates/")),
        key=lambda one: one.last_modified,
    )
    bytes_done, seconds, count = 0, 0.0, 0
    for summary in reversed(listed[-CERTIFICATES_MAX:]):
        ledger_id, uid = keys.pair_of(summary.key)
        try:
            stored = stack.book.read(Certificate, keys.certificate(ledger_id, uid))
        except FormatError:
            continue
        if stored is None or stored.record.copy_seconds is None:
            continue
        bytes_done += stored.record.payload_bytes
        seconds += stored.record.seconds + stored.record.copy_seconds
        count += 1
    if not seconds or not bytes_done:
        return None, ""
    return bytes_done / seconds, f"measured in the {count} newest certificates, one task at a time"


def _first_in_namespace(stack: Stack, topics: Sequence[str]) -> list[str]:
    """The topic of each namespace that would go out first, where none has been published yet."""
    first: dict[str, str] = {}
    for ml_name in topics:
        first.setdefault(namespace_of(ml_name), ml_name)
    return [one for one in first.values() if read_canary(stack, one) is None]
