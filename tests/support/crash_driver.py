"""Runs steps in child processes that may be killed at a crash point, without waiting for imports.

The parent imports the slow libraries (not the product) once, opens nothing and starts no thread.
Each request forks a child, which takes its settings from the request's environment, sets
TIERKEEPER_CRASH_AT, imports the product and runs one step. A child that dies says nothing: the answer is
its exit code, or minus the number of the signal that ended it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from types import TracebackType
from typing import Any, Self


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
    os.environ["TIERKEEPER_CRASH_AT"] = request["crash_at"]  # read when the steps are imported
    from resources.settings_sources import load_settings
    from tiering_assets.steps.pipeline import offload_batch
    from tiering_assets.steps.release import release_topic
    from tiering_assets.steps.scrub import scrub
    from tiering_assets.steps.stack import open_stack
    from tiering_assets.steps.sweep import sweep

    arguments = request["arguments"]
    with open_stack(load_settings(environ=request["environment"]).settings) as stack:
        if request["step"] == "offload":
            outcomes = offload_batch(stack, arguments["ledger_ids"])
            return next((o.error.exit_code for o in outcomes if o.error is not None), 0)
        if request["step"] == "release":
            results = release_topic(stack, arguments["ml_name"], arguments["ledger_ids"])
            return 0 if all(type(r).__name__ == "Released" for r in results.values()) else 1
        if request["step"] == "scrub":
            scrub(stack, [arguments["ml_name"]], deep=True)
            return 0
        sweep(stack, execute=True)
        return 0


def _child(request: dict[str, Any]) -> int:
    try:
        return _run_step(request)
    except Exception:  # noqa: BLE001  the edge of a process: told, and an exit code
        traceback.print_exc()
        return 99


def _serve() -> None:
    import boto3  # noqa: F401
    import great_expectations  # noqa: F401
    import kazoo.client  # noqa: F401

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
