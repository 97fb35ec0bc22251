"""Offload the same data twice on one stack: by the broker itself, and by tierkeeper.

    .venv/bin/python -m benchmarks.offload_vs_broker [--megabytes 200] [--rounds 3]

Ratios side by side in one run: the two take turns on topics of equal content, so that a change of the
machine's speed hits both. The broker copies and does not check; tierkeeper's figure is given for the
copy alone and for the copy with the full read-back. CPU is of the process that does the work (the
broker, or this one) and of the bookies; MB are payload bytes / 1e6.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import requests

from resources.devstack.options import StackOptions
from resources.devstack.stack import DevStack
from resources.devstack.traffic import KIB, TopicSpec, consume_all, produce, seal
from tiering_assets.steps.offload import copy_ledgers
from tiering_assets.steps.plan import LedgerPlan, plan_ledger
from tiering_assets.steps.stack import Stack, open_stack
from tiering_assets.steps.survey import sealed_ledgers
from tiering_assets.steps.verify import ToVerify, verify_attempts

KINDS = {
    "100 KiB": {"payload_bytes": 100 * KIB},
    "10 KiB": {"payload_bytes": 10 * KIB},
    "1 KiB": {"payload_bytes": KIB},
    "100 B batched": {"payload_bytes": 100, "batched": True},
}


@dataclass(frozen=True, slots=True)
class Figure:
    mb_per_s: float
    worker_cpu_s_per_gb: float
    bookie_cpu_s_per_gb: float


class Meter:
    """Wall and CPU seconds of some processes over a stretch of work."""

    def __init__(self, worker: psutil.Process, bookies: list[psutil.Process]) -> None:
        self._worker, self._bookies = worker, bookies

    def __enter__(self) -> Meter:
        self._began = (time.perf_counter(), _cpu([self._worker]), _cpu(self._bookies))
        return self

    def __exit__(self, *_error: object) -> None:
        wall, worker, bookies = self._began
        self.wall_s = time.perf_counter() - wall
        self.worker_s = _cpu([self._worker]) - worker
        self.bookie_s = _cpu(self._bookies) - bookies

    def figure(self, payload_bytes: int) -> Figure:
        gb = payload_bytes / 1e9
        return Figure(payload_bytes / 1e6 / self.wall_s, self.worker_s / gb, self.bookie_s / gb)


def _cpu(processes: list[psutil.Process]) -> float:
    return sum(t.user + t.system for t in (p.cpu_times() for p in processes))


def offload_by_broker(dev: DevStack, spec: TopicSpec, meter: Meter, payload: int) -> Figure:
    """Ask the broker to offload everything but its open ledger, and wait for SUCCESS."""
    base = f"{dev.endpoints.admin_url}/admin/v2/persistent/{spec.topic}"
    ledgers = requests.get(f"{base}/internalStats", timeout=30).json()["ledgers"]
    last = {"ledgerId": ledgers[-1]["ledgerId"], "entryId": 0, "partitionIndex": -1}
    with meter:
        requests.put(f"{base}/offload", json=last, timeout=30).raise_for_status()
        while (said := requests.get(f"{base}/offload", timeout=30).json())["status"] == "RUNNING":
            time.sleep(0.02)
    if said["status"] != "SUCCESS":
        raise RuntimeError(f"the broker's offload of {spec.topic} ended with {said}")
    return meter.figure(payload)


def offload_by_us(stack: Stack, ml_name: str, meter: Meter, payload: int) -> tuple[Figure, Figure]:
    """Copy, then copy and read-back together, of all sealed ledgers of a topic."""
    ids = [view.ledger_id for view in sealed_ledgers(stack, [ml_name])]
    whole = Meter(meter._worker, meter._bookies)
    with whole:
        with meter:
            plans = [p for i in ids if isinstance(p := plan_ledger(stack, i), LedgerPlan)]
            copied = copy_ledgers(stack, plans)
        items = []
        for result in copied.values():
            if isinstance(result, Exception):
                raise result
            items.append(
                ToVerify(plan=result.plan, attempt=result.attempt, source_rows=result.rows)
            )
        for proof in verify_attempts(stack, items).values():
            if isinstance(proof, Exception):
                raise proof
    return meter.figure(payload), whole.figure(payload)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        DevStack.start(
            Path(directory) / "stack",
            StackOptions(ledger_entries_max=500_000, ledger_megabytes_max=100),
        ) as dev,
        open_stack(dev.settings()) as stack,
    ):
        processes = {s.name: psutil.Process(s.pid) for s in dev.status() if s.pid}
        bookies = [p for name, p in processes.items() if name.startswith("bookie")]
        print(f"{'data':15} {'who':24} {'MB/s':>7} {'CPU s/GB':>9} {'bookies':>8}  ratio of MB/s")
        for kind, shape in KINDS.items():
            rows: dict[str, list[Figure]] = {"broker": [], "copy": [], "copy + read-back": []}
            for number in range(options.rounds):
                specs = [
                    TopicSpec(
                        topic=f"public/default/{kind.replace(' ', '')}-{number}-{who}",
                        messages=options.megabytes * 1_000_000 // int(shape["payload_bytes"]),
                        **shape,  # type: ignore[arg-type]
                    )
                    for who in ("broker", "ours")
                ]
                for spec in specs:
                    produce(dev.endpoints, spec, timeout_s=600)
                    seal(dev.endpoints, spec)
                    consume_all(dev.endpoints, spec, check=False)
                payload = specs[0].messages * specs[0].payload_bytes
                rows["broker"].append(
                    offload_by_broker(dev, specs[0], Meter(processes["broker"], bookies), payload)
                )
                tenant, namespace, name = specs[1].topic.split("/")
                copy, whole = offload_by_us(
                    stack,
                    f"{tenant}/{namespace}/persistent/{name}",
                    Meter(psutil.Process(), bookies),
                    payload,
                )
                rows["copy"].append(copy)
                rows["copy + read-back"].append(whole)
            base = statistics.median(f.mb_per_s for f in rows["broker"])
            for who, figures in rows.items():
                speed = statistics.median(f.mb_per_s for f in figures)
                cpu = statistics.median(f.worker_cpu_s_per_gb for f in figures)
                served = statistics.median(f.bookie_cpu_s_per_gb for f in figures)
                print(
                    f"{kind:15} {who:24} {speed:7.0f} {cpu:9.1f} {served:8.1f}  {speed / base:.2f}"
                )


if __name__ == "__main__":
    main()
