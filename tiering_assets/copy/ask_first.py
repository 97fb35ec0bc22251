"""What a publication will be asked is asked before the first byte is copied. design section 6.1, step 2.

Owns: one answer per topic and batch, so a wrong bucket costs a question and not a copy of everything.
It permits nothing: the publication asks again, from fresh evidence. Hence only a refusal stops the
copy; a broker that does not answer leaves it to the publication, and so does a topic whose bundle
no broker owns: asking for its own policy would load it.
"""

from __future__ import annotations

from resources.errors import BrokerError, RefusedError
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.plan import LedgerPlan
from tiering_assets.look.topic.publish_gate import Refuse, decide_publish
from tiering_assets.look.topic.topic_evidence import (
    asking_would_load,
    publish_evidence,
    topic_of,
)


class AskFirst:
    """Answers for the topics of one batch. Four questions a topic, however many of its ledgers."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._refused: dict[str, str | None] = {}

    def require(self, plan: LedgerPlan) -> None:
        """RefusedError where the copy could not be published, naming what lifts it."""
        name = plan.ml_name
        if name not in self._refused:
            self._refused[name] = self._ask(name)
        if (why := self._refused[name]) is not None:
            raise RefusedError(f"nothing was copied, as it could not be published: {why}")

    def _ask(self, ml_name: str) -> str | None:
        found = self._stack.topics.read(ml_name)
        if found is None:
            return None  # gone since it was planned: what copies it tells of that
        try:
            if asking_would_load(self._stack, ml_name):
                return None
            evidence = publish_evidence(self._stack, ml_name, found[0])
        except BrokerError as error:
            self._stack.narrate(f"{topic_of(ml_name)}: asked again before it is published: {error}")
            return None
        if evidence.listed is None:
            return None
        decision = decide_publish(evidence)
        return str(decision) if isinstance(decision, Refuse) else None
