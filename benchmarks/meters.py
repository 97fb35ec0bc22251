"""What the machine spent on a stretch of work: CPU seconds, memory and requests to the store.

Owns: CPU is user and system time of every process with a role, those included that ended meanwhile;
memory is sampled, so a peak shorter than the interval is missed; requests are those that the store
itself counted, so that a contender's own client has no say.
"""

from __future__ import annotations

import re
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

import psutil

EVERY_S = 0.2
_REQUESTS = re.compile(
    r'^SeaweedFS_s3_request_total\{[^}]*type="(\w+)"[^}]*\} ([0-9.e+]+)$', re.MULTILINE
)

WITH_CHILDREN = "worker"  # servers have none, and looking for them costs as much as all the rest


class Meter:
    """Measures roles, each some processes, from entry to exit; the worker's with what it started.

    `cpu_s` and `peak_rss_mb` are by role, `requests` by kind. `counted` tells how many of each kind
    the store has answered so far.
    """

    def __init__(
        self, roles: Mapping[str, Sequence[int]], counted: Callable[[], Counter[str]]
    ) -> None:
        self._roles = roles
        self._counted = counted
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="peak-memory", daemon=True)
        self.cpu_s: dict[str, float] = {}
        self.peak_rss_mb: dict[str, float] = dict.fromkeys(roles, 0.0)
        self.requests: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._requests = self._counted()
        self._cpu = {role: _cpu_s(role, pids) for role, pids in self._roles.items()}
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cpu_s = {
            role: _cpu_s(role, pids) - self._cpu[role] for role, pids in self._roles.items()
        }
        self._stop.set()
        self._thread.join()
        self.requests = self._counted() - self._requests

    def _sample(self) -> None:
        while True:
            for role, pids in self._roles.items():
                peak = sum(_rss_bytes(p) for p in _processes(role, pids)) / 1e6
                self.peak_rss_mb[role] = max(self.peak_rss_mb[role], peak)
            if self._stop.wait(EVERY_S):
                return


def seaweed_requests(metrics_url: str) -> Counter[str]:
    """Requests that SeaweedFS has answered so far, by kind, refused ones included."""
    with urllib.request.urlopen(metrics_url, timeout=10) as answer:
        text = answer.read().decode()
    found: Counter[str] = Counter()
    for kind, count in _REQUESTS.findall(text):
        found[kind] += int(float(count))
    return found


def _processes(role: str, pids: Sequence[int]) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for pid in pids:
        with suppress(psutil.Error):
            root = psutil.Process(pid)
            found.append(root)
            if role == WITH_CHILDREN:
                found += root.children(recursive=True)
    return found


def _cpu_s(role: str, pids: Sequence[int]) -> float:
    total = 0.0
    for process in _processes(role, pids):
        with suppress(psutil.Error):
            used = process.cpu_times()
            # With what reaped children used: a worker that ended is not lost.
            total += used.user + used.system + used.children_user + used.children_system
    return total


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


@contextmanager
def machine_busy() -> Iterator[list[float]]:
    """What share of all cores the machine uses within it; in the list when it has ended."""
    found: list[float] = []
    began = psutil.cpu_times()
    yield found
    ended = psutil.cpu_times()
    spent = {
        name: after - before
        for name, before, after in zip(ended._fields, began, ended, strict=True)
    }
    idle = spent["idle"] + spent.get("iowait", 0.0)
    whole = sum(spent.values()) - spent.get("guest", 0.0) - spent.get("guest_nice", 0.0)
    found.append(1 - idle / whole if whole > 0 else 0.0)
