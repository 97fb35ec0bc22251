"""Everything one topic is due, for one reload: what waits to be published and what may be released.

Owns: contexts and marks share a compare-and-set, an unload and a rehearsal (design section 6.2),
and neither half holds the other up: each has its own gate, and a shared change that the broker
could not read is undone and tried again half by half. Evidence that got too old is asked for once
more. What a half stands on is the business of whoever prepares it: publish.py here, release.py
beyond.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from tiering_assets.change.disturb import Seen, see
from tiering_assets.change.reload_room import ReloadRoom
from tiering_assets.change.topic_change import Confirmed, make_change
from tiering_assets.change.topic_edit import TopicChange
from tiering_assets.ground.evidence import Dated, all_of
from tiering_assets.ground.reasons import Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.resources.errors import RefusedError, StaleEvidenceError, TierkeeperError

R = TypeVar("R")
P = TypeVar("P")
Q = TypeVar("Q")


class Order(Protocol[R]):
    """What a caller wants of a topic: ledgers to publish, or to release."""

    @property
    def ledger_ids(self) -> Collection[int]: ...

    def prepare(self, stack: Stack, ml_name: str, seen: Seen) -> Half[R]:
        """Gate each ledger. A TierkeeperError is one of all ledgers."""


class Gated(Protocol[R]):
    """The ledgers of one half that its gate lets go, and what happens when the change stands."""

    @property
    def ledger_ids(self) -> Collection[int]: ...

    @property
    def czxid(self) -> int: ...

    @property
    def change(self) -> TopicChange: ...

    @property
    def evidence(self) -> Dated: ...

    @property
    def rehearse_unloaded(self) -> bool: ...

    def look_again(self, stack: Stack) -> Half[R]:
        """The same on new evidence, without what may not go any more."""

    def finish(self, stack: Stack, confirmed: Confirmed) -> Mapping[int, R]: ...

    def waits(self, wait: Wait) -> R: ...


@dataclass(frozen=True, slots=True)
class Half(Generic[R]):
    """One side of a change: results by ledger, and what is left to bring about.

    `failed` ended it, and is the result of each ledger that was left then.
    """

    settled: Mapping[int, R | TierkeeperError]
    left: Gated[R] | None = None
    failed: TierkeeperError | None = None

    def fail(self, error: TierkeeperError) -> Half[R]:
        """The same with nothing left; what was settled stays as it is."""
        if self.left is None:
            return self
        return Half({**dict.fromkeys(self.left.ledger_ids, error), **self.settled}, failed=error)

    def renew(self, stack: Stack) -> Half[R]:
        if self.left is None:
            return self
        try:
            again = self.left.look_again(stack)
        except TierkeeperError as error:
            return self.fail(error)
        return replace(again, settled={**self.settled, **again.settled})

    def end(self, stack: Stack, confirmed: Confirmed | Wait) -> Half[R]:
        if self.left is None:
            return self
        try:
            done = (
                dict.fromkeys(self.left.ledger_ids, self.left.waits(confirmed))
                if isinstance(confirmed, Wait)
                else self.left.finish(stack, confirmed)
            )
        except TierkeeperError as error:
            return self.fail(error)
        return Half({**self.settled, **done})


NOTHING: Half[Any] = Half({})


@dataclass(frozen=True, slots=True)
class TopicResults(Generic[P, Q]):
    """One result per ledger asked for. Errors are results: of the ledgers whose half they ended."""

    published: Mapping[int, P | TierkeeperError]
    released: Mapping[int, Q | TierkeeperError]


def change_topic(
    stack: Stack,
    ml_name: str,
    publish: Order[P] | None = None,
    release: Order[Q] | None = None,
) -> TopicResults[P, Q]:
    """Publish certified attempts and release due ledgers of one topic, with one reload for both.

    Safe to run twice, and after a crash anywhere; and beside other topics, in threads of one run.
    """
    try:
        seen = see(stack, ml_name)
    except TierkeeperError as error:
        return TopicResults(_all(publish, error), _all(release, error))
    with stack.memory.shared(ReloadRoom).changing(ml_name):
        publication, removal = carry_out(
            stack,
            ml_name,
            seen,
            _prepared(stack, ml_name, publish, seen),
            _prepared(stack, ml_name, release, seen),
        )
    return TopicResults(publication.settled, removal.settled)


def _all(order: Order[R] | None, error: TierkeeperError) -> dict[int, TierkeeperError]:
    return {} if order is None else dict.fromkeys(order.ledger_ids, error)


def _prepared(stack: Stack, ml_name: str, order: Order[R] | None, seen: Seen) -> Half[R]:
    if order is None:
        return NOTHING
    try:
        return order.prepare(stack, ml_name, seen)
    except TierkeeperError as error:
        return Half(_all(order, error), failed=error)


def carry_out(
    stack: Stack,
    ml_name: str,
    seen: Seen,
    one: Half[P],
    other: Half[Q],
    *,
    renewed: bool = False,
) -> tuple[Half[P], Half[Q]]:
    """Make one change of what both halves have left; the same halves, with all of it settled."""
    left = [half.left for half in (one, other) if half.left is not None]
    if not left:
        return one, other
    try:
        confirmed = make_change(
            stack,
            ml_name,
            _together(work.change for work in left),
            czxid=left[0].czxid,
            seen=seen,
            evidence=all_of(work.evidence for work in left),
            rehearse_unloaded=any(work.rehearse_unloaded for work in left),
        )
    except StaleEvidenceError as error:
        if renewed:
            return one.fail(error), other.fail(error)
        stack.tell(f"{error}. Looked at again", topic=ml_name)
        return carry_out(stack, ml_name, seen, one.renew(stack), other.renew(stack), renewed=True)
    except RefusedError as error:
        if len(left) == 1:
            return one.fail(error), other.fail(error)
        stack.tell(f"{error}. Publication and release are tried one by one", topic=ml_name)
        first, _nothing = carry_out(stack, ml_name, seen, one, NOTHING)
        _nothing, second = carry_out(stack, ml_name, seen, NOTHING, other)
        return first, second
    except TierkeeperError as error:
        return one.fail(error), other.fail(error)
    return one.end(stack, confirmed), other.end(stack, confirmed)


def _together(changes: Iterable[TopicChange]) -> TopicChange:
    found = list(changes)
    return TopicChange(
        contexts={i: copy for one in found for i, copy in one.contexts.items()},
        marks={i: copy for one in found for i, copy in one.marks.items()},
        replacing={i: uid for one in found for i, uid in one.replacing.items()},
    )
