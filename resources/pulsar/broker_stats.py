"""Which topics each broker has in memory, by its broker-stats, asked once for many topics.

Owns: broker-stats are computed once a minute, so an answer shows what a broker had in memory a
minute before it was asked, and maybe later. A "yes" is kept for a minute, as it may be that old
when it is given, and costs a needless unload at worst; how long a "no" says enough the caller
knows. Nothing here loads a topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from tiering_assets.resources.errors import BrokerError, FormatError
from tiering_assets.resources.pulsar.http import AdminHttp

YES_KEPT_S = 60.0
_PATH = "/broker-stats/topics"


@dataclass(frozen=True, slots=True)
class _Stats:
    asked_at: float
    topics: frozenset[str]


class BrokerStats:
    """Asks brokers by `host:port`; the caller knows which ones may get our token."""

    def __init__(self, http: AdminHttp, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._http = http
        self._monotonic = monotonic
        self._kept: dict[str, _Stats] = {}
        self._silent: set[str] = set()
        self._lock = Lock()

    def lists(self, broker: str, topic: str, *, age_max_s: float = 0.0) -> bool:
        """Whether the broker has the topic; a "no" may have been given so long ago.

        Raises:
            BrokerError: it does not answer, or with something else than stats.
        """
        with self._lock:  # threads that want the same answer wait for one
            kept = self._kept.get(broker)
            if kept is not None:
                listed, age_s = topic in kept.topics, self._monotonic() - kept.asked_at
                if age_s < (YES_KEPT_S if listed else age_max_s):
                    return listed
            found = self._kept[broker] = _Stats(self._monotonic(), self._topics_of(broker))
            return topic in found.topics

    def of_one_away(self, broker: str, topic: str, *, age_max_s: float) -> bool | None:
        """The same of a broker that is not registered; None when it does not answer.

        One that was silent once is not asked again: each try may take seconds, and topics are many.
        """
        if broker in self._silent:
            return None
        try:
            return self.lists(broker, topic, age_max_s=age_max_s)
        except (BrokerError, FormatError):
            self._silent.add(broker)
            return None

    def _topics_of(self, broker: str) -> frozenset[str]:
        """Persistent topics in {namespace: {bundle: {"persistent": {topic: stats}}}}."""
        stats = _as_object(self._http.json(_PATH, base=self._http.base_of(broker)) or {})
        return frozenset(
            topic
            for bundles in stats.values()
            for bundle in _as_object(bundles).values()
            for topic in _as_object(_as_object(bundle).get("persistent", {}))
        )


def _as_object(found: object) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise BrokerError(f"GET {_PATH}: expected a JSON object, found {found!r:.100}")
    return found
