"""What a probe asks of a worker and what it answers: an order in, one row out, both small JSON.

Owns: an order holds no secret and an answer tells none. Of the ledger password it says whether
there is one, of credentials where they were found. doctor/worker_check.py judges the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOrder:
    """What every probe is sent. Bookies are told by id with the address that they advertise.

    `marker_key` is an object that the driver wrote with the text `marker`, by which two buckets of
    one name are told apart; empty where the driver could not write it. Uploads are created and
    aborted below `upload_prefix`.
    """

    bookies: dict[str, tuple[str, int]]
    upload_prefix: str
    marker_key: str = ""
    hold_s: float = 0.0  # seconds for which a probe keeps its slot, so that no slot answers twice


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """What tasks are made of, in the driver or a worker. `packages` maps names to versions.

    `loop` says which loop over entries runs: native/loader.py.
    """

    build: str
    python: str
    packages: dict[str, str]
    loop: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """What one probe found. An error is what went wrong as text; empty fields were not reached."""

    slot: int
    host: str = ""
    executor: str = ""
    pid: int = 0
    software: Software | None = None
    credentials: str = ""  # where they were found: environment, file, a role; empty is nowhere
    has_password: bool = False  # the setting bookies.password is there
    skew_s: float | None = None  # this worker's clock minus the store's
    clock_error: str = ""
    bookie_errors: dict[str, str] = field(default_factory=dict)  # those that were not reached
    marker: str | None = None
    marker_error: str = ""
    upload_error: str = ""
    uploads_left: tuple[str, ...] = ()
    error: str = ""  # what ended the probe itself

    @property
    def name(self) -> str:
        """`host/executor/pid`, as far as it is known."""
        if not self.host:
            return f"of slot {self.slot}"
        return f"{self.host}/{self.executor}/{self.pid}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswers:
    """What came of one job of probes. `failure` is Spark's word where the whole job failed."""

    driver: Software
    slots: int
    rows: tuple[WorkerRow, ...] = ()
    failure: str = ""


_ORDER = TypeAdapter(WorkerOrder)
_ROW = TypeAdapter(WorkerRow)


def encode_order(order: WorkerOrder) -> str:
    return _ORDER.dump_json(order).decode()


def decode_order(text: str) -> WorkerOrder:
    return _ORDER.validate_json(text)


def encode_row(row: WorkerRow) -> str:
    return _ROW.dump_json(row).decode()


def decode_row(text: str) -> WorkerRow:
    return _ROW.validate_json(text)
