"""Doctor's questions about Spark's workers: one probe in every slot, and what it tells of its
worker.

Owns: what a probe cannot know by itself, the addresses that bookies registered and an object with a
fresh text by which a worker proves that it reaches the same bucket. That object lies below
`tierkeeper/probe/` and is deleted again; workers leave nothing. A server that does not answer here
is a finding of its own, and the workers are asked about the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from uuid import uuid4

from tiering_assets.doctor.worker_check import (
    Expected,
    Grade,
    WorkerFinding,
    job_failed,
    judge_workers,
)
from tiering_assets.records import keys
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.store import MetadataStore
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.store import ObjectStore
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import require_store
from tiering_assets.tasks.worker_rows import ProbeAnswers, WorkerOrder, WorkerRow

Probe = Callable[[WorkerOrder], ProbeAnswers]


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """What was found, and the rows it was found in."""

    findings: tuple[WorkerFinding, ...]
    rows: tuple[WorkerRow, ...]

    @property
    def ok(self) -> bool:
        return not any(finding.level is Grade.FAIL for finding in self.findings)


def examine_workers(settings: Settings, probe: Probe) -> WorkerReport:
    """Send the probes out and judge what they tell.

    Raises:
        SettingsError: no bucket is set, or what `probe` refuses.
        PrerequisiteError: Spark does not start here.
    """
    objects = S3ObjectStore(require_store(settings))
    findings: list[WorkerFinding] = []
    with ExitStack() as exits:
        bookies, instance = _cluster(settings, exits, findings)
        marker = str(uuid4())
        marker_key = exits.enter_context(_marker(objects, marker, findings))
        order = WorkerOrder(
            bookies=bookies,
            upload_prefix=f"tierkeeper/{instance}/probe/{marker}/" if instance else keys.PROBES,
            marker_key=marker_key,
        )
        answers = probe(order)
    if answers.failure:
        return WorkerReport((*findings, job_failed(answers.failure)), ())
    expected = Expected(
        software=answers.driver,
        has_password=bool(settings.bookies.password),
        marker=marker,
        bucket=f"{objects.bucket} at {settings.store.endpoint or 'the provider'}",
        skew_max_s=settings.publish.clock_skew_max_s,
        slots=answers.slots,
    )
    return WorkerReport((*findings, *judge_workers(order, expected, answers.rows)), answers.rows)


def _cluster(
    settings: Settings, exits: ExitStack, findings: list[WorkerFinding]
) -> tuple[dict[str, tuple[str, int]], str]:
    """The registered bookies with what they advertise, and the instance's name."""
    try:
        metadata: MetadataStore = exits.enter_context(_connected(settings))
        ledgers = LedgerDirectory(metadata, settings.metadata.ledgers_root)
        return ledgers.bookie_addresses(), ledgers.instance_id()
    except TierkeeperError as error:
        findings.append(_here("zookeeper", "the registered bookies", str(error)))
        return {}, ""


@contextmanager
def _connected(settings: Settings) -> Iterator[MetadataStore]:
    metadata = ZooKeeperStore(
        settings.metadata.store,
        session_timeout_s=settings.metadata.session_timeout_s,
        connect_timeout_s=settings.metadata.connect_timeout_s,
    )
    try:
        yield metadata
    finally:
        metadata.close()


@contextmanager
def _marker(objects: ObjectStore, text: str, findings: list[WorkerFinding]) -> Iterator[str]:
    """The key of an object with the text, for as long as the block runs; empty if it cannot be."""
    key = f"{keys.PROBES}{text}/bucket"
    try:
        written = objects.put(key, text.encode(), if_absent=True)
    except TierkeeperError as error:
        findings.append(_here("bucket", "an object is written, for workers to read", str(error)))
        yield ""
        return
    try:
        yield key
    finally:
        try:
            objects.delete(key, version_id=written.version_id)
        except TierkeeperError as error:
            findings.append(_here("bucket", f"{key} is deleted again", str(error)))


def _here(check: str, expected: str, found: str) -> WorkerFinding:
    """A problem of the driver. What our errors say ends with the next step already."""
    return WorkerFinding(worker="", check=check, level=Grade.FAIL, expected=expected, found=found)
