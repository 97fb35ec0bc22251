"""Expectation suites over a batch of index objects: ours, which must pass, and users', which may hold.

Owns: one validation judges all ledgers of a batch, and each ledger gets its own result; a ledger
that was not judged has not passed. Users' suites are JSON files of Great Expectations suites over
the columns of index_frame.py. Their results are separate, so they can hold a ledger and never make
one pass; a file that cannot be loaded or evaluated fails every ledger, with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tiering_assets.quality.checks import CHECKS, SUITE_NAME, suite_digest, suite_json
from tiering_assets.quality.expectations_run import ExpectationOutcome, run_suite
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.quality.findings import FailedCheck
from tiering_assets.quality.index_frame import index_frame
from tiering_assets.records.models import SuiteResult


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSuite:
    """One file. `suite` is None where it could not be read, and `error` says why.

    `digest` is the SHA-256 of the file's bytes, empty where there are none.
    """

    name: str
    digest: str
    suite: dict[str, Any] | None = None
    error: str | None = None


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
        ledger_id: _result(
            SUITE_NAME,
            suite_digest(),
            len(CHECKS),
            (
                failed
                for check in CHECKS
                if (failed := _failed(check.name, by_check[check.name], ledger_id, check.per_block))
            ),
        )
        for ledger_id in ledger_ids
    }


def load_user_suites(directory: Path) -> tuple[UserSuite, ...]:
    """Every `*.json` of the directory, by name. A directory that is not there is one failed suite."""
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix == ".json")
    except OSError as error:
        return (UserSuite(name=f"user/{directory.name}", digest="", error=_said(error)),)
    return tuple(_load(path) for path in paths)


def validate_user_suites(
    facts: Sequence[IndexFacts], directory: Path
) -> dict[int, tuple[SuiteResult, ...]]:
    """Judge each ledger by every user suite, one validation a suite, results in order of file name.

    Raises:
        ValueError: the same ledger twice.
    """
    ledger_ids = _ledger_ids(facts)
    results: dict[int, tuple[SuiteResult, ...]] = dict.fromkeys(ledger_ids, ())
    suites = load_user_suites(directory) if ledger_ids else ()
    frame = index_frame(facts) if suites else None
    for suite in suites:
        judged = _judge(suite, frame, ledger_ids)
        results = {ledger_id: (*results[ledger_id], judged[ledger_id]) for ledger_id in ledger_ids}
    return results


def _judge(suite: UserSuite, frame: Any, ledger_ids: Sequence[int]) -> dict[int, SuiteResult]:
    reason = suite.error
    outcomes: list[ExpectationOutcome] = []
    if suite.suite is not None:
        try:
            outcomes = run_suite(suite.suite, frame)
        except Exception as error:  # noqa: BLE001 - a user's file may provoke anything; all hold
            reason = _said(error)
    if reason is not None:
        text = f"not evaluated: {reason}"
        held = SuiteResult(
            name=suite.name,
            digest=suite.digest,
            success=False,
            evaluated=0,
            successful=0,
            failed=(text,),
        )
        return dict.fromkeys(ledger_ids, held)
    return {
        ledger_id: _result(
            suite.name,
            suite.digest,
            len(outcomes),
            (failed for o in outcomes if (failed := _failed(_title(o), [o], ledger_id, True))),
        )
        for ledger_id in ledger_ids
    }


def _load(path: Path) -> UserSuite:
    name = f"user/{path.stem}"
    try:
        raw = path.read_bytes()
    except OSError as error:
        return UserSuite(name=name, digest="", error=_said(error))
    digest = sha256(raw).hexdigest()
    try:
        suite = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return UserSuite(name=name, digest=digest, error=_said(error))
    if not isinstance(suite, dict) or not isinstance(suite.get("expectations"), list):
        return UserSuite(name=name, digest=digest, error="no object with a list `expectations`")
    return UserSuite(name=name, digest=digest, suite={**suite, "name": name})


def _ledger_ids(facts: Sequence[IndexFacts]) -> list[int]:
    ledger_ids = [one.ledger_id for one in facts]
    if twice := {ledger_id for ledger_id in ledger_ids if ledger_ids.count(ledger_id) > 1}:
        raise ValueError(f"ledgers given twice in one batch: {sorted(twice)}; split the batch")
    return ledger_ids


def _failed(
    name: str, outcomes: Sequence[ExpectationOutcome], ledger_id: int, per_block: bool
) -> FailedCheck | None:
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


def _result(
    name: str, digest: str, evaluated: int, failed_checks: Iterable[FailedCheck]
) -> SuiteResult:
    failed = tuple(str(check) for check in failed_checks)
    return SuiteResult(
        name=name,
        digest=digest,
        success=not failed,
        evaluated=evaluated,
        successful=evaluated - len(failed),
        failed=failed,
    )


def _title(outcome: ExpectationOutcome) -> str:
    """A user's expectation, by kind and columns, as one word."""
    columns = [v for k, v in outcome.kwargs.items() if k in ("column", "column_A", "column_B")]
    lists = outcome.kwargs.get("column_list") or ()
    return f"{outcome.kind}:{','.join(map(str, (*columns, *lists)))}"


def _said(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
