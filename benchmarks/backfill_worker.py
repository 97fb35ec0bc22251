"""A process that copies and verifies one ledger by so many tasks at a time; backfill.py asks it.

    python -m benchmarks.backfill_worker TASKS     a topic's name a line in, one answer a line out

Imports nothing of this package: it is also run within an earlier commit's tree, whose runner may
have one task at a time only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tiering_assets.automation.choices import sealed_ledgers
from tiering_assets.copy.offload import NotCopied, copy_ledgers
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.ledger.plan import LedgerPlan, plan_ledger
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.settings_sources import load_settings
from tiering_assets.tasks.runner import LocalRunner
from tiering_assets.verify.verify import ToVerify, verify_attempts


def work(stack: Stack, ml_name: str) -> dict[str, Any]:
    """Copy and verify every sealed ledger of a topic."""
    began, used = time.perf_counter(), time.process_time()
    plans = [
        plan
        for ledger_id in sealed_ledgers(stack, [ml_name])
        if isinstance(plan := plan_ledger(stack, ledger_id), LedgerPlan)
    ]
    items = []
    for result in copy_ledgers(stack, plans).values():
        if isinstance(result, NotCopied):
            raise result.error
        items.append(ToVerify(plan=result.plan, attempt=result.attempt, source_rows=result.rows))
    copied_s = time.perf_counter() - began
    for proof in verify_attempts(stack, items).values():
        if isinstance(proof, TierkeeperError):
            raise proof
    return {
        "copy_s": copied_s,
        "seconds": time.perf_counter() - began,
        "cpu_s": time.process_time() - used,
        "keys": [item.attempt.record.data_key for item in items],
        "bytes": sum(block.payload_bytes for plan in plans for block in plan.blocks),
    }


@contextmanager
def opened(tasks: int) -> Iterator[Stack]:
    settings = load_settings({}).settings
    more: dict[str, Any] = {"at_once": tasks} if tasks else {}
    with open_stack(settings, runner=LocalRunner(settings, **more)) as stack:
        yield stack


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    with opened(int(sys.argv[1])) as stack:
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            try:
                answer = work(stack, json.loads(line)["ml_name"])
            except Exception as error:  # noqa: BLE001  the edge of this process: told, and asked on
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
