"""Start, identify and end the stack's processes.

Owns: no server outlives the process that started it, unless it was released on purpose. Each child
leads its own process group; its shell waits for a line before it becomes the server, and gets that
line only after the watchdog knows the group. So a parent killed between any two steps leaves
nothing: either the child reads end-of-file and ends, or the watchdog kills it.

A process is known by pid and creation time together; a pid alone is never signalled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tiering_assets.resources.devstack import watchdog
from tiering_assets.resources.errors import PrerequisiteError

STACK_ID_VARIABLE = "TIERKEEPER_DEVSTACK_ID"
_WAIT_FOR_GO = 'read -r go && exec "$@" </dev/null'
# psutil reckons creation time from the boot time, which moves when the clock is set.
_SAME_CREATION_S = 2.0
_KILL_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class ProcessRef:
    """One process for its whole life. `created_at_s` is seconds since the epoch."""

    pid: int
    created_at_s: float


class Supervisor:
    """The children of this process and the watchdog that ends them with it."""

    def __init__(self, stack_id: str) -> None:
        self._stack_id = stack_id
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._watchdog: subprocess.Popen[bytes] | None = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, STACK_ID_VARIABLE: stack_id},
            start_new_session=True,
        )

    def spawn(
        self, argv: Sequence[str], *, environment: Mapping[str, str], cwd: Path, log: Path
    ) -> ProcessRef:
        """Start a program in its own process group; its output is appended to `log`."""
        with log.open("ab") as output:
            child = subprocess.Popen(
                ["/bin/sh", "-c", _WAIT_FOR_GO, "sh", *argv],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={**environment, STACK_ID_VARIABLE: self._stack_id},
                start_new_session=True,
            )
        self._children[child.pid] = child
        try:
            ref = ProcessRef(child.pid, psutil.Process(child.pid).create_time())
            self._tell(f"+{child.pid}")
            if child.stdin is not None:
                child.stdin.write(b"go\n")
                child.stdin.close()
        except (psutil.Error, OSError) as error:
            raise PrerequisiteError(f"{argv[0]} could not be started: {error}") from error
        return ref

    def end(self, ref: ProcessRef, *, grace_s: float = 0.0) -> None:
        """End one child's group: asked for `grace_s` seconds, then killed. Reaped on return."""
        end_group(ref, grace_s=grace_s)
        self.reap(ref)
        with suppress(OSError):  # the watchdog itself may be gone; the child is, too
            self._tell(f"-{ref.pid}")

    def reap(self, ref: ProcessRef) -> int | None:
        """Return the exit code of a child that has ended, None if it runs or is not ours."""
        child = self._children.get(ref.pid)
        return None if child is None else child.poll()

    def release(self) -> None:
        """Leave every child running after this process; only end_group() ends them then."""
        self._tell("release")
        self._close_watchdog()

    def close(self) -> None:
        """Kill every child that is left, then let the watchdog go. Safe to call twice."""
        for child in self._children.values():
            with suppress(ProcessLookupError, PermissionError):
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
            with suppress(OSError):
                if child.stdin is not None:
                    child.stdin.close()
            child.wait(timeout=_KILL_TIMEOUT_S)
        self._children.clear()
        self._close_watchdog()

    def _tell(self, line: str) -> None:
        if self._watchdog is None or self._watchdog.stdin is None:
            return
        self._watchdog.stdin.write(line.encode() + b"\n")
        self._watchdog.stdin.flush()

    def _close_watchdog(self) -> None:
        if self._watchdog is None:
            return
        with suppress(OSError):
            if self._watchdog.stdin is not None:
                self._watchdog.stdin.close()
        self._watchdog.wait(timeout=_KILL_TIMEOUT_S)
        self._watchdog = None


def is_alive(ref: ProcessRef) -> bool:
    """Say whether this very process still runs; a zombie does not."""
    return _find(ref) is not None


def rss_bytes(ref: ProcessRef) -> int:
    """Return the resident memory of the process in bytes, 0 if it has ended."""
    try:
        process = _find(ref)
        return 0 if process is None else int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def end_group(ref: ProcessRef, *, grace_s: float = 0.0) -> None:
    """End the process and its group: SIGTERM and `grace_s` seconds, then SIGKILL.

    Raises PrerequisiteError if it cannot be killed.
    """
    if grace_s > 0 and is_alive(ref):
        _signal_group(ref, signal.SIGTERM)
        if _wait_gone(ref, grace_s):
            return
    if is_alive(ref):
        _signal_group(ref, signal.SIGKILL)
    if not _wait_gone(ref, _KILL_TIMEOUT_S):
        raise PrerequisiteError(f"process {ref.pid} does not end on SIGKILL")


def _find(ref: ProcessRef) -> psutil.Process | None:
    try:
        process = psutil.Process(ref.pid)
        same = abs(process.create_time() - ref.created_at_s) < _SAME_CREATION_S
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def _signal_group(ref: ProcessRef, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(ref.pid, number)


def _wait_gone(ref: ProcessRef, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while is_alive(ref):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
