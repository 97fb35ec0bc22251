"""Run the Dagster jobs as a user would, `dagster job execute`, and show what they narrate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tiering_assets.resources.errors import TierkeeperError

LINES_SHOWN = 25
_NARRATION = "tierkeeper:"


class JobFailedError(TierkeeperError):
    """A Dagster job ended with an error; its log has the rest."""


def run_job(
    name: str,
    *,
    project: Path,
    dagster_home: Path,
    environment: Mapping[str, str],
    log: Path,
    report: Callable[[str], None],
    config: Mapping[str, object] | None = None,
) -> float:
    """Execute one job in a process of its own; returns its seconds. `config` is its run config, and
    is kept beside the log.

    Raises:
        JobFailedError: with the end of the job's log.
    """
    dagster = Path(sys.executable).with_name("dagster")
    command = [str(dagster), "job", "execute", "-m", "tiering_assets.definitions", "-j", name]
    if config is not None:
        file = log.with_suffix(".run.yaml")
        file.write_text(json.dumps(config) + "\n")  # JSON is YAML
        command += ["-c", str(file)]
    began = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=project,
            env={**os.environ, **environment, "DAGSTER_HOME": str(dagster_home)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            _follow(process, log, report)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-LINES_SHOWN:])
        raise JobFailedError(
            f"job {name} ended with {process.returncode}; the end of {log}:\n{tail}"
        )
    return time.monotonic() - began


def _follow(process: subprocess.Popen[bytes], log: Path, report: Callable[[str], None]) -> None:
    with log.open(errors="replace") as lines:
        while True:
            ended = process.poll() is not None
            for line in lines:
                if _NARRATION in line:
                    report("    " + line.rsplit(_NARRATION, 1)[1].strip())
            if ended:
                return
            time.sleep(0.5)
