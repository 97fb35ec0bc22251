"""`tierkeeper audit verify`: check records and objects again from the bucket alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.audit.audit_report import check_file, new_report, print_written
from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.grammar.quantities import duration_option
from tiering_assets.cli.grammar.selection import Chosen, ledger_selection
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import (
    human_bytes,
    print_document,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.audit.audit_findings import AuditReport

app = typer.Typer(
    name="audit",
    help="Check again what was certified, from the bucket alone.",
    no_args_is_help=True,
)


CHOSEN = ledger_selection(or_report=True)
IN_FLIGHT_S = 3600.0


@command(
    app,
    "verify",
    examples=(
        "tierkeeper audit verify --all",
        "tierkeeper audit verify 12345 12346 --deep",
        "tierkeeper audit verify --topic public/default/orders",
        "tierkeeper audit verify --all --deep --instance 0d1c0a7e-6f4f-4b3b-9d55-1f1a7a0b7c11 --json",
        "tierkeeper audit verify --all --deep --report audit-2026.html",
        "tierkeeper audit verify --check-report audit-2026.html",
    ),
    reads_only="where it finds no damage",
)
def verify(
    session: Session,
    *,
    chosen: Annotated[Chosen, CHOSEN],
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every byte of data and index objects, too.")
    ] = False,
    instance: Annotated[
        str,
        typer.Option(
            "--instance",
            metavar="ID",
            help="BookKeeper's INSTANCEID; needed where the bucket has records of several.",
        ),
    ] = "",
    in_flight_s: Annotated[
        float | None,
        duration_option("--in-flight", default="1 h", help="A release may be under way so long."),
    ] = None,
    report_file: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write a report for others to a new file, which ends with .html or .md.",
        ),
    ] = None,
) -> None:
    """Check records and objects from the bucket alone.

    Every record's chain and every certified object, without cluster, broker or Dagster. Needs
    nothing but the store's settings, and sign.public_key_files if signatures are to count.
    Ends with 1 if anything is wrong; each finding names ledger, attempt and key. docs/audit.md
    explains them. A copy whose objects are wrong twice in a row is recorded as damaged, which keeps
    its bookie copy. That needs credentials that may write; nothing else is written.

    A report has its facts and their SHA-256, and is signed where sign.private_key_file is set. The
    option --check-report finds whatever was edited in one, and each fact that has changed since.
    What a record accounts for, such as a trim, is told as gone since. It changes nothing.
    """
    if chosen.by_report is not None:
        _refuse_beside_a_report(report_file, in_flight_s)
        if not check_file(session, chosen.by_report, instance=instance, deep=deep):
            raise typer.Exit(FINDINGS)
        return
    target = None if report_file is None else new_report(session, report_file)
    in_flight = IN_FLIGHT_S if in_flight_s is None else in_flight_s
    from tiering_assets.audit.audit import audit_bucket

    def audit(some: Iterable[int] | None, of: str) -> AuditReport:
        return audit_bucket(
            session.settings,
            ledger_ids=some,
            instance=of,
            deep=deep,
            in_flight_s=in_flight,
            narrate=session.progress,
        )

    wanted = chosen.ledger_ids or None
    if chosen.topics or chosen.namespaces:
        wanted = tuple(_of_topics(session, chosen, instance))
        if not wanted:
            raise UsageError(
                "no record of the bucket names a ledger of these topics; "
                "`tierkeeper audit verify --all` checks every ledger with records"
            )
    report = audit(wanted, instance)
    if report.findings:
        report.recorded = _record(session, report, lambda some: audit(some, report.instance))
    written = None
    if target is not None:
        written = target.write(report, chosen, wanted, in_flight_s=in_flight)
    if session.as_json:
        result = "findings" if report.findings else "ok"
        print_document("audit-verify", {"result": result, "report": report, "written": written})
    else:
        _print(report)
        if written is not None:
            print_written(written)
    if report.findings:
        raise typer.Exit(FINDINGS)


def _refuse_beside_a_report(report_file: Path | None, in_flight_s: float | None) -> None:
    for option, given in (("--report", report_file), ("--in-flight", in_flight_s)):
        if given is not None:
            raise UsageError(f"{option} does not go with --check-report")


def _of_topics(session: Session, chosen: Chosen, instance: str) -> list[int]:
    from tiering_assets.audit.topics import ledgers_of
    from tiering_assets.resources.errors import FormatError
    from tiering_assets.resources.object_store.s3 import S3ObjectStore
    from tiering_assets.resources.settings_sources import require_store

    objects = S3ObjectStore(require_store(session.settings))
    try:
        return ledgers_of(
            objects,
            chosen.topics,
            chosen.namespaces,
            instance=instance,
            narrate=session.progress,
        )
    except FormatError as error:
        raise UsageError(str(error)) from None


def _record(
    session: Session, report: AuditReport, look_again: Callable[[list[int]], AuditReport]
) -> int:
    from tiering_assets.audit.audit_damage import record_audited
    from tiering_assets.resources.object_store.s3 import S3ObjectStore

    objects = S3ObjectStore(session.settings.store)
    return record_audited(objects, report, look_again, narrate=session.progress)


def _print(report: AuditReport) -> None:
    from tiering_assets.ground.damage_advice import next_step

    _print_topics(report)
    for finding in report.findings:
        print_line(f"finding: {finding}", lead="finding")
    if report.recorded:
        print_line(f"{report.recorded} copies are on record as damaged: {next_step(None)}")
    read = f", {human_bytes(report.bytes_read)} of them read" if report.deep else ""
    gone = f", {report.forgotten} forgotten" if report.forgotten else ""
    gone += f", {report.removed} of ledgers that are gone" if report.removed else ""
    said = f"{len(report.findings)} findings" if report.findings else "ok"
    gone += f", {report.segments} segments" if report.segments else ""
    print_line(
        f"instance {report.instance}: {report.ledgers} ledgers, {report.attempts} attempts{gone}, "
        f"{report.records} records, {report.objects} objects{read}: {said}"
    )


def _print_topics(report: AuditReport) -> None:
    read = (Column("BYTES READ", ValueKind.SIZE),) if report.deep else ()
    columns = (
        Column("TOPIC", ValueKind.TOPIC),
        Column("LEDGERS", ValueKind.NUMBER),
        Column("ATTEMPTS", ValueKind.NUMBER),
        Column("RECORDS", ValueKind.NUMBER),
        Column("OBJECTS", ValueKind.NUMBER),
        *read,
        Column("FINDINGS", ValueKind.NUMBER),
    )
    rows = (
        (
            one.topic,
            one.ledgers,
            one.attempts,
            one.records,
            one.objects,
            *((one.bytes_read,) if read else ()),
            one.findings,
        )
        for one in report.topics
    )
    print_table(columns, rows)
