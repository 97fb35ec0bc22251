"""Every topic of the cluster and where its ledgers are, from metadata alone. Reads only.

Owns: no broker is asked about a topic, so none is loaded, owned or created; whether one is loaded
is not told. One read per topic, several at once, besides one listing of certificates and one
reading of policies per namespace: ten thousand topics are a matter of seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from tiering_assets.explain.topic_counts import TopicCounts, count_topic
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.look.topic.user_topics import read_topics, user_topic_names
from tiering_assets.policy.policies import Policies, open_policies
from tiering_assets.resources.metastore.ledger_info import ManagedLedger

_PROGRESS_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTopic:
    """One topic. `counts` is None where its node could not be read, and `error` then says why.

    `policy` is whether a threshold selects its ledgers: yes, no, switched off or unknown. A topic's
    own level is not asked, as that makes a broker own its bundle.
    """

    topic: str
    ml_name: str
    policy: str
    counts: TopicCounts | None
    error: str | None = None


def list_topics(stack: Stack, ml_names: Iterable[str] | None = None) -> Iterator[ListedTopic]:
    """These topics in name order, all user topics without names.

    A topic whose node cannot be read is listed with its error; the others are not held up.

    Raises:
        MetadataError: the store does not answer; nothing is listed as absent.
    """
    names = user_topic_names(stack) if ml_names is None else sorted(ml_names)
    certified = stack.book.pairs("certificates/")
    stack.narrate(f"{len(names)} topics to read")
    started = told = stack.monotonic()
    with policy_words(stack) as policy_of:
        for done, (ml_name, found) in enumerate(read_topics(stack, names), start=1):
            now = stack.monotonic()
            if now - told >= _PROGRESS_S:
                told = now
                stack.narrate(f"{done} of {len(names)} topics in {now - started:.0f} s")
            if found is None:
                continue  # deleted meanwhile, or not ours to touch
            if isinstance(found, Exception):
                yield ListedTopic(
                    topic=topic_of(ml_name),
                    ml_name=ml_name,
                    policy="unknown",
                    counts=None,
                    error=str(found),
                )
            else:
                yield _listed(ml_name, found.info, certified, policy_of)


def _listed(
    ml_name: str,
    found: ManagedLedger,
    certified: set[tuple[int, UUID]],
    policy_of: Callable[[str], str],
) -> ListedTopic:
    topic = topic_of(ml_name)
    return ListedTopic(
        topic=topic,
        ml_name=ml_name,
        policy=policy_of(topic),
        counts=count_topic(found.ledgers, certified),
    )


@contextmanager
def policy_words(stack: Stack) -> Iterator[Callable[[str], str]]:
    """Tells for a topic what `ListedTopic.policy` says. Topics of a namespace mostly have one."""
    with open_policies(stack) as policies:
        words = dict[str, str]()

        def word(topic: str) -> str:
            namespace = policies.goes_by(topic)
            if namespace is None:
                return _policy_word(policies, topic)
            if namespace not in words:
                words[namespace] = _policy_word(policies, topic)
            return words[namespace]

        yield word


def _policy_word(policies: Policies, topic: str) -> str:
    found = policies.check(topic, ask_topic=False)
    if found.switched_off is not None:
        return "switched off"
    if found.policy is None:
        return "unknown"
    return "no" if found.policy.thresholds.off else "yes"
