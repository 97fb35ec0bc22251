"""Runs of Dagster's jobs, in the workspace that `make ui` shows, and what they narrate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Self

from tiering_assets.resources.errors import TierkeeperError

LINES_SHOWN = 25
WORKSPACE = "workspace.yaml"
LAUNCHER = "tiering_assets.demo.workspace_runs"
ENDED = "tierkeeper-run-ended:"  # and JSON behind it
_NARRATION = "tierkeeper:"
_LOOK_S = 0.2


class JobFailedError(TierkeeperError):
    """A Dagster job ended with an error; its log has the rest."""


class WorkspaceJobs:
    """A code server that runs jobs until it is left. It starts beside what comes first."""

    def __init__(
        self, *, project: Path, dagster_home: Path, environment: Mapping[str, str], log: Path
    ) -> None:
        """`project` has workspace.yaml. `log` gets all that the server and its runs say.

        Raises:
            JobFailedError: nothing was started.
        """
        if not (project / WORKSPACE).exists():
            raise JobFailedError(
                f"{WORKSPACE} is not in {project}: start this where the project is"
            )
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", LAUNCHER],
                cwd=project,
                env={**os.environ, **environment, "DAGSTER_HOME": str(dagster_home)},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self._lines: TextIOWrapper = log.open(errors="replace")
        self._part = ""  # of a line that is being written

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The code server ends with its process, and that one when nothing more is asked."""
        try:
            self._process.communicate(timeout=30 if kind is None else 5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._lines.close()

    def run(
        self, name: str, report: Callable[[str], None], config: Mapping[str, object] | None = None
    ) -> float:
        """Execute one job; returns its seconds. `config` is its run config.

        Raises:
            JobFailedError: with the end of the log.
        """
        began = time.monotonic()
        asked = self._process.stdin
        if asked is None or self._process.poll() is not None:
            raise self._ended(name)
        asked.write(json.dumps({"job": name, "config": config or {}}) + "\n")
        asked.flush()
        told = self._follow(name, report)
        if told["status"] != "SUCCESS":
            raise JobFailedError(f"job {name}: {told['why'] or told['status']} (log: {self._log})")
        return time.monotonic() - began

    def _follow(self, name: str, report: Callable[[str], None]) -> dict[str, str]:
        """Show what is narrated until the run's end: its status, and why it failed."""
        while True:
            ended = self._process.poll() is not None
            for part in self._lines:
                self._part += part
                if not self._part.endswith("\n"):
                    continue
                line, self._part = self._part, ""
                if line.startswith(ENDED):
                    told: dict[str, str] = json.loads(line.removeprefix(ENDED))
                    return told
                if _NARRATION in line:
                    report("    " + line.rsplit(_NARRATION, 1)[1].strip())
            if ended:
                raise self._ended(name)
            time.sleep(_LOOK_S)

    def _ended(self, name: str) -> JobFailedError:
        tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-LINES_SHOWN:])
        return JobFailedError(
            f"job {name} was not run: its code server ended with {self._process.returncode}; "
            f"the end of {self._log}:\n{tail}"
        )
