"""The demo: real topics are produced, tiered, released and read back through a stock broker.

Stack up, produce, Dagster jobs discover -> offload (Spark) -> release, proof, summary. The backlog
is observed between them, so that its plots have a shape. Everything it starts ends with it, unless
it is asked to keep the servers. Its certificates are signed by a key of its own, so that no release
reads every byte again.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tiering_assets.demo.jobs import WorkspaceJobs
from tiering_assets.demo.memory import PeakMemory
from tiering_assets.demo.scenario import demo_topics
from tiering_assets.demo.summary import DemoSummary, LedgerResult, TopicResult
from tiering_assets.ground.signing import MadeKey, make_key
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import LedgerView, survey
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate
from tiering_assets.resources.devstack.endpoints import environment_of, environment_script
from tiering_assets.resources.devstack.stack import ENVIRONMENT_FILE, DevStack
from tiering_assets.resources.devstack.state import write_private
from tiering_assets.resources.devstack.traffic import Content, TopicSpec, consume_all, produce, seal
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.resources.settings import Settings

LAG_S = 3.0
OBJECTIVE_S = 3600.0  # limits of lag, for the page to judge by
MARGIN_S = 1.5  # stores keep times in whole seconds
TOPICS_AT_ONCE = 2  # more would be more messages on their way than small bookies hold
EXECUTE_RELEASE = {"ops": {"release_ledgers": {"config": {"dry_run": False}}}}
"""By hand, which a demo is as well, a release is a dry run."""
Report = Callable[[str], None]


def run_demo(stack: DevStack, *, project: Path, build: Path, report: Report) -> DemoSummary:
    """Run the whole story on a started stack.

    Raises:
        JobFailedError: a Dagster job failed.
        IntegrityError: a released ledger is still in BookKeeper's metadata.
    """
    began = time.monotonic()
    logs = build / "demo"
    logs.mkdir(parents=True, exist_ok=True)
    key = _own_key(stack.directory / "keys", report)
    settings = demo_settings(stack, key)
    servers = [status.pid for status in stack.status() if status.pid is not None]
    environment = demo_environment(stack, key)
    write_private(stack.directory / ENVIRONMENT_FILE, environment_script(environment))
    jobs = WorkspaceJobs(
        project=project,
        dagster_home=project / "dagster_home",
        environment=environment,
        log=logs / "jobs.log",
    )
    with PeakMemory([os.getpid(), *servers]) as memory, jobs:
        specs = demo_topics()
        produced = _produce(stack, specs, report)
        for job in ("discover", "offload", "discover"):
            _job(jobs, job, report)
        with open_stack(settings) as opened:
            left = lag_left(opened)
        report(f"waiting {left:.1f} s: what is left of the deletion lag of {LAG_S:g} s")
        time.sleep(left)
        _job(jobs, "release", report, config=EXECUTE_RELEASE)
        _job(jobs, "discover", report)
        with open_stack(settings) as opened:
            ledgers = _ledgers(opened)
            _require_gone(opened, ledgers)
        topics = _read_back(stack, specs, produced, report)
    return DemoSummary(
        topics=topics,
        ledgers=ledgers,
        seconds=time.monotonic() - began,
        peak_rss_bytes=memory.peak_bytes,
    )


def demo_settings(stack: DevStack, key: MadeKey) -> Settings:
    """The stack's own settings with a deletion lag of seconds, and a key."""
    settings = stack.settings()
    return replace(
        settings,
        release=replace(settings.release, deletion_lag_s=LAG_S),
        objectives=replace(
            settings.objectives,
            copy_lag_age_s_max=OBJECTIVE_S,
            delete_lag_age_s_max=OBJECTIVE_S,
        ),
        sign=replace(
            settings.sign, private_key_file=str(key.private), public_key_files=str(key.public)
        ),
    )


def demo_environment(stack: DevStack, key: MadeKey) -> dict[str, str]:
    """The same as variables, for the jobs' processes and whoever looks at the demo afterwards."""
    return environment_of(demo_settings(stack, key))


def _own_key(directory: Path, report: Report) -> MadeKey:
    """A new one for each demo: nothing that an earlier one signed is left."""
    shutil.rmtree(directory, ignore_errors=True)
    key = make_key(directory)
    report(
        f"made key {key.key_id} in {directory}: it signs certificates, so that a release need not "
        "read every byte again"
    )
    return key


def lag_left(stack: Stack) -> float:
    """Seconds until the newest publication is as old as a release wants it: the store's clock."""
    listed = stack.book.listed(keys.PUBLICATIONS)
    newest = max((summary.last_modified for _key, summary in listed), default=None)
    if newest is None:
        return 0.0
    age_s = (stack.objects.server_time() - newest).total_seconds()
    return max(0.0, LAG_S + MARGIN_S - age_s)


def _produce(
    stack: DevStack, specs: tuple[TopicSpec, ...], report: Report
) -> Mapping[str, Content]:
    def fill(spec: TopicSpec) -> Content:
        began = time.monotonic()
        content = produce(stack.endpoints, spec)
        seal(stack.endpoints, spec)
        # Reading loads the topic again, and loading is what lists its last ledger as closed.
        consume_all(stack.endpoints, spec)
        report(
            f"  produced {spec.messages:,} messages of {spec.payload_bytes:,} bytes to "
            f"{spec.topic} ({time.monotonic() - began:.1f} s)"
        )
        return content

    with ThreadPoolExecutor(TOPICS_AT_ONCE) as pool:
        contents = list(pool.map(fill, specs))
    return {spec.topic: content for spec, content in zip(specs, contents, strict=True)}


def _job(
    jobs: WorkspaceJobs, name: str, report: Report, config: Mapping[str, object] | None = None
) -> None:
    report(f"job {name}" + ("" if config is None else f", {json.dumps(config)}"))
    report(f"  job {name} succeeded ({jobs.run(name, report, config):.1f} s)")


def _ledgers(stack: Stack) -> list[LedgerResult]:
    return [_ledger(stack, view) for view in survey(stack) if view.state is not LedgerState.OPEN]


def _ledger(stack: Stack, view: LedgerView) -> LedgerResult:
    stored = (
        None
        if view.uid is None
        else stack.book.read(Certificate, keys.certificate(view.ledger_id, view.uid))
    )
    certificate = None if stored is None else stored.record
    return LedgerResult(
        ledger_id=view.ledger_id,
        topic=view.topic,
        entries=view.entries or 0,
        payload_bytes=view.bytes or 0,
        object_bytes=0 if certificate is None else certificate.data.size + certificate.index.size,
        blocks=0 if certificate is None else len(certificate.blocks),
        state=view.state.value,
        seconds=0.0
        if certificate is None
        else round((certificate.copy_seconds or 0.0) + certificate.seconds, 3),
    )


def _require_gone(stack: Stack, ledgers: list[LedgerResult]) -> None:
    there = [
        ledger.ledger_id
        for ledger in ledgers
        if ledger.state == LedgerState.RELEASED.value and stack.ledgers.read(ledger.ledger_id)
    ]
    if there:
        raise IntegrityError(f"ledgers {there} are called released but BookKeeper still has them")


def _read_back(
    stack: DevStack, specs: tuple[TopicSpec, ...], produced: Mapping[str, Content], report: Report
) -> list[TopicResult]:
    results = []
    for spec in specs:
        found = consume_all(stack.endpoints, spec, check=False)
        sent = produced[spec.topic]
        results.append(
            TopicResult(
                topic=spec.topic,
                messages_produced=sent.messages,
                messages_read=found.messages,
                content_equal=found == sent,
            )
        )
        report(f"  read {found.messages:,} messages of {spec.topic} through the broker")
    return results
