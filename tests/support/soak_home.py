"""A DAGSTER_HOME with its daemon, started and killed like a service manager would."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """The daemon gets SIGTERM when whoever started it is gone, however it went (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Home:
    """`environment` holds the settings as TIERKEEPER_* variables."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.path = directory
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": os.environ["HOME"],
            "DAGSTER_HOME": str(directory),
            **environment,
        }
        self._daemon: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """The shipped dagster.yaml, looking for dead runs more often than every two minutes."""
        self.path.mkdir(parents=True)
        config = yaml.safe_load((ROOT / "dagster_home/dagster.yaml").read_text())
        config["run_monitoring"]["poll_interval_seconds"] = 10
        (self.path / "dagster.yaml").write_text(yaml.safe_dump(config))

    def start(self) -> None:
        with (self.path.parent / "daemon.log").open("ab") as log:
            self._daemon = subprocess.Popen(
                [
                    str(Path(sys.executable).with_name("dagster-daemon")),
                    *("run", "-w", str(ROOT / "workspace.yaml")),
                ],
                cwd=ROOT,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )

    def alive(self) -> bool:
        return self._daemon is not None and self._daemon.poll() is None

    def kill_daemon(self) -> None:
        """The daemon alone; its code server and runs die or end by themselves."""
        if self._daemon is not None:
            self._daemon.kill()
            self._daemon.wait()

    def runs(self) -> list[psutil.Process]:
        """Processes that execute a run of this home, the oldest first."""
        found = []
        for process in psutil.process_iter(["cmdline", "environ", "create_time"]):
            words = process.info["cmdline"] or []
            home = (process.info["environ"] or {}).get("DAGSTER_HOME")
            if home == str(self.path) and "multiprocessing.spawn" in " ".join(words):
                found.append(process)
        return sorted(found, key=lambda one: one.info["create_time"])

    def stop(self) -> None:
        """End whatever runs for this home."""
        if self._daemon is not None:
            with suppress(ProcessLookupError):
                self._daemon.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._daemon.wait(30)
        deadline = time.monotonic() + 30
        while left := self._processes():
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill() if time.monotonic() > deadline - 15 else process.terminate()
            psutil.wait_procs(left, timeout=2)
            if time.monotonic() > deadline:
                raise TimeoutError(f"still there: {left}")

    def _processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter(["environ"]):
            if (process.info["environ"] or {}).get("DAGSTER_HOME") == str(self.path):
                found.append(process)
        return found

    def lose(self) -> None:
        shutil.rmtree(self.path)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A `tierkeeper` command with this home."""
        return subprocess.run(
            [str(Path(sys.executable).with_name("tierkeeper")), *words],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
