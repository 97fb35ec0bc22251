"""Shadow topics of a source: they read its ledgers with a memory of their own.

A shadow that a broker has loaded still reads a released ledger from the bookies and stalls, so it
is unloaded, too, before the source's ledgers are deleted. Shadows are found in metadata, by the
property that names their source: asking the broker would load topics.
"""

from __future__ import annotations

from resources.metastore.topic_names import SHADOW_SOURCE_PROPERTY
from tiering_assets.steps.confirm import reload_topic
from tiering_assets.steps.stack import Stack
from tiering_assets.steps.topic_evidence import topic_of


def find_shadows(stack: Stack, ml_name: str) -> list[str]:
    """Managed-ledger names of the topics whose source is this one. Reads every topic's node."""
    source = topic_of(ml_name)
    found = []
    for name in stack.topics.iter_managed_ledgers():
        topic = stack.topics.read(name)
        if topic is not None and topic[0].properties.get(SHADOW_SOURCE_PROPERTY) == source:
            found.append(name)
    return found


def reload_shadows(stack: Stack, ml_name: str) -> list[str]:
    """Make every shadow of the topic forget what it remembers; BrokerError when one cannot be."""
    shadows = find_shadows(stack, ml_name)
    for name in shadows:
        reload_topic(stack, topic_of(name))
    return shadows
