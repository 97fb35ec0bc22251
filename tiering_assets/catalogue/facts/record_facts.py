"""What each kind of record says of ledgers, for the catalogue.

Owns: one entry for each folder of keys, by a test that goes through all of them: a kind that says
nothing of a ledger's row is named as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tiering_assets.catalogue.facts.known_ledger import KnownAttempt
from tiering_assets.records import (
    broker_models,
    models,
    scrub_model,
    sweep_models,
)
from tiering_assets.records.models import Record
from tiering_assets.records.stored import Stored

_NAMED: Final = re.compile(
    r"[a-z-]+/(?P<ledger>0|[1-9][0-9]{0,18})"
    r"(?:/(?P<uid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.[a-z]+)?)?\.json"
)
Told = tuple[int, str, KnownAttempt, Mapping[str, Any]]
"""Ledger, attempt, what is said of it, and what is said of the ledger."""


def _attempt(stored: Stored[models.Attempt]) -> Iterator[Told]:
    record = stored.record
    said = KnownAttempt(attempted_at=record.started_at)
    yield record.ledger.ledger_id, str(record.uid), said, _of_ledger(record)


def _certificate(stored: Stored[models.Certificate]) -> Iterator[Told]:
    record = stored.record
    said = KnownAttempt(
        certified_at=record.verified_at,
        certificate_sha256=stored.sha256,
        object_bytes=record.data.size,
    )
    yield record.ledger.ledger_id, str(record.uid), said, _of_ledger(record)


def _of_ledger(record: models.Attempt | models.Certificate) -> dict[str, Any]:
    ledger = record.ledger
    return {
        "topic": record.ml_name,
        "entries": ledger.last_entry_id + 1,
        "bytes": ledger.length,
    }


def _publication(stored: Stored[models.Publication]) -> Iterator[Told]:
    record = stored.record
    at = max(record.confirmed_at, stored.stored_at)
    for one in record.ledgers:
        yield one.ledger_id, str(one.uid), KnownAttempt(published_at=at), {"topic": record.ml_name}


def _undo(stored: Stored[broker_models.Undo | broker_models.UndoConfirmed]) -> Iterator[Told]:
    record = stored.record
    if isinstance(record, broker_models.UndoConfirmed):
        return
    for one in record.withdrawn:
        said = KnownAttempt(withdrawn_at=record.undone_at)
        yield one.ledger_id, str(one.uid), said, {"topic": record.ml_name}


def _quarantine(stored: Stored[models.Quarantine]) -> Iterator[Told]:
    yield _simple(stored.record, KnownAttempt(quarantined_at=stored.record.found_at))


def _damage(stored: Stored[scrub_model.Damage]) -> Iterator[Told]:
    yield _simple(stored.record, KnownAttempt(damaged_at=stored.record.found_at))


def _broker_copy(stored: Stored[scrub_model.BrokerCopy]) -> Iterator[Told]:
    """How many entries and bytes the ledger has, its topic and bookies say."""
    yield _simple(stored.record, KnownAttempt(object_bytes=stored.record.data.size))


def _removal(stored: Stored[sweep_models.Removal]) -> Iterator[Told]:
    yield _simple(stored.record, KnownAttempt(removed_at=stored.record.seen_again_at))


def _scrub(stored: Stored[scrub_model.Scrub]) -> Iterator[Told]:
    """A look that found something, or that a budget ended, has verified nothing as a whole.

    When it was deep is told by its key and the store's time, which a scrub goes by.
    """
    record = stored.record
    if not record.findings and record.blocks_read in (0, record.blocks):
        deep = stored.key.endswith(".deep.json")
        said = KnownAttempt(
            verified_at=record.scrubbed_at,
            verified_depth=record.depth,
            deep_at=stored.stored_at if deep else None,
        )
        yield _simple(record, said)


def _release(stored: Stored[models.Release | models.ReleaseIntent]) -> Iterator[Told]:
    record = stored.record
    if isinstance(record, models.Release):
        yield _simple(record, KnownAttempt(released_at=record.released_at))
    else:
        said = KnownAttempt(intended_at=record.intended_at)
        topic = {"topic": record.ml_name}
        yield record.ledger.ledger_id, str(record.uid), said, topic


def _forget(stored: Stored[sweep_models.ForgetPlan]) -> Iterator[Told]:
    """All that stays of records that are to go: whose ledgers they were."""
    for one in stored.record.ledgers:
        yield one.ledger_id, "", KnownAttempt(), {"topic": one.ml_name}


def _hold(stored: Stored[models.Hold | models.ScopeHold]) -> Iterator[Told]:
    """Of a scope holds are read where they count: they are of no ledger's row."""
    if isinstance(stored.record, models.Hold):
        yield stored.record.ledger_id, "", KnownAttempt(), {"held": stored.record.reason}


def _simple(record: Any, said: KnownAttempt) -> Told:
    topic = {} if record.ml_name is None else {"topic": record.ml_name}
    return record.ledger_id, str(record.uid), said, topic


SAYS: Final[Mapping[str, Callable[[Stored[Any]], Iterator[Told]]]] = {
    "attempts": _attempt,
    "broker-copies": _broker_copy,
    "certificates": _certificate,
    "damage": _damage,
    "forget-plans": _forget,
    "holds": _hold,
    "publications": _publication,
    "quarantines": _quarantine,
    "releases": _release,
    "removals": _removal,
    "scrubs": _scrub,
    "undos": _undo,
}
LEAVES: Final[Mapping[str, tuple[str, ...]]] = {
    "attempts": ("attempted_at",),
    "broker-copies": ("object_bytes",),
    "certificates": ("certified_at", "certificate_sha256", "object_bytes"),
    "damage": ("damaged_at",),
    "quarantines": ("quarantined_at",),
    "releases": ("intended_at", "released_at"),
    "removals": ("removed_at",),
    "scrubs": ("verified_at", "verified_depth", "deep_at"),
}
"""What is not known any more once a record of an attempt is gone."""
TYPES: Final[Mapping[str, tuple[type[Record], ...]]] = {
    "attempts": (models.Attempt,),
    "broker-copies": (scrub_model.BrokerCopy,),
    "certificates": (models.Certificate,),
    "damage": (scrub_model.Damage,),
    "forget-plans": (sweep_models.ForgetPlan,),
    "holds": (models.Hold, models.ScopeHold),
    "publications": (models.Publication,),
    "quarantines": (models.Quarantine,),
    "releases": (models.Release, models.ReleaseIntent),
    "removals": (sweep_models.Removal,),
    "scrubs": (scrub_model.Scrub,),
    "undos": (broker_models.Undo, broker_models.UndoConfirmed),
}
SILENT: Final = frozenset(
    {
        "begun-releases",
        "brokers",
        "brokers-gone",
        "bucket-proofs",
        "budgets",
        "canaries",
        "claims",
        "day-book",
        "disturbances",
        "expired-plans",
        "failures",
        "hold-lifts",
        "leftovers",
        "loads",
        "outcomes",
        "pause-lifts",
        "pauses",
        "plans",
        "run-batches",
        "schemas",
        "streams",
        "sweep-intents",
        "sweeps",
    }
)
"""Of these only that they were written is of use: their runs wrote others that say more."""


def told_by(stored: Stored[Any]) -> Iterator[Told]:
    """What a record says. Nothing, where its kind says nothing of ledgers."""
    says = SAYS.get(folder_of(stored.key))
    return iter(()) if says is None else says(stored)


def type_of(key: str, schema: object) -> type[Record]:
    """The record type of a key that says something, by the schema that its bytes name."""
    types = TYPES[folder_of(key)]
    family = str(schema).rpartition("/")[0]
    return next((one for one in types if one.kind.rpartition("/")[0] == family), types[0])


def folder_of(key: str) -> str:
    return key.partition("/")[0]


def ledger_and_attempt(key: str) -> tuple[int | None, str | None]:
    """What a record's key names of the two."""
    found = _NAMED.fullmatch(key)
    if found is None:
        return None, None
    return int(found["ledger"]), found["uid"]
