"""Gather what look/topic/bookie_room judges: can this topic be loaded again, if we unload it now?

Owns: which bookies are registered, and which broker answers, is asked anew each time, by listing
children in ZooKeeper and one small request; what brokers and policies say of ensembles is asked
once in SETTINGS_AGE_S. Nothing here loads a topic, and a topic's own policy, whose question makes a
broker own its bundle, is asked only where the rest suffices. Whatever cannot be learned makes it
wait.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TypeVar

from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.bookie_room import (
    BookieSight,
    Placement,
    placement_of,
    why_bookies_short,
)
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records.keys import namespace_of
from tiering_assets.resources.errors import BrokerError, FormatError

SETTINGS_AGE_S = 300.0
LOCAL_POLICIES = "/admin/local-policies"
AFFINITY_FIELD = "bookieAffinityGroup"

T = TypeVar("T")


def why_not_reloadable(stack: Stack, ml_name: str, *, owner: str | None) -> Wait | None:
    """Why the topic could not be loaded again, as of now; None when it could.

    `owner` is the `host:port` that is known to have it, or its bundle. To be asked before every
    write that a broker will see, and again before every unload.

    Raises:
        MetadataError: the store does not tell which bookies there are.
    """
    topic = topic_of(ml_name)
    enough = stack.settings.disturb.bookies_enough
    try:
        sight = _look(stack, ml_name, owner)
        wait = why_bookies_short(sight, enough=enough)
        if wait is not None and (owner is None or sight.silent is not None):
            return wait
        own = _kept(stack, ("ensemble", topic), lambda: stack.broker.topic_ensemble(topic))
    except (BrokerError, FormatError) as error:
        return Wait(
            Reason.BOOKIES_SHORT,
            f"it could not be learned how many bookies a reload needs: {error}",
        )
    return why_bookies_short(replace(sight, data_ensemble=own), enough=enough)


def _look(stack: Stack, ml_name: str, owner: str | None) -> BookieSight:
    """Everything but the topic's own policy."""
    registered = stack.ledgers.available_bookies()
    return BookieSight(
        writable=registered.writable,
        readonly=registered.readonly,
        cookies=stack.ledgers.known_bookies(),
        placement=placement_in_force(stack),
        data_ensemble=_of_namespace(stack, ml_name),
        affinity=_affinity(stack, ml_name),
        silent=_why_silent(stack, owner),
    )


def placement_in_force(stack: Stack) -> Placement:
    """The strictest of all live brokers: any of them may be the next to load a topic."""
    return _kept(stack, "placement", lambda: placement_of(stack.broker.runtime_configs()))


def _of_namespace(stack: Stack, ml_name: str) -> int | None:
    namespace = namespace_of(ml_name)
    return _kept(
        stack,
        ("namespace ensemble", namespace),
        lambda: stack.broker.namespace_ensemble(namespace),
    )


def _affinity(stack: Stack, ml_name: str) -> str | None:
    """The namespace's bookie affinity group, in words; None where it has none."""
    namespace = namespace_of(ml_name)
    return _kept(stack, ("affinity", namespace), lambda: _read_affinity(stack, namespace))


def _read_affinity(stack: Stack, namespace: str) -> str | None:
    path = f"{LOCAL_POLICIES}/{namespace}"
    node = stack.metadata.get(path)
    if node is None or not node.data:
        return None
    try:
        policies = json.loads(node.data)
    except ValueError as error:
        raise FormatError(f"{path}: not JSON ({len(node.data)} bytes)") from error
    if not isinstance(policies, dict):
        raise FormatError(f"{path}: expected a JSON object")
    group = policies.get(AFFINITY_FIELD)
    return None if not group else f"namespace {namespace} has {AFFINITY_FIELD} {json.dumps(group)}"


def _why_silent(stack: Stack, owner: str | None) -> str | None:
    """Why no broker that may own the topic is there: the owner where one is known, else anyone.

    An owner that is not registered keeps what it has in memory, whoever is asked to unload it.
    """
    registered = stack.broker.list_brokers()
    if not registered:
        return "no broker is registered"
    if owner is not None and owner not in registered:
        return (
            f"{owner} has it in memory but is not registered, so unloads do not reach it; restart "
            "it"
        )
    if not stack.settings.broker.ask_each:
        return None  # one address answers for all, and it just did
    asked = registered if owner is None else [owner]
    if any(stack.broker.answers(broker) for broker in asked):
        return None
    return f"{', '.join(asked)} registered, and not answering"


def _kept(stack: Stack, key: Hashable, ask: Callable[[], T]) -> T:
    return stack.memory.ask(key, ask, now=stack.monotonic, age_max_s=SETTINGS_AGE_S)
