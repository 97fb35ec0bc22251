"""When Python looks for cyclic garbage: not while blocks are worked on, and never among what was
imported.

A collection is asked for by every few hundred objects that stay alive, and looks at all objects of
the process. The loops over entries make a view and a tuple an entry, keep them for one batch and
make no cycle; what they drop is freed at once without any collection. So they would pay for
nothing.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_inside = 0  # `no_collection`s entered now, in all threads: the collector is the process's
_was_enabled = False
_frozen: set[str] = set()
_SELDOM = 20_000  # objects that came to stay between two looks at the youngest; Python has 700


@contextmanager
def no_collection() -> Iterator[None]:
    """Within it no cyclic collection starts by itself; after it, errors included, it is as before.

    May be nested and entered by several threads; the last one out restores. Hold it for one block,
    not across a `yield` to a caller: cycles made meanwhile, as by every error caught, wait for its
    end.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def collect_seldom() -> None:
    """Look for garbage less often, for good: in a short process most objects come from imports and
    stay.
    """
    gc.set_threshold(_SELDOM)


def freeze_once(stage: str) -> None:
    """Leave out of later collections all that is alive now. Does so once a process for each
    `stage`.

    Call it when a process has imported what a stage of its life needs. More often would do harm:
    garbage that is in cycles at that moment is never freed.
    """
    with _LOCK:
        if stage in _frozen:
            return
        _frozen.add(stage)
    gc.freeze()


def _enter() -> None:
    global _inside, _was_enabled
    with _LOCK:
        if _inside == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _inside += 1


def _leave() -> None:
    global _inside
    with _LOCK:
        _inside -= 1
        if _inside == 0 and _was_enabled:
            gc.enable()
