"""From the outcomes of expectations to one ledger's result of one suite. Pure.

Owns: a check that was not evaluated, for whatever reason, counts as failed for every ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tiering_assets.quality.expectations_run import ExpectationOutcome
from tiering_assets.quality.findings import FailedCheck
from tiering_assets.records.models import SuiteResult


def failed_check(
    name: str, outcomes: Sequence[ExpectationOutcome], ledger_id: int, per_block: bool
) -> FailedCheck | None:
    """What the outcomes of one check say against a ledger; None when all of them hold for it."""
    broken = [outcome.broken for outcome in outcomes if outcome.broken is not None]
    if broken or not outcomes:
        return FailedCheck(name=name, broken=broken[0] if broken else "it was not evaluated")
    wrong = [
        outcome.unexpected[ledger_id] for outcome in outcomes if ledger_id in outcome.unexpected
    ]
    if not wrong:
        return None
    parts = sorted({part for parts in wrong for part in parts if part and per_block})
    return FailedCheck(name=name, parts=tuple(parts))


def suite_result(
    name: str, digest: str, evaluated: int, failed_checks: Iterable[FailedCheck]
) -> SuiteResult:
    """`evaluated` counts checks, of which those in `failed_checks` failed."""
    failed = tuple(str(check) for check in failed_checks)
    return SuiteResult(
        name=name,
        digest=digest,
        success=not failed,
        evaluated=evaluated,
        successful=evaluated - len(failed),
        failed=failed,
    )
