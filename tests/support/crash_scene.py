"""What a crash case is made of: a prepared topic with the command that dies, and the tools to get
there.

Owns: how a process dies on the way (an earlier run's death is part of many scenes), and that a
scene tells the audit what it damaged itself.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.support.crash_driver import CrashDriver
from tests.support.crash_subject import Subject, Workshop
from tests.support.http_proxy import Rule
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.resources.devstack.endpoints import environment_of
from tiering_assets.resources.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A prepared topic and the command that dies over it.

    `sends` is how many blocks the command sends if nobody kills it. `blind` says that the broker
    cannot read what it is told to read, until `repair`. `broken` is an attempt that the scenario
    damaged, `held` the key of a hold or a pause, `leftover` an attempt of a broker. `rule` strikes
    the command that is killed, and not the next one.
    """

    subject: Subject
    step: str
    arguments: Mapping[str, Any]
    settings: Settings
    sends: int = 0
    rule: Rule | None = None
    ends_with: frozenset[int] = frozenset({0})
    blind: bool = False
    broken: UUID | None = None
    held: str | None = None
    leftover: UUID | None = None
    repair: Callable[[], None] = field(default=lambda: None)


@dataclass(frozen=True, slots=True)
class Shop:
    """What scenarios are made with."""

    work: Workshop
    driver: CrashDriver
    directory: Path

    def killed(self, subject: Subject, point: str) -> Attempt:
        """Die in an offload; the attempt that it leaves."""
        environment = environment_of(self.work.settings)
        ended = self.driver.run(
            "offload", environment, crash_at=point, ledger_ids=[*subject.ledger_ids]
        )
        if ended != -signal.SIGKILL:
            raise RuntimeError(f"offload ended with {ended}, never reached {point}")
        with self.work.open() as stack:
            self.work.lab.older(stack)
            [attempt] = stack.book.iter_records(Attempt, keys.attempts_of(subject.topic.ledger_id))
            return attempt.record

    def published(self, subject: Subject) -> UUID:
        """Offload all; the first ledger's attempt."""
        with self.work.open() as stack:
            outcomes = offload_batch(stack, subject.ledger_ids)
            if any(outcome.state != "published" for outcome in outcomes):
                raise RuntimeError(f"not published: {outcomes}")
            self.work.lab.older(stack)
            uid = self.work.lab.context_uid(stack, subject.topic)
        if uid is None:
            raise RuntimeError(f"{subject.ml_name} has no context")
        return uid

    def damaged(self, attempt: Attempt) -> None:
        """Flip a bit of a payload in the bucket."""
        with self.work.open() as stack:
            found = stack.objects.get(attempt.data_key)
            if found is None:
                raise RuntimeError(f"{attempt.data_key} is not in the bucket")
            body = bytearray(found.body)
            body[len(body) // 3] ^= 1
            stack.objects.put(attempt.data_key, bytes(body), metadata=found.head.metadata)
