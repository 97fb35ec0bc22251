"""Who notices a mistake in our code: a test, or a simulated schedule. In a process forked for each.

Owns: everything is imported once, in the parent, so that a mistake and its killer cost a third of a
second. A test that hangs because of the mistake has noticed it. Who could not be asked has not
answered: a process that died, tests that did not run to their end. It is asked a second time.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from tempfile import TemporaryFile
from typing import Any

import pytest

CRASHED = "unexpected error"  # of the mistake itself, which is no invariant that noticed it
SEED = "seed "
_TEST_S = 20.0
_NOT_NEEDED = {"cli", "defs", "demo", "mutate", "soak", "compatibility"}
# Nothing is told of a failure, so no assertion is rewritten, and no plugin is looked for.
_OPTIONS = ("--assert=plain", "-x", "-q", "--no-header", "-p", "pytest_timeout")
_PROCESSES = 2
_TOLD = 2_000  # last characters of what such a process wrote


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
) -> Iterator[tuple[Mistake, str | Unheard | None, float]]:
    """(mistake, who noticed first or None, seconds), as the answers come; some processes at a time.

    Who may notice are tests ("path::name") and seeds ("seed 12"), which notice nothing without it.
    """
    waiting = [_Ask(mistake, watchers) for mistake, watchers in reversed(asks)]
    running: dict[Connection, tuple[_Ask, Any, float]] = {}
    while waiting or running:
        while waiting and len(running) < _PROCESSES:
            ask = waiting.pop()
            pipe, process = _start(ask)
            running[pipe] = ask, process, time.monotonic()
        ready = wait(list(running), timeout=1.0)
        for pipe, (ask, process, began) in list(running.items()):
            took = time.monotonic() - began
            if pipe not in ready and took <= limit_s:
                continue
            said = _answer(pipe) if pipe in ready else Unheard(f"no answer in {limit_s:g} s")
            process.kill()
            process.join()
            pipe.close()
            del running[pipe]
            if isinstance(said, Unheard) and ask.again:
                waiting.append(replace(ask, again=False))
            else:
                yield ask.mistake, said, took


@dataclass(frozen=True, slots=True)
class Unheard:
    """Those who might notice could not be asked, twice; that is no answer."""

    why: str


@dataclass(frozen=True, slots=True)
class _Ask:
    mistake: Mistake
    watchers: Sequence[str]
    again: bool = True


def _start(ask: _Ask) -> tuple[Connection, Any]:
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_in_child, args=(ask.mistake, ask.watchers, theirs))
    process.start()
    theirs.close()
    return ours, process


def _answer(pipe: Connection) -> str | Unheard | None:
    try:
        said: str | Unheard | None = pipe.recv()
    except EOFError:
        return Unheard("its process died")
    return said


def _in_child(mistake: Mistake, watchers: Sequence[str], pipe: Connection) -> None:
    with TemporaryFile("w+") as told, redirect_stdout(told), redirect_stderr(told):
        os.dup2(told.fileno(), 1)
        os.dup2(told.fileno(), 2)

        def hangs(test: str) -> None:
            """No exception, which the code that hangs might catch."""
            pipe.send(test)
            os._exit(0)

        try:
            mistake.make()
            pipe.send(_first_to_notice(watchers, hangs))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent tells it
            told.seek(0)
            pipe.send(Unheard(f"{type(error).__name__}: {error}; it said {told.read()[-_TOLD:]!r}"))


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
    ended = pytest.main(
        [*_OPTIONS, "-p", "no:cacheprovider", "-W", "ignore", *tests], plugins=[watch]
    )
    if watch.noticed is None and ended != pytest.ExitCode.OK:
        raise RuntimeError(f"pytest ended with {ended!r} and no test failed")
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
