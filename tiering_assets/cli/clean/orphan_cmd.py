"""`tierkeeper orphan list|sweep`: what serves nobody in the bucket, and whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import human_bytes, print_document, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.clean.clean_up import CleanUp
    from tiering_assets.clean.foreign import Foreign
    from tiering_assets.clean.leftovers import BrokerLeaving
    from tiering_assets.clean.sweep import Leaving

app = typer.Typer(
    name="orphan",
    help="What abandoned attempts left in the bucket.",
    no_args_is_help=True,
)

CONSENT = consent_options(does="Delete the objects and uploads that the plan lists.")


@command(
    app,
    "list",
    examples=("tierkeeper orphan list", "tierkeeper orphan list --json"),
    reads_only=ALWAYS,
)
def list_orphans(session: Session) -> None:
    """List what attempts left, and why it stays or may go."""
    from tiering_assets.clean.clean_up import clean_up

    with session.stack() as stack:
        found = clean_up(stack, execute=False)
    if session.as_json:
        print_document("orphan-list", _document(found))
    else:
        _print(found)


@command(
    app,
    "sweep",
    examples=("tierkeeper orphan sweep --plan", "tierkeeper orphan sweep --execute"),
    reads_only="with --plan",
)
def sweep_orphans(session: Session, *, consent: Annotated[Consent, CONSENT]) -> None:
    """Delete the objects and uploads of attempts that nothing refers to. Records stay.

    What a broker's own offloader left unfinished is first noted, and collected by a later sweep
    when the broker has sent nothing for release.guard_age_s. A broker's broken copy goes when a
    copy of ours has been read in its place for as long. Objects of others are never touched.
    Refuses if the metadata store went back in time, or if too much of the fleet would go.
    """
    from tiering_assets.clean.clean_up import clean_up

    with session.stack() as stack:
        found, only = clean_up(stack, execute=consent.acts), None
        if not consent.acts:
            size = human_bytes(sum(one.bytes for one in found.going))
            may_act = consent.given(
                session,
                show=lambda: _show(session, found, consent),
                question=f"Delete {len(found.going)} attempts, {size}?" if found.going else "",
            )
            if not may_act:
                return
            only = frozenset(one.pair for one in found.going)  # a yes covers what was shown
            found = clean_up(stack, execute=True, only=only)
    if session.as_json:
        print_document("orphan-sweep", {"executed": True, **_document(found)})
    else:
        if only is None:
            _print(found)
        _print_done(found)
    if found.errors:
        raise typer.Exit(FINDINGS)


def _show(session: Session, found: CleanUp, consent: Consent) -> None:
    if session.as_json:
        print_document("orphan-sweep", {"executed": False, **_document(found)})
        return
    _print(found)
    size = human_bytes(sum(one.bytes for one in found.going))
    print_line(f"{len(found.going)} attempts, {size} would be swept{consent.nothing_done}")


def _document(found: CleanUp) -> dict[str, Any]:
    return {
        "attempts": [_attempt(one) for one in found.attempts],
        "broker_attempts": [_leftover(one) for one in found.leftovers],
        "foreign": [_foreign(one) for one in found.foreign],
        "bytes_freed": sum(one.bytes_freed or 0 for one in found.done),
        "bytes_stay": sum(one.bytes_stay or 0 for one in found.done),
        "removed": [pair[0] for pair in found.removals.recorded],
        "errors": found.errors,
    }


def _attempt(leaving: Leaving) -> dict[str, Any]:
    from tiering_assets.ground.reasons import NotNow

    decision = leaving.decision
    return {
        "ledger_id": leaving.attempt.record.ledger.ledger_id,
        "uid": leaving.attempt.record.uid,
        "ml_name": leaving.attempt.record.ml_name,
        "decision": "keep" if isinstance(decision, NotNow) else "sweep",
        "reason": str(decision) if isinstance(decision, NotNow) else "nothing names it",
        "objects": leaving.objects,
        "uploads": leaving.uploads,
        "bytes": leaving.bytes,
    }


def _leftover(leaving: BrokerLeaving) -> dict[str, Any]:
    from tiering_assets.clean.leftovers_rules import Collect
    from tiering_assets.ground.reasons import NotNow

    decision = leaving.decision
    if isinstance(decision, NotNow):
        said = "keep", str(decision)
    elif isinstance(decision, Collect):
        said = "sweep", "a broker did not finish it, or a copy of ours took its place"
    else:
        said = "note", "a broker began it; a sweep notes since when it is known"
    return {
        "ledger_id": leaving.pair[0],
        "uid": leaving.pair[1],
        "ml_name": leaving.ml_name,
        "decision": said[0],
        "reason": said[1],
        "objects": leaving.objects,
        "uploads": leaving.uploads,
        "bytes": leaving.bytes,
    }


def _foreign(one: Foreign) -> dict[str, Any]:
    return {
        "ledger_id": one.pair[0],
        "uid": one.pair[1],
        "owner": one.owner.value,
        "detail": one.detail,
        "objects": one.objects,
        "uploads": one.uploads,
        "bytes": one.bytes,
    }


def _print(found: CleanUp) -> None:
    rows = [("ours", _attempt(one), _reasons(one)) for one in found.attempts]
    rows += [("broker", _leftover(one), _reasons(one)) for one in found.leftovers]
    print_table(
        (
            Column("LEDGER", ValueKind.ID),
            Column("ATTEMPT", ValueKind.DIGEST),
            Column("OF", ValueKind.TEXT),
            Column("DECISION", ValueKind.STATE),
            Column("OBJECTS", ValueKind.NUMBER),
            Column("UPLOADS", ValueKind.NUMBER),
            Column("SIZE", ValueKind.SIZE),
            Column("REASON", ValueKind.FINDINGS),
        ),
        [
            (
                row["ledger_id"],
                row["uid"],
                of,
                row["decision"],
                len(row["objects"]),
                len(row["uploads"]),
                row["bytes"],
                reasons or [row["reason"]],
            )
            for of, row, reasons in rows
        ],
    )
    owners: dict[str, list[Foreign]] = {}
    for one in found.foreign:
        owners.setdefault(one.owner.value, []).append(one)
    for owner, theirs in sorted(owners.items()):
        size = human_bytes(sum(one.bytes for one in theirs))
        print_line(f"not touched: {len(theirs)} attempts, {size}, of {owner}")


def _reasons(one: Leaving | BrokerLeaving) -> list[str]:
    """Why it stays, each by itself."""
    from tiering_assets.ground.reasons import NotNow

    return [*map(str, one.decision.reasons)] if isinstance(one.decision, NotNow) else []


def _print_done(found: CleanUp) -> None:
    done = list(found.done)
    freed = human_bytes(sum(one.bytes_freed or 0 for one in done))
    stay = sum(one.bytes_stay or 0 for one in done)
    print_line(f"{len(done)} attempts swept, {freed} freed")
    if stay:
        why = next(one.why_stay for one in done if one.bytes_stay)
        print_line(f"{human_bytes(stay)} stay in versions that the store keeps: {why}")
    if found.removals.recorded:
        print_line(found.removals.line)
    for error in found.errors:
        print_line(error)
