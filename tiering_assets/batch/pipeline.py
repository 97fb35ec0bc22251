"""One batch of ledgers from sealed to published: resume, plan, copy, verify, publish by topic.

Owns: one outcome per ledger, whatever happened to the others, and idempotence: a ledger whose goal
is reached comes back as `noop` with its certificate. What Dagster, the CLI and tests call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tiering_assets.batch.withdrawn import read_withdrawn
from tiering_assets.change.change_topic import change_topic
from tiering_assets.change.disturb import NOT_DUE, not_due
from tiering_assets.change.publish import Published, PublishResult, ToPublish
from tiering_assets.copy.ask_first import AskFirst, Rights, require_proven
from tiering_assets.copy.offload import CopiedAttempt, copy_ledgers
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.ground.task_progress import in_phase, phase, tell_chosen, telling_ledgers
from tiering_assets.look.brakes.pauses import why_off
from tiering_assets.look.ledger.claims import claim_ledger, drop_claim
from tiering_assets.look.ledger.plan import LedgerPlan, look_at, plan_ledger
from tiering_assets.look.ledger.resume import (
    Certified,
    Complete,
    Failed,
    find_certified,
    find_resumable,
    settle_failures,
)
from tiering_assets.records.models import Certificate
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import CopyChangedError, RunInterruptedError, TierkeeperError
from tiering_assets.verify.verify import ToVerify, verify_attempts

_PLANS_ALONE_S = 1.0  # then the runner gets ready beside them: its imports put the first line off


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerOutcome:
    """How far one ledger got. Exactly one of `wait` and `error` says why it got no further."""

    ledger_id: int
    ml_name: str | None = None
    certificate: Stored[Certificate] | None = None
    ml_czxid: int | None = None
    copied: bool = False
    parts_sent: int = 0  # by this run's tasks
    verified: bool = False
    published: Published | None = None
    wait: Wait | None = None
    error: TierkeeperError | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def noop(self) -> bool:
        """Nothing was left to do for this ledger."""
        return self.published is not None and self.published.noop and not self.verified

    @property
    def state(self) -> str:
        """State in the words of docs/states.md."""
        if self.error is not None:
            return "failed"
        if self.published is not None:
            return "released" if self.published.released else "published"
        if self.wait is not None:
            return self.wait.reason.value
        return "verified" if self.certificate is not None else "sealed"


def offload_batch(
    stack: Stack,
    ledger_ids: Iterable[int],
    *,
    publish: bool = True,
    ask_first: bool = False,
    when_due: bool = False,
) -> list[LedgerOutcome]:
    """Copy, verify and (unless told otherwise) publish ledgers; one outcome each, in id order.

    `ask_first` refuses to copy what could not be published later, as `publish` does. `when_due`
    disturbs a topic only when enough waits, or waits long enough.
    """
    wanted = sorted(set(ledger_ids))
    started = stack.monotonic()
    try:
        require_proven(stack)
    except TierkeeperError as error:
        return [LedgerOutcome(ledger_id=ledger_id, error=error) for ledger_id in wanted]
    outcomes: dict[int, LedgerOutcome] = {}
    rights = Rights(stack)
    try:
        with phase(stack, "plan"):
            _each(stack, wanted, partial(_permit, rights), outcomes)
            stack.book.take_up(permitted := [i for i in wanted if outcomes[i].error is None])
            _each(stack, permitted, partial(_claim, stack), outcomes)
        begun = [i for i in wanted if outcomes[i].wait is None and outcomes[i].error is None]
        ask = AskFirst(stack) if publish or ask_first else None
        try:
            attempted = _copy_and_verify(stack, outcomes, ask)
        except TierkeeperError as error:  # the run's own, such as a Spark that does not start
            _settle(stack, [_ended_by(error, outcomes[i]) for i in begun], set(), rights)
            raise
        if publish:
            _publish(stack, outcomes, when_due=when_due)
            attempted |= _copy_changed_anew(stack, outcomes, ask, when_due=when_due)
        _settle(stack, [outcomes[i] for i in begun], attempted, rights)
    except BaseException as ended:
        stack.book.note_failure()
        if not isinstance(ended, Exception):  # Ctrl-C, or Dagster's own way to end a run
            _interrupted(stack, outcomes, rights, publish=publish)
        raise
    finally:
        _each(stack, wanted, partial(_drop, stack), {})
        stack.book.note_failure(any(one.error is not None for one in outcomes.values()))
        stack.book.close_page()
    seconds = stack.monotonic() - started
    return [replace(outcomes[i], seconds=outcomes[i].seconds or seconds) for i in wanted]


def _guard(ledger_id: int, act: Callable[[], LedgerOutcome]) -> LedgerOutcome:
    """One ledger's failure is its own."""
    try:
        return act()
    except TierkeeperError as error:
        return LedgerOutcome(ledger_id=ledger_id, error=error)


def _each(
    stack: Stack,
    ledger_ids: Sequence[int],
    act: Callable[[int], LedgerOutcome],
    into: dict[int, LedgerOutcome],
) -> None:
    """The same for each ledger, several at once; what is done stands there if the others end."""

    def one(ledger_id: int) -> None:
        into[ledger_id] = _guard(ledger_id, partial(act, ledger_id))

    stack.in_parallel(one, ledger_ids)


def _permit(rights: Rights, ledger_id: int) -> LedgerOutcome:
    rights.require(ledger_id)
    return LedgerOutcome(ledger_id=ledger_id)


def _claim(stack: Stack, ledger_id: int) -> LedgerOutcome:
    other = claim_ledger(stack, ledger_id)
    if other is None:
        return LedgerOutcome(ledger_id=ledger_id)
    return LedgerOutcome(
        ledger_id=ledger_id,
        wait=Wait(Reason.CLAIMED, f"run {other.run_id} works on it until {other.expires_at}"),
    )


def _interrupted(
    stack: Stack, outcomes: Mapping[int, LedgerOutcome], rights: Rights, *, publish: bool
) -> None:
    """Record of each ledger that is not done with that its run was ended, or what it failed by."""
    over = RunInterruptedError(
        f"interrupted: run {stack.run_id} was ended; the next run goes on where it stopped"
    )
    left = [
        one if one.error else replace(one, error=over)
        for one in outcomes.values()
        if not (one.wait or (one.published if publish else one.certificate))
    ]
    stack.tell(
        f"interrupted: giving up {len(left)} ledgers' claims", *(one.ledger_id for one in left)
    )
    _settle(stack, left, set(), rights)


def _ended_by(error: TierkeeperError, outcome: LedgerOutcome) -> LedgerOutcome:
    """A ledger's outcome when its run ends early; what waits or is proven has lost nothing."""
    if outcome.error or outcome.wait or outcome.certificate:
        return outcome
    return replace(outcome, error=error)


def _drop(stack: Stack, ledger_id: int) -> LedgerOutcome:
    drop_claim(stack, ledger_id)
    return LedgerOutcome(ledger_id=ledger_id)


def _settle(
    stack: Stack, outcomes: Iterable[LedgerOutcome], attempted: set[int], rights: Rights
) -> None:
    """Record failures that no attempt tells of; what a run did not claim it does not judge."""
    failed: dict[int, Failed] = {}
    further: set[int] = set(attempted)
    for one in outcomes:
        if one.error is None:
            further.add(one.ledger_id)
        elif one.ledger_id not in attempted:
            failed[one.ledger_id] = Failed(one.error, rights.owners.get(one.ledger_id))
    settle_failures(stack, failed, further)


def _copy_and_verify(
    stack: Stack, outcomes: dict[int, LedgerOutcome], ask: AskFirst | None
) -> set[int]:
    """Returns the ledgers of which an attempt tells what became of it in this run.

    `ask` is None where nothing is to be published.
    """
    by_id = sorted(outcomes.items())
    to_start = [i for i, one in by_id if one.wait is None and one.error is None]
    found: dict[int, LedgerPlan | ToVerify] = {}
    soon_s = stack.monotonic() + _PLANS_ALONE_S
    with phase(stack, "plan"):
        _each(stack, to_start, lambda i: _start(stack, i, ask, found, soon_s), outcomes)
    work = [found[i] for i in to_start if i in found]
    plans = [one for one in work if isinstance(one, LedgerPlan)]
    to_verify = [one for one in work if isinstance(one, ToVerify)]
    if work:
        tell_chosen(stack, plans, [item.plan for item in to_verify])
        stack.runner.begin()
        stack.prepare_judge()
    copied = copy_ledgers(stack, plans) if plans else {}
    attempted = {i for i, one in copied.items() if isinstance(one, CopiedAttempt) or one.attempted}
    for ledger_id, result in copied.items():
        if isinstance(result, CopiedAttempt):
            outcomes[ledger_id] = replace(
                outcomes[ledger_id], copied=True, parts_sent=result.parts_sent
            )
            to_verify.append(
                ToVerify(plan=result.plan, attempt=result.attempt, source_rows=result.rows)
            )
        else:
            outcomes[ledger_id] = replace(outcomes[ledger_id], error=result.error)
    for item in to_verify:
        # Renewed, as copying may have taken long; a claim that cannot be is no failure.
        _guard(item.plan.ledger_id, partial(_claim, stack, item.plan.ledger_id))
    czxids = {item.plan.ledger_id: item.plan.ml_czxid for item in to_verify}
    verified = verify_attempts(stack, to_verify) if to_verify else {}
    for ledger_id, proof in verified.items():
        if isinstance(proof, TierkeeperError):
            outcomes[ledger_id] = replace(outcomes[ledger_id], error=proof)
            attempted.discard(ledger_id)  # nothing of it says why it could not be read back
        else:
            outcomes[ledger_id] = replace(
                outcomes[ledger_id],
                certificate=proof,
                verified=True,
                ml_name=proof.record.ml_name,
                ml_czxid=czxids[ledger_id],
                seconds=proof.record.seconds,
            )
    return attempted


def _start(
    stack: Stack,
    ledger_id: int,
    ask: AskFirst | None,
    found: dict[int, LedgerPlan | ToVerify],
    soon_s: float,
) -> LedgerOutcome:
    """Decide where the ledger goes on, and queue it there."""
    resumable = find_resumable(stack, ledger_id)
    if isinstance(resumable, Certified):
        return _certified(stack, ledger_id, resumable)
    plan = plan_ledger(stack, ledger_id)
    if isinstance(plan, Wait):
        return LedgerOutcome(ledger_id=ledger_id, wait=plan)
    off = why_off(stack, plan.ml_name)
    if off is not None:
        return LedgerOutcome(ledger_id=ledger_id, ml_name=plan.ml_name, wait=off)
    outcome = LedgerOutcome(ledger_id=ledger_id, ml_name=plan.ml_name, notes=plan.notes)
    if isinstance(resumable, Complete) and _same_work(plan, resumable):
        found[ledger_id] = ToVerify(plan=plan, attempt=resumable.attempt, source_rows=None)
    else:
        if ask is not None:
            ask.require(plan)
        found[ledger_id] = plan
    if stack.monotonic() > soon_s:
        stack.runner.begin()  # while the other ledgers are planned
    return outcome


def _same_work(plan: LedgerPlan, resumable: Complete) -> bool:
    record = resumable.attempt.record
    return (record.ledger, record.block_bytes, record.object_bytes) == (
        plan.facts,
        plan.block_bytes,
        plan.object_bytes,
    )


def _certified(stack: Stack, ledger_id: int, found: Certified) -> LedgerOutcome:
    """A proven copy is only good for the ledger it was made of."""
    record = found.attempt.record
    sight = look_at(stack, ledger_id, ml_name=record.ml_name)
    listed = sight.listed
    outcome = LedgerOutcome(
        ledger_id=ledger_id,
        ml_name=record.ml_name,
        certificate=found.certificate,
        ml_czxid=record.ml_czxid,
    )
    if listed is None:
        return replace(
            outcome, wait=Wait(Reason.EXPIRED, f"{record.ml_name} does not list it any more")
        )
    if listed.offload is not None and listed.offload.uid != record.uid:
        # Two runs may have made a copy each. The publisher of the one that the topic names may have
        # died before recording it, and the lag of a release only begins with that record.
        named = find_certified(stack, ledger_id, listed.offload.uid)
        if named is None:
            wait = Wait(Reason.PUBLISHED, f"by attempt {listed.offload.uid}")
            return replace(outcome, wait=wait)
        czxid = named.attempt.record.ml_czxid
        return replace(outcome, certificate=named.certificate, ml_czxid=czxid)
    off = why_off(stack, record.ml_name) if listed.offload is None else None
    if off is not None:
        return replace(outcome, wait=off)
    if listed.offload is None and sight.node is not None:
        return replace(outcome, wait=read_withdrawn(stack, found.certificate, sight.node))
    return outcome


@in_phase("publish")
def _publish(stack: Stack, outcomes: dict[int, LedgerOutcome], *, when_due: bool) -> None:
    """Topics side by side; a topic that was planned on two nodes has them one after the other."""
    topics: dict[str, dict[int, dict[int, Stored[Certificate]]]] = {}
    sizes: dict[int, int] = {}
    for ledger_id, outcome in sorted(outcomes.items()):
        certificate, czxid = outcome.certificate, outcome.ml_czxid
        if certificate is not None and czxid is not None and outcome.wait is None:
            of_topic = topics.setdefault(certificate.record.ml_name, {})
            of_topic.setdefault(czxid, {})[ledger_id] = certificate
            sizes[ledger_id] = certificate.record.data.size

    def publish(ml_name: str) -> None:
        for czxid, certificates in sorted(topics[ml_name].items()):
            for ledger_id, result in _publish_topic(
                stack, ml_name, czxid, certificates, when_due=when_due
            ).items():
                outcomes[ledger_id] = _with_result(outcomes[ledger_id], result)
            done(i for i in certificates if outcomes[i].published is not None)

    with telling_ledgers(stack, "publishing", sizes) as done:
        stack.topics_in_parallel(publish, sorted(topics))


def _copy_changed_anew(
    stack: Stack, outcomes: dict[int, LedgerOutcome], ask: AskFirst | None, *, when_due: bool
) -> set[int]:
    """Once more from the bookies, where a certified copy turned out to be none any more."""
    again = {
        i: LedgerOutcome(ledger_id=i)
        for i, one in outcomes.items()
        if isinstance(one.error, CopyChangedError)
    }
    if not again:
        return set()
    for ledger_id in again:
        stack.tell(f"{outcomes[ledger_id].error}. Copied anew", ledger_id)
    attempted = _copy_and_verify(stack, again, ask)
    _publish(stack, again, when_due=when_due)
    outcomes.update(again)
    return attempted


def _publish_topic(
    stack: Stack,
    ml_name: str,
    czxid: int,
    certificates: Mapping[int, Stored[Certificate]],
    *,
    when_due: bool,
) -> Mapping[int, PublishResult]:
    try:
        waiting = not_due(stack, ml_name, certificates) if when_due else frozenset()
        due = {i: one for i, one in certificates.items() if i not in waiting}
    except TierkeeperError as error:
        return dict.fromkeys(certificates, error)
    results: dict[int, PublishResult] = dict.fromkeys(waiting, NOT_DUE)
    if due:
        order = ToPublish(certificates=due, ml_czxid=czxid)
        results.update(change_topic(stack, ml_name, publish=order).published)
    return results


def _with_result(outcome: LedgerOutcome, result: PublishResult) -> LedgerOutcome:
    if isinstance(result, Published):
        return replace(outcome, published=result)
    if isinstance(result, Wait):
        return replace(outcome, wait=result)
    return replace(outcome, error=result)
