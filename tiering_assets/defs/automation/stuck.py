"""`stuck`: what stands still is observed on `tiering_backlog` and posted to the webhook once.

Owns: a catalogue that is behind is a finding itself, and is not waited for: then topics are walked.
A finding is posted when it appears, not at every tick; when the post fails it is posted again
with the next tick. A round over many topics or claims takes several ticks and is told whole.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.automation.nominated import nominating
from tiering_assets.defs.automation.tick import EVENTS_MAX, Result, Tick
from tiering_assets.defs.shared.batches import markdown_cell
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.resources.errors import CatalogueError, PrerequisiteError

if TYPE_CHECKING:
    from tiering_assets.automation.stuck_rules import Stuck

_REMEMBERED_MAX = 2000
_SHOWN_MAX = 50
SCHEMA = "tierkeeper/stuck/1"


def stuck(tick: Tick) -> Result:
    """Look for dead claims, ledgers open too long and topics whose retention nobody applies."""
    from tiering_assets.automation.rounds import walk
    from tiering_assets.automation.stuck import StuckTopics, dead_claims
    from tiering_assets.automation.stuck_rules import ClosingTimes, catalogue_behind
    from tiering_assets.catalogue.nominate import closing_times
    from tiering_assets.policy.policies import open_policies
    from tiering_assets.resources.webhook import post_webhook

    behind, tables = [], None
    try:
        tables = nominating(tick)
    except CatalogueError as error:
        behind.append(catalogue_behind(str(error)))
    with open_policies(tick.stack) as policies:
        topics = StuckTopics(tick.stack, policies)
        looked = walk(
            tick.stack,
            topics.look,
            names=None
            if tables is None
            else topics.may_be(ClosingTimes(**row) for row in closing_times(tables)),
            after=tick.cursor.text("after"),
            seconds=tick.auto.tick_budget_s,
            room=EVENTS_MAX,
        )
    looked.require_any()
    found = [*behind, *looked.found]
    claims_after, claims_resume = tick.cursor.text("claims"), None
    if tick.cursor.text("after") is None or claims_after is not None:
        dead, claims_resume = dead_claims(
            tick.stack, after=claims_after, seconds=tick.auto.tick_budget_s / 2
        )
        found += dead
    known = set(tick.cursor.numbers("known"))
    seen = set(tick.cursor.numbers("seen")) | {_digest(one) for one in found}
    fresh = [one for one in found if _digest(one) not in known]
    if fresh and tick.auto.webhook_url:
        try:
            post_webhook(tick.auto.webhook_url, _document(tick.cluster, fresh))
        except PrerequisiteError as error:
            tick.context.log.warning("tierkeeper: stuck: %s", error)
            seen -= {_digest(one) for one in fresh}
    whole = looked.resume is None and claims_resume is None
    known = seen if whole else known | seen
    return dg.SensorResult(
        asset_events=[_observation(tick.cluster, found)] if fresh else [],
        skip_reason=None
        if fresh
        else dg.SkipReason(f"{len(found)} findings in {looked.topics} topics, none of them new"),
        cursor=tick.write_cursor(
            after=looked.resume,
            claims=claims_resume,
            known=sorted(known)[:_REMEMBERED_MAX],
            seen=None if whole else sorted(seen)[:_REMEMBERED_MAX],
        ),
    )


def _digest(one: Stuck) -> int:
    """A finding by its kind and subject; its age grows with every tick."""
    return int.from_bytes(sha256(f"{one.kind} {one.subject}".encode()).digest()[:6])


def _document(cluster: ClusterNames, found: list[Stuck]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "cluster": cluster.name,
        "text": f"tierkeeper: {len(found)} new: {found[0]}",
        "stuck": [
            {"kind": one.kind.value, "subject": one.subject, "detail": one.detail} for one in found
        ],
    }


def _observation(cluster: ClusterNames, found: list[Stuck]) -> dg.AssetObservation:
    lines = ["| kind | ledger or topic | what |", "|---|---|---|"]
    lines += [
        f"| {one.kind.value} | {markdown_cell(one.subject)} | {markdown_cell(one.detail)} |"
        for one in found[:_SHOWN_MAX]
    ]
    return dg.AssetObservation(
        cluster.tiering_backlog,
        description=f"{len(found)} stand still",
        metadata={"stuck": len(found), "what": dg.MetadataValue.md("\n".join(lines))},
    )
