"""Assign the next segment of a stream: look, decide, and create the one record that says so.

The order is the contract: the chain, a fresh node of the topic, each ledger's metadata, what is
proven of it, the decision, and the record if there is none. Whoever creates it first has decided,
for everybody and for ever; who comes second finds that segment at the next look.
"""

from __future__ import annotations

from dataclasses import dataclass

from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.stored import Stored
from tiering_assets.records.stream_models import SegmentAssigned
from tiering_assets.resources.errors import ObjectExistsError
from tiering_assets.stream.assign_rules import (
    Assign,
    NothingDue,
    Resume,
    WhenToCut,
    decide_assignment,
    newest_left,
)
from tiering_assets.stream.chain import Chain
from tiering_assets.stream.open_range import TopicGone, look_at_range


@dataclass(frozen=True, slots=True)
class Assigned:
    """A segment that this run assigned."""

    segment: Stored[SegmentAssigned]


@dataclass(frozen=True, slots=True)
class TakenByAnother:
    """Another run decided about this number between the look and the record."""

    number: int


Assignment = Assigned | Resume | NothingDue | TopicGone | TakenByAnother


def assign_next(stack: Stack, chain: Chain, due: WhenToCut) -> Assignment:
    """The segment to work on, or why there is none.

    Raises:
        IntegrityError: what lies behind the stream's end contradicts it.
        EntryUnavailableError: too few bookies answer.
    """
    left = newest_left(chain)
    if left is not None:
        return left
    with stack.spending_for(chain.ml_name):
        seen = look_at_range(stack, chain, enough_bytes=due.size_bytes)
        if isinstance(seen, TopicGone):
            return seen
        bookies = stack.settings.bookies
        decision = decide_assignment(seen, due, lambda one: stack.open_points(bookies, one.source))
    if isinstance(decision, NothingDue):
        return decision
    return _record(stack, chain, decision)


def _record(stack: Stack, chain: Chain, decision: Assign) -> Assigned | TakenByAnother:
    number = chain.next_number
    record = SegmentAssigned(
        ml_name=chain.ml_name,
        ml_czxid=chain.ml_czxid,
        stream=chain.stream,
        number=number,
        ranges=decision.ranges,
        trigger=decision.trigger,
        assigned_at=stack.now(),
        writer=stack.writer,
        previous=chain.tip,
        skipped=decision.skipped,
    )
    key = keys.stream_link(chain.ml_name, chain.stream, number)
    try:
        return Assigned(stack.book.create(key, record))
    except ObjectExistsError:
        return TakenByAnother(number)
