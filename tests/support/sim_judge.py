"""The checks of quality/checks.py, evaluated row by row without the expectation library.

The library takes a quarter of a second a validation. Same table, same rows, same verdict: a unit
test holds the two together on sound and on damaged indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tiering_assets.quality.checks import CHECKS, SUITE_NAME, Above, Check, Equal, OneOf
from tiering_assets.quality.checks import suite_digest as _suite_digest
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.quality.findings import FailedCheck
from tiering_assets.quality.index_frame import IndexRow, read_rows
from tiering_assets.quality.ledger_checks import LEDGER_SUITES, ledger_suite_digest
from tiering_assets.quality.ledger_frame import LedgerRow
from tiering_assets.quality.segment_frame import SegmentFacts, SegmentRow
from tiering_assets.quality.segment_frame import read_rows as segment_rows
from tiering_assets.quality.segment_suite import (
    SEGMENT_CHECKS,
    SEGMENT_SUITE,
    segment_suite_digest,
)
from tiering_assets.records.models import SuiteResult

suite_digest = cache(_suite_digest)


def judge(facts: Sequence[IndexFacts]) -> dict[int, SuiteResult]:
    """As quality.suites.validate_indexes."""
    return {one.ledger_id: _result(read_rows(one)) for one in facts}


def judge_segment(facts: SegmentFacts) -> SuiteResult:
    """As quality.segment_suite.validate_segment."""
    rows = segment_rows(facts)
    return _judged(SEGMENT_SUITE, segment_suite_digest(), SEGMENT_CHECKS, rows)


def _result(rows: list[IndexRow]) -> SuiteResult:
    return _judged(SUITE_NAME, suite_digest(), CHECKS, rows)


def _judged(
    name: str, digest: str, checks: Sequence[Check], rows: Sequence[IndexRow | SegmentRow]
) -> SuiteResult:
    failed = []
    for check in checks:
        wrong = [row.part for row in rows if not _holds(check, row)]
        if wrong:
            parts = tuple(p for p in wrong if p) if check.per_block else ()
            failed.append(str(FailedCheck(name=check.name, parts=parts)))
    return SuiteResult(
        name=name,
        digest=digest,
        success=not failed,
        evaluated=len(checks),
        successful=len(checks) - len(failed),
        failed=tuple(failed),
    )


def judge_ledgers(rows: Sequence[LedgerRow]) -> dict[int, tuple[SuiteResult, ...]]:
    """As quality.ledger_suites.validate_ledgers."""
    return {
        row.ledger_id: tuple(_suite(name, checks, row) for name, checks in LEDGER_SUITES.items())
        for row in rows
    }


def _suite(name: str, checks: Sequence[Check], row: LedgerRow) -> SuiteResult:
    failed = tuple(check.name for check in checks if not _holds(check, row))
    return SuiteResult(
        name=name,
        digest=ledger_suite_digest(name),
        success=not failed,
        evaluated=len(checks),
        successful=len(checks) - len(failed),
        failed=failed,
    )


def _holds(check: Check, row: IndexRow | LedgerRow | SegmentRow) -> bool:
    value = getattr(row, check.column)
    match check.rule:
        case OneOf(values):
            return value is not None and value in values
        case Equal(other):
            return value is not None and value == getattr(row, other)
        case Above(other=other, or_equal=or_equal, optional=optional):
            bound = getattr(row, other)
            if value is None or bound is None:
                return optional
            return bool(value > bound or (or_equal and value == bound))
