"""Starts the processes of agent.py and sink.py, asks them, and ends them.

Owns: no agent outlives this process: each ends when its standard input does, and `close` kills what
has not ended by then, its group with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[1]
_START_TIMEOUT_S = 120.0
_END_TIMEOUT_S = 10.0


class AgentError(Exception):
    """What an agent was asked to do went wrong, or it did not answer."""


def say(line: str) -> None:
    """A line for whoever waits; what is measured goes to standard output or a file."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


class Owned:
    """A process in a group of its own, which ends with the block."""

    _process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it, and what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=_END_TIMEOUT_S)


class Child(Owned):
    """One process of this package, and its lines. `tree` is the checkout whose code it runs."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        environment: Mapping[str, str],
        log: Path,
        tree: Path = ROOT,
    ) -> None:
        self.name = " ".join((module.rpartition(".")[2], *arguments))
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=tree,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        self._buffer = b""

    def ask(self, *, timeout_s: float, **request: Any) -> dict[str, Any]:
        """Send one request and return its answer. AgentError if it is an error or none comes."""
        if self._process.stdin is None:
            raise AgentError(f"{self.name} has no standard input")
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise AgentError(f"{self.name} has ended; see {self._log}") from error
        answer: dict[str, Any] = json.loads(self.line(timeout_s))
        if "error" in answer:
            raise AgentError(f"{self.name}: {answer['error']}")
        return answer

    def line(self, timeout_s: float = _START_TIMEOUT_S) -> bytes:
        """The next line it prints. AgentError when it ends or takes longer; it is then killed."""
        output, deadline = self._process.stdout, time.monotonic() + timeout_s
        while output is not None and b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([output], [], [], left)[0]:
                super().close()
                raise AgentError(f"{self.name} did not answer within {timeout_s:.0f} s")
            data = os.read(output.fileno(), 65536)
            if not data:
                raise AgentError(f"{self.name} has ended; see {self._log}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def close(self) -> None:
        """Let it end, and end it. Safe to call twice."""
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        try:
            self._process.wait(timeout=_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            super().close()
        with suppress(ProcessLookupError, PermissionError):  # what it started and left
            os.killpg(self._process.pid, signal.SIGKILL)


def start_agent(kind: str, *, environment: Mapping[str, str], logs: Path) -> Child:
    """Start an agent and return it when it is ready. AgentError when it is not."""
    child = Child("benchmarks.agent", kind, environment=environment, log=logs / f"agent-{kind}.log")
    try:
        child.line()
    except BaseException:
        child.close()
        raise
    return child
