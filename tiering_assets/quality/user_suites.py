"""Users' expectation suites: files that can hold a release and never allow one.

Owns: a suite is a JSON file as Great Expectations saves one, over the columns of ledger_frame.py,
read once at the start. Results are kept apart from ours, and there is no way from a passed one to
the gate. A suite that cannot be evaluated fails every ledger, with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from tiering_assets.quality.expectations_run import ExpectationOutcome, run_suite
from tiering_assets.quality.ledger_frame import LedgerRow, ledger_frame
from tiering_assets.quality.ledger_suites import distinct_ids
from tiering_assets.quality.verdicts import failed_check, suite_result
from tiering_assets.records.models import SuiteResult
from tiering_assets.resources.errors import SettingsError

SETTING: Final = "quality.suites"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSuite:
    """One file; its name is `user/` and the file's without ending, `digest` the SHA-256 of its
    bytes.
    """

    name: str
    digest: str
    suite: dict[str, Any]


def load_user_suites(paths: str) -> tuple[UserSuite, ...]:
    """Read the files of the setting, separated by commas, in their order.

    Raises:
        SettingsError: a file that is not there, is no suite, or has another's name.
    """
    found: dict[str, UserSuite] = {}
    for path in (Path(one.strip()) for one in paths.split(",") if one.strip()):
        suite = _load(path)
        if suite.name in found:
            raise SettingsError(f"{SETTING}: two files would both be {suite.name}: rename {path}")
        found[suite.name] = suite
    return tuple(found.values())


def validate_user_suites(
    rows: Sequence[LedgerRow], suites: Sequence[UserSuite]
) -> dict[int, tuple[SuiteResult, ...]]:
    """Judge each ledger by every user suite, one validation a suite, results in their order.

    Raises:
        ValueError: the same ledger twice.
    """
    ledger_ids = distinct_ids(rows)
    results: dict[int, tuple[SuiteResult, ...]] = dict.fromkeys(ledger_ids, ())
    for suite in suites if ledger_ids else ():
        judged = _judge(suite, rows, ledger_ids)
        results = {ledger_id: (*results[ledger_id], judged[ledger_id]) for ledger_id in ledger_ids}
    return results


def user_findings(results: Sequence[SuiteResult]) -> tuple[str, ...]:
    """Why users' suites hold a ledger; empty where they do not."""
    return tuple(
        f"held by suite {result.name}: {', '.join(result.failed) or 'it did not pass'}"
        for result in results
        if not result.success
    )


def _load(path: Path) -> UserSuite:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{SETTING}: {path} cannot be read: {error.strerror}") from error
    try:
        suite = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{SETTING}: {path} is not JSON: {error}") from error
    expectations = suite.get("expectations") if isinstance(suite, dict) else None
    if not isinstance(expectations, list) or not expectations:
        raise SettingsError(
            f"{SETTING}: {path} is no expectation suite: expected an object with a list "
            "`expectations` that is not empty"
        )
    for number, one in enumerate(expectations, start=1):
        sound = isinstance(one, dict) and isinstance(one.get("type"), str)
        if not sound or not isinstance(one.get("kwargs"), dict):
            raise SettingsError(f"{SETTING}: {path}: expectation {number} lacks `type` or `kwargs`")
    name = f"user/{path.stem}"
    return UserSuite(name=name, digest=sha256(raw).hexdigest(), suite={**suite, "name": name})


def _judge(
    suite: UserSuite, rows: Sequence[LedgerRow], ledger_ids: Sequence[int]
) -> dict[int, SuiteResult]:
    try:
        outcomes = run_suite(suite.suite, ledger_frame(rows))
    except Exception as error:  # noqa: BLE001 - a user's file may provoke anything; all hold
        held = SuiteResult(
            name=suite.name,
            digest=suite.digest,
            success=False,
            evaluated=0,
            successful=0,
            failed=(f"not evaluated: {_error_text(error)}",),
        )
        return dict.fromkeys(ledger_ids, held)
    return {
        ledger_id: suite_result(
            suite.name,
            suite.digest,
            len(outcomes),
            (f for o in outcomes if (f := failed_check(_title(o), [o], ledger_id, False))),
        )
        for ledger_id in ledger_ids
    }


def _title(outcome: ExpectationOutcome) -> str:
    """A user's expectation, by kind and columns, as one word."""
    columns = [v for k, v in outcome.kwargs.items() if k in ("column", "column_A", "column_B")]
    lists = outcome.kwargs.get("column_list") or ()
    return f"{outcome.kind}:{','.join(map(str, (*columns, *lists)))}"


def _error_text(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
