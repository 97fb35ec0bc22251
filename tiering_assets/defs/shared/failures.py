"""How a run or a tick ends with an error: one sentence, what to do next, and none of our frames.

Owns: the only place that makes a dg.Failure. Whatever error of ours an op, a check or a sensor
meets, people read its message and a next step. What we never raise on purpose is a fault of the
program: it keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dagster as dg

from tiering_assets.resources import errors
from tiering_assets.resources.errors import TierkeeperError

AGAIN = "launch it again; what is done is found, and not done twice"
_SERVERS = "`tierkeeper doctor` asks each server; once they answer, " + AGAIN
ADVICE: Mapping[type[TierkeeperError], str] = {
    TierkeeperError: "docs/runbook.md begins with a list of symptoms",
    errors.SettingsError: "`tierkeeper config show` says where each setting comes from",
    errors.PrerequisiteError: "`tierkeeper doctor` says what is missing",
    errors.FormatError: (
        "correct what was given; if nothing was, `tierkeeper scrub status` lists damaged copies"
    ),
    errors.IntegrityError: "`tierkeeper scrub status` lists damaged copies (docs/runbook.md)",
    errors.BookieError: _SERVERS,
    errors.EntryUnavailableError: _SERVERS,
    errors.LedgerNotFoundError: "`tierkeeper ledger show ID` says what is known of a ledger",
    errors.MetadataError: _SERVERS,
    errors.ObjectStoreError: _SERVERS,
    errors.BrokerError: _SERVERS,
    errors.CatalogueError: (
        "`tierkeeper catalogue status` says how it stands, `tierkeeper catalogue rebuild` heals it"
    ),
    errors.StaleEvidenceError: AGAIN,
    errors.RunInterruptedError: AGAIN,
    errors.RefusedError: "do what the sentence names, then " + AGAIN,
}
"""By the nearest class above an error's own."""


def advice(error: TierkeeperError) -> str:
    """What people do about such an error."""
    return next(ADVICE[one] for one in type(error).__mro__ if one in ADVICE)


def failure(
    said: str,
    *,
    next_step: str,
    metadata: Mapping[str, dg.MetadataValue] | None = None,
    allow_retries: bool = False,
) -> dg.Failure:
    """What ends a run. `said` is a sentence without its full stop, and so is `next_step`."""
    return dg.Failure(
        f"{said.rstrip('.')}. Next: {next_step}",
        metadata=metadata,
        allow_retries=allow_retries,
    )


@contextmanager
def as_failures(what: str) -> Iterator[None]:
    """Let an error of ours end this op or tick, `what`, by its sentence and a next step."""
    try:
        yield
    except TierkeeperError as error:
        raise failure(
            f"{what}: {error}", next_step=advice(error), allow_retries=error.retryable
        ) from None
