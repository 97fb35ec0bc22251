"""The coverage and certificate suites over all ledgers of a release: one validation for both.

Owns: each ledger gets a result of each suite; a ledger that was not judged has not passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tiering_assets.quality.checks import Check
from tiering_assets.quality.expectations_run import ExpectationOutcome, run_suite
from tiering_assets.quality.findings import FailedCheck, sentence_of
from tiering_assets.quality.ledger_checks import (
    LEDGER_CHECKS_BY_NAME,
    LEDGER_SUITES,
    ledger_suite_digest,
    ledger_suites_json,
)
from tiering_assets.quality.ledger_frame import LedgerRow, ledger_frame
from tiering_assets.quality.verdicts import failed_check, suite_result
from tiering_assets.records.models import SuiteResult

_CLOCK = (
    "; a clock was set while its records were written, which stay as they are: see docs/runbook.md, "
    "A copy that cannot be released"
)
NEXT_STEPS = {"verified_after_start": _CLOCK, "published_after_verified": _CLOCK}


def validate_ledgers(rows: Sequence[LedgerRow]) -> dict[int, tuple[SuiteResult, ...]]:
    """Judge each ledger by every check of ledger_checks.py; results in the order of its suites.

    Raises:
        ValueError: the same ledger twice, whose results could not be told apart.
    """
    ledger_ids = distinct_ids(rows)
    if not ledger_ids:
        return {}
    by_check: dict[str, list[ExpectationOutcome]] = {}
    for outcome in run_suite(ledger_suites_json(), ledger_frame(rows)):
        by_check.setdefault(outcome.meta["check"], []).append(outcome)
    return {
        ledger_id: tuple(
            suite_result(
                name,
                ledger_suite_digest(name),
                len(checks),
                _failed(checks, by_check, ledger_id),
            )
            for name, checks in LEDGER_SUITES.items()
        )
        for ledger_id in ledger_ids
    }


def ledger_findings(row: LedgerRow, results: Iterable[SuiteResult]) -> tuple[str, ...]:
    """One sentence per failed check: suite, expectation, expected and found value."""
    sentences = []
    for result in results:
        for text in result.failed:
            failed = FailedCheck.parse(text)
            check = LEDGER_CHECKS_BY_NAME.get(failed.name)
            said = (
                text
                if check is None or failed.broken is not None
                else f"{check.name}: {sentence_of(check, row)}{NEXT_STEPS.get(check.name, '')}"
            )
            sentences.append(f"suite {result.name}: {said}")
    return tuple(sentences)


def distinct_ids(rows: Sequence[LedgerRow]) -> list[int]:
    """The ledgers of a frame, each once; ValueError where two rows would share a result."""
    ledger_ids = [row.ledger_id for row in rows]
    if len(set(ledger_ids)) < len(ledger_ids):
        twice = sorted({i for i in ledger_ids if ledger_ids.count(i) > 1})
        raise ValueError(f"ledgers given twice in one batch: {twice}; split the batch")
    return ledger_ids


def _failed(
    checks: Iterable[Check], by_check: dict[str, list[ExpectationOutcome]], ledger_id: int
) -> list[FailedCheck]:
    found = (failed_check(c.name, by_check.get(c.name, []), ledger_id, False) for c in checks)
    return [failed for failed in found if failed is not None]
