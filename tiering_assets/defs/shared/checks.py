"""The checks: their specs, and one way to log what each found of one ledger.

Owns: checks report and steps write. No check here allows a release; the gate proves everything
again by itself, and an evaluation that is missing or stale stops nothing and lets nothing through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.shared.batches import reasons_table
from tiering_assets.defs.shared.metadata import Metadata, suite_metadata
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.partitions import partition_key
from tiering_assets.defs.shared.preview_api import (
    Context,
    Evaluation,
    log_evaluation,
    partitioned_check,
)
from tiering_assets.resources.errors import ExpectationError, FormatError, IntegrityError

if TYPE_CHECKING:
    from tiering_assets.records.models import SuiteResult

_SAID_MAX = 300  # of one ledger, in the word on a whole batch
_ABOUT = {
    "read_back_equal": (
        "Every byte of the data object was read back with an independent decoder. Entry ids, "
        "lengths, payloads and digests equal what the bookies served and what is certified."
    ),
    "index_suite": (
        "Great Expectations suite over the index object, read leniently and joined with HEAD "
        "sizes, block headers read back and both metadata trees."
    ),
    "expectation_suites": (
        "Great Expectations suites, ours and users', over index, ledger list, records and "
        "objects. It shows what the newest release run found; the release job evaluates it "
        "(docs/quality.md)."
    ),
    "released_safely": (
        "The records of the release follow each other: certificate, then intent after the "
        "deletion lag, then the delete of exactly the certified ledger."
    ),
}


def check_specs(cluster: ClusterNames) -> list[dg.AssetCheckSpec]:
    """The checks of ledgers: of each one, or, where partitions are days, of those of a run."""
    return [
        partitioned_check(
            key.name,
            asset=key.asset_key,
            partitions_def=None if cluster.by_day else cluster.ledger_partitions,
            description=_ABOUT[key.name],
        )
        for key in (
            cluster.read_back_equal,
            cluster.index_suite,
            cluster.expectation_suites,
            cluster.released_safely,
        )
    ]


def disproved_by(cluster: ClusterNames, error: Exception | None) -> dg.AssetCheckKey | None:
    """The check that this error is a finding of; an outage or a refusal judges nothing."""
    if isinstance(error, ExpectationError):
        return cluster.index_suite
    return cluster.read_back_equal if isinstance(error, IntegrityError | FormatError) else None


def naming(ledger_id: int, topic: str | None, said: str) -> str:
    """What was found, behind the ledger and its topic; None for a topic that nobody knows."""
    of = f"ledger {ledger_id}"
    said = said.removeprefix(f"{of}: ")
    return f"{of}: {said}" if topic is None else f"{of} of {topic}: {said}"


def finding(check: dg.AssetCheckKey, ledger_id: int, said: str) -> Evaluation:
    return Evaluation(
        check=check,
        partition=partition_key(ledger_id),
        passed=False,
        description=said,
        metadata={"ledger_id": dg.MetadataValue.text(str(ledger_id))},
    )


def read_back_evaluation(
    cluster: ClusterNames,
    ledger_id: int,
    *,
    findings: Iterable[str],
    metadata: Metadata,
    said: str,
) -> Evaluation:
    found = list(findings)
    return Evaluation(
        check=cluster.read_back_equal,
        partition=partition_key(ledger_id),
        passed=not found,
        description="; ".join(found) or said,
        metadata=metadata,
    )


def suites_evaluation(
    check: dg.AssetCheckKey, ledger_id: int, suites: Iterable[SuiteResult]
) -> Evaluation:
    found = list(suites)
    failed = [name for suite in found for name in suite.failed]
    return Evaluation(
        check=check,
        partition=partition_key(ledger_id),
        passed=bool(found) and all(suite.success for suite in found),
        description=", ".join(failed) or f"{sum(s.evaluated for s in found)} expectations met",
        metadata=suite_metadata(found),
    )


def log_batch(
    context: Context, check: dg.AssetCheckKey, *, bad: Mapping[int, str], passed: int
) -> None:
    """One line over a batch. The gate counts neither this nor a ledger's own."""
    log_evaluation(
        context,
        check,
        partition=None,
        passed=not bad,
        description=f"{passed} ledgers passed, {len(bad)} failed{_such_as(bad)}",
        metadata={
            "ledgers_passed": dg.MetadataValue.int(passed),
            "ledgers_failed": dg.MetadataValue.int(len(bad)),
            "failed": reasons_table(bad, "finding"),
        },
    )


def _such_as(bad: Mapping[int, str]) -> str:
    return f"; such as {bad[min(bad)][:_SAID_MAX]}" if bad else ""


def release_evaluation(
    cluster: ClusterNames,
    ledger_id: int,
    faults: Iterable[str],
    *,
    metadata: Metadata | None = None,
) -> Evaluation:
    found = list(faults)
    return Evaluation(
        check=cluster.released_safely,
        partition=partition_key(ledger_id),
        passed=not found,
        description="; ".join(found) or "certificate, intent and release follow each other",
        metadata=metadata or {},
    )
