"""Alert rules, counters and dashboard on a real Prometheus that scrapes `tierkeeper metrics serve`.

    python -m tests.support.metrics_check [--result build/metrics.json]

Owns: promtool proves each rule's `for` as shipped, and notices each that is a minute longer or
shorter. Under a copy with `for: 5s` a real condition fires and clears each rule. Counters tell what
the steps did, and go on where they were when the process starts again. Every query of the dashboard
gets data.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.support.alert_rules import (
    LOWERED,
    SHIPPED,
    alerting,
    minutes_of,
    promtool_tests,
    shipped,
    shortened,
)
from tests.support.cli_shell import Shell
from tests.support.dashboard import board, queries, variables
from tests.support.metrics_scene import TURNS, Scene, metrics_scene, spec_of
from tests.support.prometheus_server import (
    Programs,
    Prometheus,
    fetched_programs,
    running_prometheus,
)
from tests.support.spark_cluster import free_port
from tests.support.tiered_cluster import post_all, wait_until

DONE: Final = ("copied", "verified", "published", "released")
_BUDGET: Final = "1GiB/s"
_PATIENCE_S: Final = 600.0
"""Of few samples a slope is not sure: a survey takes longer than the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSeen:
    """Seconds from the turn that made it true, or false, until Prometheus said so."""

    rule: str
    shipped_for: str
    promtool: str
    lowered: str | None
    fired: bool
    fired_after_s: float
    cleared: bool
    cleared_after_s: float


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--result", type=Path, default=Path("build/metrics.json"))
    result: Path = parser.parse_args(arguments).result
    began, programs, port = time.monotonic(), fetched_programs(), free_port()
    result.unlink(missing_ok=True)  # of another run
    with tempfile.TemporaryDirectory(prefix="tierkeeper-metrics-") as name:
        folder = Path(name)
        prove_times(programs, folder)
        with metrics_scene(folder, port) as scene:
            scene.first_lag()
            scene.serve()
            target = f"127.0.0.1:{port}"
            with running_prometheus(
                programs, folder, target=target, rules=shortened(shipped())
            ) as prometheus:
                rules = [asdict(one) for one in watch_rules(scene, prometheus)]
                counters = watch_counters(scene, prometheus)
                shown = watch_board(prometheus)
    document = {
        "prometheus": programs.version,
        "rules": rules,
        "counters": counters,
        "queries": shown,
        "seconds": round(time.monotonic() - began),
    }
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    say(f"{len(rules)} rules fired and cleared, {len(shown)} queries have data: {result}")
    return 0


def say(line: str) -> None:
    sys.stderr.write(line + "\n")


def prove_times(programs: Programs, folder: Path) -> None:
    """By promtool, and that it notices a rule that waits a minute longer or less."""
    wrong = programs.test_rules(promtool_tests(str(SHIPPED), shipped()), folder)
    assert wrong is None, wrong
    path = folder / "changed.yml"
    for number, rule in enumerate(alerting(shipped())):
        name = rule["alert"]
        tests = promtool_tests(str(path), shipped(), of_time=name)
        for other in (0, -1, 1):
            changed = shipped()
            minutes = minutes_of(rule) + other
            [*alerting(changed)][number]["for"] = f"{minutes}m"
            path.write_text(json.dumps(changed), encoding="utf-8")
            wrong = programs.test_rules(tests, folder)
            assert (wrong is not None) == bool(other), f"{name}, for: {minutes}m: {wrong}"
    say("promtool proves each rule's time")


def watch_rules(scene: Scene, prometheus: Prometheus) -> Iterator[RuleSeen]:
    """Each rule fires by its turn and clears by another."""
    fired: dict[str, float] = {}
    cleared: dict[str, float] = {}
    for turn in TURNS:
        before = {name for name in turn.fires if prometheus.is_firing(name)}
        assert not before, f"{sorted(before)} fire before {turn.act.__name__}"
        turn.act(scene)
        began = time.monotonic()
        for name in turn.fires:
            wait_until(partial(prometheus.is_firing, name), f"{name} fires", timeout_s=_PATIENCE_S)
            fired[name] = time.monotonic() - began
            say(f"{name} fired")
        for name in turn.clears:
            wait_until(
                partial(prometheus.is_quiet, name),
                f"{name} clears",
                timeout_s=_PATIENCE_S,
            )
            cleared[name] = time.monotonic() - began
            say(f"{name} cleared")
    for rule in alerting(shipped()):
        name = rule["alert"]
        yield RuleSeen(
            rule=name,
            shipped_for=rule["for"],
            promtool="proven",
            lowered=" to ".join(LOWERED[name]) if name in LOWERED else None,
            fired=name in fired,
            fired_after_s=round(fired[name], 1),
            cleared=name in cleared,
            cleared_after_s=round(cleared[name], 1),
        )


def watch_counters(scene: Scene, prometheus: Prometheus) -> Mapping[str, float]:
    """What they tell is what the steps did; a process that starts again tells no less."""
    shell = Shell(scene.running, scene.folder)
    budgets = ("--upload", _BUDGET, "--bookie-read", _BUDGET)
    shell("budget", "set", *budgets)
    scene.steps.book.close_page()
    shell("catalogue", "post")
    shell("catalogue", "prove")
    wait_until(lambda: prometheus.query("tierkeeper_copied_ledgers_total"), "counters are told")
    before = _counters(prometheus)
    assert before["failed_runs"] == 1, before  # the run whose replicas differed
    assert before["copied_ledgers"] > before["published_ledgers"] > 0, before
    size = _work(scene, shell)
    wait_until(
        lambda: _counters(prometheus)["released_ledgers"] == before["released_ledgers"] + 1,
        "the next ledger is counted",
    )
    after = _counters(prometheus)
    for name in DONE:
        assert after[f"{name}_ledgers"] == before[f"{name}_ledgers"] + 1, (before, after)
        assert after[f"{name}_bytes"] == before[f"{name}_bytes"] + size, (before, after)
    scene.end_server()
    again = scene.serve().scrape()
    for name in DONE:
        for unit in ("ledgers", "bytes"):
            told = again[f"tierkeeper_{name}_{unit}_total",]
            assert told >= after[f"{name}_{unit}"], (name, unit, told, after)
    _leave_lags(scene, shell)
    say("counters tell what was done, and start again where they were")
    return after


def _work(scene: Scene, shell: Shell) -> int:
    """A ledger from sealed to released; its bytes."""
    ledger_id = scene.closed("counted")
    size = scene.cluster.ledger(ledger_id).length
    scene.cluster.offload([ledger_id])
    scene.cluster.release(spec_of("counted"), [ledger_id])
    post_all(scene.steps)
    shell("catalogue", "post")
    return size


def _leave_lags(scene: Scene, shell: Shell) -> None:
    """A ledger that waits and one that is stuck, for panels of topics."""
    scene.closed("waiting")
    scene.quarantine("stuck")
    shell("catalogue", "post")


def _counters(prometheus: Prometheus) -> dict[str, float]:
    names = [f"{name}_{unit}" for name in DONE for unit in ("ledgers", "bytes")]
    found = {name: prometheus.value(f"tierkeeper_{name}_total") for name in names}
    found["failed_runs"] = prometheus.value('tierkeeper_failed_runs_total{how="failed"}')
    return {name: value for name, value in found.items() if value is not None}


def watch_board(prometheus: Prometheus) -> list[dict[str, Any]]:
    """Every query and every variable gets data, once there is some."""
    found = board()
    for name, metric, label in variables(found):
        assert prometheus.label_values(metric, label), f"variable {name} has no value"
    shown = []
    for one in queries(found):
        wait_until(
            partial(prometheus.query, one.expression),
            f"{one.panel} {one.ref}: {one.expression}",
        )
        series = len(prometheus.query(one.expression))
        shown.append({"panel": one.panel, "query": one.expression, "series": series})
    return shown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
