"""Write a report of an audit to a new file. Owns: no file is ever overwritten."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tiering_assets.audit.audit_findings import AuditReport
from tiering_assets.audit.report.facts import AskedFor, facts_of
from tiering_assets.audit.report.report_file import ReportKind, make_report
from tiering_assets.ground.record_book import writer_of
from tiering_assets.records.signature import Signer
from tiering_assets.resources.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReport:
    """What became of it. `signed_by` is the fingerprint of a public key."""

    file: Path
    bytes: int
    facts_sha256: str
    signed_by: str | None


def write_report(
    path: Path,
    kind: ReportKind,
    report: AuditReport,
    asked: AskedFor,
    *,
    in_flight_s: float,
    signer: Signer | None,
) -> NewReport:
    """SettingsError where the file is there, or cannot be written; then none of it stays."""
    facts = facts_of(
        report,
        asked,
        tool_version=writer_of("").tool_version,
        in_flight_s=in_flight_s,
    )
    text, digest = make_report(kind, facts, signer)
    body = text.encode()
    try:
        with path.open("xb") as file:
            try:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                path.unlink()
                raise
    except OSError as error:
        raise SettingsError(f"{path}: the report cannot be written: {error.strerror}") from error
    return NewReport(
        file=path,
        bytes=len(body),
        facts_sha256=digest,
        signed_by=None if signer is None else signer.key_id,
    )
