"""What happened to a topic's ledgers of a period: coverage, holds, releases, and who did it when.

Reads only. Owns: coverage is judged by lineage/, of the whole topic as its list is now. Holds are
those of now. Releases and acts are of the period: by their records, and by pages of the day book.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from tiering_assets.batch.release_batch import ReleaseRecords, release_records
from tiering_assets.lineage.coverage import ReadLists, coverage_of
from tiering_assets.lineage.coverage_rules import TopicCoverage
from tiering_assets.look.brakes.brake import HOLD, Met, read_brakes
from tiering_assets.look.brakes.scopes import ledger_scope, scopes_of
from tiering_assets.notebook.frames import frame_of
from tiering_assets.notebook.topic_audit import AskedPeriod
from tiering_assets.records import keys
from tiering_assets.records.models import HoldLift
from tiering_assets.resources.sql import rows_among, sql_text, sql_time

_COUNTS = ("covered", "on_bookies", "by_brokers", "in_work")


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """`figures` has a row for each partition, `findings` one for each finding."""

    figures: pd.DataFrame
    findings: pd.DataFrame


def coverage(asked: AskedPeriod) -> Covered:
    """Compare what the topic lists now with the blocks of the catalogue."""
    look = asked.look
    nodes = look.stack.topics.read_many(asked.ml_names)
    found = [*coverage_of(look.stack, look.tables, look.as_of, nodes, ReadLists())]
    return Covered(
        figures=frame_of(map(_figures, found), ("topic", "first", "last", *_COUNTS, "findings")),
        findings=frame_of(
            (
                {
                    "topic": one.topic,
                    "ledger_id": it.ledger_id,
                    "kind": str(it.kind),
                    "what": it.what,
                }
                for one in found
                for it in one.findings
            ),
            ("topic", "ledger_id", "kind", "what"),
        ),
    )


def _figures(one: TopicCoverage) -> dict[str, object]:
    ends = {"first": _place(one.first), "last": _place(one.last)}
    counts = {name: getattr(one, name) for name in _COUNTS}
    return {"topic": one.topic, **ends, **counts, "findings": len(one.findings)}


def _place(place: tuple[int, int] | None) -> str | None:
    return None if place is None else f"{place[0]}:{place[1]}"


def holds(asked: AskedPeriod) -> pd.DataFrame:
    """Holds that bind one of these ledgers now, the widest first: who, what, why, since when."""
    brakes = read_brakes(asked.look.stack, HOLD)
    met: dict[tuple[str, str], Met] = {}
    for ml_name in asked.ml_names:
        for ledger_id in (None, *asked.ids):
            for one in brakes.on(ml_name, ledger_id):
                met.setdefault((one.scope.kind, one.scope.name), one)
    rows = [
        {
            "scope": kind,
            "name": name,
            "since": None if one.brake is None else one.brake.since,
            "author": None if one.brake is None else one.brake.author,
            "why": one.said,
        }
        for (kind, name), one in met.items()
    ]
    return frame_of(rows, ("scope", "name", "since", "author", "why"))


def releases(asked: AskedPeriod) -> pd.DataFrame:
    """Releases of the period by their records; `faults` is empty where the rules were kept."""
    stack, span = asked.look.stack, asked.span
    found = stack.in_parallel(lambda one: release_records(stack, one), asked.ledger_ids)
    rows = [
        _release(one)
        for one in found
        if one is not None and span.first <= one.release.record.released_at <= span.last
    ]
    columns = ("ledger_id", "released_at", "bytes", "host", "run_id", "plan", "lag_s", "faults")
    return frame_of(rows, columns)


def _release(found: ReleaseRecords) -> dict[str, object]:
    record = found.release.record
    intent = None if found.intent is None else found.intent.record
    return {
        "ledger_id": record.ledger_id,
        "released_at": record.released_at,
        "bytes": record.bytes_released,
        "host": record.writer.host,
        "run_id": record.writer.run_id,
        "plan": None if intent is None else intent.plan,
        "lag_s": None if intent is None else intent.deletion_lag_s,
        "faults": "; ".join(found.faults),
    }


def lifted(asked: AskedPeriod) -> pd.DataFrame:
    """Holds on these ledgers that were lifted in the period: by whom, when and why."""
    keys_of_holds = {
        HOLD.key(scope): scope
        for ml_name in asked.ml_names
        for scope in (*scopes_of(ml_name), *map(ledger_scope, asked.ids))
    }
    rows = []
    told = asked.look.sql(
        f"select key from events where kind = 'hold-lifts' and what = 'written' and {_at(asked)}"  # noqa: S608
    )
    for key in told["key"]:
        record = asked.look.stack.book.require(HoldLift, key).record
        scope = keys_of_holds.get(record.hold_key)
        if scope is not None:
            what = {"scope": scope.kind, "name": scope.name, "lifted_at": record.lifted_at}
            rows.append({**what, "author": record.author, "why": record.reason})
    return frame_of(rows, ("scope", "name", "lifted_at", "author", "why"))


def acts(asked: AskedPeriod) -> pd.DataFrame:
    """Who wrote or took away which records of these ledgers in the period, by run and kind.

    Publications are those of the topic: each may be of several ledgers.
    """
    published = " or ".join(
        f"starts_with(key, {sql_text(keys.publications_of(name))})" for name in asked.ml_names
    )
    by = "command, run_id, what, kind"
    columns, at = f"at, ledger_id, {by}", _at(asked)
    of_ledgers = f"select {columns} from {rows_among('events', 'ledger_id', asked.ids)} where {at}"  # noqa: S608
    of_topics = (
        f"select {columns} from events where kind = 'publications' and ({published}) and {at}"  # noqa: S608
    )
    sums = "count(*) as records, count(distinct ledger_id) as ledgers"
    return asked.look.sql(
        f"select min(at) as at, {by}, {sums} from ({of_ledgers} union all {of_topics}) "  # noqa: S608
        f"group by {by} order by at, {by}"
    )


def _at(asked: AskedPeriod) -> str:
    return f"at between {sql_time(asked.span.first)} and {sql_time(asked.span.last)}"
