"""Where a ledger that its topic may have lost still is: lists, contexts, shadows, BookKeeper,
holds.

Owns: it is read after the bucket was listed, so that what came in between is seen. A ledger's own
topic is read by its name, each time: a listing of topics may come short.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tiering_assets.clean.gone_rules import GoneEvidence
from tiering_assets.ground.evidence import Dated, Kind
from tiering_assets.ground.stack import Stack, asking, is_young
from tiering_assets.look.brakes.brake import HOLD, Brakes, read_brakes
from tiering_assets.look.ledger.claims import read_claim
from tiering_assets.look.topic.topic_evidence import Shadows, topic_of
from tiering_assets.resources.metastore.topics import decode_topic


@dataclass(frozen=True, slots=True)
class OwnTopic:
    """What a ledger's topic lists now; `czxid` is None, and nothing listed, without a node."""

    czxid: int | None
    listed: frozenset[int]
    version: int | None = None


class Whereabouts:
    """`store_now` and the holds are of the last `renew`, and `evidence` dates all that was
    asked.
    """

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._topics = Dated()
        self._shadows = Shadows(stack)
        self._listers: dict[int, str] = {}
        self.renew()

    def renew(self) -> None:
        """Ask again: holds each time, all topics where half of their time is over."""
        if not is_young(self._stack, self._topics, Kind.TOPICS):
            self._topics = asking(self._stack, Kind.TOPICS)
            self._read_topics()
        self._shadows.renew()
        shadows = self._shadows.evidence.asked_at_s[Kind.SHADOWS]
        asked = asking(self._stack, Kind.HOLDS, Kind.NODE, Kind.LEDGER, Kind.RECORDS)
        self.evidence = asked.and_(self._topics).and_(Dated.at(shadows, Kind.TOPICS))
        self._holds: Brakes = read_brakes(self._stack, HOLD)
        self.store_now = self._stack.objects.server_time()

    def _read_topics(self) -> None:
        self._listers.clear()
        for ml_name, node in self._stack.topics.read_all():
            for one in () if node is None else decode_topic(node).ledgers:
                self._listers[one.ledger_id] = ml_name

    def own_topic(self, ml_name: str) -> OwnTopic:
        topic = self._stack.topics.read(ml_name)
        if topic is None:
            return OwnTopic(None, frozenset())
        listed = frozenset(one.ledger_id for one in topic[0].ledgers)
        return OwnTopic(topic[1].stat.czxid, listed, topic[1].stat.version)

    def judged(
        self, ledger_id: int, ml_name: str, topic: OwnTopic, *, planned_at: datetime | None
    ) -> GoneEvidence:
        """What gone_rules.py judges of a ledger, of which `topic` is what its own topic lists."""
        return GoneEvidence(
            ledger_id=ledger_id,
            node_czxid=topic.czxid,
            listed=topic.listed,
            elsewhere=self.elsewhere(ml_name, ledger_id),
            in_bookkeeper=self.in_bookkeeper(ledger_id),
            store_now=self.store_now,
            claimed_live=self.claimed_live(ledger_id),
            held=self.held(ledger_id, ml_name),
            planned_at=planned_at,
        )

    def elsewhere(self, ml_name: str, ledger_id: int) -> str | None:
        """A shadow, or another topic that lists the ledger, without which none names its
        attempts.
        """
        shadows = self._shadows.of(topic_of(ml_name))
        return shadows[0] if shadows else self._listers.get(ledger_id)

    def in_bookkeeper(self, ledger_id: int) -> bool:
        return self._stack.ledgers.read(ledger_id) is not None

    def claimed_live(self, ledger_id: int) -> bool:
        live = read_claim(self._stack, ledger_id)
        return live is not None and live.record.expires_at > self.store_now

    def held(self, ledger_id: int, ml_name: str) -> str | None:
        return self._holds.why(ledger_id, ml_name)
