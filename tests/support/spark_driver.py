"""A driver of tasks in a process of its own: one classic session a process, and one that may die.

Asked on standard input as JSON: `tasks` and `run_id`; settings come from the environment. It
answers with a line for each row.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tiering_assets.resources.devstack.endpoints import environment_of
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import load_settings
from tiering_assets.spark.runner import open_spark_runner
from tiering_assets.spark.schemas import block_row
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, decode_task, encode_task

_ROOT = Path(__file__).parents[2]


class SparkDriver:
    """A process that runs these tasks once it is started; `process` is for who wants to kill it."""

    def __init__(self, settings: Settings, tasks: Sequence[BlockTask], *, run_id: str = "") -> None:
        request = {"tasks": [encode_task(task) for task in tasks], "run_id": run_id}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.spark_driver"],
            cwd=_ROOT,
            env={**os.environ, **environment_of(settings)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self.process.stdin is None:
            raise RuntimeError("the driver has no pipes")
        self.process.stdin.write(json.dumps(request))
        self.process.stdin.close()
        self.process.stdin = None

    def rows(self, *, timeout_s: float = 500.0) -> list[BlockRow]:
        """Wait for the end; what the tasks said."""
        said, logged = self.process.communicate(timeout=timeout_s)
        sys.stderr.write(logged)
        if self.process.returncode != 0:
            raise RuntimeError(f"the driver ended with {self.process.returncode}: {logged[-2000:]}")
        return [block_row(json.loads(line)) for line in said.splitlines()]

    def kill(self) -> None:
        """SIGKILL, as a machine that loses its power does; a JVM of its own notices by itself."""
        self.process.kill()
        self.process.communicate()


def _main() -> None:
    request = json.load(sys.stdin)
    settings = load_settings().settings
    with open_spark_runner(settings, run_id=request["run_id"]) as runner:
        for row in runner.run([decode_task(text) for text in request["tasks"]]):
            sys.stdout.write(json.dumps(asdict(row) | {"kind": row.kind.value}) + "\n")


if __name__ == "__main__":
    _main()
