"""Doctor's questions about offload policies: would the publish gate let each namespace pass?

Owns: the rule is the gate's (look/topic/publish_gate.py), asked here before anybody publishes, so
that the command which lifts a refusal is known early. A topic whose bundle no broker owns is asked
only if it is named and we may load topics: asking makes a broker own the bundle, and that may load
many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing

from tiering_assets.ground.finding import Finding, fail, ok, skip
from tiering_assets.ground.reasons import NotNow
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.topic.publish_gate import decide_publish
from tiering_assets.look.topic.topic_evidence import publish_evidence, topic_of
from tiering_assets.records.keys import namespace_of
from tiering_assets.resources.errors import FormatError, TierkeeperError
from tiering_assets.resources.metastore.topic_names import never_touched
from tiering_assets.resources.pulsar.offload_policies import merge_offload_policies
from tiering_assets.resources.pulsar.policies import PolicyReader
from tiering_assets.resources.settings import Settings


def check_policies(settings: Settings, topics: Iterable[str] | None) -> Iterator[Finding]:
    """One topic per namespace, unless some are named: a topic's own policy may differ."""
    with open_stack(settings) as stack, closing(_reader(stack)) as reader:
        names = sorted(topics) if topics is not None else _one_per_namespace(stack, reader)
        if not names:
            yield skip("policies", "no user topic exists yet; ask again when one does")
        may_load = topics is not None
        for ml_name in names:
            if may_load or _is_owned(reader, ml_name):
                yield from _check(stack, ml_name)
            else:
                yield _without_topic(reader, ml_name)


def _reader(stack: Stack) -> PolicyReader:
    return PolicyReader(stack.settings.broker, stack.metadata, loads_nothing=True)


def _one_per_namespace(stack: Stack, reader: PolicyReader) -> list[str]:
    """A topic whose bundle is owned, where there is one: it can be asked without loading any."""
    chosen: dict[str, tuple[str, bool]] = {}
    for ml_name in stack.topics.iter_managed_ledgers():
        if never_touched(ml_name, {}) is not None:
            continue
        before, is_owned = chosen.get(namespace_of(ml_name)), _is_owned(reader, ml_name)
        if before is not None and (before[1] or not is_owned):
            continue
        found = stack.topics.read(ml_name)
        if found is not None and never_touched(ml_name, found[0].properties) is None:
            chosen[namespace_of(ml_name)] = (ml_name, is_owned)
    return sorted(ml_name for ml_name, _is_owned in chosen.values())


def _is_owned(reader: PolicyReader, ml_name: str) -> bool:
    try:
        return reader.owned(topic_of(ml_name))
    except FormatError:  # a legacy name: the gate says so
        return True


def _without_topic(reader: PolicyReader, ml_name: str) -> Finding:
    """What namespace and broker say, which proves nothing of the topic's own level."""
    topic = topic_of(ml_name)
    check = f"policy {topic}"
    try:
        levels = reader.read(topic, ask_topic=False)
        said = merge_offload_policies(levels.answers(), topic=topic)
    except TierkeeperError as error:
        return fail(check, str(error), "")
    return skip(
        check,
        "not asked, as no broker owns its bundle and asking would have one load topics; by its "
        f"namespace and broker bookie copies are deleted {_lag(said.deletion_lag_ms)}. "
        f"`tierkeeper doctor --topic {topic}` asks",
    )


def _lag(lag_ms: int | None) -> str:
    return "never" if lag_ms is None else f"{lag_ms / 1000:g} s after publication"


def _check(stack: Stack, ml_name: str) -> Iterator[Finding]:
    check = f"policy {topic_of(ml_name)}"
    found = stack.topics.read(ml_name)
    if found is None:
        yield fail(check, "the metadata store has no such topic", "check the name")
        return
    try:
        evidence = publish_evidence(stack, ml_name, found[0])
    except TierkeeperError as error:
        yield fail(check, str(error), "")
        return
    decision = decide_publish(evidence)
    if isinstance(decision, NotNow):
        for refusal in decision.reasons:
            yield fail(check, refusal.text, refusal.lift)
        return
    policy = evidence.policy
    yield ok(
        check,
        f"brokers read {policy.bucket} with {policy.driver}; they delete bookie copies "
        f"{_lag(policy.deletion_lag_ms)}, ours is {evidence.deletion_lag_s:g} s",
    )
