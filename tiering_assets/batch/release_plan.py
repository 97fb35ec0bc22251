"""Plan a release for people to read, and carry out exactly such a plan. design section 6.3.

Owns: a plan lists everything it would delete with its proof, and everything it would not with the
reasons; carrying one out proves each ledger again from scratch and skips, with the reason, whatever
moved since. Nothing outside the plan is released, and no plan that was edited, is of another
cluster, too old, or trips the mass-delete tripwire without an acknowledgement.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tiering_assets.automation.choices import count_closed
from tiering_assets.batch.release_batch import ReleaseOutcome, ReleaseResults, release_batch
from tiering_assets.ground.effects import reach
from tiering_assets.ground.plan_checks import (
    approved_body,
    body_of,
    digest_of,
    require_not_ahead,
    require_valid,
)
from tiering_assets.ground.reasons import NotNow
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.topic_evidence import find_shadows, topic_of
from tiering_assets.quality.ledger_frame import LedgerRow
from tiering_assets.records import keys
from tiering_assets.records.codec import decode_record
from tiering_assets.records.models import NotReleased, PlannedRelease, ReleasePlan, SuiteResult
from tiering_assets.release.approval import Approval
from tiering_assets.release.caps import Caps, DueLedger, apply_caps, tripwire
from tiering_assets.release.gate import MayRelease
from tiering_assets.release.preview import ReleasePlanItem, plan_releases
from tiering_assets.release.release import recently_begun
from tiering_assets.resources.errors import (
    FormatError,
    RefusedError,
    SettingsError,
    TierkeeperError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A plan and the digest of exactly its bytes, which names it.

    `finished` are ledgers that an earlier run released, and `errors` those of topics that could not
    be looked at; both are among the plan's `not_released`. `suites` is what the expectation suites
    said of the others while it was made.
    """

    plan: ReleasePlan
    digest: str
    finished: tuple[int, ...] = ()
    errors: Mapping[int, TierkeeperError] = field(default_factory=dict)
    suites: Mapping[int, tuple[SuiteResult, ...]] = field(default_factory=dict)


def make_plan(
    stack: Stack, topics: Mapping[str, Iterable[int]], *, acknowledged: str | None = None
) -> Written:
    """Decide about ledgers of these managed ledgers, as a release would. Writes nothing.

    `acknowledged` is who accepts a plan that trips the mass-delete tripwire, and why.
    """
    items: list[ReleasePlanItem] = []
    errors: dict[int, TierkeeperError] = {}
    wanted = {ml_name: sorted(ids) for ml_name, ids in sorted(topics.items())}
    planned = plan_releases(
        stack, wanted, shadows=find_shadows(stack), before_suites=partial(_foresee, stack)
    )
    for ml_name, ledger_ids in wanted.items():
        found = planned[ml_name]
        if isinstance(found, TierkeeperError):
            errors.update(dict.fromkeys(ledger_ids, found))
            items += [_unknown(ml_name, ledger_id, found) for ledger_id in ledger_ids]
        else:
            items += found
    capped = apply_caps(
        filter(None, map(_candidate, items)),
        Caps.of(stack.settings.release),
        last_hour=recently_begun(stack, stack.objects.server_time()),
    )
    going = [item for item in items if item.goes and item.ledger_id not in capped]
    staying = [item for item in items if not item.goes or item.ledger_id in capped]
    fleet = count_closed(stack)
    plan = ReleasePlan(
        instance=stack.instance,
        bucket=stack.settings.store.bucket,
        planned_at=stack.now(),
        release=tuple(_planned(stack, item) for item in going),
        not_released=tuple(_not_released(item, capped) for item in staying),
        fleet=fleet,
        tripwire=tripwire(
            len(going), fleet=fleet, share_max=stack.settings.release.fleet_share_max
        ),
        acknowledged=acknowledged,
        writer=stack.writer,
    )
    return Written(
        plan=plan,
        digest=digest_of(plan),
        finished=tuple(item.ledger_id for item in staying if item.finished),
        errors=errors,
        suites={item.ledger_id: item.suites for item in items if item.suites},
    )


def _foresee(stack: Stack, rows: Sequence[LedgerRow], reads_again: bool) -> None:
    """Say what a release would take, and get ready for it, before suites take seconds to judge."""
    if reads_again:
        stack.runner.begin()
    stack.tell(
        f"{len(rows)} ledgers, {sum(row.certified_data_bytes for row in rows) / 1e6:.1f} MB, are "
        "published and looked at; the suites judge them now",
        *(row.ledger_id for row in rows),
    )


def _unknown(ml_name: str, ledger_id: int, error: TierkeeperError) -> ReleasePlanItem:
    reason = NotNow((f"could not be looked at: {error}",))
    return ReleasePlanItem(ledger_id=ledger_id, ml_name=ml_name, decision=reason, bytes=0)


def write_plan(written: Written, path: Path) -> None:
    """Write a plan to a new file, readable by people and by `read_plan`."""
    body = body_of(written.plan)
    try:
        with path.open("x", encoding="utf-8") as file:
            json.dump(body, file, indent=2, ensure_ascii=False)
            file.write("\n")
    except OSError as error:
        raise SettingsError(f"{path}: the plan cannot be written: {error.strerror}") from error


def read_plan(path: Path) -> Written:
    """Read a plan file. FormatError when it is none, or was edited since it was written."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: the plan cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise FormatError(f"{path}: not JSON: {error}") from error
    plan, digest = approved_body(body, path)
    return Written(plan=decode_record(ReleasePlan, plan, key=str(path)), digest=digest)


def execute_plan(
    stack: Stack,
    written: Written,
    *,
    publish_waiting: bool = False,
) -> ReleaseResults:
    """Release exactly what the plan lists, each ledger proven again; one outcome per ledger of it.

    Safe to run twice: what an earlier run released is told again, and finished where it broke off.
    With `publish_waiting`, waiting ledgers of a topic that is reloaded anyway go out along.

    Raises:
        RefusedError: the plan as a whole may not be carried out; nothing was deleted.
    """
    plan = written.plan
    _refuse_whole(stack, plan)
    if plan.release:
        stack.book.create_or_read(keys.release_plan(written.digest), plan)
        reach("release.planned")
    approval = Approval(
        plan=written.digest,
        ledgers={p.ledger_id: (p.uid, p.certificate_sha256) for p in plan.release},
    )
    done = release_batch(
        stack,
        [*approval.ledgers, *written.finished],
        approval=approval,
        publish_waiting=publish_waiting,
    )
    left = _left(written, {outcome.ledger_id for outcome in done.outcomes})
    outcomes = sorted([*done.outcomes, *left], key=lambda outcome: outcome.ledger_id)
    return replace(done, outcomes=outcomes)


def planned_outcomes(written: Written) -> list[ReleaseOutcome]:
    """What carrying the plan out would come to, if nothing moved."""
    plan = written.plan
    going = [
        ReleaseOutcome(ledger_id=p.ledger_id, ml_name=p.ml_name, result=MayRelease(p.uid))
        for p in plan.release
    ]
    return sorted([*going, *_left(written, ())], key=lambda outcome: outcome.ledger_id)


def _left(written: Written, done: Collection[int]) -> list[ReleaseOutcome]:
    return [
        ReleaseOutcome(
            ledger_id=one.ledger_id,
            ml_name=one.ml_name,
            result=written.errors.get(one.ledger_id) or NotNow(one.reasons),
        )
        for one in written.plan.not_released
        if one.ledger_id not in done
    ]


def _refuse_whole(stack: Stack, plan: ReleasePlan) -> None:
    age, valid = stack.now() - plan.planned_at, stack.settings.release.plan_valid_s
    require_valid(
        stack,
        plan,
        age=age,
        too_old=f"the plan was made {age.total_seconds():.0f} s ago, release.plan_valid_s is "
        f"{valid:g}; make a new one",
    )
    require_not_ahead(stack, plan.planned_at, age=age)
    share = stack.settings.release.fleet_share_max
    tripped = tripwire(len(plan.release), fleet=plan.fleet, share_max=share)
    if tripped is not None and not plan.acknowledged:
        raise RefusedError(
            f"{tripped}. Look at the plan and acknowledge it: --plan-file FILE --acknowledge WHY, "
            f"then --approved FILE --execute"
        )


def _candidate(item: ReleasePlanItem) -> DueLedger | None:
    if not item.goes or item.published_at is None:
        return None
    return DueLedger(
        ledger_id=item.ledger_id,
        ml_name=item.ml_name,
        published_at=item.published_at,
        bookies=item.bookies,
    )


def _planned(stack: Stack, item: ReleasePlanItem) -> PlannedRelease:
    certificate, published_at = item.certificate, item.published_at
    if certificate is None or published_at is None:
        raise RefusedError(f"ledger {item.ledger_id}: planned for release without its proof")
    lag = stack.settings.release.deletion_lag_s
    return PlannedRelease(
        ledger_id=item.ledger_id,
        ml_name=item.ml_name,
        topic=topic_of(item.ml_name),
        bytes=item.bytes,
        age_s=(stack.now() - published_at).total_seconds(),
        uid=certificate.record.uid,
        certificate=stack.book.prefix + certificate.key,
        certificate_sha256=certificate.sha256,
        allowed_by=f"release.deletion_lag_s = {lag:g}, counted from {published_at:%Y-%m-%dT%H:%M:%SZ}",
    )


def _not_released(item: ReleasePlanItem, capped: Mapping[int, str]) -> NotReleased:
    decision = item.decision
    reasons = decision.reasons if isinstance(decision, NotNow) else (capped[item.ledger_id],)
    return NotReleased(
        ledger_id=item.ledger_id, ml_name=item.ml_name, bytes=item.bytes, reasons=reasons
    )
