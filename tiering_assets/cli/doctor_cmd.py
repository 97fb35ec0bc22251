"""`tierkeeper doctor`: everything that tierkeeper relies on, asked and proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.command import command
from tiering_assets.cli.exit_codes import FINDINGS
from tiering_assets.cli.output import print_document, print_line
from tiering_assets.cli.session import Session

if TYPE_CHECKING:
    from tiering_assets.steps.doctor import Finding


def declare(app: typer.Typer) -> None:
    """Add the command; it has no group."""
    command(
        app,
        "doctor",
        examples=(
            "tierkeeper doctor",
            "tierkeeper doctor --topic public/default/orders",
            "tierkeeper doctor --json",
        ),
    )(doctor)


def doctor(
    session: Session,
    *,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="Look at this topic's offload policy; may be repeated. [default: one a namespace]",
        ),
    ] = None,
) -> None:
    """Check the machine, the servers, the bucket's promises and the offload policies.

    Every failure says what lifts it, to the exact pulsar-admin line. The bucket is tried out with
    throw-away keys under tierkeeper/probe/, deleted afterwards. Ends with 1 if anything failed.
    """
    from resources.metastore.topic_names import parse_topic_name
    from tiering_assets.steps.doctor import Level, examine

    names = None
    if topic:
        full = [name if "://" in name else f"persistent://{name}" for name in topic]
        names = [parse_topic_name(name).managed_ledger_name for name in full]
    findings = []
    for finding in examine(session.settings, topics=names):
        findings.append(finding)
        if not session.as_json:
            _print(finding)
    failed = sum(finding.level is Level.FAIL for finding in findings)
    if session.as_json:
        print_document("doctor", {"ok": failed == 0, "findings": findings})
    else:
        warned = sum(finding.level is Level.WARN for finding in findings)
        print_line(f"{len(findings)} checks, {failed} failed, {warned} warnings")
    if failed:
        raise typer.Exit(FINDINGS)


def _print(finding: Finding) -> None:
    print_line(f"{finding.level.value:<4}  {finding.check}: {finding.text}")
    if finding.next_step:
        print_line(f"      -> {finding.next_step}")
