"""The manual trigger from the launchpad: `before` or `keep_bytes` of one topic.

Owns: a config that asks for what cannot be ends the run with one sentence, before anything is done.
Which ledgers it means is decided by the same step as for `tierkeeper topic offload`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.shared.batches import OffloadBatch
from tiering_assets.defs.shared.failures import failure
from tiering_assets.defs.shared.preview_api import Context
from tiering_assets.defs.shared.resources import narrate
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.metastore.topic_names import parse_topic_name, with_scheme

if TYPE_CHECKING:
    from tiering_assets.batch.offload_prefix import PrefixPlan
    from tiering_assets.ground.stack import Stack


def plan_of(stack: Stack, config: OffloadBatch, *, chosen: Sequence[int]) -> PrefixPlan | None:
    """What is before the position that the config asks for; None when it asks for none.

    `chosen` are the ledgers given by id or by a backfill. dg.Failure says what is wrong.
    """
    from tiering_assets.batch.offload_prefix import plan_prefix
    from tiering_assets.batch.offload_prefix_rules import parse_until

    try:
        until = parse_until(config.before, config.bytes_to_keep)
        if until is None:
            return None
        if chosen:
            raise _refusal(
                f"ledgers are chosen by before or keep_bytes or by id, not by both; found "
                f"{len(chosen)} ids, from ledger_ids or from the partitions of a backfill"
            )
        if len(config.topics) != 1:
            raise _refusal(
                f"before and keep_bytes are about one topic: expected 1 name in `topics`, found "
                f"{len(config.topics)}; name one topic, or one partition of a partitioned one"
            )
        name = parse_topic_name(with_scheme(config.topics[0]))
        return plan_prefix(stack, name.managed_ledger_name, until)
    except TierkeeperError as error:
        if error.retryable:
            raise
        raise _refusal(str(error)) from None


def _refusal(text: str) -> dg.Failure:
    return failure(
        f"offload: {text}",
        next_step="correct `topics`, `before` or `keep_bytes`, then launch it again",
    )


def narrate_plan(context: Context, plan: PrefixPlan, *, taken: int) -> None:
    """Say what was chosen, and what max_ledgers leaves for the next run."""
    from tiering_assets.batch.offload_prefix_rules import position_text

    count = len(plan.prefix.to_offload)
    narrate(
        context,
        f"{plan.topic} before {position_text(plan.before)}: {count} ledgers to offload, "
        f"{len(plan.prefix.offloaded)} are offloaded"
        + (f"; this run takes the oldest {taken}" if taken < count else ""),
    )
    for note in plan.notes:
        narrate(context, note)


def narrate_progress(context: Context, stack: Stack, plan: PrefixPlan) -> None:
    """Say where the topic stands after the run."""
    from tiering_assets.batch.offload_prefix import look_again
    from tiering_assets.batch.offload_prefix_rules import position_text

    progress = look_again(stack, plan)
    narrate(
        context,
        f"first un-offloaded {position_text(progress.first_unoffloaded) or 'none'}, wanted "
        f"{position_text(plan.prefix.goal)}" + (": reached" if progress.reached else ""),
    )
