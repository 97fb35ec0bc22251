"""One Great Expectations validation over a frame of many ledgers.

Owns everything that touches the library: one ephemeral context per process without files, progress
bars or analytics, used by one thread at a time; and the reading of its results. Fails closed: an
expectation that raised, or failed without naming its rows, counts as failed for every ledger.

A validation is two looks. The first costs a twentieth, and can say that all expectations hold
(kept_suite.py). Where it does not say so, the library validates by its public door and names rows.

The library takes seconds to import, so that happens at the first validation, or in `prepare`.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tiering_assets.quality.kept_suite import KeptSuite, keep
from tiering_assets.resources.errors import PrerequisiteError, SettingsError
from tiering_assets.resources.garbage import freeze_once, no_collection

if TYPE_CHECKING:
    import pandas as pd

_LOCK: Final = threading.Lock()
_KEPT: Final[dict[tuple[object, ...], KeptSuite | None]] = {}
_KEPT_MAX: Final = 64  # two suites of ours, and users' files; each is a few hundred kilobytes
_RESULT_FORMAT: Final = {
    "result_format": "COMPLETE",
    "unexpected_index_column_names": ["ledger_id", "part"],
    "return_unexpected_index_query": False,
    "partial_unexpected_count": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationOutcome:
    """One expectation: the parts that it found wrong, by ledger.

    `broken` says why it could not be judged at all; then it counts against every ledger.
    """

    kind: str
    kwargs: Mapping[str, Any]
    meta: Mapping[str, Any]
    unexpected: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    broken: str | None = None


def run_suite(suite: Mapping[str, Any], frame: pd.DataFrame) -> list[ExpectationOutcome]:
    """Validate the frame once. `suite` is a Great Expectations suite as JSON has it.

    Raises:
        SettingsError: no expectation, or one that judges the batch rather than its rows or
            tolerates some wrong ones: either way a ledger's result would depend on its neighbours.
        Exception: whatever the library raises for a suite that it cannot build.
    """
    with _LOCK:
        kept = _kept(suite, frame)
        if kept is not None and kept.holds(frame):
            return [
                ExpectationOutcome(
                    kind=given["type"], kwargs=given["kwargs"], meta=given.get("meta") or {}
                )
                for given in suite["expectations"]
            ]
        built = _build(suite)
        batch = _batch_definition().get_batch(batch_parameters={"dataframe": frame})
        results = batch.validate(built, result_format=dict(_RESULT_FORMAT)).results
        if len(results) != len(suite["expectations"]):
            raise SettingsError(
                f"{len(suite['expectations'])} expectations gave {len(results)} results;"
                " look for one that stands there twice"
            )
        return [_outcome(result) for result in results]


def prepare() -> None:
    """Import the library now, so that the first validation need not wait for it."""
    with _LOCK:
        _batch_definition()


def prepare_aside() -> threading.Thread:
    """`prepare` in a thread of its own, for a process that waits while others work for it."""
    thread = threading.Thread(target=_prepare_if_it_can, name="prepare-suites")
    thread.start()
    return thread


def _prepare_if_it_can() -> None:
    # Who judges next meets the same error, and says whose ledgers it concerns.
    with suppress(Exception):
        prepare()


@contextmanager
def _program_with_a_file() -> Iterator[None]:
    """Let the program look like one that was started from a file.

    PySpark, which the library imports, takes one that was not for a doctest run and ends it, with
    success, in the middle of a verification. Runs that Dagster's daemon launches are such programs.
    """
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        yield
        return
    main.__file__ = __file__
    try:
        yield
    finally:
        del main.__file__


@functools.cache
def _batch_definition() -> Any:
    # Read when the library is imported; it has no client left, but an older one may be installed.
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "False")
    try:
        # 300,000 objects come to stay: looking for garbage among them takes a fifth of the time.
        with _program_with_a_file(), no_collection():
            import great_expectations as gx
    except SystemExit as error:
        raise PrerequisiteError(
            "great_expectations cannot be imported: PySpark ended the program meanwhile"
        ) from error
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    freeze_once("expectations")
    asset = context.data_sources.add_pandas("indexes").add_dataframe_asset("index_objects")
    return asset.add_batch_definition_whole_dataframe("batch")


def _kept(suite: Mapping[str, Any], frame: pd.DataFrame) -> KeptSuite | None:
    """The suite, prepared for frames of these columns; None where the library must do all of it."""
    text = json.dumps(suite["expectations"], sort_keys=True)
    key = (text, *zip(frame.columns, map(str, frame.dtypes), strict=True))
    if key not in _KEPT:
        if len(_KEPT) >= _KEPT_MAX:
            _KEPT.clear()
        _KEPT[key] = None if _is_open(text) else keep(_build(suite).expectations, frame)
    return _KEPT[key]


def _is_open(suite: str) -> bool:
    """Whether the library finds out each time what the suite says, as `now` in a parameter."""
    return "$PARAMETER" in suite


def _build(suite: Mapping[str, Any]) -> Any:
    _batch_definition()  # suites need the context to exist
    import great_expectations as gx
    from great_expectations.expectations.expectation import (
        ColumnMapExpectation,
        ColumnPairMapExpectation,
        MulticolumnMapExpectation,
    )
    from great_expectations.expectations.expectation_configuration import (
        ExpectationConfiguration,
    )

    # One by one: given as JSON, the library logs and leaves out what it cannot build.
    expectations = [
        ExpectationConfiguration(
            type=given["type"], kwargs=dict(given["kwargs"]), meta=given.get("meta")
        ).to_domain_obj()
        for given in suite["expectations"]
    ]
    if not expectations:
        raise SettingsError("it holds no expectation")
    by_row = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)
    for expectation in expectations:
        if not isinstance(expectation, by_row):
            raise SettingsError(
                f"{expectation.expectation_type} judges a whole batch, not its rows"
            )
        if expectation.mostly != 1:
            raise SettingsError(f"{expectation.expectation_type} tolerates wrong rows (mostly)")
    return gx.ExpectationSuite(name=suite["name"], expectations=expectations)


def _outcome(result: Any) -> ExpectationOutcome:
    config = result.expectation_config
    unexpected, broken = {}, None
    if not result.success:
        unexpected = _unexpected_parts(result.result.get("unexpected_index_list") or ())
        broken = None if unexpected else _reason(result)
    return ExpectationOutcome(
        kind=config.type,
        kwargs=config.kwargs,
        meta=config.meta or {},
        unexpected=unexpected,
        broken=broken,
    )


def _unexpected_parts(rows: Any) -> dict[int, tuple[int, ...]]:
    parts: dict[int, list[int]] = {}
    for row in rows:
        parts.setdefault(row["ledger_id"], []).append(row["part"])
    return {ledger_id: tuple(found) for ledger_id, found in parts.items()}


def _reason(result: Any) -> str:
    """First line of the exception, which the library nests differently for different failures."""
    info = result.exception_info or {}
    for entry in (info, *(value for value in info.values() if isinstance(value, dict))):
        if entry.get("raised_exception"):
            return str(entry.get("exception_message")).strip().split("\n")[0][:200]
    return "it failed without naming a row"
