"""A batch above what a run's configuration should list: a record, of which it names the bytes.

Owns: a run works on the ledgers of exactly the bytes that it was asked for, or on none.
"""

from __future__ import annotations

from collections.abc import Sequence

from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import RunBatch
from tiering_assets.records.codec import encode_record
from tiering_assets.records.signature import record_digest
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError, RefusedError


def write_run_batch(stack: Stack, job: str, ledger_ids: Sequence[int]) -> Stored[RunBatch]:
    """Write down the ledgers of a run that will be asked for."""
    batch = RunBatch(
        job=job, ledger_ids=tuple(sorted(ledger_ids)), asked_at=stack.now(), writer=stack.writer
    )
    return stack.book.create(keys.run_batch(record_digest(encode_record(batch))), batch)


def read_run_batch(stack: Stack, key: str, sha256: str) -> tuple[int, ...]:
    """The ledgers that a run was asked for. RefusedError where the bytes are others, or none."""
    if not key.startswith(keys.RUN_BATCHES):
        raise RefusedError(
            f"batch_key is {key!r}, expected {keys.RUN_BATCHES}<digest>.json: give ledger_ids, or "
            "let the sensor ask again"
        )
    try:
        stored = stack.book.read(RunBatch, key)
    except FormatError as error:
        raise RefusedError(f"{error}; no ledger is worked on: let the sensor ask again") from error
    found = "no such record" if stored is None else stored.sha256
    if stored is None or stored.sha256 != sha256:
        raise RefusedError(
            f"{stack.book.prefix}{key}: the run was asked for the batch with SHA-256 {sha256}, found "
            f"{found}; no ledger is worked on: let the sensor ask again"
        )
    return stored.record.ledger_ids
