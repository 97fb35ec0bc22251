"""What is wrong with a worker, by what its probe answered. Pure.

Owns: every problem names the worker, what was expected, what was found and the next step. Versions
are compared with the driver's, for tasks are made there. A question without an answer is a problem,
never a pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tiering_assets.tasks.worker_rows import Software, WorkerOrder, WorkerRow

SKEW_WARN_S = 5.0
"""A clock this far off is no danger yet, and no longer kept by anybody."""


class Grade(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the driver knows to be right."""

    software: Software
    has_password: bool
    marker: str
    bucket: str
    skew_max_s: float
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFinding:
    """One thing that is right or wrong with one worker, or with all where `worker` is empty."""

    worker: str
    check: str
    level: Grade
    expected: str
    found: str
    next_step: str = ""


def judge_workers(
    order: WorkerOrder, expected: Expected, rows: Sequence[WorkerRow]
) -> Iterator[WorkerFinding]:
    """Judge every row in order of slots, then whether every slot gave one."""
    by_slot = {row.slot: row for row in rows}
    for slot in range(expected.slots):
        row = by_slot.get(slot)
        if row is None:
            yield _wrong(f"of slot {slot}", "answer", "a row", "none", _LOST)
            continue
        problems = list(_problems(order, expected, row))
        yield from problems
        if not any(problem.level is Grade.FAIL for problem in problems):
            yield _good(order, expected, row)
    answered = [row for row in by_slot.values() if row.host]
    hosts = Counter(row.host for row in answered)
    executors = Counter((row.host, row.executor) for row in answered)
    yield WorkerFinding(
        worker="",
        check="slots",
        level=Grade.OK if len(answered) == expected.slots else Grade.FAIL,
        expected=f"{expected.slots} answers",
        found=f"{len(answered)} from {len(executors)} executors on {len(hosts)} hosts",
        next_step="" if len(answered) == expected.slots else _LOST,
    )


def job_failed(said: str) -> WorkerFinding:
    """The whole job of probes failed, before any came to our code; `said` ends with what to do."""
    return _wrong("", "job", "a row of every slot", said, "")


_LOST = "look at the executors' logs, and run it again when they are back"
_SAME_PYTHON = "run driver and workers with the same minor version (spark.python)"
_OUR_CODE = "run this build of tierkeeper and this Python there, or send it with spark.code = ship"
_PACKAGES = "install the versions that requirements/ names in the workers' image"
_LOOP = "set spark.code = ship, or install a wheel of tierkeeper that has the library there"
_NO_CREDENTIALS = (
    "give the worker credentials: TIERKEEPER_STORE_ACCESS_KEY and TIERKEEPER_STORE_SECRET_KEY (or "
    "the same with _FILE), or boto3's default chain such as a role"
)
_CLOCK = "set the worker's clock (NTP): signatures and leases go by it"
_NETWORK = "open the network from the worker to the bookie, or set bookies.address_map"
_HMAC = (
    "set TIERKEEPER_BOOKIES_PASSWORD (or TIERKEEPER_BOOKIES_PASSWORD_FILE) where the workers run"
)


def _problems(order: WorkerOrder, expected: Expected, row: WorkerRow) -> Iterator[WorkerFinding]:
    if row.error:  # the bootstrap's refusal, which says why, or our own code at its edge
        theirs = f"build {expected.software.build}, Python {expected.software.python}"
        yield _wrong(row.name, "code", theirs, row.error, _OUR_CODE)
        return
    yield from _software(expected.software, row)
    if expected.has_password and not row.has_password:
        yield _wrong(
            row.name,
            "ledger password",
            "bookies.password, as the driver has it",
            "none: ledgers with HMAC digests cannot be verified",
            _HMAC,
        )
    for bookie, error in row.bookie_errors.items():
        yield _wrong(row.name, f"bookie {bookie}", "accepts a connection", error, _NETWORK)
    if not row.credentials:
        yield _wrong(row.name, "credentials", "credentials for the store", "none", _NO_CREDENTIALS)
        return
    yield from _clock(expected, row)
    yield from _bucket(order, expected, row)


def _software(driver: Software, row: WorkerRow) -> Iterator[WorkerFinding]:
    worker = row.software
    if worker is None:
        yield _wrong(row.name, "build", f"build {driver.build}", "none was told", _OUR_CODE)
        return
    if worker.build != driver.build:
        yield _wrong(row.name, "build", f"build {driver.build}", f"build {worker.build}", _OUR_CODE)
    if minor_of(worker.python) != minor_of(driver.python):
        yield _wrong(
            row.name, "python", f"Python {driver.python}", f"Python {worker.python}", _SAME_PYTHON
        )
    for name, version in driver.packages.items():
        found = worker.packages.get(name, "")
        if found != version:
            yield WorkerFinding(
                worker=row.name,
                check=f"package {name}",
                level=Grade.WARN if found else Grade.FAIL,
                expected=f"{name} {version or 'not installed'}",
                found=f"{name} {found}" if found else "not installed",
                next_step=_PACKAGES,
            )
    yield from _loop(driver, worker, row.name)


def _loop(driver: Software, worker: Software, name: str) -> Iterator[WorkerFinding]:
    if worker.loop.partition(":")[0] != driver.loop.partition(":")[0]:
        yield WorkerFinding(
            worker=name,
            check="loop over entries",
            level=Grade.WARN,
            expected=driver.loop,
            found=worker.loop,
            next_step=_LOOP,
        )


def _clock(expected: Expected, row: WorkerRow) -> Iterator[WorkerFinding]:
    at_most = f"at most {SKEW_WARN_S:g} s off the store's clock"
    if row.skew_s is None:
        found = row.clock_error or "the store's clock was not read"
        # The message of the store's client ends with its next step.
        yield _wrong(row.name, "store", f"an answer of bucket {expected.bucket}", found, "")
    elif abs(row.skew_s) > SKEW_WARN_S:
        yield WorkerFinding(
            worker=row.name,
            check="clock",
            level=Grade.FAIL if abs(row.skew_s) > expected.skew_max_s else Grade.WARN,
            expected=at_most,
            found=f"{row.skew_s:+.0f} s",
            next_step=_CLOCK,
        )


def _bucket(order: WorkerOrder, expected: Expected, row: WorkerRow) -> Iterator[WorkerFinding]:
    if order.marker_key:
        theirs = f"bucket {expected.bucket} as the driver sees it"
        keys = f"with credentials from {row.credentials}"
        if row.marker_error:
            yield _wrong(
                row.name,
                "bucket",
                theirs,
                f"{keys}: {row.marker_error}",
                "give the worker the credentials of this bucket, not another's",
            )
        elif row.marker != expected.marker:
            yield _wrong(
                row.name,
                "bucket",
                theirs,
                "another bucket of that name: what the driver just wrote is not there",
                "make store.endpoint lead to the same store from here and from the worker",
            )
    if row.upload_error:
        yield _wrong(
            row.name,
            "upload",
            f"an upload below {order.upload_prefix} is created and aborted",
            row.upload_error,
            "allow s3:PutObject and s3:AbortMultipartUpload there",
        )
    if row.uploads_left:
        yield _wrong(
            row.name,
            "upload",
            "no upload stays after its abort",
            f"still listed: {', '.join(row.uploads_left)}",
            "use a store that keeps this promise of S3, and abort them by hand",
        )


def _good(order: WorkerOrder, expected: Expected, row: WorkerRow) -> WorkerFinding:
    software = row.software or expected.software
    return WorkerFinding(
        worker=row.name,
        check="worker",
        level=Grade.OK,
        expected="as the driver",
        found=f"build {software.build}, Python {software.python}, loop {software.loop}, clock {row.skew_s or 0:+.1f} s, "
        f"{len(order.bookies)} bookies reached, credentials from {row.credentials}, upload created "
        "and aborted",
    )


def _wrong(worker: str, check: str, expected: str, found: str, next_step: str) -> WorkerFinding:
    return WorkerFinding(
        worker=worker,
        check=check,
        level=Grade.FAIL,
        expected=expected,
        found=found,
        next_step=next_step,
    )


def minor_of(python: str) -> str:
    """`3.11.4` -> `3.11`: what a function that travels depends on."""
    return ".".join(python.split(".")[:2])
