"""The wanted budgets as whoever spends reads them: one small object.

Owns: reading is two requests where the store is well, which are set aside from the budget of
requests beforehand (tasks/rate_budget.py). No record is as good as one without values.
"""

from __future__ import annotations

from collections.abc import Mapping

from tiering_assets.records.bucket_models import Budget
from tiering_assets.records.codec import decode_record
from tiering_assets.records.signature import digest_problem
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store.records import decode_record as decode_json
from tiering_assets.resources.object_store.store import ObjectStore
from tiering_assets.tasks.rate_budget import NAMES


def read_budget(store: ObjectStore, key: str) -> Mapping[str, int | None]:
    """The rates of the record at `key`, by name; none where `key` is empty or nothing is there.

    Raises:
        ObjectStoreError: the store did not tell.
        FormatError: what lies there is no budget, or was changed after it was written.
    """
    if not key:
        return {}
    found = store.get(key)
    return {} if found is None else rates_of(budget_from(found.body, key=key))


def budget_from(body: bytes, *, key: str) -> Budget:
    """The record of these bytes. FormatError names `key`."""
    fields = decode_json(body, key=key)
    problem = digest_problem(fields)
    if problem is not None:
        raise FormatError(f"record {key}: {problem}: it was changed after writing")
    return decode_record(Budget, fields, key=key)


def rates_of(budget: Budget) -> dict[str, int | None]:
    """Its rates by name."""
    return {name: getattr(budget, name) for name in NAMES}
