"""What a run tells Dagster of its ledgers, whatever a partition is.

Owns: the ops hand every ledger's event and verdict to a Telling, and `dagster.partition_by` decides
what comes of it (by_ledger.py, by_day.py). What a check found of all ledgers of a run is one
evaluation without a partition. docs/dagster-partitions.md has the budget.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.shared.checks import log_batch, naming, suites_evaluation
from tiering_assets.defs.shared.metadata import topic_text
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.partitions import ledger_id_of
from tiering_assets.defs.shared.preview_api import Context, Evaluation
from tiering_assets.defs.shared.resources import narrate
from tiering_assets.resources.errors import TierkeeperError

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack
    from tiering_assets.records.models import SuiteResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedLedger:
    """A ledger that reached an asset. `bytes` of its payload. Without `closed_at` its topic is
    asked where it matters.
    """

    ledger_id: int
    ml_name: str
    bytes: int
    closed_at: datetime | None = None


@dataclass(slots=True)
class CheckTally:
    """Of one check in one run."""

    passed: int = 0
    bad: dict[int, str] = field(default_factory=dict)


class Telling(ABC):
    """Of one run. `finish` says what is about no single ledger."""

    def __init__(self, context: Context, cluster: ClusterNames, stack: Stack) -> None:
        self.context, self.cluster, self.stack = context, cluster, stack
        self._verdicts: dict[dg.AssetCheckKey, CheckTally] = defaultdict(CheckTally)

    def begin(self, ledger_ids: Collection[int]) -> frozenset[int]:
        """Of these something will be told; those of them that Dagster knew before."""
        return frozenset()

    @abstractmethod
    def asset(self, event: dg.AssetMaterialization, of: ReachedLedger) -> bool:
        """A ledger has reached an asset; False where the same was told before."""

    def check(self, found: Evaluation) -> None:
        """A check has judged a ledger."""
        self.count(self.named(found))

    def suites(
        self, check: dg.AssetCheckKey, ledger_id: int, suites: Iterable[SuiteResult]
    ) -> bool:
        """Suites have judged a ledger; True when all passed and there was one."""
        return self.count(self.named(suites_evaluation(check, ledger_id, suites)))

    def lines(self, said: Mapping[int, str]) -> None:
        """A line of single ledgers each."""
        for ledger_id, line in sorted(said.items()):
            narrate(self.context, f"ledger {ledger_id}: {line}")

    @abstractmethod
    def failed(self, asset: dg.AssetKey, said: Mapping[int, str]) -> None:
        """Ledgers that did not reach an asset, by what kept each of them from it."""

    def finish(self) -> None:
        """What each check found of all ledgers of the run."""
        for check, verdicts in self._verdicts.items():
            log_batch(self.context, check, bad=verdicts.bad, passed=verdicts.passed)

    def named(self, found: Evaluation) -> Evaluation:
        """What failed names its ledger and topic first, wherever it is read."""
        from tiering_assets.look.ledger.survey import ml_names_of

        if found.passed or found.partition is None:
            return found
        ledger_id = ledger_id_of(found.partition)
        try:
            ml_name = ml_names_of(self.stack, [ledger_id]).get(ledger_id)
        except TierkeeperError:  # its verdict is known all the same
            ml_name = None
        topic = None if ml_name is None else topic_text(ml_name)
        return replace(found, description=naming(ledger_id, topic, found.description))

    def count(self, found: Evaluation) -> bool:
        verdicts = self._verdicts[found.check]
        if found.passed:
            verdicts.passed += 1
        elif found.partition is not None:
            verdicts.bad[ledger_id_of(found.partition)] = found.description
        return found.passed
