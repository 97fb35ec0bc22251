"""Runs in work, as far as events told of them: what the next page adds to, and how a run's id is
made.

Owns: an event that is sent again says the same. So everything that it needs is in its page, in the
records that the page names, or here, where nothing but pages leads to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID, uuid5

from tiering_assets.resources.errors import FormatError

_RUNS: Final = uuid5(UUID(int=0), "tierkeeper/openlineage/run/1")


class ToldJob(StrEnum):
    """What events call the work of a run. A posting is one of the catalogue's own."""

    OFFLOAD = "offload"
    RELEASE = "release"
    POSTING = "catalogue-post"


def told_run_id(instance: str, run_id: str, since: datetime, job: ToldJob) -> UUID:
    """The run of an event. A process that takes up ledgers again later is another run then."""
    began = since.astimezone(UTC).isoformat()
    return uuid5(_RUNS, "/".join((instance, run_id, began, job)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTold:
    """A run from its first open page on. `since` is by its own clock.

    `ledgers` are in work still. `told` are the jobs of which a START was sent, and `unfinished`
    the ledgers that a job of it began and has not brought to its end.
    """

    since: datetime
    command: str
    ledgers: frozenset[int] = frozenset()
    told: frozenset[ToldJob] = frozenset()
    unfinished: Mapping[ToldJob, frozenset[int]] = field(default_factory=dict)
    quarantined: int = 0

    def left(self, job: ToldJob) -> frozenset[int]:
        """Ledgers of this job that are not at its end."""
        return self.unfinished.get(job, frozenset())


@dataclass(frozen=True, slots=True)
class RunsTold:
    """By run. Grows with the ledgers that are in work at one time, about 20 bytes each."""

    runs: Mapping[str, RunTold] = field(default_factory=dict)

    def get(self, run_id: str) -> RunTold | None:
        return self.runs.get(run_id)

    def with_run(self, run_id: str, run: RunTold | None) -> RunsTold:
        """The same with this run as it is now; None for one that is over."""
        others = {name: one for name, one in self.runs.items() if name != run_id}
        return RunsTold(others if run is None else others | {run_id: run})

    def untold(self, run_id: str, job: ToldJob) -> RunsTold:
        """The same where the START of a job was dropped: it is sent with the next event."""
        run = self.runs[run_id]
        return self.with_run(run_id, replace(run, told=run.told - {job}))

    @classmethod
    def of_work(cls, runs: Iterable[tuple[str, datetime, Iterable[int]]]) -> RunsTold:
        """Runs that were in work before anybody told of them."""
        return cls(
            {
                name: RunTold(since=since, command="", ledgers=frozenset(ledgers))
                for name, since, ledgers in runs
            }
        )

    def as_json(self) -> dict[str, Any]:
        return {name: _json_of(run) for name, run in sorted(self.runs.items())}

    @classmethod
    def from_json(cls, found: Any) -> RunsTold:
        """FormatError where it is none of ours."""
        try:
            return cls({str(name): _run_of(one) for name, one in found.items()})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FormatError(f"runs in work: {type(error).__name__}: {error}") from error


def _json_of(run: RunTold) -> dict[str, Any]:
    return {
        "since": run.since.isoformat(),
        "command": run.command,
        "ledgers": sorted(run.ledgers),
        "told": sorted(run.told),
        "unfinished": {job: sorted(left) for job, left in sorted(run.unfinished.items())},
        "quarantined": run.quarantined,
    }


def _run_of(found: Any) -> RunTold:
    since = datetime.fromisoformat(found["since"])
    if since.tzinfo is None:
        raise ValueError(f"a time without its zone: {found['since']}")
    return RunTold(
        since=since,
        command=str(found["command"]),
        ledgers=frozenset(map(int, found["ledgers"])),
        told=frozenset(map(ToldJob, found["told"])),
        unfinished={
            ToldJob(job): frozenset(map(int, left)) for job, left in found["unfinished"].items()
        },
        quarantined=int(found["quarantined"]),
    )


def canonical(found: RunsTold) -> str:
    """One text for equal runs."""
    return json.dumps(found.as_json(), sort_keys=True)
