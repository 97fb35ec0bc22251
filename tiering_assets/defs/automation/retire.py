"""`retire_partitions`: takes the partitions of released ledgers away, so that pages stay fast.

Owns: a ledger keeps its partition while an unfinished run names it, and auto.retire_after_s from
its release; when four of five partitions are taken the oldest released ones go at once. The history
of a partition outlives it, and `released_ledgers` counts what it stood for.
"""

from __future__ import annotations

from datetime import timedelta

import dagster as dg

from tiering_assets.defs.automation.nominated import nominating
from tiering_assets.defs.automation.tick import EVENTS_MAX, Result, Tick
from tiering_assets.defs.shared.partitions import ledger_id_of

FULL = 0.8
_LOOKED_MAX = 500  # a request or two each


def retire_partitions(tick: Tick) -> Result:
    """Look at some partitions, from where the last tick stopped, and delete those not needed."""
    from tiering_assets.automation.retirable import find_retirable
    from tiering_assets.catalogue.nominate import ledgers_that_left

    keys: dict[int, list[str]] = {}
    for key in tick.instance.get_dynamic_partitions(tick.cluster.partition_set):
        keys.setdefault(ledger_id_of(key), []).append(key)
    live = sorted(keys)
    if not live:
        return dg.SkipReason("there are no partitions")
    busy = tick.history("offload").running | tick.history("release").running
    after = int(tick.cursor.number("after_ledger", -1))
    pressed = sum(map(len, keys.values())) >= FULL * tick.settings.dagster.partitions_max
    seconds = 0.0 if pressed else tick.auto.retire_after_s
    free = [i for i in live if i not in busy]
    tables = nominating(tick)
    if tables is not None:
        before = tick.now - timedelta(seconds=seconds)
        free = ledgers_that_left(tables, free, released_before=before)
    looked = [i for i in free if i > after][:_LOOKED_MAX]
    retired = [*find_retirable(tick.stack, looked, seconds=seconds)][:EVENTS_MAX]
    done = len(looked) < _LOOKED_MAX
    if len(retired) == EVENTS_MAX:
        after, done = retired[-1], False
    elif not done:
        after = looked[-1]
    tick.context.log.info("tierkeeper: %d of %d partitions retired", len(retired), len(live))
    return dg.SensorResult(
        dynamic_partitions_requests=(
            [
                tick.cluster.ledger_partitions.build_delete_request(
                    [key for i in retired for key in keys[i]]
                )
            ]
            if retired
            else []
        ),
        skip_reason=None
        if retired
        else dg.SkipReason(f"{len(looked)} of {len(live)} partitions looked at, none to retire"),
        cursor=tick.write_cursor(after_ledger=None if done else after),
    )
