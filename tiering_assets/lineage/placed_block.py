"""Rows of the catalogue as lineage tells them: a block with what is known of its ledger.

Owns: which attempt of a ledger counts: the one that brokers read, which is published, or a
broker's own of which there are blocks; else the newest that is certified and not quarantined.
Blocks of other attempts are never mixed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from tiering_assets.catalogue.facts.known_ledger import (
    BY_BROKER,
    KnownAttempt,
    facts_of_row,
    offloaded_by,
)
from tiering_assets.ground.moments import moment


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedBlock:
    """A row of `blocks`; `state`, `bookie_copy` and `counts` are of its ledger's row.

    `certificate_sha256` is None of a block that a broker wrote.
    `counts` says whether its attempt is the one that counts of the ledger.
    """

    topic: str
    ledger_id: int
    part: int
    first_entry_id: int
    last_entry_id: int
    publish_min: datetime | None
    publish_max: datetime | None
    messages: int | None
    bucket: str
    data_key: str
    version_id: str | None
    offset: int
    length: int
    payload_bytes: int
    sha256: str
    uid: str
    certificate_sha256: str | None
    run_id: str
    written_by: str
    page: int
    state: str
    bookie_copy: str
    counts: bool

    @property
    def on_bookies(self) -> bool:
        """Whether its entries lie there alone: then it is a range of entries, and no bytes."""
        return not self.data_key

    @property
    def by_broker(self) -> bool:
        """Then a look of ours read it, and nothing of it is certified."""
        return self.written_by == BY_BROKER

    @property
    def end(self) -> int:
        """The byte behind it."""
        return self.offset + self.length

    @property
    def entries(self) -> int:
        return self.last_entry_id - self.first_entry_id + 1


COLUMNS = tuple(one.name for one in fields(PlacedBlock))[:-3]
"""Those of the table `blocks`."""


def placed_block(row: Mapping[str, Any], ledger: Mapping[str, Any] | None) -> PlacedBlock:
    """Of a row of `blocks` and the newest row of its ledger; None where there is none."""
    return PlacedBlock(
        **{name: row[name] for name in COLUMNS},
        state="unknown" if ledger is None else ledger["state"],
        bookie_copy="unknown" if ledger is None else _bookie_copy(ledger, row["uid"]),
        counts=ledger is not None and attempt_that_counts(ledger) == row["uid"],
    )


def block_of_bookies(
    topic: str, ledger_id: int, part: int, entries: range, *, length: int
) -> PlacedBlock:
    """Some entries of a ledger that has no copy; `length` is about how many bytes they have."""
    return PlacedBlock(
        topic=topic,
        ledger_id=ledger_id,
        part=part,
        first_entry_id=entries[0],
        last_entry_id=entries[-1],
        publish_min=None,
        publish_max=None,
        messages=None,
        bucket="",
        data_key="",
        version_id=None,
        offset=0,
        length=length,
        payload_bytes=length,
        sha256="",
        uid="",
        certificate_sha256=None,
        run_id="",
        written_by="",
        page=0,
        state="sealed",
        bookie_copy="there",
        counts=True,
    )


def attempt_that_counts(ledger: Mapping[str, Any]) -> str | None:
    """Of a row of `ledgers`: the attempt that brokers read, else the newest sound one of ours."""
    facts = facts_of_row(ledger)
    if facts.uid is not None:
        now = facts.of(facts.uid)
        if now.published or (offloaded_by(facts) == BY_BROKER and now.object_bytes is not None):
            return facts.uid
    sound = {uid: one for uid, one in facts.attempts.items() if _is_sound(one)}
    return max(sound, key=lambda uid: (str(sound[uid].certified_at), uid), default=None)


def _is_sound(attempt: KnownAttempt) -> bool:
    return attempt.certified_at is not None and attempt.quarantined_at is None


def _bookie_copy(ledger: Mapping[str, Any], uid: str) -> str:
    """As far as records tell, which say what tierkeeper did; what a broker did, scans saw."""
    if ledger["bookie_copy"] == "deleted" and ledger["offloaded_by"] == BY_BROKER:
        return "deleted by its broker"
    facts = facts_of_row(ledger).of(uid)
    if facts.released_at is not None:
        return f"deleted {moment(facts.released_at)}"
    if facts.intended_at is not None:
        return f"marked as deleted {moment(facts.intended_at)}"
    return "there"
