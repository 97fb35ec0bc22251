"""A live producer's latency beside a backfill: none, one that is polite, and one that is not.

    .venv/bin/python -m benchmarks.polite [--pairs 7] [--seconds 60] [--rate 100] [--short]

Starts real servers, fills a topic, and lets the three take turns in an order that changes by round.
The producer sends by the clock and counts from the moment a message was due, so that one that waits
for others counts too. What the first WARM_S seconds show is left out, as a backfill takes hours.
The bound of the bookies' adds is `--bound`, near what these small servers tell by themselves: their
processes share two cores, and producers wait for cores as well as for bookies. The backfill is the
product's copy task in a process of its own, over the same ledgers again and again, with uploads
that are given up in the end. Ratios are taken within a round. `--short` has rounds of 10 s, with
bookies that renew their quantiles each 5 s and not 60.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Semaphore
from typing import Any
from uuid import uuid4

from benchmarks.agents import ROOT, Child, say
from benchmarks.told import MORE_MS_MAX, P99_RATIO_MAX, POLITE_SHARE_MIN
from tiering_assets.automation.choices import sealed_ledgers
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.ledger.plan import LedgerPlan, plan_ledger
from tiering_assets.resources.bookkeeper.figures_page import read_add_latency
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import TopicSpec, produce, seal
from tiering_assets.resources.metastore.topic_names import parse_topic_name, with_scheme
from tiering_assets.resources.settings_sources import load_settings
from tiering_assets.tasks.descriptors import BlockTask, TaskKind
from tiering_assets.tasks.runner import LocalRunner
from tiering_assets.tasks.worker import Worker

WAYS = ("alone", "unpaced", "polite")
FILL = "public/default/polite-backfill"
LIVE = "persistent://public/default/polite-live"
RESULTS = ROOT / "benchmarks" / "results" / "polite.json"
SETTLE_S = 3.0
WARM_S = 20.0
_MORE_S = 120.0  # to begin, and to end
_PAYLOAD = b"x" * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one way had in one round."""

    round: int
    way: str
    p50_ms: float
    p99_ms: float
    messages: int
    backfill_bytes_per_s: float
    bookie_p99_ms: float  # of the slowest bookie's last window, at the end


def measure(dev: DevStack, *, pairs: int, seconds: float, rate: int, bound_s: float) -> list[Turn]:
    """Every way in every round, on servers whose topic is filled."""
    orders = itertools.cycle(itertools.permutations(WAYS))
    turns = []
    for number, order in zip(range(1, pairs + 1), orders, strict=False):
        for way in order:
            turns.append(_turn(dev, number, way, seconds, rate, bound_s))
            say(f"round {number}: {asdict(turns[-1])}")
            time.sleep(SETTLE_S)
    return turns


def summary(turns: Sequence[Turn]) -> dict[str, Any]:
    """Medians of each way, and of what a round's ways are to each other."""
    rounds = {
        number: {turn.way: turn for turn in turns if turn.round == number}
        for number in {turn.round for turn in turns}
    }
    ways = {
        way: {
            "p50_ms": statistics.median(t.p50_ms for t in turns if t.way == way),
            "p99_ms": statistics.median(t.p99_ms for t in turns if t.way == way),
            "bookie_p99_ms": statistics.median(t.bookie_p99_ms for t in turns if t.way == way),
            "backfill_bytes_per_s": statistics.median(
                t.backfill_bytes_per_s for t in turns if t.way == way
            ),
        }
        for way in WAYS
    }
    found: dict[str, Any] = {"rounds": len(rounds), "ways": ways}
    for way in WAYS[1:]:
        found[f"{way}_p99_ratio"] = statistics.median(
            r[way].p99_ms / r["alone"].p99_ms for r in rounds.values()
        )
        found[f"{way}_p99_more_ms"] = statistics.median(
            r[way].p99_ms - r["alone"].p99_ms for r in rounds.values()
        )
    found["polite_share_of_rate"] = statistics.median(
        r["polite"].backfill_bytes_per_s / r["unpaced"].backfill_bytes_per_s
        for r in rounds.values()
    )
    small = found["polite_p99_ratio"] <= P99_RATIO_MAX or found["polite_p99_more_ms"] <= MORE_MS_MAX
    found["met"] = small and found["polite_share_of_rate"] >= POLITE_SHARE_MIN
    return found


def run(
    *, pairs: int, seconds: float, rate: int, rollover_s: int, bound_s: float
) -> dict[str, Any]:
    """Start servers, measure, and stop them."""
    options = StackOptions(
        bookie_conf={"prometheusStatsLatencyRolloverSeconds": str(rollover_s)},
        ledger_megabytes_max=32,
    )
    with (
        tempfile.TemporaryDirectory(prefix="polite-") as directory,
        DevStack.start(Path(directory) / "stack", options) as dev,
    ):
        spec = TopicSpec(topic=FILL, messages=2000, payload_bytes=100 * 1024)
        produce(dev.endpoints, spec)
        seal(dev.endpoints, spec)
        turns = measure(dev, pairs=pairs, seconds=seconds, rate=rate, bound_s=bound_s)
    facts = {
        "seconds": seconds,
        "warm_s": WARM_S,
        "rate": rate,
        "bound_ms": 1000 * bound_s,
        "rollover_s": rollover_s,
        "load": os.getloadavg(),
    }
    return {**facts, **summary(turns), "turns": [asdict(turn) for turn in turns]}


def _turn(dev: DevStack, number: int, way: str, seconds: float, rate: int, bound_s: float) -> Turn:
    bound = f"{bound_s:f}" if way == "polite" else "0"
    environment = {**dev.environment(), "TIERKEEPER_BUDGET_ADD_LATENCY_MAX_S": bound}
    log = dev.directory / "polite.log"

    def started(*arguments: str) -> Child:
        return Child("benchmarks.polite", *arguments, environment=environment, log=log)

    with ExitStack() as exits:
        backfill = None
        if way != "alone":
            backfill = exits.enter_context(started("--backfill", str(seconds)))
            backfill.line()  # it has its plans and begins
        how = ("--seconds", str(seconds), "--rate", str(rate))
        producer = exits.enter_context(started("--producer", dev.endpoints.service_url, *how))
        wait_s = WARM_S + seconds + _MORE_S
        lags = json.loads(producer.line(wait_s))
        copied = json.loads(backfill.line(wait_s)) if backfill else {"rate": 0.0}
    told = [read_add_latency(page).p99_s or 0.0 for page in dev.endpoints.bookie_http.values()]
    return Turn(
        round=number,
        way=way,
        p50_ms=1000 * lags[len(lags) // 2],
        p99_ms=1000 * lags[int(len(lags) * 0.99)],
        messages=len(lags),
        backfill_bytes_per_s=copied["rate"],
        bookie_p99_ms=1000 * max(told, default=0.0),
    )


def _produce_live(url: str, seconds: float, rate: int) -> list[float]:
    """Seconds from when each message was due to its acknowledgement, ascending."""
    import pulsar

    quiet = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)  # it logs where we answer
    client = pulsar.Client(url, logger=quiet)
    producer = client.create_producer(LIVE, batching_enabled=False, max_pending_messages=0)
    producer.send(_PAYLOAD)
    lags: list[float] = []
    done = Semaphore(0)
    warm, count = int(WARM_S * rate), int((WARM_S + seconds) * rate)
    began = time.perf_counter()
    for i in range(count):
        due = began + i / rate
        time.sleep(max(0.0, due - time.perf_counter()))

        def acknowledged(_result: Any, _id: Any, due: float = due, kept: bool = i >= warm) -> None:
            if kept:
                lags.append(time.perf_counter() - due)
            done.release()

        producer.send_async(_PAYLOAD, acknowledged)
    for _ in range(count):
        done.acquire(timeout=60)
    client.close()
    return sorted(lags)


def _backfill(seconds: float) -> float:
    """Bytes a second that copy tasks sent."""
    settings = load_settings().settings
    with open_stack(settings) as stack:
        ml_name = parse_topic_name(with_scheme(FILL)).managed_ledger_name
        plans = [
            plan
            for one in sealed_ledgers(stack, [ml_name])
            if isinstance(plan := plan_ledger(stack, one), LedgerPlan)
        ]
        runner = LocalRunner(settings, make_worker=lambda: Worker(settings))
        print("begun", flush=True)
        began, done = time.perf_counter(), 0

        def count(row: Any) -> None:
            nonlocal done
            if row.error:
                raise SystemExit(row.error)
            if WARM_S <= time.perf_counter() - began < WARM_S + seconds:
                done += row.block_length

        for pair in itertools.cycle(_twos(plans)):
            if time.perf_counter() - began >= WARM_S + seconds:
                return done / seconds
            tasks = [_task(stack, plan) for plan in pair]
            try:
                runner.run(tasks, progress=count)
            finally:
                for task in tasks:
                    if task.upload_id is not None:
                        stack.objects.abort_upload(task.data_key, task.upload_id)
    raise SystemExit("nothing to copy")


def _twos(plans: list[LedgerPlan]) -> list[list[LedgerPlan]]:
    return [plans[i : i + 2] for i in range(0, len(plans), 2)]


def _task(stack: Stack, plan: LedgerPlan) -> BlockTask:
    key = f"bench-polite/{uuid4()}"
    upload_id = stack.objects.create_upload(key, metadata={}) if len(plan.blocks) > 1 else None
    return BlockTask(
        kind=TaskKind.COPY,
        attempt=str(uuid4()),
        source=plan.source,
        data_key=key,
        blocks=tuple(plan.blocks),
        upload_id=upload_id,
        user_metadata={},
        topic=plan.ml_name,
        budget_key=stack.budget_key,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=100, help="messages of 1 KiB per second")
    parser.add_argument("--rollover", type=int, default=60, help="seconds of a bookie's window")
    parser.add_argument("--bound", type=float, default=0.003, help="seconds; 3 ms")
    parser.add_argument("--short", action="store_true", help="3 rounds of 10 s, figures of 5 s")
    parser.add_argument("--accept", action="store_true", help=f"keep it in {RESULTS.name}")
    parser.add_argument("--producer", help=argparse.SUPPRESS)
    parser.add_argument("--backfill", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.producer:
        print(
            json.dumps(_produce_live(options.producer, options.seconds, options.rate)), flush=True
        )
        os._exit(0)  # the client's threads are of no use any more
    if options.backfill:
        print(json.dumps({"rate": _backfill(options.backfill)}))
        return
    if options.short:
        found = run(pairs=3, seconds=10.0, rate=options.rate, rollover_s=5, bound_s=options.bound)
    else:
        found = run(
            pairs=options.pairs,
            seconds=options.seconds,
            rate=options.rate,
            rollover_s=options.rollover,
            bound_s=options.bound,
        )
    text = json.dumps(found, indent=1)
    if options.accept:
        RESULTS.write_text(text + "\n")
    print(text)
    raise SystemExit(0 if found["met"] else 1)


if __name__ == "__main__":
    main()
