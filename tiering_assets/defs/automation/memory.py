"""What the sensors of one cluster remember between two ticks, in the process that evaluates them.

Owns: hints alone, made with the definitions and lost with the process. A ledger id or a topic means
something else in another cluster, so two clusters in one process share none of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tiering_assets.defs.automation.wake import Wake
from tiering_assets.defs.shared.names import ClusterNames

if TYPE_CHECKING:
    from tiering_assets.automation.tick_memory import TickMemory
    from tiering_assets.automation.unmoved import Unmoved
    from tiering_assets.defs.automation.shared_topics import KeptTopics


@dataclass(frozen=True)
class SensorMemory:
    """What needs clients' modules is made by the first tick; who only loads definitions has
    none.
    """

    cluster: ClusterNames
    wake: Wake = field(default_factory=lambda: Wake())

    @cached_property
    def batches(self) -> dict[str, tuple[int, ...]]:
        """Ledgers of large runs, by the digest of their records."""
        return {}

    @cached_property
    def topics(self) -> KeptTopics:
        """Topics' nodes that one sensor has read, for the next."""
        from tiering_assets.defs.automation.shared_topics import KeptTopics

        return KeptTopics(self.wake)

    @cached_property
    def ticks(self) -> TickMemory:
        """What was seen of the records."""
        from tiering_assets.automation.tick_memory import TickMemory

        return TickMemory()

    @cached_property
    def unmoved(self) -> Unmoved:
        """Topics that are in the catalogue as they are."""
        from tiering_assets.automation.unmoved import Unmoved

        return Unmoved(self.wake)
