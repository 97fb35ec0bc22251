"""The evidence for the backlog's reasons, gathered for any number of topics in one look.

Reads only. Owns: four listings besides the survey's, and one reading of policies a namespace. A
topic's own policy level makes a broker own its bundle and may load topics: asked on demand alone.

Three questions cost a request per ledger: what BookKeeper says of one that is due, why an attempt
was given up, and how a run failed that left no attempt. No more than READS_MAX are asked in one
look; ledgers beyond it keep the reason that they have without. What the release gate says costs
more, and is asked of single ledgers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from tiering_assets.change.disturb import pending_due_at
from tiering_assets.explain.backlog_topic import (
    capped_ledgers,
    gather_topic_facts,
    reloads_of_last_hour,
)
from tiering_assets.explain.reasons.backlog_reason import (
    BacklogEvidence,
    BacklogReason,
    Because,
    Failure,
    TopicBlockers,
)
from tiering_assets.explain.reasons.backlog_rules import decide_backlog_reason
from tiering_assets.ground.damage_advice import next_step
from tiering_assets.ground.reasons import NotNow, Reason, Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.eligibility import OffloadEvidence, decide_offload
from tiering_assets.look.ledger.resume import list_failures, read_failure
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import LedgerView, SurveyedLedger, SurveyedTopic
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.policy.admission_rules import retry_after
from tiering_assets.policy.policies import Policies, open_policies, select_from_node
from tiering_assets.policy.policy import EffectivePolicy
from tiering_assets.policy.selection import NotSelected, describe
from tiering_assets.records import keys
from tiering_assets.records.models import Outcome
from tiering_assets.release.release import recently_begun
from tiering_assets.resources.errors import FormatError, TierkeeperError

READS_MAX = 10_000
_UNPROVEN = {LedgerState.SEALED, LedgerState.COPIED}
_UNPUBLISHED = {*_UNPROVEN, LedgerState.VERIFIED}
_DIED = "its run ended without a certificate, and it recorded no error"


AskGate = Callable[[], NotNow[str] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Attempts that came to an outcome, and ledgers that failed without one, by when."""

    outcomes: Set[tuple[int, UUID]]
    recorded_at: Mapping[int, datetime]

    @classmethod
    def of_fleet(cls, stack: Stack) -> Failures:
        return cls(outcomes=stack.book.pairs("outcomes/"), recorded_at=list_failures(stack))

    @classmethod
    def of_attempts(
        cls,
        stack: Stack,
        attempts: Iterable[tuple[int, UUID]],
        recorded_at: Mapping[int, datetime],
    ) -> Failures:
        """Of these attempts alone: a request each. `recorded_at` is what list_failures said."""
        asked = [*attempts]
        there = stack.in_parallel(lambda one: stack.book.exists(keys.outcome(*one)), asked)
        outcomes = {one for one, found in zip(asked, there, strict=True) if found}
        return cls(outcomes=outcomes, recorded_at=recorded_at)

    @classmethod
    def of_ledger(cls, stack: Stack, view: LedgerView, uids: Iterable[UUID]) -> Failures:
        """Of one ledger; what is published has none that matters."""
        if view.state not in _UNPUBLISHED:
            return cls(outcomes=frozenset(), recorded_at={})
        ledger_id = view.ledger_id
        outcomes = {(ledger_id, u) for u in uids if stack.book.exists(keys.outcome(ledger_id, u))}
        failed = stack.objects.head(stack.book.prefix + keys.failure(ledger_id))
        return cls(
            outcomes=outcomes, recorded_at={ledger_id: failed.last_modified} if failed else {}
        )


class BacklogLook:
    """One look at any number of topics: what is listed once for all of them, and what is left."""

    def __init__(
        self,
        stack: Stack,
        policies: Policies,
        *,
        ask_topics: bool,
        loads_nothing: bool = False,
        failed: Failures | None = None,
        ask_gate: AskGate | None = None,
    ) -> None:
        """`failed` are those of the fleet without; `ask_gate` asks the release gate of due
        ledgers.
        """
        self._stack = stack
        self.policies = policies
        self._ask_topics = ask_topics
        self._ask_gate = ask_gate
        self._loads_nothing = loads_nothing
        self._now_ms = int(stack.now().timestamp() * 1000)
        self._failed = Failures.of_fleet(stack) if failed is None else failed
        self._released = recently_begun(stack, stack.objects.server_time())
        self._reloads = reloads_of_last_hour(stack)
        self._reads_left = READS_MAX

    def explain(self, topic: SurveyedTopic) -> Iterator[tuple[SurveyedLedger, Because]]:
        """Each ledger of a topic with its reason. The policy is read only where it can matter."""
        facts, chosen = TopicBlockers(), dict[int, tuple[NotSelected | None, str]]()
        unpublished = any(one.view.state in _UNPUBLISHED for one in topic.ledgers)
        if unpublished or topic.info.terminated_at is not None:
            found = self.policies.check(topic_of(topic.ml_name), ask_topic=self._ask_topics)
            facts = gather_topic_facts(self._stack, topic, found, self._reloads)
            if found.policy is not None:
                chosen = self._select(topic, found.policy)
        capped = capped_ledgers(self._stack, topic, last_hour=self._released)
        goes_out_at = self._goes_out_at(topic)
        for one in topic.ledgers:
            not_selected, selection = chosen.get(one.view.ledger_id, (None, ""))
            evidence = BacklogEvidence(
                state=one.view.state,
                topic=facts,
                quarantined=one.evidence.quarantined,
                damaged=next_step(topic.ml_name) if one.damaged else None,
                certified=one.evidence.certified,
                recorded=one.evidence.published,
                by_broker=_by_broker(one),
                hold=one.hold,
                due_at=one.due_at,
                goes_out_at=goes_out_at,
                not_selected=not_selected,
                selection=selection,
                failure=self._failure(one),
                missing=self._missing(one),
                capped=capped.get(one.view.ledger_id),
            )
            because = decide_backlog_reason(evidence)
            if because.reason is BacklogReason.NOT_ADMITTED and one.view.state in _UNPROVEN:
                wait = self._wait(topic, one)
                because = decide_backlog_reason(replace(evidence, wait=wait))
            yield one, because

    # ----- of a topic

    def _select(
        self, topic: SurveyedTopic, policy: EffectivePolicy
    ) -> dict[int, tuple[NotSelected | None, str]]:
        """Why each ledger is not selected, and the numbers."""
        return {
            verdict.ledger_id: (
                verdict.why_not,
                describe(verdict, policy.thresholds).partition(": ")[2],
            )
            for verdict in select_from_node(
                self._stack, topic.info, topic.written_ms, policy, now_ms=self._now_ms, loaded=None
            )
        }

    def _goes_out_at(self, topic: SurveyedTopic) -> datetime | None:
        """When the topic is reloaded for what is proven; None where that is due."""
        proven = [one.view for one in topic.ledgers if one.view.state is LedgerState.VERIFIED]
        if not proven:
            return None
        due_at = pending_due_at(
            self._stack.settings.publish,
            topic.info,
            {view.ledger_id: view.bytes or 0 for view in proven},
        )
        return None if due_at is None or due_at <= self._stack.now() else due_at

    # ----- of a ledger

    def _failure(self, one: SurveyedLedger) -> Failure | None:
        """Of the newest run: what it recorded without an attempt, or what its attempt came to."""
        failed_at = self._failed.recorded_at.get(one.view.ledger_id)
        newest = failed_at is not None and not (one.attempted_at and one.attempted_at > failed_at)
        if newest and one.view.state in _UNPUBLISHED:
            found = self._without_attempt(one)
            if found is not None:
                return found
        if one.view.state not in _UNPROVEN or one.view.uid is None:
            return None
        error, ended_at = self._error(one.view.ledger_id, one.view.uid)
        return self._tried(error, one.attempts, ended_at)

    def _without_attempt(self, one: SurveyedLedger) -> Failure | None:
        """None where the record is gone since it was listed: its ledger has moved on."""
        ledger_id = one.view.ledger_id
        if not self._may_read():
            told = f"failed; the record {keys.failure(ledger_id)} has the error"
            return self._tried(told, one.attempts or 1, None)
        try:
            found = read_failure(self._stack, ledger_id)
        except FormatError as error:
            told = f"failed, and the record cannot be read: {error}"
            return self._tried(told, one.attempts or 1, None)
        if found is None:
            return None
        return self._tried(found.record.error, found.record.tries, found.stored_at)

    def _tried(self, error: str, times: int, ended_at: datetime | None) -> Failure:
        auto = self._stack.settings.auto
        next_try = None
        if auto.enabled and ended_at is not None:
            next_try = ended_at + retry_after(times, auto)
        return Failure(error=error, attempts=times, next_try=next_try)

    def _error(self, ledger_id: int, uid: UUID) -> tuple[str, datetime | None]:
        """What the newest attempt came to, and when that was recorded by the store's clock."""
        if (ledger_id, uid) not in self._failed.outcomes:
            return _DIED, None
        if not self._may_read():
            return f"given up; `tierkeeper ledger show {ledger_id}` prints the error", None
        try:
            outcome = self._stack.book.read(Outcome, keys.outcome(ledger_id, uid))
        except FormatError as error:
            return f"given up, and the record cannot be read: {error}", None
        if outcome is None or outcome.record.outcome != "abandon":
            return _DIED, None
        return outcome.record.reason, outcome.stored_at

    def _wait(self, topic: SurveyedTopic, one: SurveyedLedger) -> Wait | None:
        """What a run would say of a ledger that is due, from its node in BookKeeper."""
        ledger_id = one.view.ledger_id
        if not self._may_read():
            return None
        try:
            node = self._stack.ledgers.read(ledger_id)
        except FormatError as error:
            return Wait(Reason.MISSING, f"its metadata cannot be read: {error}")
        decision = decide_offload(
            OffloadEvidence(
                ledger_id=ledger_id,
                ml_name=topic.ml_name,
                never_touched=None,
                metadata=None if node is None else node.metadata,
                listed=topic.info.ledger(ledger_id),
            )
        )
        return decision if isinstance(decision, Wait) else None

    def _missing(self, one: SurveyedLedger) -> str | None:
        """What the release gate says of a due ledger, where it is to be asked."""
        if one.view.state is not LedgerState.RELEASE_DUE or self._ask_gate is None:
            return None
        if self._loads_nothing and not self.policies.owned(one.view.topic):
            return None  # the gate asks the broker about the topic, which may load it
        try:
            why_not = self._ask_gate()
        except TierkeeperError as error:
            return f"could not be judged: {error}"
        return None if why_not is None else str(why_not)

    def _may_read(self) -> bool:
        self._reads_left -= 1
        return self._reads_left >= 0


@contextmanager
def backlog_look(
    stack: Stack, *, ask_topics: bool, loads_nothing: bool, failed: Failures | None = None
) -> Iterator[BacklogLook]:
    """One look with a reading of policies of its own."""
    with open_policies(stack, loads_nothing=loads_nothing) as policies:
        yield BacklogLook(
            stack, policies, ask_topics=ask_topics, loads_nothing=loads_nothing, failed=failed
        )


def _by_broker(one: SurveyedLedger) -> bool:
    """Whether the attempt that its topic names is not one of ours, by any record of it."""
    known = one.ours or one.evidence.certified or one.evidence.published
    return one.evidence.context_complete and not known
