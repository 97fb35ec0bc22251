"""Shadow topics: they read their source's ledgers, and only from bookies.

Owns: a source with a shadow is not released. Tried on Pulsar 4.0.8: a shadow that was unloaded and
loaded again after the source's contexts were complete still opens a released ledger in BookKeeper
and stalls (docs/decisions/0004). Shadows are found in metadata, by the property that names their
source: asking the broker would load topics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from resources.errors import FormatError
from resources.metastore.envelope import is_compressed
from resources.metastore.topic_names import SHADOW_SOURCE_PROPERTY
from resources.metastore.topics import decode_topic
from tiering_assets.ground.evidence import Dated, Kind
from tiering_assets.ground.stack import Stack, asking, is_young


class Shadows:
    """Every shadow there is, found once for all topics of a run, and again when that gets old."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._by_source: Mapping[str, Sequence[str]] = {}
        self.evidence = Dated()

    def renew(self) -> None:
        """Look again if half of the evidence's time is over."""
        if not is_young(self._stack, self.evidence, Kind.SHADOWS):
            self.evidence = asking(self._stack, Kind.SHADOWS)
            self._by_source = _find(self._stack)

    def of(self, topic: str) -> tuple[str, ...]:
        """Managed-ledger names of the shadows of a topic, given by its full name."""
        return tuple(self._by_source.get(topic, ()))


class UnknownShadows(Shadows):
    """None was looked for: for a first answer that costs no look at every topic."""

    def renew(self) -> None:
        """Nothing is looked for."""


def find_shadows(stack: Stack) -> Shadows:
    """Find every shadow now. Reads every topic."""
    shadows = Shadows(stack)
    shadows.renew()
    return shadows


def _may_be_a_shadow(data: bytes) -> bool:
    """Of a node that does not decode: whether it has the property, or is compressed and may hide it."""
    return SHADOW_SOURCE_PROPERTY.encode() in data or is_compressed(data)


def _find(stack: Stack) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, node in stack.topics.read_all():
        if node is None:
            continue
        try:
            source = decode_topic(node).properties.get(SHADOW_SOURCE_PROPERTY)
        except FormatError as error:
            if _may_be_a_shadow(node.data):
                raise
            stack.narrate(f"{name} is left out, it names no source of a shadow: {error}")
            continue
        if source is not None:
            found[source].append(name)
    return found
