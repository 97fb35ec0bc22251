"""Copies looked at again, and healed where bookies still can: one roll-up for the whole fleet.

Which ledger is due, and what is read of it, is the plan of scrub/scrub.py; nothing of Dagster's
state is evidence to it. A run fails by name where something stays broken.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from tiering_assets.defs.nominated_copies import (
    NominatedCopies,
    nominate_copies,
    post_again,
    some_of,
)
from tiering_assets.defs.shared.batches import (
    TopicChoice,
    batch_failure,
    reasons_table,
)
from tiering_assets.defs.shared.checks import finding
from tiering_assets.defs.shared.dressing import Dressing
from tiering_assets.defs.shared.failures import as_failures
from tiering_assets.defs.shared.ledger_events import certified_evaluation
from tiering_assets.defs.shared.metadata import Metadata, topic_text
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.resources import TieringStack, narrate
from tiering_assets.defs.telling.batch_summary import NOTHING_DUE, tag_result
from tiering_assets.defs.telling.choose import telling
from tiering_assets.defs.telling.telling import Telling

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack
    from tiering_assets.scrub.fleet import Fleet
    from tiering_assets.scrub.scrub import Looked, ScrubRun


_TOLD_MAX = 200  # red checks that one run tells again; the table of the roll-up counts all
_NONE_TO_LOOK_AT = (
    "each copy was looked at within the intervals of [scrub]; `deep: true` reads them all the same"
)
_OPEN = "damaged, found before; `tierkeeper scrub status` has when it was last looked at"


_DESCRIPTION = (
    "Published and released ledgers looked at again, the longest overdue first, within the "
    "budgets of [scrub]. Watch oldest_deep_seconds: it grows when the budgets are too small."
)


class ScrubChoice(TopicChoice):
    deep: bool = Field(
        default=False, description="read every byte again, due or not, as far as the budgets go"
    )
    heal: bool = Field(
        default=True, description="put sound copies in the place of broken ones, from the bookies"
    )


def define_scrubbed_ledgers(dressing: Dressing) -> dg.AssetsDefinition:
    cluster = dressing.cluster

    @dg.asset(
        key=cluster.scrubbed_ledgers,
        description=_DESCRIPTION,
        metadata={**dressing.links("runbook.md", __name__)},
        group_name="integrity",
        kinds={"s3"},
        owners=dressing.owners,
        pool=cluster.bookie_read_pool,
    )
    def scrubbed_ledgers(
        context: dg.AssetExecutionContext, config: ScrubChoice, tiering_stack: TieringStack
    ) -> Iterator[dg.MaterializeResult[None]]:
        with as_failures("scrub"):
            yield from _scrub(context, cluster, config, tiering_stack)

    return scrubbed_ledgers


def _scrub(
    context: dg.AssetExecutionContext,
    cluster: ClusterNames,
    config: ScrubChoice,
    tiering_stack: TieringStack,
) -> Iterator[dg.MaterializeResult[None]]:
    """Scrub and heal; every ledger of every topic, or of the chosen ones."""
    from tiering_assets.scrub.scrub import scrub

    with tiering_stack.connect(context, cluster, with_tasks=True) as stack:
        names = config.ml_names()
        chosen = nominate_copies(stack, deep=config.deep) if names is None else None
        nominated = None if chosen is None else chosen.ledgers
        run = scrub(stack, names, deep=config.deep, heal=config.heal, nominated=nominated)
        fleet = _fleet_after(stack, names, chosen, run)
        bad = _bad(run)
        unjudged = {
            one.candidate.ledger_id: str(one.error) for one in run.looked if one.error is not None
        }
        with telling(context, cluster, stack) as told:
            _tell_checks(cluster, stack, told, run, fleet, bad)
            told.lines({**bad, **unjudged})
    sound = len(run.looked) - len(run.broken) - len(unjudged)
    tag_result(
        context,
        _line(len(run.broken), len(unjudged), sound),
        {topic_text(one.candidate.ml_name) for one in run.looked},
    )
    if not run.looked:
        narrate(context, f"{NOTHING_DUE}: {_NONE_TO_LOOK_AT}")
    by_rows = None if run.listed else chosen
    figures = _figures_of(fleet) if by_rows is None else _figures_by_rows(by_rows, run)
    yield dg.MaterializeResult(
        asset_key=cluster.scrubbed_ledgers,
        metadata={**scrub_metadata(run, bad, unjudged), **figures},
    )
    if run.removals.line:
        narrate(context, run.removals.line)
    if bad or unjudged or run.removals.refused:
        done = sum(not one.findings and one.error is None for one in run.looked)
        raise batch_failure(
            "scrub", {**bad, **unjudged}, done=done, waiting={}, also=run.removals.refused
        )


def _tell_checks(
    cluster: ClusterNames,
    stack: "Stack",
    told: Telling,
    run: "ScrubRun",
    fleet: "Fleet",
    bad: dict[int, str],
) -> None:
    """The check of each copy that is damaged says so, as long as it is, and of each healed one."""
    from tiering_assets.records import keys
    from tiering_assets.records.models import Certificate
    from tiering_assets.scrub.heal import Healed

    damaged = sorted(c.ledger_id for c in fleet.candidates if c.failing)[:_TOLD_MAX]
    healed = {i: one for i, one in run.healed.items() if isinstance(one, Healed)}
    told.begin([*damaged, *healed])
    for ledger_id in damaged:
        said = bad.get(ledger_id, _OPEN)
        told.check(finding(cluster.read_back_equal, ledger_id, said))
    for ledger_id, one in sorted(healed.items()):
        stored = stack.book.require(Certificate, keys.certificate(ledger_id, one.uid))
        told.check(certified_evaluation(cluster, stored.record))


def _line(broken: int, unjudged: int, sound: int) -> str:
    bad = [f"{n} {what}" for n, what in ((broken, "broken"), (unjudged, "not judged")) if n]
    if not bad and not sound:
        return NOTHING_DUE
    return ", ".join([*bad, f"{sound} sound"])


def _fleet_after(
    stack: "Stack",
    names: list[str] | None,
    chosen: NominatedCopies | None,
    run: "ScrubRun",
) -> "Fleet":
    """Copies as they are after a run: all of them, or what may be broken of nominated ones."""
    from tiering_assets.scrub.fleet import find_fleet, find_nominated

    if chosen is not None:
        post_again(stack, chosen, run.needless)
    if chosen is None or run.listed:
        return find_fleet(stack, names)
    doubted = {one.ledger_id for one in run.fleet.candidates if one.failing} | {*run.healed}
    doubted |= {one.candidate.ledger_id for one in run.broken}
    return find_nominated(stack, some_of(chosen, doubted))


def _figures_of(fleet: "Fleet") -> Metadata:
    """How many copies there are, and how old the oldest verification is now."""
    deep = [c.deep_at for c in fleet.candidates]
    ages = [(fleet.store_now - at).total_seconds() for at in deep if at is not None]
    return {
        "ledgers": dg.MetadataValue.int(len(fleet.candidates)),
        "broken_ledgers": dg.MetadataValue.int(sum(c.failing for c in fleet.candidates)),
        "never_read_back": dg.MetadataValue.int(sum(at is None for at in deep)),
        "oldest_deep_seconds": dg.MetadataValue.float(round(max(ages, default=0.0), 1)),
    }


def _figures_by_rows(chosen: NominatedCopies, run: "ScrubRun") -> Metadata:
    """The same as rows had them before the run."""
    found, oldest = chosen.figures, chosen.figures.oldest_deep_at
    age = 0.0 if oldest is None else (chosen.now - oldest).total_seconds()
    return {
        "ledgers": dg.MetadataValue.int(found.copies),
        "broken_ledgers": dg.MetadataValue.int(found.broken),
        "never_read_back": dg.MetadataValue.int(found.never_deep),
        "oldest_deep_seconds": dg.MetadataValue.float(round(max(age, 0.0), 1)),
        "deferred": dg.MetadataValue.int(max(found.due - len(run.looked), len(run.deferred))),
        "nominated": dg.MetadataValue.int(sum(map(len, chosen.ledgers.values()))),
        "not_due": dg.MetadataValue.int(len(run.needless)),
        "as_of": dg.MetadataValue.text(chosen.as_of),
    }


def scrub_metadata(run: "ScrubRun", bad: dict[int, str], unjudged: dict[int, str]) -> Metadata:
    """What one run did."""
    return {
        "looked": dg.MetadataValue.int(len(run.looked)),
        "deferred": dg.MetadataValue.int(len(run.deferred)),
        "bytes_read": dg.MetadataValue.int(run.bytes_read),
        "requests": dg.MetadataValue.int(run.requests),
        "found_broken": dg.MetadataValue.int(len(run.broken)),
        "lost_ledgers": dg.MetadataValue.int(sum(bool(one.lost) for one in run.looked)),
        "removed_ledgers": dg.MetadataValue.int(len(run.removals.recorded)),
        "broken": reasons_table(bad, "what is wrong"),
        "unjudged": reasons_table(unjudged, "error"),
    }


def _bad(run: "ScrubRun") -> dict[int, str]:
    """What stays broken after this run, in words."""
    from tiering_assets.scrub.heal import Healed

    healed = {i for i, result in run.healed.items() if isinstance(result, Healed)}
    said = {i: f"not healed: {one}" for i, one in run.healed.items() if i not in healed}
    for one in run.broken:
        if one.candidate.ledger_id not in healed:
            said[one.candidate.ledger_id] = _findings_text(one, said.get(one.candidate.ledger_id))
    return said


def _findings_text(one: "Looked", why_not: str | None) -> str:
    parts = [*one.findings[:3]]
    parts += [f"lost: entries {r.first_entry_id} to {r.last_entry_id}" for r in one.lost[:20]]
    return "; ".join([*parts, why_not] if why_not else parts)
