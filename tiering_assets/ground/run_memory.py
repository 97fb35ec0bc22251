"""Answers that one run need not ask for twice, and how old each may become."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar, cast

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class RunMemory:
    """Kept by whoever asks under a key of their own. An error is no answer: it is asked again."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[float, object]] = {}
        self._final: dict[Hashable, object] = {}

    def ask_final(
        self, wanted: Sequence[K], ask: Callable[[list[K]], Sequence[T | None]]
    ) -> dict[K, T | None]:
        """Answers that can never change, in the order wanted; only new ones are asked for.

        None is no answer: what is not there may come.
        """
        new = [key for key in wanted if key not in self._final]
        if new:
            answers = zip(new, ask(new), strict=True)
            self._final.update({key: found for key, found in answers if found is not None})
        return {key: cast("T | None", self._final.get(key)) for key in wanted}

    def ask(
        self, key: Hashable, ask: Callable[[], T], *, now: Callable[[], float], age_max_s: float
    ) -> T:
        """The answer kept under `key` if it is not older than that, else a new one.

        `now` is a monotonic clock; an answer counts as old as its question.
        """
        found = self._kept.get(key)
        if found is not None and now() - found[0] <= age_max_s:
            return cast(T, found[1])
        asked_at = now()
        answer = ask()
        self._kept[key] = (asked_at, answer)
        return answer
