"""Which ledgers a record is about, and which records the day book names.

Owns: one entry for each kind of record, by a test that goes through all of them. A plan is about
what it would change; ledgers that it leaves alone stand in it as reasons, and it is not about them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from tiering_assets.records import (
    broker_models,
    bucket_models,
    models,
    pause_models,
    stream_models,
    sweep_models,
)
from tiering_assets.records.models import Record

_About = Callable[[Any], tuple[int, ...]]
_HOLD_OF_LEDGER: Final = re.compile(r"holds/([0-9]+)\.json")


def _one(record: Any) -> tuple[int, ...]:
    return (record.ledger_id,)


def _facts(record: Any) -> tuple[int, ...]:
    return (record.ledger.ledger_id,)


def _all(record: Any) -> tuple[int, ...]:
    ledger_ids: tuple[int, ...] = record.ledger_ids
    return ledger_ids


def _none(_record: Any) -> tuple[int, ...]:
    return ()


def _each(field: str) -> _About:
    return lambda record: tuple(one.ledger_id for one in getattr(record, field))


def _lifted(record: models.HoldLift) -> tuple[int, ...]:
    found = _HOLD_OF_LEDGER.fullmatch(record.hold_key)
    return () if found is None else (int(found[1]),)


ABOUT: Final[Mapping[type[Record], _About]] = {
    models.Claim: _one,
    models.LedgerFailure: _one,
    models.Attempt: _facts,
    models.Certificate: _facts,
    models.Quarantine: _one,
    models.Outcome: _one,
    sweep_models.Leftover: _one,
    sweep_models.SweepIntent: _one,
    sweep_models.Swept: _one,
    sweep_models.ExpiredPlan: _each("copies"),
    sweep_models.ForgetPlan: _each("ledgers"),
    sweep_models.Removal: _one,
    models.Publication: _each("ledgers"),
    models.Canary: _one,
    models.Disturbance: _none,
    models.BegunRelease: _one,
    models.ReleaseIntent: _facts,
    models.Release: _one,
    models.Scrub: _one,
    models.Damage: _one,
    models.BrokerCopy: _one,
    models.Hold: _one,
    models.ScopeHold: _none,
    bucket_models.Budget: _none,
    bucket_models.BucketProof: _none,
    models.HoldLift: _lifted,
    pause_models.Pause: _none,
    pause_models.PauseLift: _none,
    models.ReleasePlan: _each("release"),
    broker_models.BrokersSeen: _none,
    broker_models.BrokerGone: _none,
    broker_models.Undo: lambda record: record.ledger_ids,
    broker_models.UndoConfirmed: _none,
    broker_models.TopicSchema: _none,
    bucket_models.DayBookPage: _none,
    bucket_models.RunBatch: _none,  # its run takes them up
    stream_models.StreamOpened: _none,
    stream_models.StreamClosed: _none,
    stream_models.SegmentAssigned: _each("ranges"),
    stream_models.SegmentAttempt: _all,
    stream_models.SegmentFailed: _all,
    stream_models.SegmentOffloaded: _each("ledgers"),
    stream_models.SegmentGivenUp: _all,
}

_OF_NOW: Final = frozenset(
    {
        *("brokers", "bucket-proofs", "budgets", "claims", "day-book", "failures", "pauses"),
        "run-batches",
    }
)
_CHANGING: Final = frozenset({"canaries", "damage", "holds", "scrubs", "sweeps"})
_COUNTED: Final = frozenset({"begun-releases", "disturbances", "loads"})
"""They count for an hour. A rule of the bucket may delete them afterwards, and writes no page."""


def ledgers_of(record: Record) -> tuple[int, ...]:
    """The ledgers that a record is about, which its run must have taken up before it writes it."""
    return ABOUT[type(record)](record)


def is_named(key: str) -> bool:
    """Whether the day book names this record, and not only opens a page for its ledger.

    Of those that tell what is so now, only they are of use that a later reader cannot do without.
    """
    return key.partition("/")[0] not in _OF_NOW


def is_lasting(key: str) -> bool:
    """Whether a record that was named must still be there, byte by byte."""
    return key.partition("/")[0] not in _OF_NOW | _CHANGING | _COUNTED
