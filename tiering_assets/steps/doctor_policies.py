"""Doctor's questions about offload policies: would the publish gate let each namespace pass?

Owns: the rule is the gate's (tiering/publish_gate.py), asked here before anybody publishes, so that
the command which lifts a refusal is known early. Loads no topic; a bundle may get an owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from resources.errors import TierkeeperError
from resources.metastore.topic_names import never_touched
from resources.settings import Settings
from tiering_assets.records.keys import namespace_of
from tiering_assets.steps.doctor import Finding, fail, ok, skip
from tiering_assets.steps.stack import Stack, open_stack
from tiering_assets.steps.topic_evidence import publish_evidence, topic_of
from tiering_assets.tiering.publish_gate import Refuse, decide_publish


def check_policies(settings: Settings, topics: Iterable[str] | None) -> Iterator[Finding]:
    """One topic per namespace, unless some are named: a topic's own policy may differ."""
    with open_stack(settings) as stack:
        names = sorted(topics) if topics is not None else _one_per_namespace(stack)
        if not names:
            yield skip("policies", "no user topic exists yet; ask again when one does")
        for ml_name in names:
            yield from _check(stack, ml_name)


def _one_per_namespace(stack: Stack) -> list[str]:
    chosen: dict[str, str] = {}
    for ml_name in stack.topics.iter_managed_ledgers():
        namespace = namespace_of(ml_name)
        if namespace in chosen or never_touched(ml_name, {}) is not None:
            continue
        found = stack.topics.read(ml_name)
        if found is not None and never_touched(ml_name, found[0].properties) is None:
            chosen[namespace] = ml_name
    return sorted(chosen.values())


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
    if isinstance(decision, Refuse):
        for refusal in decision.refusals:
            yield fail(check, refusal.text, refusal.lift)
        return
    policy = evidence.policy
    lag = (
        "never" if policy.deletion_lag_ms is None else f"after {policy.deletion_lag_ms / 1000:g} s"
    )
    yield ok(
        check,
        f"brokers read {policy.bucket} with {policy.driver}; they delete bookie copies {lag}, "
        f"ours is {evidence.deletion_lag_s:g} s",
    )
