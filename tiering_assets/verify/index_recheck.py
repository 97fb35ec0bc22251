"""Run the expectation suite again over certified indexes as they lie in the bucket now. Reads only."""

from __future__ import annotations

from collections.abc import Iterable

from resources.errors import ObjectNotFoundError, TierkeeperError
from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.records.models import SuiteResult
from tiering_assets.verify.index_evidence import index_facts
from tiering_assets.verify.reverify import certified_copy


def recheck_indexes(
    stack: Stack, ledger_ids: Iterable[int]
) -> dict[int, SuiteResult | TierkeeperError]:
    """One validation over all indexes; one ledger's trouble is its own."""
    results: dict[int, SuiteResult | TierkeeperError] = {}
    facts: list[IndexFacts] = []
    for ledger_id in sorted(set(ledger_ids)):
        try:
            facts.append(_facts_now(stack, ledger_id))
        except TierkeeperError as error:
            results[ledger_id] = error
    return {**results, **(stack.judge(facts) if facts else {})}


def _facts_now(stack: Stack, ledger_id: int) -> IndexFacts:
    stored, sight = certified_copy(stack, ledger_id)
    record = stored.record
    data, index = (
        stack.objects.head(record.data.key),
        stack.objects.get(record.index.key, bytes_max=INDEX_BYTES_MAX),
    )
    if data is None or index is None:
        gone = record.index.key if data is not None else record.data.key
        raise ObjectNotFoundError(f"ledger {ledger_id}: object {gone} is not in {record.bucket}")
    return index_facts(stack, record, data, index, sight.listed)
