"""Who notices a mistake in our code: a test, or a simulated schedule. In a process forked for each.

Owns: everything is imported once, in the parent, so that a mistake and its killer cost a third of a
second. A test that hangs because of the mistake has noticed it.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

CRASHED = "unexpected error"  # of the mistake itself, which is no invariant that noticed it
SEED = "seed "
_TEST_S = 20.0
_NOT_NEEDED = {"cli", "defs", "demo", "mutate", "soak", "compatibility"}
# Nothing is told of a failure, so no assertion is rewritten, and no plugin is looked for.
_OPTIONS = ("--assert=plain", "-x", "-q", "--no-header", "-p", "pytest_timeout")
_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Mistake:
    """`make` breaks our code in the process that calls it, for good."""

    name: str
    make: Callable[[], None]


def import_everything() -> None:
    """All that guards and their killers need; what is imported later is imported in each
    process.
    """
    for name in ("hypothesis", "pytest_timeout"):
        importlib.import_module(name)
    for package in ("tiering_assets", "tests.support"):
        found = importlib.import_module(package)
        for module in pkgutil.walk_packages(found.__path__, f"{package}."):
            if not _NOT_NEEDED & set(module.name.split(".")):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def hunt_all(
    asks: Sequence[tuple[Mistake, Sequence[str]]], *, limit_s: float
) -> Iterator[tuple[Mistake, str | None, float]]:
    """(mistake, who noticed first or None, seconds), as the answers come; some processes at a time.

    Who may notice are tests ("path::name") and seeds ("seed 12"), which notice nothing without it.
    """
    context = get_context("fork")
    waiting = list(reversed(asks))
    running: dict[Connection, tuple[Mistake, Any, float]] = {}
    while waiting or running:
        while waiting and len(running) < _PROCESSES:
            mistake, watchers = waiting.pop()
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_in_child, args=(mistake, watchers, theirs))
            process.start()
            theirs.close()
            running[ours] = mistake, process, time.monotonic()
        ready = wait(list(running), timeout=1.0)
        for pipe, (mistake, process, began) in list(running.items()):
            took = time.monotonic() - began
            if pipe not in ready and took <= limit_s:
                continue
            noticed = _answer(pipe) if pipe in ready else None
            process.kill()
            process.join()
            pipe.close()
            del running[pipe]
            yield mistake, noticed, took


def _answer(pipe: Connection) -> str | None:
    try:
        said: str | None = pipe.recv()
    except EOFError:
        return None
    return said


def _in_child(mistake: Mistake, watchers: Sequence[str], pipe: Connection) -> None:
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)

    def hangs(test: str) -> None:
        """No exception, which the code that hangs might catch."""
        pipe.send(test)
        os._exit(0)

    mistake.make()
    pipe.send(_first_to_notice(watchers, hangs))


def _first_to_notice(watchers: Sequence[str], hangs: Callable[[str], None]) -> str | None:
    """Tests before seeds, each in its order. `hangs` is told of a test that does not end, and ends
    all.
    """
    tests = [one for one in watchers if not one.startswith(SEED)]
    noticed = _first_failure(tests, hangs) if tests else None
    if noticed is not None:
        return noticed
    return _first_seed(int(one.removeprefix(SEED)) for one in watchers if one.startswith(SEED))


def _first_failure(tests: Sequence[str], hangs: Callable[[str], None]) -> str | None:
    watch = _Watch(hangs)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    pytest.main([*_OPTIONS, "-p", "no:cacheprovider", "-W", "ignore", *tests], plugins=[watch])
    return watch.noticed


class _Watch:
    """Remembers the first test that fails, and tells of one that takes too long."""

    def __init__(self, hangs: Callable[[str], None]) -> None:
        self.noticed: str | None = None
        self._hangs = hangs

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        def too_long(*_: object) -> None:
            self._hangs(item.nodeid)

        signal.signal(signal.SIGALRM, too_long)
        signal.setitimer(signal.ITIMER_REAL, _TEST_S)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.noticed is None:
            self.noticed = report.nodeid


def _first_seed(seeds: Iterator[int]) -> str | None:
    from tests.support.sim_run import run_seed

    for seed in seeds:
        if any(one.invariant != CRASHED for one in run_seed(seed).found):
            return f"{SEED}{seed}"
    return None
