"""Which request of an S3 client is struck, and how: a share of all of them, drawn from a seed.

Every request is struck with the same probability, independently of all others, so that a retry may
be struck again. The kinds of fault come from a shuffled deck, so that a run of some length sees
each of them. Which requests a seed strikes depends on their order alone: the n-th is struck or it
is not.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.support.http_proxy import Do

FAULTS = (Do.REFUSE, Do.FAIL, Do.RESET, Do.LOSE_ANSWER, Do.STALL, Do.SHORT, Do.CUT)
_NEED_BODY = frozenset([Do.SHORT, Do.CUT])


class Chaos:
    """A rule of an HttpProxy. `rate` is 0 to 1 and may change; `seen` and `struck` count
    requests.
    """

    def __init__(self, *, rate: float, seed: int, faults: Sequence[Do] = FAULTS) -> None:
        self.rate = rate
        self.seen = 0
        self.struck: Counter[Do] = Counter()
        self._dice = random.Random(seed)
        self._deck = _shuffled(faults, random.Random(f"kinds {seed}"))
        self._put_back: list[Do] = []
        self._lock = threading.Lock()

    def __call__(self, method: str, _path: str) -> Do:
        with self._lock:
            self.seen += 1
            if self._dice.random() >= self.rate:
                return Do.PASS
            doing = self._next(has_body=method in ("GET", "POST"))
            self.struck[doing] += 1
            return doing

    def _next(self, *, has_body: bool) -> Do:
        """The next card that fits; one that needs an answer with a body waits for such a
        request.
        """
        for i, waiting in enumerate(self._put_back):
            if has_body or waiting not in _NEED_BODY:
                return self._put_back.pop(i)
        while (card := next(self._deck)) in _NEED_BODY and not has_body:
            self._put_back.append(card)
        return card


def _shuffled(faults: Sequence[Do], dice: random.Random) -> Iterator[Do]:
    while True:
        yield from dice.sample(faults, len(faults))
