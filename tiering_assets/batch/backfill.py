"""Offload many ledgers of one topic, lot by lot, and tell when all of it will be finished.

Owns: what a batch may hold is what a run of the automation may (auto.batch_ledgers_max and
auto.batch_bytes_max). A batch is published at once, so that its topic is reloaded once, and its
bookie copies can go while the backfill goes on. The first tenth is published by itself: what that
takes belongs to the finish, which is told from there on. Nothing is remembered for a later run:
what an earlier one published or proved is found by its records, and its pace is measured anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from tiering_assets.batch.backfill_rules import (
    BackfillFigures,
    LotDone,
    cut_lots,
    figures_of,
    is_told,
)
from tiering_assets.batch.pipeline import LedgerOutcome, offload_batch
from tiering_assets.ground.effects import about
from tiering_assets.ground.stack import Stack
from tiering_assets.ground.task_progress import span_text
from tiering_assets.resources.metastore.ledger_info import LedgerInfo


def offload_in_lots(
    stack: Stack, ledgers: Sequence[LedgerInfo], *, publish: bool
) -> list[LedgerOutcome]:
    """One outcome for each ledger, as offload_batch has them."""
    lots = cut_lots(ledgers)
    if len(lots) == 1:
        return offload_batch(stack, [one.ledger_id for one in ledgers], publish=publish)
    backfill = _Backfill(stack, ledgers, publish=publish)
    for lot in lots:
        if backfill.is_full(lot):
            backfill.publish()
        backfill.copy(lot)
        if backfill.is_first_tenth():
            backfill.publish()
        backfill.tell()
    backfill.publish()
    return [backfill.outcomes[one.ledger_id] for one in ledgers]


class _Backfill:
    """One pass: `proven` are the ledgers that wait for their batch to be published."""

    def __init__(self, stack: Stack, ledgers: Sequence[LedgerInfo], *, publish: bool) -> None:
        self._stack, self._publishes = stack, publish
        self._sizes = {one.ledger_id: one.size or 0 for one in ledgers}
        self._size = sum(self._sizes.values())
        self._proven: list[int] = []
        self._done: list[LotDone] = []
        self._found = LotDone(0, 0, 0.0)
        self._published, self._publish_s = 0, 0.0
        self.outcomes: dict[int, LedgerOutcome] = {}

    def is_full(self, lot: Sequence[LedgerInfo]) -> bool:
        """Whether the batch has no room for this lot, too."""
        auto = self._stack.settings.auto
        size = sum(self._sizes[i] for i in self._proven) + sum(one.size or 0 for one in lot)
        count = len(self._proven) + len(lot)
        return count > auto.batch_ledgers_max or size > auto.batch_bytes_max

    def copy(self, lot: Sequence[LedgerInfo]) -> None:
        """Copy and read back. What an earlier run did, and what waits, says nothing of the pace."""
        began, worked = self._stack.monotonic(), LotDone(0, 0, 0.0)
        ids = [one.ledger_id for one in lot]
        for one in offload_batch(self._stack, ids, publish=False, ask_first=self._publishes):
            self.outcomes[one.ledger_id] = one
            size = self._sizes[one.ledger_id]
            if one.verified:
                worked = replace(worked, ledgers=worked.ledgers + 1, bytes=worked.bytes + size)
            else:
                self._found = replace(
                    self._found, ledgers=self._found.ledgers + 1, bytes=self._found.bytes + size
                )
            if self._publishes and one.state == "verified":
                self._proven.append(one.ledger_id)
        self._done.append(replace(worked, seconds=self._stack.monotonic() - began))

    def is_first_tenth(self) -> bool:
        """Whether a finish is to be told, and what a publication takes can be known now."""
        return (
            bool(self._proven)
            and not self._published
            and is_told(self._done, found=self._found, ledgers=len(self._sizes), size=self._size)
        )

    def publish(self) -> None:
        """Publish what is proven, as one change of the topic."""
        began = self._stack.monotonic()
        for now in offload_batch(self._stack, self._proven):
            before = self.outcomes[now.ledger_id]
            self.outcomes[now.ledger_id] = replace(
                now,
                copied=before.copied | now.copied,
                verified=before.verified | now.verified,
                parts_sent=before.parts_sent + now.parts_sent,
                notes=(*before.notes, *now.notes),
                seconds=before.seconds,
            )
        self._publish_s += self._stack.monotonic() - began
        self._published += len(self._proven)
        self._proven = []

    def tell(self) -> None:
        unseen = len(self._sizes) - len(self.outcomes)
        waiting = (unseen if self._publishes else 0) + len(self._proven)
        found = figures_of(
            self._done,
            found=self._found,
            ledgers=len(self._sizes),
            size=self._size,
            publish_s=waiting * self._publish_s / max(1, self._published),
        )
        line = about(_text(found))
        line.event = {"backfill": asdict(found)}
        self._stack.narrate(line)


def _text(found: BackfillFigures) -> str:
    done = (
        f"backfill: {found.ledgers_done} of {found.ledgers} ledgers, "
        f"{found.bytes_done / 1e6:.1f} of {found.bytes / 1e6:.1f} MB"
    )
    if found.seconds_left is None:
        return done
    return f"{done}, finished in about {span_text(found.seconds_left)}"
