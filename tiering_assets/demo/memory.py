"""Peak memory of everything the demo started: its servers, its jobs and itself."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

import psutil

EVERY_S = 1.0


class PeakMemory:
    """Samples the resident memory of some process trees until it is left.

    Shared pages are counted in each process that has them, so the figure is an upper bound.
    """

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = tuple(roots)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="peak-memory", daemon=True)
        self.peak_bytes = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(EVERY_S):
            # The servers may be children of this process, or not: each process counts once.
            processes = {one for root in self._roots for one in _tree(root)}
            self.peak_bytes = max(self.peak_bytes, sum(map(_rss, processes)))


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
