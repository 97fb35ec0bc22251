"""When a backfill says that it will be finished, and when it is: 200 small ledgers, killed at 40 %.

    .venv/bin/python -m benchmarks.backfill_finish [--ledgers 200]

Starts real servers and fills a topic with ledgers of sizes over three decades, to 80 MB. The
command of the product offloads it, is killed when 40 % of the bytes are done, and is given again.
Each run's first finish is compared with its own end. Exit 1 if one is off by more than 15 %.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.agents import ROOT
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import TopicSpec, produce, seal

TOPIC = "public/default/backfill-finish"
ENTRIES = 40
KILL_AT = 0.4
OFF_MAX = 0.15
CLAIM_S = 15.0
RESULTS = ROOT / "benchmarks" / "results" / "backfill-finish.json"
_COMMAND = "from tiering_assets.cli.main import main; main()"


def fill(dev: DevStack, ledgers: int, largest: float) -> None:
    """A ledger is full after ENTRIES entries, so each spec makes one."""
    source = random.Random(11)
    specs = [
        TopicSpec(
            topic=TOPIC,
            messages=ENTRIES,
            payload_bytes=int(10 ** source.uniform(largest - 3, largest)),
            seed=number,
        )
        for number in range(ledgers)
    ]
    for spec in specs:
        produce(dev.endpoints, spec)
    seal(dev.endpoints, specs[-1])


def offload(dev: DevStack, *, kill_at: float | None) -> dict[str, Any]:
    """One run of the command; its first finish and its end, in seconds from its first line."""
    environment = {
        **os.environ,
        **dev.environment(),
        "TIERKEEPER_OFFLOAD_CLAIM_TTL_S": str(CLAIM_S),
    }
    command = ["topic", "offload", TOPIC, "--keep-bytes", "0", "--wait", "--execute"]
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, *command, "--log-format", "json", "-v"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    began = time.perf_counter()
    told: dict[str, Any] = {"said": []}
    last: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        found = _backfill_of(line)
        now = time.perf_counter() - began
        last = [*last[-9:], line]
        if found is None:
            continue
        told["said"].append([round(now, 1), found["bytes_done"], found["seconds_left"]])
        if found["seconds_left"] is not None and "finish_s" not in told:
            told["finish_s"] = now + found["seconds_left"]
            told["told_after_s"] = now
            told["of_bytes"] = found["bytes_done"] / found["bytes"]
        if kill_at is not None and found["bytes_done"] >= kill_at * found["bytes"]:
            process.kill()
            break
    process.stderr.close()
    told["code"] = process.wait(timeout=600)
    told["end_s"] = time.perf_counter() - began
    if "finish_s" not in told:
        raise SystemExit(f"no finish was told, exit code {told['code']}: {''.join(last)}")
    return told


def _backfill_of(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    inner = found.get("backfill") or found.get("event", {}).get("backfill")
    return inner if isinstance(inner, dict) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--ledgers", type=int, default=200)
    parser.add_argument("--largest", type=float, default=6.3, help="power of ten of a message")
    parser.add_argument("--accept", action="store_true", help=f"keep it in {RESULTS.name}")
    options = parser.parse_args()
    stack = StackOptions(ledger_entries_max=ENTRIES, ledger_megabytes_max=128)
    with (
        tempfile.TemporaryDirectory(prefix="finish-") as directory,
        DevStack.start(Path(directory) / "stack", stack) as dev,
    ):
        fill(dev, options.ledgers, options.largest)
        first = offload(dev, kill_at=KILL_AT)
        time.sleep(CLAIM_S)
        second = offload(dev, kill_at=None)
    whole = first["end_s"] + second["end_s"]
    off = {
        "first_run": first["finish_s"] / whole - 1,
        "after_the_kill": second["finish_s"] / second["end_s"] - 1,
    }
    met = second["code"] == 0 and all(abs(one) <= OFF_MAX for one in off.values())
    found = {"ledgers": options.ledgers, "first": first, "second": second, "off": off, "met": met}
    print(json.dumps(found, indent=1))
    if options.accept:
        del first["said"], second["said"]
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    raise SystemExit(0 if met else 1)


if __name__ == "__main__":
    main()
