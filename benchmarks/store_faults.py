"""Copy and read back the same ledgers through an S3 proxy, with and without struck requests.

    .venv/bin/python -m benchmarks.store_faults [--percent 5] [--megabytes 150] [--rounds 4]

Side by side in one run: clean and struck rounds take turns, and which of the two begins alternates,
so that a change of the machine's speed hits both. The faults are those of tests/support/s3_chaos.py
in equal shares: 503, 500, resets before and after the server did it, answers that stall or break
off. Each kind of round has the same proxy in a process of its own. Settings are the defaults, one
task after the other (Spark's workers would hide each other's waits). Writes
build/store-faults.json; MB are payload bytes / 1e6.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from tests.support.http_proxy import HttpProxy
from tests.support.s3_chaos import Chaos
from tiering_assets.automation.choices import sealed_ledgers
from tiering_assets.copy.offload import NotCopied, copy_ledgers
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.ledger.plan import LedgerPlan, plan_ledger
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import KIB, TopicSpec, produce, seal
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.verify.verify import ToVerify, verify_attempts

MIB = 1024 * 1024
RESULT = Path("build/store-faults.json")
SEED = 11


def offload(stack: Stack, ledger_ids: Sequence[int]) -> float:
    """Seconds to copy the ledgers anew and to read every byte back."""
    began = time.perf_counter()
    plans = [p for i in ledger_ids if isinstance(p := plan_ledger(stack, i), LedgerPlan)]
    items = []
    for result in copy_ledgers(stack, plans).values():
        if isinstance(result, NotCopied):
            raise result.error
        items.append(ToVerify(plan=result.plan, attempt=result.attempt, source_rows=result.rows))
    for proof in verify_attempts(stack, items).values():
        if isinstance(proof, TierkeeperError):
            raise proof
    if len(items) != len(ledger_ids):
        raise RuntimeError(f"copied {len(items)} of ledgers {list(ledger_ids)}")
    return time.perf_counter() - began


def serve(upstream: str, rate: float, stall_s: float, pipe: Connection) -> None:
    """Be a proxy until told to end; say the address first, and what was struck last."""
    rule = Chaos(rate=rate, seed=SEED)
    with HttpProxy(upstream, rule, stall_s=stall_s) as proxy:
        pipe.send(proxy.url)
        pipe.recv()
    pipe.send((rule.seen, {doing.name: count for doing, count in rule.struck.items()}))


class Proxy:
    """An S3 proxy in a process of its own: it must not share the interpreter with the worker."""

    def __init__(self, upstream: str, rate: float, stall_s: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(upstream, rate, stall_s, theirs), daemon=True
        )
        self._process.start()
        self.url: str = self._pipe.recv()

    def end(self) -> tuple[int, dict[str, int]]:
        """Requests seen, and how many of them were struck in which way."""
        self._pipe.send(None)
        told: tuple[int, dict[str, int]] = self._pipe.recv()
        self._process.join(10)
        return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--percent", type=float, default=5.0)
    parser.add_argument("--megabytes", type=int, default=150)
    parser.add_argument("--block-mib", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--stall-s", type=float, default=1.0)
    parser.add_argument("--stack", type=Path, help="use this running stack")
    options = parser.parse_args()
    spec = TopicSpec(
        topic=f"public/default/faults-{time.time_ns()}",
        messages=options.megabytes * 1_000_000 // (100 * KIB),
        payload_bytes=100 * KIB,
    )
    payload_mb = spec.messages * spec.payload_bytes / 1e6
    with ExitStack() as exits:
        if options.stack is None:
            directory = Path(exits.enter_context(tempfile.TemporaryDirectory())) / "stack"
            wanted = StackOptions(ledger_entries_max=500_000, ledger_megabytes_max=100)
            dev = exits.enter_context(DevStack.start(directory, wanted))
        else:
            dev = DevStack.open(options.stack)
        rates = {"clean": 0.0, "struck": options.percent / 100}
        proxies = {
            kind: Proxy(dev.endpoints.s3_endpoint, rate, options.stall_s)
            for kind, rate in rates.items()
        }
        plain = dev.settings()
        stacks = {
            kind: exits.enter_context(
                open_stack(
                    replace(
                        plain,
                        store=replace(plain.store, endpoint=proxy.url),
                        offload=replace(plain.offload, block_bytes=options.block_mib * MIB),
                    )
                )
            )
            for kind, proxy in proxies.items()
        }
        produce(dev.endpoints, spec, timeout_s=600)
        seal(dev.endpoints, spec)
        tenant, namespace, name = spec.topic.split("/")
        ml_name = f"{tenant}/{namespace}/persistent/{name}"
        ids = sealed_ledgers(stacks["clean"], [ml_name])
        offload(stacks["clean"], ids)  # what the first of all rounds pays for, neither pays for
        speeds: dict[str, list[float]] = {kind: [] for kind in rates}
        for number in range(options.rounds):
            for kind in sorted(rates, reverse=bool(number % 2)):
                speeds[kind].append(payload_mb / offload(stacks[kind], ids))
                print(f"round {number + 1} {kind:7} {speeds[kind][-1]:7.1f} MB/s", flush=True)
        told = {kind: proxy.end() for kind, proxy in proxies.items()}
    medians = {kind: statistics.median(found) for kind, found in speeds.items()}
    result = {
        "percent": options.percent,
        "megabytes": payload_mb,
        "block_mib": options.block_mib,
        "stall_s": options.stall_s,
        "ledgers": len(ids),
        "requests": {kind: seen for kind, (seen, _struck) in told.items()},
        "struck": told["struck"][1],
        "mb_per_s": speeds,
        "ratio": medians["struck"] / medians["clean"],
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{options.percent:g} % struck: {result['ratio']:.2f} of clean; see {RESULT}")


if __name__ == "__main__":
    main()
