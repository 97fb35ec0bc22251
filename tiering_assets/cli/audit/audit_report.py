"""`audit verify --report` and `--check-report`: what they refuse at once, and what they print."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tiering_assets.cli.grammar.selection import Chosen
from tiering_assets.cli.shared.output import human_bytes, human_time, print_document, print_line
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError

if TYPE_CHECKING:
    from tiering_assets.audit.audit_findings import AuditReport
    from tiering_assets.audit.report.check_report import ReportCheck
    from tiering_assets.audit.report.new_report import NewReport
    from tiering_assets.audit.report.report_file import ReportKind
    from tiering_assets.records.signature import Signer


@dataclass(frozen=True, slots=True)
class ReportTarget:
    """A new file, and the key that signs; known before anything is read."""

    path: Path
    kind: ReportKind
    signer: Signer | None

    def write(
        self,
        report: AuditReport,
        chosen: Chosen,
        ledger_ids: tuple[int, ...] | None,
        *,
        in_flight_s: float,
    ) -> NewReport:
        """`ledger_ids` are those that were chosen in whatever way; None of everything."""
        from tiering_assets.audit.report.facts import AskedFor
        from tiering_assets.audit.report.new_report import write_report

        asked = AskedFor(
            everything=ledger_ids is None,
            ledger_ids=ledger_ids or (),
            topics=chosen.topics,
            namespaces=chosen.namespaces,
        )
        return write_report(
            self.path, self.kind, report, asked, in_flight_s=in_flight_s, signer=self.signer
        )


def new_report(session: Session, path: Path) -> ReportTarget:
    """Usage error unless a report may be written there."""
    from tiering_assets.audit.report.report_file import ReportKind
    from tiering_assets.ground.signing import load_signer

    endings = [kind.value for kind in ReportKind]
    if path.suffix not in endings:
        raise UsageError(f"--report {path}: the name has to end with {' or '.join(endings)}")
    if path.is_symlink() or path.exists():
        raise UsageError(f"--report {path}: it is there already, and a report is a new file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--report {path}: there is no folder {path.absolute().parent}")
    return ReportTarget(path, ReportKind(path.suffix), load_signer(session.settings))


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"--check-report {path}: {error.strerror}") from None


def check_file(session: Session, path: Path, *, instance: str, deep: bool) -> bool:
    """Check a report and print what came out; whether all is equal."""
    from tiering_assets.audit.report.check_report import check_report
    from tiering_assets.resources.object_store.s3 import S3ObjectStore
    from tiering_assets.resources.settings_sources import require_store

    body = read_file(path)
    checked = check_report(
        S3ObjectStore(require_store(session.settings)),
        session.settings,
        body,
        name=str(path),
        instance=instance,
        deep=deep,
        narrate=session.progress,
    )
    if session.as_json:
        result = "findings" if checked.findings else "ok"
        document = {"result": result, "findings": checked.findings, "report_check": checked}
        print_document("audit-verify", document)
    else:
        _print(path, checked)
    return not checked.findings


def print_written(written: NewReport) -> None:
    signed = f"signed by key {written.signed_by}" if written.signed_by else "not signed"
    print_line(
        f"report {written.file}: {human_bytes(written.bytes)}, {signed}, SHA-256 of its facts "
        f"{written.facts_sha256}"
    )


def _print(path: Path, checked: ReportCheck) -> None:
    for finding in checked.findings:
        print_line(f"finding: {finding}", lead="finding")
    for gone in checked.compared.gone:
        print_line(str(gone))
    print_line(
        f"report {path} of {human_time(checked.made_at)}, tierkeeper {checked.tool_version}: "
        f"{checked.signature}"
    )
    if checked.other_keys:
        print_line("certificates are judged by the public keys set here, which the report has not")
    if checked.was_deep and not checked.deep:
        print_line("the report read every byte; this check did not: --deep does")
    newer = f", {checked.compared.newer} attempts are newer" if checked.compared.newer else ""
    gone_since = f", {len(checked.compared.gone)} gone since" if checked.compared.gone else ""
    said = f"{len(checked.findings)} findings" if checked.findings else "all is equal"
    print_line(
        f"instance {checked.instance}: {checked.attempts} attempts compared with the bucket"
        f"{gone_since}{newer}: {said}"
    )
