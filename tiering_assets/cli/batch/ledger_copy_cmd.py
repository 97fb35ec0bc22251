"""`tierkeeper ledger plan|offload|verify`: copy ledgers, and prove that the copies are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.batch.estimate_output import requests_document
from tiering_assets.cli.batch.offload_output import (
    OUTCOME_COLUMNS,
    RunnerOption,
    leave_with,
    outcome_document,
    outcome_row,
    print_offloaded,
)
from tiering_assets.cli.explain.ledger_cmd import app
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.grammar.selected import names_of, require_known
from tiering_assets.cli.grammar.selection import Chosen, ledger_selection
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import human_bytes, print_document, print_line, print_table
from tiering_assets.cli.shared.session import Runner, Session
from tiering_assets.cli.shared.usage import UsageError
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.resources.errors import LedgerNotFoundError, TierkeeperError

if TYPE_CHECKING:
    from tiering_assets.ground.reasons import Wait
    from tiering_assets.ground.stack import Stack
    from tiering_assets.look.ledger.plan import LedgerPlan
    from tiering_assets.verify.reverify import Reverified


CHOSEN = ledger_selection()
CONSENT = consent_options(
    does="Publish what was copied, so that brokers read it.",
    safe_half=True,
    plan_help="Print what it would copy, as `ledger plan` does; nothing is done.",
)


@command(
    app,
    "plan",
    examples=(
        "tierkeeper ledger plan 12345",
        "tierkeeper ledger plan --topic public/default/orders --json",
    ),
    reads_only=ALWAYS,
)
def plan(session: Session, *, chosen: Annotated[Chosen, CHOSEN]) -> None:
    """Say what a copy would do: blocks, bytes, requests."""
    with session.stack() as stack:
        _print_plans(session, stack, chosen)


def _print_plans(session: Session, stack: Stack, chosen: Chosen) -> None:
    """Each as soon as it is made: a fleet has more of them than memory has room for."""
    from tiering_assets.ground.reasons import Wait

    read_range = stack.settings.offload.read_range_bytes
    documents: list[dict[str, Any]] = []
    errors: dict[int, TierkeeperError] = {}
    ledgers = copies = 0
    for ledger_id, one in _plans(stack, chosen):
        ledgers += 1
        copies += not isinstance(one, Wait | TierkeeperError)
        if isinstance(one, TierkeeperError):
            errors[ledger_id] = one
        if session.as_json:
            documents.append(_plan_document(ledger_id, one, read_range))
        elif isinstance(one, Wait):
            print_line(f"ledger {ledger_id} waits: {one}")
        elif not isinstance(one, TierkeeperError):
            _print_plan(one, read_range)
    if session.as_json:
        print_document("ledger-plan", {"ledgers": documents})
    else:
        print_line(f"{copies} of {ledgers} ledgers would be copied; nothing was done")
    leave_with(session, errors)


def _plans(
    stack: Stack, chosen: Chosen
) -> Iterator[tuple[int, LedgerPlan | Wait | TierkeeperError]]:
    from tiering_assets.look.ledger.plan import plan_ledger
    from tiering_assets.look.ledger.survey import ml_names_of

    for ledger_id in _wanted(stack, chosen):
        try:
            name = ml_names_of(stack, [ledger_id]).get(ledger_id)
            planned = plan_ledger(stack, ledger_id, ml_name=name)
            yield ledger_id, _missing(ledger_id, planned) or planned
        except TierkeeperError as error:
            yield ledger_id, error


def _plan_document(
    ledger_id: int, found: LedgerPlan | Wait | TierkeeperError, read_range: int
) -> dict[str, Any]:
    from tiering_assets.batch.request_count import count_requests
    from tiering_assets.ground.reasons import Wait

    if isinstance(found, TierkeeperError):
        return {"ledger_id": ledger_id, "decision": "failed", "error": found}
    if isinstance(found, Wait):
        return {"ledger_id": ledger_id, "decision": "wait", "reason": str(found)}
    return {
        "ledger_id": ledger_id,
        "decision": "copy",
        "ml_name": found.ml_name,
        "entries": found.facts.last_entry_id + 1,
        "payload_bytes": found.payload_bytes,
        "object_bytes": found.object_bytes,
        "block_bytes": found.block_bytes,
        "requests": requests_document(count_requests(found.blocks, read_range_bytes=read_range)),
        "blocks": found.blocks,
        "notes": found.notes,
    }


def _print_plan(found: LedgerPlan, read_range: int) -> None:
    from tiering_assets.batch.request_count import count_requests

    requests = count_requests(found.blocks, read_range_bytes=read_range)
    print_line(
        f"ledger {found.ledger_id} of {found.ml_name}: {found.facts.last_entry_id + 1} entries, "
        f"{human_bytes(found.payload_bytes)} in {len(found.blocks)} blocks of at most "
        f"{human_bytes(found.block_bytes)}; object {human_bytes(found.object_bytes)}, "
        f"{requests.writes} writes and {requests.reads} reads"
    )
    for note in found.notes:
        print_line(f"  note: {note}")
    print_table(
        (
            Column("BLOCK", ValueKind.ID),
            Column("FIRST", ValueKind.NUMBER),
            Column("LAST", ValueKind.NUMBER),
            Column("OFFSET", ValueKind.NUMBER),
            Column("BYTES", ValueKind.NUMBER),
            Column("PADDING", ValueKind.NUMBER),
        ),
        [
            (
                block.part_number,
                block.first_entry_id,
                block.last_entry_id,
                block.offset,
                block.block_length,
                block.padding_bytes,
            )
            for block in found.blocks
        ],
    )


@command(
    app,
    "offload",
    examples=(
        "tierkeeper ledger offload 12345",
        "tierkeeper ledger offload --topic public/default/orders --execute",
        "tierkeeper ledger offload --all --execute --runner spark",
        "tierkeeper ledger offload --namespace public/default --plan",
    ),
    reads_only="with --plan",
)
def offload(
    session: Session,
    *,
    chosen: Annotated[Chosen, CHOSEN],
    consent: Annotated[Consent, CONSENT],
    when_due: Annotated[
        bool,
        typer.Option(
            "--when-due",
            help="With --execute: publish a topic only when enough waits, or waits long enough.",
        ),
    ] = False,
    runner: RunnerOption = Runner.LOCAL,
) -> None:
    """Copy ledgers and verify every byte; --execute publishes.

    Publishing has brokers read the copies. The bookie copies stay until `ledger release`. Safe to
    repeat: what is done is not done again, and what was interrupted is finished. A ledger that
    waits is printed with its reason and is no failure; of several failures the worst decides the
    exit code.
    """
    if when_due and not consent.acts:
        raise UsageError("--when-due says when to publish, which --execute does; give both")
    from tiering_assets.batch.pipeline import offload_batch

    with session.stack(Runner.LOCAL if consent.plans_only else runner) as stack:
        if consent.plans_only:
            _print_plans(session, stack, chosen)
            return
        wanted = _wanted(stack, chosen)
        session.progress(f"{len(wanted)} ledgers to offload")
        outcomes = offload_batch(stack, wanted, publish=consent.acts, when_due=when_due)
    errors = {one.ledger_id: one.error for one in outcomes if one.error is not None}
    if session.as_json:
        documents = [outcome_document(one, errors.get(one.ledger_id)) for one in outcomes]
        print_document("ledger-offload", {"executed": consent.acts, "ledgers": documents})
    else:
        print_table(OUTCOME_COLUMNS, [outcome_row(one) for one in outcomes])
        print_offloaded(outcomes, publishes=consent.acts)
    leave_with(session, errors)


def _wanted(stack: Stack, chosen: Chosen) -> list[int]:
    """Ids that were named, each of which exists; otherwise what a copy could take up."""
    from tiering_assets.automation.choices import sealed_ledgers

    if chosen.ledger_ids:
        require_known(stack, chosen.ledger_ids)
        return list(chosen.ledger_ids)
    return sealed_ledgers(stack, names_of(stack, chosen))


@command(
    app,
    "verify",
    examples=(
        "tierkeeper ledger verify 12345",
        "tierkeeper ledger verify 12345 12346 --source",
        "tierkeeper ledger verify --topic public/default/orders",
    ),
)
def verify(
    session: Session,
    *,
    chosen: Annotated[Chosen, CHOSEN],
    source: Annotated[
        bool, typer.Option("--source", help="Compare with the bookies, too, while they have it.")
    ] = False,
    runner: RunnerOption = Runner.LOCAL,
) -> None:
    """Read copies back and compare with their certificates.

    What differs twice in a row is recorded as damaged, which keeps the bookie copy; nothing else is
    written. Ends with 1 if anything differs; an outage is an error with its own code.
    """
    from tiering_assets.automation.choices import certified_ledgers
    from tiering_assets.ground.damage_advice import next_step
    from tiering_assets.verify.verify_again import verify_again

    with session.stack(runner) as stack:
        wanted = chosen.ledger_ids or certified_ledgers(stack, names_of(stack, chosen))
        results = verify_again(stack, wanted, source=source, found_by="ledger verify")
    if session.as_json:
        print_document(
            "ledger-verify", {"ledgers": [_verdict(i, one) for i, one in results.items()]}
        )
    else:
        rows = [_verify_row(one) for one in results.values() if not isinstance(one, Exception)]
        print_table(
            (
                Column("LEDGER", ValueKind.ID),
                Column("RESULT", ValueKind.STATE),
                Column("BLOCKS", ValueKind.NUMBER),
                Column("READ", ValueKind.SIZE),
                Column("SECONDS", ValueKind.NUMBER),
                Column("DETAIL", ValueKind.FINDINGS),
            ),
            rows,
        )
        for one in results.values():
            if not isinstance(one, TierkeeperError) and one.findings:
                print_line(f"ledger {one.ledger_id} is damaged: {next_step(one.ml_name)}")
    leave_with(session, {i: one for i, one in results.items() if isinstance(one, TierkeeperError)})
    if any(one.findings for one in results.values() if not isinstance(one, TierkeeperError)):
        raise typer.Exit(FINDINGS)


def _verdict(ledger_id: int, found: Reverified | TierkeeperError) -> dict[str, Any]:
    if isinstance(found, TierkeeperError):
        return {"ledger_id": ledger_id, "result": "failed", "error": found}
    from tiering_assets.cli.shared.output import to_json

    return {"result": "findings" if found.findings else "ok", **to_json(found)}


def _verify_row(found: Reverified) -> tuple[object, ...]:
    result = f"{len(found.findings)} findings" if found.findings else "ok"
    if not found.findings and found.with_source:
        result = "ok, equal to the bookies"
    detail = [*found.findings, *found.notes]
    return (found.ledger_id, result, found.blocks, found.bytes_read, f"{found.seconds:.1f}", detail)


def _missing(ledger_id: int, found: object) -> LedgerNotFoundError | None:
    """A ledger asked for by its id that does not exist: the one wait that is a mistake."""
    from tiering_assets.ground.reasons import Reason, Wait

    if isinstance(found, Wait) and found.reason is Reason.MISSING:
        return LedgerNotFoundError(
            f"ledger {ledger_id}: {found.detail}; `tierkeeper ledger list` prints those that exist"
        )
    return None
