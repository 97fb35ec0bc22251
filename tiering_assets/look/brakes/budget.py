"""Set and show the wanted rates. docs/budgets.md

Owns: a budget that could not be kept is refused before it is written, with the smallest that can
be. The record is one object that is overwritten; whoever spends looks at it every 10 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import Budget
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError, ObjectConflictError, ObjectExistsError
from tiering_assets.resources.settings import Settings
from tiering_assets.tasks.budget_record import rates_of
from tiering_assets.tasks.rate_budget import NAMES, limit_of, smallest_rate, wanted_rates
from tiering_assets.tasks.rates import parts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLine:
    """One budget in force. `part` is what one of `parts` spenders may use, `least` the smallest."""

    name: str
    rate: int
    origin: str
    part: float
    least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """All budgets, and the record that says so; None where only settings speak."""

    parts: int
    lines: tuple[BudgetLine, ...]
    record: Budget | None


def read_wanted(stack: Stack) -> Wanted:
    """The wanted budgets. FormatError when the record cannot be read."""
    found = stack.book.read(Budget, keys.BUDGET)
    return _wanted(stack.settings, None if found is None else found.record)


def set_budget(stack: Stack, changes: Mapping[str, int | None], *, author: str) -> Wanted:
    """Change these rates (bytes or requests per second; 0 no bound, None as settings say).

    Raises:
        SettingsError: one of them could not be kept when it is split.
        ObjectConflictError: somebody else set budgets at this moment; nothing was changed.
    """
    found = _readable(stack)
    rates: dict[str, int | None] = dict.fromkeys(NAMES)
    if found is not None:
        rates.update(rates_of(found.record))
    rates.update(changes)
    parts = parts_of(stack.settings)
    for name, rate in wanted_rates(stack.settings.budget, rates).items():
        limit_of(name, rate, stack.settings.budget, parts=parts)
    record = Budget(author=author, set_at=stack.now(), writer=stack.writer, **rates)
    try:
        if found is None:
            stack.book.create(keys.BUDGET, record)
        else:
            stack.book.replace(found, record)
    except (ObjectExistsError, ObjectConflictError) as error:
        raise ObjectConflictError(
            f"record {keys.BUDGET} was written by somebody else at this moment; look at it by "
            f"`tierkeeper budget show` and try again: {error}"
        ) from error
    return _wanted(stack.settings, record)


def _readable(stack: Stack) -> Stored[Budget] | None:
    try:
        return stack.book.read(Budget, keys.BUDGET)
    except FormatError as error:
        raise FormatError(
            f"{error}. Delete the object {stack.budget_key} and set the budget again; until then "
            f"nothing is copied"
        ) from error


def _wanted(settings: Settings, record: Budget | None) -> Wanted:
    parts = parts_of(settings)
    told = {} if record is None else rates_of(record)
    lines = tuple(
        BudgetLine(
            name=name,
            rate=rate,
            origin="settings" if told.get(name) is None else "record",
            part=rate / parts,
            least=smallest_rate(name, settings.budget, parts=parts),
        )
        for name, rate in wanted_rates(settings.budget, told).items()
    )
    return Wanted(parts=parts, lines=lines, record=record)
