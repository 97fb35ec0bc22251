"""One materialization of each asset that a ledger reached, and one evaluation of the ledger.

Owns: a suite's verdict is an evaluation of the ledger only where it fails, or had failed. A run
that a sensor asked for says nothing twice. A ledger without a key is counted, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.shared.batches import by_hand, give_keys
from tiering_assets.defs.shared.checks import suites_evaluation
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.partitions import ledger_id_of, partition_key
from tiering_assets.defs.shared.preview_api import (
    Context,
    Evaluation,
    failed_partitions,
    log_found,
    observed_reason,
    told_metadata,
)
from tiering_assets.defs.shared.resources import narrate
from tiering_assets.defs.telling.telling import ReachedLedger, Telling

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack
    from tiering_assets.records.models import SuiteResult

_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OF_ITS_TIME = {"noop", "rebuilt", "state"}  # what an event says of the moment it was told in


class ByLedger(Telling):
    def __init__(self, context: Context, cluster: ClusterNames, stack: Stack) -> None:
        super().__init__(context, cluster, stack)
        self._keyed: frozenset[int] = frozenset()
        self._surplus: set[int] = set()
        self._failed: dict[dg.AssetCheckKey, frozenset[str]] = {}

    def begin(self, ledger_ids: Collection[int]) -> frozenset[int]:
        found = give_keys(
            self.context.instance,
            self.cluster,
            ledger_ids,
            live_max=self.stack.settings.dagster.partitions_max,
        )
        self._keyed |= found.known | found.fresh
        self._surplus |= {*ledger_ids} - self._keyed
        return found.known

    def asset(self, event: dg.AssetMaterialization, of: ReachedLedger) -> bool:
        new = not self._was_told(event)
        if new and of.ledger_id in self._keyed:
            self.context.op_execution_context.log_event(event)
        return new

    def check(self, found: Evaluation) -> None:
        found = self.named(found)
        self.count(found)
        self._log(found)

    def suites(
        self, check: dg.AssetCheckKey, ledger_id: int, suites: Iterable[SuiteResult]
    ) -> bool:
        found = self.named(suites_evaluation(check, ledger_id, suites))
        if not self.count(found) or found.partition in self._failed_before(check):
            self._log(found)
        return found.passed

    def failed(self, asset: dg.AssetKey, said: Mapping[int, str]) -> None:
        """One observation of a ledger for each change of reason, where it has a key."""
        live = {*self.context.instance.get_dynamic_partitions(self.cluster.partition_set)}
        for ledger_id, reason in sorted(said.items()):
            key = partition_key(ledger_id)
            if key not in live:
                continue
            before = observed_reason(self.context.instance, asset, key)
            if before is None or _kind(before) != _kind(reason):
                self.context.op_execution_context.log_event(
                    dg.AssetObservation(asset, partition=key, description=reason)
                )

    def finish(self) -> None:
        super().finish()
        if self._surplus:
            narrate(
                self.context,
                f"{len(self._surplus)} ledgers found no key free, from {min(self._surplus)} on: "
                "nothing waits for one, and `tierkeeper ledger show ID` and the catalogue have "
                "them (dagster.partitions_max, dagster.partition_by)",
            )

    def _log(self, found: Evaluation) -> None:
        if found.partition is None or ledger_id_of(found.partition) in self._keyed:
            log_found(self.context, found)

    def _was_told(self, event: dg.AssetMaterialization) -> bool:
        """Whether the same was said before, and no person asks to hear it again."""
        if "noop" not in event.metadata or event.partition is None or by_hand(self.context):
            return False
        told = told_metadata(self.context.instance, event.asset_key, event.partition)
        return told is not None and _lasting(told) == _lasting(event.metadata)

    def _failed_before(self, check: dg.AssetCheckKey) -> frozenset[str]:
        if check not in self._failed:
            self._failed[check] = failed_partitions(self.context.instance, check)
        return self._failed[check]


def _kind(reason: str) -> str:
    """A reason without what differs each time: ids, numbers, and all behind its first part."""
    first = re.split(r"[;(]|\. ", reason, maxsplit=1)[0]
    return re.sub(rf"{_UUID}|\d+", "#", first).strip()


def _lasting(metadata: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in metadata.items() if name not in _OF_ITS_TIME}
