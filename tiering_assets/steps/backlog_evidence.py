"""The evidence for the backlog's reasons, gathered for any number of topics in one look.

Reads only, loads no topic. Owns: three listings besides the survey's, and one reading of policies a
namespace. A topic's own policy level makes a broker own its bundle, so it is asked only on demand.

Two questions cost a request per ledger: what BookKeeper says of one that is due, and why an attempt
was given up. No more than READS_MAX are asked in one look; ledgers beyond it keep the reason that
they have without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from resources.errors import FormatError, TierkeeperError
from tiering_assets.records import keys
from tiering_assets.records.models import Outcome
from tiering_assets.steps.policies import Policies, TopicPolicy, select_from_node
from tiering_assets.steps.release import recently_intended
from tiering_assets.steps.stack import Stack
from tiering_assets.steps.survey import SurveyedLedger, SurveyedTopic
from tiering_assets.steps.topic_change import contexts_for
from tiering_assets.steps.topic_evidence import our_place, topic_of
from tiering_assets.tiering.backlog_reason import (
    BacklogEvidence,
    BacklogReason,
    Because,
    Failure,
    TopicFacts,
    decide_backlog_reason,
)
from tiering_assets.tiering.backlog_topic import facts_of_policy
from tiering_assets.tiering.eligibility import OffloadEvidence, decide_offload
from tiering_assets.tiering.own_policy import switched_off
from tiering_assets.tiering.policy import EffectivePolicy
from tiering_assets.tiering.reasons import Reason, Wait
from tiering_assets.tiering.release_caps import Candidate, Caps, apply_caps
from tiering_assets.tiering.selection import NotSelected, describe
from tiering_assets.tiering.states import LedgerState
from tiering_assets.tiering.topic_edit import Copy, TopicChange, apply_change

READS_MAX = 10_000
_AN_HOUR = timedelta(hours=1)
_UNPROVEN = {LedgerState.SEALED, LedgerState.COPIED}
_UNPUBLISHED = {*_UNPROVEN, LedgerState.VERIFIED}
_DIED = "its run ended without certificate and recorded no error"


class Look:
    """One look at any number of topics: what is listed once for all of them, and what is left."""

    def __init__(self, stack: Stack, policies: Policies, *, ask_topics: bool) -> None:
        self._stack = stack
        self._policies = policies
        self._ask_topics = ask_topics
        self._now_ms = int(stack.now().timestamp() * 1000)
        self._outcomes = {keys.pair_of(key) for key in stack.book.keys("outcomes/")}
        self._released = recently_intended(stack)
        self._reloads = _reloads(stack)
        self._reads_left = READS_MAX

    def explain(self, topic: SurveyedTopic) -> Iterator[tuple[SurveyedLedger, Because]]:
        """Each ledger of a topic with its reason. The policy is read only where it can matter."""
        facts, chosen = TopicFacts(), dict[int, tuple[NotSelected | None, str]]()
        unpublished = any(one.view.state in _UNPUBLISHED for one in topic.ledgers)
        if unpublished or topic.info.terminated_at is not None:
            found = self._policies.check(topic_of(topic.ml_name), ask_topic=self._ask_topics)
            facts = self._facts(topic, found)
            if found.policy is not None:
                chosen = self._select(topic, found.policy)
        capped = self._capped(topic)
        for one in topic.ledgers:
            not_selected, selection = chosen.get(one.view.ledger_id, (None, ""))
            evidence = BacklogEvidence(
                state=one.view.state,
                topic=facts,
                quarantined=one.evidence.quarantined,
                certified=one.evidence.certified,
                recorded=one.evidence.published,
                hold=one.hold,
                due_at=one.due_at,
                not_selected=not_selected,
                selection=selection,
                failure=self._failure(one),
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
                self._stack, topic.info, topic.node, policy, now_ms=self._now_ms, loaded=None
            )
        }

    def _facts(self, topic: SurveyedTopic, found: TopicPolicy) -> TopicFacts:
        stack, policy = self._stack, found.policy
        facts = TopicFacts(policy_unread=f"its policy cannot be read: {found.error}")
        if policy is not None:
            away = [line for line in policy.unknown if line.startswith("broker level: ")]
            facts = facts_of_policy(
                policy,
                our_place(stack),
                broker_away=away[0] if away else None,
                broker_may_release=stack.settings.publish.broker_may_release,
                coexist=stack.settings.publish.coexist,
            )
        return replace(
            facts,
            switched_off=switched_off(stack.own_policies, topic_of(topic.ml_name)),
            over_budget=self._over_budget(topic.ml_name),
            node_too_large=self._too_large(topic),
        )

    def _over_budget(self, ml_name: str) -> str | None:
        limits = self._stack.settings.disturb
        for whose, done, most, name in (
            (
                "this topic's",
                self._reloads.get(keys.topic_hash(ml_name), 0),
                limits.per_topic_hour_max,
                "per_topic_hour_max",
            ),
            (
                "the cluster's",
                sum(self._reloads.values()),
                limits.per_cluster_hour_max,
                "per_cluster_hour_max",
            ),
        ):
            if done >= most:
                return f"{whose} {done} reloads in the last hour reach disturb.{name} = {most}"
        return None

    def _too_large(self, topic: SurveyedTopic) -> str | None:
        """Everything verified goes out in one write, so all of it waits when that is too large."""
        wanted = {
            one.view.ledger_id: Copy(one.view.uid, (one.view.entries or 1) - 1)
            for one in topic.ledgers
            if one.view.state is LedgerState.VERIFIED and one.view.uid is not None
        }
        if not wanted:
            return None
        change = TopicChange(contexts=wanted)
        try:
            edited = apply_change(topic.info, change, contexts_for(self._stack, change.wanted))
        except TierkeeperError:
            return None  # what forbids the edit is not its size
        limit = self._stack.settings.publish.node_bytes_max
        if edited is None or edited.uncompressed_bytes <= limit:
            return None
        return (
            f"it would hold {edited.uncompressed_bytes} bytes, publish.node_bytes_max is {limit}; "
            f"trim the topic or raise the setting, and the store's node limit with it"
        )

    def _capped(self, topic: SurveyedTopic) -> Mapping[int, str]:
        """Caps as a run over this topic alone would meet them; bookies are not looked at."""
        limits = self._stack.settings.release
        return {
            ledger_id: text.removeprefix("capped: ")
            for ledger_id, text in apply_caps(
                [
                    Candidate(
                        ledger_id=one.view.ledger_id,
                        ml_name=topic.ml_name,
                        published_at=one.published_at,
                        bookies=frozenset(),
                    )
                    for one in topic.ledgers
                    if one.view.state is LedgerState.RELEASE_DUE and one.published_at is not None
                ],
                Caps(
                    per_run=limits.per_run_max,
                    per_hour=limits.per_hour_max,
                    per_topic=limits.per_topic_run_max,
                    per_bookie=limits.per_bookie_run_max,
                ),
                last_hour=self._released,
            ).items()
        }

    # ----- of a ledger

    def _failure(self, one: SurveyedLedger) -> Failure | None:
        if one.view.state not in _UNPROVEN or one.view.uid is None or not one.attempts:
            return None
        return Failure(error=self._error(one.view.ledger_id, one.view.uid), attempts=one.attempts)

    def _error(self, ledger_id: int, uid: UUID) -> str:
        if (ledger_id, uid) not in self._outcomes:
            return _DIED
        if not self._may_read():
            return f"given up; `tierkeeper ledger show {ledger_id}` prints the error"
        try:
            outcome = self._stack.book.read(Outcome, keys.outcome(ledger_id, uid))
        except FormatError as error:
            return f"given up, and the record cannot be read: {error}"
        return _DIED if outcome is None else outcome.record.reason

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

    def _may_read(self) -> bool:
        self._reads_left -= 1
        return self._reads_left >= 0


def _reloads(stack: Stack) -> dict[str, int]:
    """Reloads that we made in the last hour, by the hash of the topic's name."""
    now = stack.objects.server_time()
    since = now - _AN_HOUR
    found: dict[str, int] = {}
    for hour in (keys.disturbances_in(since), keys.disturbances_in(now)):
        for summary in stack.objects.list_objects(stack.book.prefix + hour):
            if summary.last_modified > since:
                topic = summary.key.split("/")[-2]
                found[topic] = found.get(topic, 0) + 1
    return found
