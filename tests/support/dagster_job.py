"""Dagster's offload job as a user starts it, `dagster job execute`, in a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tiering_assets.resources.devstack.endpoints import environment_of
from tiering_assets.resources.settings import Settings

ROOT = Path(__file__).parents[2]


class OffloadJob:
    """The job of some ledgers; `home` exists and gets its config, its log and Dagster's own
    files.
    """

    def __init__(self, home: Path, settings: Settings, ledger_ids: Iterable[int]) -> None:
        ops = {"offload_ledgers": {"config": {"ledger_ids": [*ledger_ids]}}}
        self.config = json.dumps({"ops": ops})
        self._file, self._log = home / "offload.yaml", home / "log"
        self._file.write_text(self.config, encoding="utf-8")  # JSON is YAML
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "DAGSTER_HOME": str(home),
            **environment_of(settings),
        }

    def start(self, command: Sequence[str] = (), **environment: str) -> subprocess.Popen[bytes]:
        """Start a run, or `command` in its place, as a process group of its own."""
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command or self._execute(),
                cwd=ROOT,
                env=self._environment | environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _execute(self) -> list[str]:
        dagster = Path(sys.executable).with_name("dagster")
        job = ("-m", "tiering_assets.definitions", "-j", "offload", "-c", str(self._file))
        return [str(dagster), "job", "execute", *job]

    def said(self, characters: int) -> str:
        """The end of what its runs wrote."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-characters:]
