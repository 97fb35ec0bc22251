"""`tierkeeper doctor`: everything that tierkeeper relies on, asked and proven."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError

if TYPE_CHECKING:
    from tiering_assets.ground.finding import Finding


def declare(app: typer.Typer) -> None:
    """Add the command; it has no group."""
    command(
        app,
        "doctor",
        examples=(
            "tierkeeper doctor",
            "tierkeeper doctor --topic public/default/orders",
            "tierkeeper doctor --prove",
            "tierkeeper doctor --workers",
            "tierkeeper doctor --json",
        ),
        reads_only="without --prove, --topic and --workers",
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
    workers: Annotated[
        bool,
        typer.Option(
            "--workers",
            help="Ask Spark's workers instead, one probe a slot: code, versions, clock, bookies, "
            "bucket and credentials.",
        ),
    ] = False,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Try the bucket's promises out with throw-away keys under tierkeeper/probe/, and "
            "record that they are kept.",
        ),
    ] = False,
) -> None:
    """Check machine, servers, bucket and offload policies.

    Every failure says what lifts it, to the exact pulsar-admin line. Only --prove
    writes something, and only --topic loads a topic. Ends with 1 if anything failed.
    """
    if workers:
        if topic:
            raise UsageError("--topic and --workers: ask for one of them")
        if prove:
            raise UsageError("--prove and --workers: ask for one of them")
        _ask_workers(session)
        return
    from tiering_assets.catalogue.openlineage.telling_state import check as check_events
    from tiering_assets.doctor.doctor import examine
    from tiering_assets.fleet.size import check as check_size
    from tiering_assets.ground.finding import Level
    from tiering_assets.resources.metastore.topic_names import parse_topic_name, with_scheme

    names = None
    if topic:
        names = [parse_topic_name(with_scheme(name)).managed_ledger_name for name in topic]
    findings = []
    more = {"fleet size": check_size, "openlineage": check_events}
    asked = examine(session.settings, topics=names, more=more)
    for finding in chain(asked, look_at_automation(session), _proofs(session) if prove else ()):
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


def look_at_automation(session: Session) -> Iterator[Finding]:
    """Nobody need run anything for what is off; who is not told of an instance asks none."""
    from tiering_assets.automation.standing import OFF
    from tiering_assets.ground.finding import asked, skip

    if not session.settings.auto.enabled:
        yield skip("automation", OFF.removeprefix("automation is "))
    elif not os.environ.get("DAGSTER_HOME"):
        yield skip("automation", "on; DAGSTER_HOME is not set, so its daemon is not looked at")
    else:
        yield from asked("automation", _find_in_instance)


def _find_in_instance() -> list[Finding]:
    from tiering_assets.cli.automation.code_location import loaded_settings
    from tiering_assets.defs.automation.all import sensors_of
    from tiering_assets.defs.automation.automation import findings, read_status
    from tiering_assets.defs.shared.instance import find_home, open_instance

    with open_instance(find_home()) as instance:
        return findings(read_status(instance, sensors_of(loaded_settings()), wanted=True))


def _proofs(session: Session) -> Iterator[Finding]:
    from tiering_assets.copy.ask_first import prove
    from tiering_assets.ground.finding import asked

    def prove_it() -> Iterator[Finding]:
        with session.stack() as stack:
            yield from prove(stack)

    return asked("bucket proofs", prove_it)


def _ask_workers(session: Session) -> None:
    from tiering_assets.doctor.workers import examine_workers
    from tiering_assets.spark.worker_probes import probe_workers

    session.progress("starting Spark")
    report = examine_workers(session.settings, partial(probe_workers, session.settings))
    if session.as_json:
        print_document(
            "doctor-workers",
            {"ok": report.ok, "findings": report.findings, "workers": report.rows},
        )
    else:
        for finding in report.findings:
            who = f"worker {finding.worker}" if finding.worker else "workers"
            text = f"expected {finding.expected}, found {finding.found}"
            _print_parts(finding.level, f"{who}: {finding.check}", text, finding.next_step)
        failed = sum(finding.level == "fail" for finding in report.findings)
        warned = sum(finding.level == "warn" for finding in report.findings)
        print_line(f"{len(report.rows)} workers asked, {failed} failures, {warned} warnings")
    if not report.ok:
        raise typer.Exit(FINDINGS)


def _print(finding: Finding) -> None:
    _print_parts(finding.level, finding.check, finding.text, finding.next_step)


def _print_parts(level: str, check: str, text: str, next_step: str) -> None:
    print_line(f"{level:<4}  {check}: {text}", lead=level)
    if next_step:
        print_line(f"      -> {next_step}")
