"""Kill a process at every crash point on real servers, run it again, and audit what is left.

Owns: per case one SIGKILL, an audit in mid-air, the same command again until it ends (three times
at most), the ledger brought to its release, an audit of the end. A point that is not reached, or
has no case, fails the run as an anomaly does. Result: build/crash-matrix.json. `make crash-matrix`.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.support.crash_audit import at_end, at_once, state_of
from tests.support.crash_cases import CASES, Case
from tests.support.crash_driver import CrashDriver
from tests.support.crash_scene import Scene, Shop
from tests.support.crash_subject import Subject, Workshop
from tests.support.fault_lab import Lab
from tests.support.http_proxy import HttpProxy
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.ground.effects import POINTS
from tiering_assets.ground.stack import Stack
from tiering_assets.resources.devstack.endpoints import environment_of
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.errors import TierkeeperError

SCHEMA = "tierkeeper/crash-matrix/1"
RESULT = Path("build/crash-matrix.json")
RUNS_MAX = 3
IN_FLIGHT = 1  # blocks that the local runner has on the way at any time


@dataclass(kw_only=True)
class Result:
    """What one kill came to."""

    point: str
    case: str
    kills: int = 0
    anomalies: list[str] = field(default_factory=list)
    parts_resent: int = 0
    seconds: float = 0.0


def run_case(shop: Shop, case: Case) -> Result:
    """Kill, audit, run again, bring to the end, audit."""
    began = time.monotonic()
    result = Result(point=case.point, case=case.name)
    try:
        result.anomalies += _run(shop, case, result)
    except Exception as error:  # noqa: BLE001  one case's trouble is its own
        result.anomalies.append(f"{type(error).__name__}: {error}")
    finally:
        shop.work.obey(None)
    result.seconds = round(time.monotonic() - began, 1)
    return result


def _run(shop: Shop, case: Case, result: Result) -> Iterator[str]:
    work = shop.work
    scene = case.prepare(shop)
    environment, before = environment_of(scene.settings), work.sent(scene.subject)
    work.obey(scene.rule)
    ended = shop.driver.run(scene.step, environment, crash_at=case.at, **scene.arguments)
    work.obey(None)
    if ended != -signal.SIGKILL:
        yield f"not reached: {scene.step} ended with {ended}"
        return
    result.kills = 1
    with work.open() as stack:
        yield from at_once(stack, scene)
        if not scene.blind:
            yield from readable(work.lab, scene.subject, reloaded=False)
        yield from _again(shop, scene, environment, stack)
        result.parts_resent = max(0, work.sent(scene.subject) - before - scene.sends)
        if result.parts_resent > IN_FLIGHT:
            yield f"{result.parts_resent} blocks were sent again, {IN_FLIGHT} was on the way"
        scene.repair()
        found = [*finish(work.lab, stack, scene)]
        yield from found
        if not found:
            _forget(work.lab, stack, scene.subject)


def _forget(lab: Lab, stack: Stack, subject: Subject) -> None:
    """A sound case leaves nothing, so that clean-up need not look at it in all later ones."""
    lab.admin("DELETE", f"/persistent/{subject.topic.spec.topic}?force=true")
    for key in state_of(stack, subject):
        if key != "node":
            stack.objects.delete(key)


def _again(shop: Shop, scene: Scene, environment: dict[str, str], stack: Stack) -> Iterator[str]:
    ended = 0
    for _ in range(RUNS_MAX):
        shop.work.lab.older(stack)  # the dead process's claim has run out
        ended = shop.driver.run(scene.step, environment, **scene.arguments)
        if ended in scene.ends_with:
            return
    yield f"I12: {scene.step}, run again {RUNS_MAX} times, ends with {ended}"


def finish(lab: Lab, stack: Stack, scene: Scene) -> Iterator[str]:
    """Publish, release and sweep whatever is left to do, twice; then audit the end."""
    subject = scene.subject
    offload_batch(stack, subject.ledger_ids)
    lab.older(stack)
    _to_the_end(stack, subject)
    state = state_of(stack, subject)
    _to_the_end(stack, subject)
    again = state_of(stack, subject)
    if again != state:
        moved = sorted(k for k in {*state, *again} if state.get(k) != again.get(k))
        yield f"I12: a finished topic, run again, changed {moved}"
    yield from at_end(stack, scene, lab.settings.store)
    yield from readable(lab, subject, reloaded=True)


def _to_the_end(stack: Stack, subject: Subject) -> None:
    offload_batch(stack, subject.ledger_ids)
    release_topic(stack, subject.ml_name, subject.ledger_ids)
    clean_up(stack, execute=True)


def readable(lab: Lab, subject: Subject, *, reloaded: bool) -> Iterator[str]:
    """Every message through the broker, byte for byte."""
    try:
        lab.readable(subject.topic, reloaded=reloaded)
    except TierkeeperError as error:
        yield f"I1: through the broker: {error}"


def summary(
    results: Sequence[Result], processes: Sequence[Result], seconds: float
) -> dict[str, Any]:
    """The JSON of one run. `points` are rows by name, `cases` each kill with its anomalies."""
    points = {
        name: {"name": name, "kills": 0, "anomalies": 0, "parts_resent": 0} for name in POINTS
    }
    for one in results:
        row: dict[str, Any] = points[one.point]
        row["kills"] += one.kills
        row["anomalies"] += len(one.anomalies)
        row["parts_resent"] += one.parts_resent
    everything = [*results, *processes]
    return {
        "schema": SCHEMA,
        "points": [*points.values()],
        "processes": [
            {
                "name": one.point,
                "kills": one.kills,
                "anomalies": len(one.anomalies),
                "parts_resent": one.parts_resent,
            }
            for one in processes
        ],
        "cases": [asdict(one) for one in everything],
        "kills": sum(one.kills for one in everything),
        "anomalies": sum(len(one.anomalies) for one in everything),
        "parts_resent": sum(one.parts_resent for one in everything),
        "seconds": round(seconds, 1),
    }


def tell(number: int, of: int, one: Result) -> None:
    said = "; ".join(one.anomalies) or "sound"
    resent = f", {one.parts_resent} parts sent again" if one.parts_resent else ""
    sys.stderr.write(f"{number:3}/{of} {one.case}: {said}{resent} ({one.seconds:.1f} s)\n")


def main(arguments: list[str] | None = None) -> int:
    from tests.support.crash_processes import KINDS, run_kind

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", default="", help="only cases whose name holds this")
    parser.add_argument("--result", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended, too
    cases = [case for case in CASES if options.only in case.name]
    kinds = [kind for kind in KINDS if options.only in kind]
    of, began = len(cases) + len(kinds), time.monotonic()
    results: list[Result] = []
    processes: list[Result] = []
    with ExitStack() as opened:
        driver = opened.enter_context(CrashDriver())  # forks: before this process has threads
        directory = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        running = opened.enter_context(
            DevStack.start(directory / "stack", StackOptions(short_lived=True))
        )
        lab = Lab(running)
        proxy = opened.enter_context(HttpProxy(lab.endpoints.s3_endpoint))
        shop = Shop(Workshop(lab, proxy), driver, directory)
        for number, case in enumerate(cases, start=1):
            results.append(run_case(shop, case))
            tell(number, of, results[-1])
        for number, kind in enumerate(kinds, start=len(cases) + 1):
            processes.append(run_kind(shop, kind))
            tell(number, of, processes[-1])
    report = summary(results, processes, time.monotonic() - began)
    options.result.parent.mkdir(parents=True, exist_ok=True)
    options.result.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    missed = [] if options.only else [row["name"] for row in report["points"] if not row["kills"]]
    for name in missed:
        sys.stderr.write(f"{name}: nobody was killed there\n")
    sys.stderr.write(
        f"{report['kills']} kills, {report['anomalies']} anomalies, {report['parts_resent']} parts "
        f"sent again, {report['seconds']:.0f} s: {options.result}\n"
    )
    return 1 if missed or report["anomalies"] or any(not r.kills for r in processes) else 0


if __name__ == "__main__":
    sys.exit(main())
