"""Audit what a topic held of a period: its records, objects and coverage, and who did what when.

Reads only. Owns: the ledgers of a period are those with a block that may have messages of it, and
those that were closed, or changed by a record, within it. What is judged of them is audit/'s, and
what is shown of it is the facts of a report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from tiering_assets.audit.audit import IN_FLIGHT_S, audit_store
from tiering_assets.audit.audit_findings import AuditReport
from tiering_assets.audit.report.facts import AskedFor, AuditFacts, facts_of
from tiering_assets.audit.report.new_report import NewReport, write_report
from tiering_assets.audit.report.report_file import ReportKind
from tiering_assets.ground.record_book import writer_of
from tiering_assets.ground.signing import load_signer
from tiering_assets.lineage.asked import Span, is_of, parse_span, parse_topic
from tiering_assets.lineage.find import blocks_of_span, of_topic_named, require_topic
from tiering_assets.notebook.frames import frame_of
from tiering_assets.notebook.look import ClusterLook
from tiering_assets.resources.errors import CatalogueError, SettingsError
from tiering_assets.resources.metastore.topic_names import TopicName
from tiering_assets.resources.sql import rows_among, sql_text, sql_time

_MOMENTS: Final = (
    "closed_at",
    "attempted_at",
    "certified_at",
    "published_at",
    "intended_at",
    "released_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPeriod:
    """A topic and a time, both ends of which belong to it. `ledger_ids` have records in the bucket,
    `bare_ids` have none.
    """

    look: ClusterLook
    topic: TopicName
    span: Span
    ml_names: tuple[str, ...]
    ledger_ids: tuple[int, ...]
    bare_ids: tuple[int, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        return (*self.ledger_ids, *self.bare_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodAudit:
    """`facts` are all that is shown, and all that a report is made of."""

    asked: AskedPeriod
    report: AuditReport
    facts: AuditFacts


def period_of(look: ClusterLook, topic: str, since: str, until: str) -> AskedPeriod:
    """Which ledgers of the topic, and of its partitions, the period is about.

    Raises:
        ValueError: topic or time cannot be meant.
        CatalogueError: the topic is not in the catalogue, or had nothing in that time.
    """
    name, span = parse_topic(topic), parse_span(since, until)
    require_topic(look.tables, name, look.as_of)
    ml_names = _managed_ledgers(look, name)
    inside = [f"({at} between {sql_time(span.first)} and {sql_time(span.last)})" for at in _MOMENTS]
    of_topic = f"topic in ({', '.join(map(sql_text, ml_names))})"
    moved = look.sql(
        f"select ledger_id from ledgers where {of_topic} and ({' or '.join(inside)})"  # noqa: S608
    )
    ids = {int(one) for one in moved["ledger_id"]}
    ids |= {one.ledger_id for one in blocks_of_span(look.tables, name, span)}
    if not ids:
        raise CatalogueError(
            f"{name} has no ledger of {since} to {until} in the catalogue ({look.as_of}): ask for a "
            "longer time, or post what is new: `tierkeeper catalogue post`"
        )
    recorded = look.sql(
        f"select distinct ledger_id from {rows_among('events', 'ledger_id', ids)} "  # noqa: S608
        "where kind = 'attempts'"
    )
    with_records = {int(one) for one in recorded["ledger_id"]}
    return AskedPeriod(
        look=look,
        topic=name,
        span=span,
        ml_names=ml_names,
        ledger_ids=tuple(sorted(ids & with_records)),
        bare_ids=tuple(sorted(ids - with_records)),
    )


def _managed_ledgers(look: ClusterLook, topic: TopicName) -> tuple[str, ...]:
    """It, or its partitions, as far as the catalogue knows."""
    where = of_topic_named(topic.managed_ledger_name)
    rows = look.sql(f"select distinct topic from ledger_changes where {where}")  # noqa: S608 - quoted
    return tuple(sorted(one for one in rows["topic"] if is_of(one, topic)))


def audited(asked: AskedPeriod, *, deep: bool) -> PeriodAudit:
    """Audit the records and objects of these ledgers; `deep` reads every byte of them.

    Raises:
        CatalogueError: none of the ledgers has a record in the bucket.
        ObjectStoreError: the bucket cannot be listed.
    """
    if not asked.ledger_ids:
        raise CatalogueError(
            f"no ledger of {asked.topic} has a record of that time: ledgers "
            f"{_named(asked.bare_ids)} lie on bookies alone, or were copied by a broker"
        )
    look = asked.look
    report = audit_store(
        look.stack.objects,
        look.settings,
        ledger_ids=asked.ledger_ids,
        instance=look.stack.instance,
        deep=deep,
    )
    facts = facts_of(
        report, _selection(asked), tool_version=writer_of("").tool_version, in_flight_s=IN_FLIGHT_S
    )
    return PeriodAudit(asked=asked, report=report, facts=facts)


def _named(ledger_ids: Iterable[int]) -> str:
    return ", ".join(map(str, [*ledger_ids][:20])) or "of it"


def _selection(asked: AskedPeriod) -> AskedFor:
    name = str(asked.topic).removeprefix("persistent://")
    return AskedFor(ledger_ids=asked.ledger_ids, topics=(name,))


def proofs(audit: PeriodAudit) -> pd.DataFrame:
    """Each attempt by the facts: what its objects are now, and who signed its certificate."""
    rows = [
        {
            "ledger_id": one.ledger_id,
            "attempt": str(one.uid),
            "verdict": str(one.verdict),
            "records": len(one.records),
            "object_bytes": sum(found.size or 0 for found in one.objects),
            "bytes_read": one.bytes_read,
            "signed_by": one.signed_by,
        }
        for one in audit.facts.ledgers
    ]
    columns = ("ledger_id", "attempt", "verdict", "records", "object_bytes", "bytes_read")
    return frame_of(rows, (*columns, "signed_by"))


def findings(audit: PeriodAudit) -> pd.DataFrame:
    """What is wrong, by the facts; no row where nothing is."""
    columns = ("kind", "ledger_id", "key", "what", "expected", "found")
    rows = [{name: getattr(one, name) for name in columns} for one in audit.facts.findings]
    return frame_of(rows, columns)


def write_audit(audit: PeriodAudit, path: str) -> NewReport:
    """Write the facts as a report for others, signed where sign.private_key_file is set.

    SettingsError for a name that ends with neither .html nor .md, or a file that is there.
    """
    file = Path(path)
    endings = [kind.value for kind in ReportKind]
    if file.suffix not in endings:
        raise SettingsError(f"{path}: the name has to end with {' or '.join(endings)}")
    return write_report(
        file,
        ReportKind(file.suffix),
        audit.report,
        _selection(audit.asked),
        in_flight_s=audit.facts.in_flight_s,
        signer=load_signer(audit.asked.look.settings),
    )
