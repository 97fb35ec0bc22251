"""Our expectation suite over a batch of index objects.

Owns: one validation judges all ledgers of a batch, and each ledger gets its own result; a ledger
that was not judged has not passed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tiering_assets.quality.checks import CHECKS, SUITE_NAME, suite_digest, suite_json
from tiering_assets.quality.expectations_run import run_suite
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.quality.index_frame import index_frame
from tiering_assets.quality.verdicts import failed_check, suite_result
from tiering_assets.records.models import SuiteResult


def validate_indexes(facts: Sequence[IndexFacts]) -> dict[int, SuiteResult]:
    """Judge each ledger by every check of checks.py, in one validation.

    Never raises on any bytes. `failed` holds FailedCheck strings; findings.py explains them.

    Raises:
        ValueError: the same ledger twice, whose results could not be told apart.
    """
    ledger_ids = _ledger_ids(facts)
    if not ledger_ids:
        return {}
    outcomes = run_suite(suite_json(), index_frame(facts))
    by_check = {
        check.name: [o for o in outcomes if o.meta["check"] == check.name] for check in CHECKS
    }
    return {
        ledger_id: suite_result(
            SUITE_NAME,
            suite_digest(),
            len(CHECKS),
            (
                failed
                for check in CHECKS
                if (
                    failed := failed_check(
                        check.name, by_check[check.name], ledger_id, check.per_block
                    )
                )
            ),
        )
        for ledger_id in ledger_ids
    }


def _ledger_ids(facts: Sequence[IndexFacts]) -> list[int]:
    ledger_ids = [one.ledger_id for one in facts]
    if twice := {ledger_id for ledger_id in ledger_ids if ledger_ids.count(ledger_id) > 1}:
        raise ValueError(f"ledgers given twice in one batch: {sorted(twice)}; split the batch")
    return ledger_ids
