"""Offload many ledgers of one topic, lot by lot, and tell when all of it will be finished.

Owns: what a batch may hold is what a run of the automation may (auto.batch_ledgers_max and
auto.batch_bytes_max). A batch is published at once, so that its topic is reloaded once, and its
bookie copies can go while the backfill goes on. Nothing is remembered for a later run: what an
earlier one published or proved is found by its records, and its pace is measured anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from tiering_assets.batch.backfill_rules import BackfillFigures, LotDone, cut_lots, figures_of
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
    backfill = _Backfill(stack, ledgers)
    for lot in lots:
        if publish and backfill.is_full(lot):
            backfill.publish()
        backfill.copy(lot, publish=publish)
    if publish:
        backfill.publish()
    return [backfill.outcomes[one.ledger_id] for one in ledgers]


class _Backfill:
    """One pass: `proven` are the ledgers that wait for their batch to be published."""

    def __init__(self, stack: Stack, ledgers: Sequence[LedgerInfo]) -> None:
        self._stack = stack
        self._sizes = {one.ledger_id: one.size or 0 for one in ledgers}
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

    def copy(self, lot: Sequence[LedgerInfo], *, publish: bool) -> None:
        """Copy and read back. What an earlier run did, and what waits, says nothing of the pace."""
        ids = [one.ledger_id for one in lot]
        began = self._stack.monotonic()
        for one in offload_batch(self._stack, ids, publish=False, ask_first=publish):
            self.outcomes[one.ledger_id] = one
            if one.certificate is not None and one.wait is None and one.error is None:
                self._proven.append(one.ledger_id)
        took = self._stack.monotonic() - began
        worked = [i for i in ids if self.outcomes[i].verified or self.outcomes[i].error is not None]
        size = sum(self._sizes[i] for i in worked)
        if worked:
            self._done.append(LotDone(len(worked), size, took))
        self._found = LotDone(
            self._found.ledgers + len(ids) - len(worked),
            self._found.bytes + sum(self._sizes[i] for i in ids) - size,
            0.0,
        )
        self._tell()

    def publish(self) -> None:
        """Publish what is proven, as one change of the topic."""
        if not self._proven:
            return
        began = self._stack.monotonic()
        for now in offload_batch(self._stack, self._proven):
            before = self.outcomes[now.ledger_id]
            self.outcomes[now.ledger_id] = replace(
                now,
                copied=before.copied or now.copied,
                verified=before.verified or now.verified,
                parts_sent=before.parts_sent + now.parts_sent,
                notes=before.notes or now.notes,
                seconds=before.seconds,
            )
        self._publish_s += self._stack.monotonic() - began
        self._published += len(self._proven)
        self._proven = []

    def _tell(self) -> None:
        found = figures_of(
            self._done,
            found=self._found,
            ledgers=len(self._sizes),
            size=sum(self._sizes.values()),
            publish_ledger_s=self._publish_s / max(1, self._published),
        )
        line = about(_text(found))
        line.event = {"backfill": asdict(found)}
        self._stack.narrate(line)


def _text(found: BackfillFigures) -> str:
    left = ""
    if found.seconds_left is not None:
        left = f", finished in about {span_text(found.seconds_left)}"
    return (
        f"backfill: {found.ledgers_done} of {found.ledgers} ledgers, "
        f"{found.bytes_done / 1e6:.1f} of {found.bytes / 1e6:.1f} MB{left}"
    )
