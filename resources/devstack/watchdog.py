"""Kills a stack's servers when the process that started them is gone, however it went.

Run as a script: `python watchdog.py`, standard input a pipe whose other end only the parent holds.
Owns: when the pipe closes (the parent ended, SIGKILL included) every process group named on it and
not taken back is killed. Lines: `+GROUP` watch, `-GROUP` forget, `release` leave all running.

PR_SET_PDEATHSIG would not do: it belongs to the thread that forked, and it cannot name the
children of the shell that bin/pulsar is. Only the standard library is used; it starts in 20 ms.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

_LOOK_EVERY_S = 1.0
_KILL_FOR_S = 5.0


def kill_groups(groups: set[int]) -> None:
    """Kill until no group has a member left, for at most five seconds."""
    deadline = time.monotonic() + _KILL_FOR_S
    left = set(groups)
    while left and time.monotonic() < deadline:
        for group in sorted(left):
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                left.discard(group)
            except PermissionError:  # not ours: the number has been given to somebody else
                left.discard(group)
        time.sleep(0.02)


def watch() -> None:
    """Read lines until the pipe closes, the parent changes or `release` comes."""
    parent = os.getppid()
    groups: set[int] = set()
    pending = b""
    while True:
        readable, _, _ = select.select([0], [], [], _LOOK_EVERY_S)
        piece = os.read(0, 4096) if readable else None
        if piece:
            *lines, pending = (pending + piece).split(b"\n")
            for line in lines:
                if line == b"release":
                    return
                group = int(line[1:])
                (groups.add if line[:1] == b"+" else groups.discard)(group)
        # A fork that never ran another program may still hold the pipe: look at the parent, too.
        elif piece == b"" or os.getppid() != parent:
            break
    kill_groups(groups)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with suppress(OSError):
            signal.signal(number, signal.SIG_IGN)
    watch()
    sys.exit(0)
