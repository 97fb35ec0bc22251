"""Shadow topics: they read their source's ledgers, and only from bookies.

Owns: a source with a shadow is not released. Tried on Pulsar 4.0.8: a shadow that was unloaded and
loaded again after the source's contexts were complete still opens a released ledger in BookKeeper
and stalls (docs/decisions/0004). Shadows are found in metadata, by the property that names their
source: asking the broker would load topics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from resources.metastore.topic_names import SHADOW_SOURCE_PROPERTY
from tiering_assets.steps.stack import Stack

Shadows = Mapping[str, Sequence[str]]


def find_shadows(stack: Stack) -> Shadows:
    """Managed-ledger names of shadows by the full topic name of their source. Reads every topic."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in stack.topics.iter_managed_ledgers():
        topic = stack.topics.read(name)
        source = None if topic is None else topic[0].properties.get(SHADOW_SOURCE_PROPERTY)
        if source is not None:
            found[source].append(name)
    return found
