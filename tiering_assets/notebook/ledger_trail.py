"""One ledger from its bookies to its object to its release, with each proof made again.

Reads only. Owns: no proof is made here. Who proves is asked, and what was compared is told row by
row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from tiering_assets.audit.audit import audit_store
from tiering_assets.batch.release_batch import release_records
from tiering_assets.explain.ledger_report import ChainLink, LedgerReport, report_ledger
from tiering_assets.lineage.find import blocks_of_ledgers
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.lineage.proof import prove_blocks
from tiering_assets.lineage.proof_rules import TruthCompared
from tiering_assets.notebook.frames import frame_of
from tiering_assets.notebook.look import ClusterLook
from tiering_assets.records.writer import Writer
from tiering_assets.resources.errors import CatalogueError, FormatError, TierkeeperError
from tiering_assets.verify.reverify import reverify_ledgers

_STEPS: Final = (
    ("closed", "closed_at"),
    ("certified", "certified_at"),
    ("published", "published_at"),
    ("release begun", "intended_at"),
    ("released", "released_at"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """`row` is the newest row of the catalogue; `report` is what both trees and the bucket say
    now.
    """

    look: ClusterLook
    row: dict[str, Any]
    report: LedgerReport
    blocks: Sequence[PlacedBlock]

    @property
    def ledger_id(self) -> int:
        return self.report.ledger_id


def follow(look: ClusterLook, ledger_id: int = 0) -> Trail:
    """That ledger; with 0 the newest one that was released, or else published.

    Raises:
        CatalogueError: it has no row in the catalogue, or nothing is published.
        LedgerNotFoundError: neither tree nor any record knows it.
    """
    wanted = (
        f"where ledger_id = {ledger_id}"
        if ledger_id
        else "where state in ('released', 'published')"
    )
    found = look.sql(
        f"select * from ledgers {wanted} "  # noqa: S608 - a number
        "order by state desc, published_at desc nulls last, ledger_id desc limit 1"
    )
    if found.empty:
        said = f"ledger {ledger_id} is not" if ledger_id else "no published ledger is"
        raise CatalogueError(
            f"{said} in the catalogue ({look.as_of}): `tierkeeper catalogue post` brings what was "
            "written since"
        )
    row = {str(name): value for name, value in found.iloc[0].items()}
    chosen = int(row["ledger_id"])
    return Trail(
        look=look,
        row=row,
        report=report_ledger(look.stack, chosen, loads_nothing=True),
        blocks=blocks_of_ledgers(look.tables, [chosen]),
    )


def steps(trail: Trail) -> pd.DataFrame:
    """When it took each step that it has taken, by the catalogue's row."""
    rows = [{"step": name, "at": trail.row[column]} for name, column in _STEPS]
    found = frame_of(rows, ("step", "at"))
    return found[found["at"].notna()].reset_index(drop=True)


def on_bookies(trail: Trail) -> pd.DataFrame:
    """What BookKeeper's metadata says of it now: one row, or none where it has no node any more."""
    node = trail.report.sight.node
    columns = ("ledger_id", "state", "entries", "bytes", "write_quorum", "bookies")
    if node is None:
        return frame_of((), columns)
    ledger = node.metadata
    bookies = sorted({one for segment in ledger.segments for one in segment.bookies})
    row = {
        "ledger_id": ledger.ledger_id,
        "state": ledger.state.name,
        "entries": ledger.entries,
        "bytes": ledger.length,
        "write_quorum": ledger.write_quorum,
        "bookies": ", ".join(bookies),
    }
    return frame_of([row], columns)


def records(trail: Trail) -> pd.DataFrame:
    """The records of its attempts in the order of the chain: who wrote each, and when it came."""
    rows = [
        {
            "record": link.key,
            "stored_at": link.stored_at,
            "host": _writer_of(link).host,
            "run_id": _writer_of(link).run_id,
            "sha256": link.sha256,
        }
        for attempt in trail.report.attempts
        for link in attempt.chain
    ]
    return frame_of(rows, ("record", "stored_at", "host", "run_id", "sha256"))


def _writer_of(link: ChainLink) -> Writer:
    writer = getattr(link.record, "writer", None)
    if not isinstance(writer, Writer):
        raise FormatError(f"{link.key}: expected a record that names its writer, found none")
    return writer


def blocks(trail: Trail) -> pd.DataFrame:
    """Where its bytes lie: a row for each block of the attempt that counts."""
    columns = ("part", "first_entry_id", "last_entry_id", "messages", "offset", "length", "sha256")
    rows = [{name: getattr(one, name) for name in (*columns, "data_key")} for one in trail.blocks]
    return frame_of(rows, (*columns, "data_key"))


def records_follow(trail: Trail) -> list[TruthCompared]:
    """Does each record name the one before it, and does an audit of all of them find nothing?"""
    said = [_followed(link) for one in trail.report.attempts for link in one.chain]
    look = trail.look
    report = audit_store(
        look.stack.objects,
        look.settings,
        ledger_ids=[trail.ledger_id],
        instance=look.stack.instance,
    )
    said += [TruthCompared(agrees=False, what=str(one)) for one in report.findings]
    if not report.findings:
        what = f"an audit of {report.records} records and {report.objects} objects found nothing"
        said.append(TruthCompared(agrees=True, what=what))
    return said


def _followed(link: ChainLink) -> TruthCompared:
    said = "follows the record before it" if link.follows else "names another record before it"
    return TruthCompared(agrees=link.follows, what=f"{link.key}: {said}")


def rows_agree(trail: Trail) -> list[TruthCompared]:
    """Do the catalogue's rows of its blocks still say what certificate and object say?"""
    return prove_blocks(trail.look.stack, trail.blocks)


def bytes_agree(trail: Trail) -> list[TruthCompared]:
    """Is every byte of its object as certified, and as bookies give it while they have it?"""
    [found] = reverify_ledgers(trail.look.stack, [trail.ledger_id], source=True).values()
    if isinstance(found, TierkeeperError):
        raise found
    said = [TruthCompared(agrees=False, what=one) for one in found.findings]
    if not found.findings:
        beside = "its certificate and the bookies" if found.with_source else "its certificate"
        what = f"{found.data_key}: {found.bytes_read} bytes of {found.blocks} blocks equal {beside}"
        said.append(TruthCompared(agrees=True, what="; ".join([what, *found.notes])))
    return said


def release_agrees(trail: Trail) -> list[TruthCompared]:
    """Was it released by the rules, and is it gone? If it was not released, is it there?"""
    ledger_id, stack = trail.ledger_id, trail.look.stack
    there = stack.ledgers.read(ledger_id) is not None
    released = release_records(stack, ledger_id)
    if released is None:
        said = "BookKeeper has it" if there else "BookKeeper does not have it"
        by_broker = trail.row["bookie_copy"] == "deleted"
        what = f"ledger {ledger_id}: nobody released it by a record, and {said}"
        return [TruthCompared(agrees=there or by_broker, what=what)]
    faults = [
        TruthCompared(agrees=False, what=f"{released.release.key}: {one}")
        for one in released.faults
    ]
    at, run = released.release.record.released_at, released.release.record.writer.run_id
    by_rules = f"{released.release.key}: released {at.isoformat()} by run {run}, by the rules"
    gone = "BookKeeper still has it" if there else "BookKeeper does not have it any more"
    return [
        *(faults or [TruthCompared(agrees=True, what=by_rules)]),
        TruthCompared(agrees=not there, what=f"ledger {ledger_id}: {gone}"),
    ]
