"""One bounded look over topics: it goes on where the last one stopped, and no topic can pin it.

Reads only and loads no topic. Owns: a topic that cannot be looked at is told and passed; the next
look starts after the last one that was *tried*. A look in which every topic failed is a failure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.user_topics import Topic, read_topics, user_topic_names
from tiering_assets.resources.errors import TierkeeperError

T = TypeVar("T")
_NAMED_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(Generic[T]):
    """`resume` is the last topic tried when time or room was up, None when all were looked at."""

    found: tuple[T, ...]
    resume: str | None
    names: tuple[str, ...]
    failed: Mapping[str, str]

    @property
    def topics(self) -> int:
        """How many were tried."""
        return len(self.names)

    def require_any(self) -> None:
        """TierkeeperError when there were topics and not one could be looked at."""
        if self.failed and len(self.failed) == self.topics:
            named = "; ".join(
                f"{name}: {said}" for name, said in [*self.failed.items()][:_NAMED_MAX]
            )
            raise TierkeeperError(f"none of {self.topics} topics could be looked at. {named}")


def walk(
    stack: Stack,
    look: Callable[[Topic], list[T]],
    *,
    after: str | None,
    seconds: float,
    room: int,
    weigh: Callable[[T], int] = lambda _one: 1,
    names: Sequence[str] | None = None,
) -> Round[T]:
    """Look at user topics in name order, from the one after `after`, for at most so many seconds.

    `names` are the topics to look at, in name order; all of users' without.

    It also stops when what was found weighs `room`: by default, so many things. One topic is looked
    at whatever the time.
    """
    deadline = stack.monotonic() + seconds
    names = user_topic_names(stack) if names is None else names
    start = 0 if after is None else bisect_right(names, after)
    found: list[T] = []
    failed: dict[str, str] = {}
    tried: list[str] = []
    for name, topic in read_topics(stack, names[start:]):
        if tried and (sum(map(weigh, found)) >= room or stack.monotonic() >= deadline):
            break
        tried.append(name)
        try:
            if isinstance(topic, TierkeeperError):
                raise topic
            found += [] if topic is None else look(topic)
        except TierkeeperError as error:
            failed[name] = str(error)
    whole = start + len(tried) == len(names)
    return Round(
        found=tuple(found),
        resume=None if whole else tried[-1],
        names=tuple(tried),
        failed=failed,
    )


def joined(first: Round[T], then: Round[T]) -> Round[T]:
    """Two looks as one, which goes on where the second stopped."""
    return Round(
        found=(*first.found, *then.found),
        resume=then.resume,
        names=(*first.names, *then.names),
        failed={**first.failed, **then.failed},
    )
