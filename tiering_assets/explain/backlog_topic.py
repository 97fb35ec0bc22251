"""What stands in the way of all ledgers of a topic, and which due ones the caps make wait.

Reads only: our reloads of the last hour are listed once for all topics, the rest was read before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from tiering_assets.change.disturbance import Recent, over_budget
from tiering_assets.change.topic_change import contexts_for
from tiering_assets.change.topic_edit import Copy, TopicChange, apply_change
from tiering_assets.explain.reasons.backlog_reason import TopicBlockers
from tiering_assets.explain.reasons.backlog_topic_rules import facts_of_policy
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import SurveyedTopic
from tiering_assets.look.topic.topic_evidence import our_place
from tiering_assets.policy.policies import TopicPolicy
from tiering_assets.records import keys
from tiering_assets.release.caps import Caps, DueLedger, apply_caps
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.pulsar.policies import was_not_asked

_AN_HOUR = timedelta(hours=1)


def reloads_of_last_hour(stack: Stack) -> Mapping[str, int]:
    """Reloads that we made in the last hour, by the hash of the topic's name."""
    since = stack.objects.server_time() - _AN_HOUR
    lately = stack.book.filed_since(keys.DISTURBANCES, since)
    return Counter(keys.topic_hash_of(key) for key in lately)


def gather_topic_facts(
    stack: Stack, topic: SurveyedTopic, found: TopicPolicy, reloads: Mapping[str, int]
) -> TopicBlockers:
    """`reloads` are those of `reloads_of_last_hour`."""
    return replace(
        facts_by_policy(stack, found),
        switched_off=found.switched_off,
        over_budget=_over_budget(stack, topic.ml_name, reloads),
        node_too_large=_too_large(stack, topic),
    )


def facts_by_policy(stack: Stack, found: TopicPolicy) -> TopicBlockers:
    """What a topic's policy puts in the way of its ledgers; sensors ask for runs by the same."""
    policy = found.policy
    if policy is None:
        return TopicBlockers(policy_unread=f"its policy cannot be read: {found.error}")
    away = [line for line in policy.unknown if not was_not_asked(line.partition(": ")[2])]
    return facts_of_policy(
        policy,
        our_place(stack),
        unknown="; ".join(away) or None,
        broker_may_release=stack.settings.publish.broker_may_release,
        coexist=stack.settings.publish.coexist,
    )


def _over_budget(stack: Stack, ml_name: str, reloads: Mapping[str, int]) -> str | None:
    recent = Recent(
        topic=reloads.get(keys.topic_hash(ml_name), 0), broker=None, cluster=sum(reloads.values())
    )
    return over_budget(recent, stack.settings.disturb)


def _too_large(stack: Stack, topic: SurveyedTopic) -> str | None:
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
        edited = apply_change(topic.info, change, contexts_for(stack, change.wanted))
    except TierkeeperError:
        return None  # what forbids the edit is not its size
    limit = stack.settings.publish.node_bytes_max
    if edited is None or edited.uncompressed_bytes <= limit:
        return None
    return (
        f"it would hold {edited.uncompressed_bytes} bytes, publish.node_bytes_max is {limit}; "
        f"trim the topic or raise the setting, and the store's node limit with it"
    )


def capped_ledgers(stack: Stack, topic: SurveyedTopic, *, last_hour: int) -> Mapping[int, str]:
    """Caps as a run over this topic alone would meet them; bookies are not looked at.

    `last_hour` is how many releases were begun in the last hour.
    """
    due = [
        DueLedger(
            ledger_id=one.view.ledger_id,
            ml_name=topic.ml_name,
            published_at=one.published_at,
            bookies=frozenset(),
        )
        for one in topic.ledgers
        if one.view.state is LedgerState.RELEASE_DUE and one.published_at is not None
    ]
    if not due:
        return {}
    capped = apply_caps(due, Caps.of(stack.settings.release), last_hour=last_hour)
    return {ledger_id: text.removeprefix("capped: ") for ledger_id, text in capped.items()}
