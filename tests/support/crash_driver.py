"""Runs steps in child processes that may be killed at a crash point, without waiting for imports.

The parent imports the product and the slow libraries once, opens nothing and starts no thread. Each
request forks a child, which is told its crash point and runs one step with the request's settings.
A child that dies says nothing: the answer is its exit code, or minus the number of the signal that
ended it. Expectation suites have no effects outside the process; here they are judged without Great
Expectations, which is slow to import.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack


class CrashDriver:
    """The side of the tests: context manager around one parent process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.crash_driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=30)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def run(
        self, step: str, environment: dict[str, str], *, crash_at: str = "", **arguments: Any
    ) -> int:
        """Run one of the steps in a fresh child to its end; return how it ended."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the driver has no pipes")
        request = {
            "step": step,
            "environment": environment,
            "crash_at": crash_at,
            "arguments": arguments,
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the driver itself died")
        return int(answer)


def _run_step(request: dict[str, Any]) -> int:
    from tests.support.sim_judge import judge, judge_ledgers
    from tiering_assets.ground import effects
    from tiering_assets.ground.stack import open_stack
    from tiering_assets.resources.settings_sources import load_settings

    effects._wanted = effects._Countdown(request["crash_at"])
    with open_stack(load_settings(environ=request["environment"]).settings) as stack:
        judged = replace(stack, judge=judge, judge_ledgers=judge_ledgers)
        return _STEPS[request["step"]](judged, **request["arguments"])


def _offload(stack: Stack, ledger_ids: list[int]) -> int:
    from tiering_assets.batch.pipeline import offload_batch

    outcomes = offload_batch(stack, ledger_ids)
    return next((o.error.exit_code for o in outcomes if o.error is not None), 0)


def _release(stack: Stack, ml_name: str, ledger_ids: list[int]) -> int:
    from tests.support.topic_halves import release_topic
    from tiering_assets.release.work import Released

    results = release_topic(stack, ml_name, ledger_ids)
    return 0 if all(isinstance(r, Released) for r in results.values()) else 1


def _execute(stack: Stack, plan: str) -> int:
    from tiering_assets.batch.release_plan import execute_plan, read_plan
    from tiering_assets.release.work import Released

    outcomes = execute_plan(stack, read_plan(Path(plan))).outcomes
    return 0 if all(isinstance(o.result, Released) for o in outcomes) else 1


def _scrub(stack: Stack, ml_name: str) -> int:
    from tiering_assets.scrub.scrub import scrub

    scrub(stack, [ml_name], deep=True)
    return 0


def _sweep(stack: Stack) -> int:
    from tiering_assets.clean.clean_up import clean_up

    return 1 if clean_up(stack, execute=True).errors else 0


def _lift(stack: Stack, ledger_id: int) -> int:
    from tiering_assets.look.brakes.holds import lift_hold
    from tiering_assets.look.brakes.scopes import ledger_scope

    lift_hold(stack, ledger_scope(ledger_id), reason="the audit is over", author="ops")
    return 0


def _resume(stack: Stack, ml_name: str) -> int:
    from tiering_assets.look.brakes.pauses import resume
    from tiering_assets.look.brakes.scopes import Scope

    resume(stack, Scope("topic", ml_name), reason="the audit is over", author="ops")
    return 0


_STEPS: dict[str, Callable[..., int]] = {
    "offload": _offload,
    "release": _release,
    "execute": _execute,
    "scrub": _scrub,
    "sweep": _sweep,
    "lift": _lift,
    "resume": _resume,
}


_SHARED = (
    "boto3",
    "kazoo.client",
    "tiering_assets.resources.settings_sources",
    "tests.support.sim_judge",
    "tiering_assets.clean.clean_up",
    "tiering_assets.look.brakes.holds",
    "tiering_assets.look.brakes.pauses",
    "tiering_assets.batch.pipeline",
    "tiering_assets.batch.release_plan",
    "tiering_assets.scrub.scrub",
    "tiering_assets.ground.stack",
)


def _child(request: dict[str, Any]) -> int:
    from tiering_assets.resources.errors import TierkeeperError

    try:
        return _run_step(request)
    except TierkeeperError as error:
        return error.exit_code
    except Exception:  # noqa: BLE001  the edge of a process: told, and an exit code
        traceback.print_exc()
        return 99


def _serve() -> None:
    for name in _SHARED:
        import_module(name)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = _child(json.loads(line))
            sys.stderr.flush()
            os._exit(code)
        _pid, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
