"""`offload_threshold` and `release_due`: ledgers that a policy or the lag has made due, in batches.

Owns: a tick asks for as many runs as it may and goes on with the next topic in the next tick; what
unfinished runs have is left to them. Runs get ids in their config. Which topics: nominated.py;
which of their ledgers: automation/admission.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import dagster as dg

from tiering_assets.defs.automation.nominated import nominating, post_again
from tiering_assets.defs.automation.tick import RUN_REQUESTS_MAX, Result, Tick
from tiering_assets.defs.shared.batches import RUN_LEDGERS_MAX
from tiering_assets.defs.shared.run_history import request_of
from tiering_assets.policy.admission_rules import Batch, History, Ready, pack, worth_asking

if TYPE_CHECKING:
    from tiering_assets.automation.admission import Offloads, ToOffload
    from tiering_assets.automation.rounds import Round

_TOLD_MAX = 5
SOON_ABOVE = 500  # topics to look at; fewer are looked at in one tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Ledgers for runs of one job; `config` is the rest of their config."""

    job: str
    op: str
    ready: Sequence[Ready]
    config: Mapping[str, Any]


def offload_threshold(tick: Tick) -> Result:
    """Admit what is above a threshold to be copied, and what waits long enough to be published."""
    from tiering_assets.automation.admission import Offloads
    from tiering_assets.catalogue.nominate import topics_to_offload, topics_unconfirmed
    from tiering_assets.explain.waiting import topics_above
    from tiering_assets.fleet.beside import waiting_sizes
    from tiering_assets.policy.policies import open_policies

    history = tick.history("offload")
    runs = _runs_free(tick, history)
    if runs == 0:
        return dg.SkipReason(f"{history.unfinished_runs} offload runs are unfinished")
    tables = nominating(tick)
    unconfirmed = None if tables is None else topics_unconfirmed(tables)
    with open_policies(tick.stack) as policies:
        offloads = Offloads(
            tick.stack,
            policies,
            _may_try(tick, history),
            tick.memory.ticks,
            unconfirmed=unconfirmed,
        )
        names: list[str] | None = None
        soon: list[str] = []
        if tables is not None:
            names = offloads.awake(topics_to_offload(tables, unconfirmed or ()))
            if len(names) > SOON_ABOVE:
                rows = waiting_sizes(tick.stack, tables)
                soon = sorted({*names}.intersection(topics_above(tick.stack, policies, rows)))
        first, looked = _walked(tick, offloads, soon, names, runs * tick.auto.batch_ledgers_max)
    looked.require_any()
    to_copy = [one for topic in looked.found for one in topic.copy]
    asks = [
        Ask(
            job="offload",
            op="offload_ledgers",
            ready=[one for topic in looked.found for one in topic.publish],
            config={"when_due": False},
        ),
        Ask(
            job="offload",
            op="offload_ledgers",
            ready=to_copy,
            config={"when_due": True},
        ),
    ]
    return _asked(
        tick,
        "offload_threshold",
        asks,
        history=history,
        looked=looked,
        said=_looked_text(looked.topics, looked.failed),
        soon=first,
    )


def _walked(
    tick: Tick, offloads: Offloads, soon: Sequence[str], names: Sequence[str] | None, room: int
) -> tuple[str | None, Round[ToOffload]]:
    """Topics that are due as far as one can tell at once, then all. Where to go on with the first.

    After a start each topic is looked at once, and a look may ask a broker: what is due would wait
    for all topics before it.
    """
    from tiering_assets.automation.rounds import joined, walk

    until = tick.stack.monotonic() + tick.auto.tick_budget_s
    first = None
    if soon:
        first = walk(
            tick.stack,
            offloads.look,
            names=soon,
            after=tick.cursor.text("soon"),
            seconds=tick.auto.tick_budget_s / 2,
            room=room,
            weigh=_weight,
        )
        room -= sum(map(_weight, first.found))
        tried = set(first.names)
        names = [name for name in names or () if name not in tried]
    looked = walk(
        tick.stack,
        offloads.look,
        names=names,
        after=tick.cursor.text("after"),
        seconds=max(0.0, until - tick.stack.monotonic()),
        room=room,
        weigh=_weight,
    )
    if first is None:
        return None, looked
    return first.resume, joined(first, looked)


def _weight(topic: ToOffload) -> int:
    return len(topic.copy) + len(topic.publish)


def release_due(tick: Tick) -> Result:
    """Ask for releases of bookie copies whose lag has passed. The gate is the run's."""
    from tiering_assets.automation.admission import Releases
    from tiering_assets.automation.rounds import walk
    from tiering_assets.catalogue.nominate import ledgers_to_release

    history = tick.history("release")
    runs = _runs_free(tick, history)
    if runs == 0:
        return dg.SkipReason(f"{history.unfinished_runs} release runs are unfinished")
    tick.memory.ticks.trim()
    tables, due = nominating(tick), None
    if tables is not None:
        before = tick.now - tick.stack.deletion_lag
        due = ledgers_to_release(tables, published_before=before, after=tick.cursor.text("after"))
    nominated = None if due is None else due.ledgers
    releases = Releases(tick.stack, _may_try(tick, history), tick.memory.ticks, nominated)
    looked = walk(
        tick.stack,
        releases.look,
        names=None if due is None else [*due.ledgers],
        after=tick.cursor.text("after"),
        seconds=tick.auto.tick_budget_s,
        room=runs * tick.auto.batch_ledgers_max,
    )
    looked.require_any()
    if due is not None and due.cut and looked.resume is None:
        looked = replace(looked, resume=looked.names[-1])
    if releases.wrong:
        post_again(tick, releases.wrong.values(), ledgers=releases.wrong_ledgers)
    ask = Ask(job="release", op="release_ledgers", ready=looked.found, config={"dry_run": False})
    return _asked(
        tick,
        "release_due",
        [ask],
        history=history,
        looked=looked,
        said=_looked_text(looked.topics, looked.failed),
    )


def _may_try(tick: Tick, history: History) -> Any:
    now, auto = tick.now, tick.auto
    return lambda ledger_id: history.may_try(ledger_id, auto, now=now)


def _runs_free(tick: Tick, history: History) -> int:
    return min(RUN_REQUESTS_MAX, max(0, tick.auto.runs_unfinished_max - history.unfinished_runs))


def _asked(
    tick: Tick,
    sensor: str,
    asks: Sequence[Ask],
    *,
    history: History,
    looked: Round[Any],
    said: str,
    soon: str | None = None,
) -> Result:
    runs, queued = _runs_free(tick, history), history.queued_runs
    requests: list[dg.RunRequest] = []
    left: set[str] = set()
    for ask in asks:
        batches = worth_asking(
            pack(ask.ready, tick.auto, runs_max=runs - len(requests)), tick.auto, queued=queued
        )
        requests += [_request(tick, sensor, ask, batch) for batch in batches]
        batched = {one.ledger_id for batch in batches for one in batch.ledgers}
        left.update(one.ml_name for one in ask.ready if one.ledger_id not in batched)
    if queued and left:
        said += f"; what is ready grows while {queued} {asks[0].job} runs are queued"
    tick.context.log.info("tierkeeper: %s: %s; %d runs asked for", sensor, said, len(requests))
    tick.looked.names = looked.names
    tick.looked.whole = looked.resume is None and not left
    cursor = tick.write_cursor(after=looked.resume, soon=soon)
    if left:  # not all that was found went out: the next tick looks at the same topics again
        cursor = tick.write_cursor(after=tick.cursor.text("after"), soon=tick.cursor.text("soon"))
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else dg.SkipReason(f"nothing is due: {said}"),
        cursor=cursor,
    )


def _request(tick: Tick, sensor: str, ask: Ask, batch: Batch) -> dg.RunRequest:
    from tiering_assets.automation.run_batches import write_run_batch

    written = None
    if len(batch.ledgers) > RUN_LEDGERS_MAX:
        written = write_run_batch(tick.stack, ask.job, batch.ledger_ids)
    return request_of(
        tick.instance,
        tick.cluster,
        batch,
        job=ask.job,
        op=ask.op,
        sensor=sensor,
        config=ask.config,
        written=written,
    )


def _looked_text(topics: int, failed: Mapping[str, str]) -> str:
    said = f"{topics} topics looked at"
    if failed:
        named = "; ".join(f"{name}: {why}" for name, why in [*failed.items()][:_TOLD_MAX])
        said += f", {len(failed)} could not be judged ({named})"
    return said
