"""Invariants of one topic after a kill, judged by bucket, both metadata trees, bookies and broker.

Owns: what must hold at any instant (`at_once`), and what must hold when the commands that died were
run to their end (`at_end`). Each anomaly begins with the invariant that it breaks: I1 readable, I2
proof before delete, I3 and I14 the right bytes, I4 complete contexts have objects, I9 nothing
referenced is deleted, I12 the same end however often run, I13 no upload is left, I15 no gap and no
overlap, I16 a record before each delete. Bytes are compared with what bookies served before.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import boto3

from tests.support.crash_scene import Scene
from tests.support.crash_subject import Subject, bookie_entries
from tests.support.tiered_cluster import BrokerObjects, object_entries
from tests.support.two_checkers import tool
from tiering_assets.batch.release_batch import release_records
from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.records.models import (
    Attempt,
    Certificate,
    HoldLift,
    Outcome,
    Publication,
    Quarantine,
    ReleaseIntent,
)
from tiering_assets.records.pause_models import PauseLift
from tiering_assets.records.sweep_models import SweepIntent, Swept
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.settings import StoreSettings

Anomalies = Iterator[str]


def at_once(stack: Stack, scene: Scene) -> Anomalies:
    """What is wrong now, in mid-air; but for what the case itself damaged."""
    subject, broken, held = scene.subject, scene.broken, scene.held
    found = stack.topics.read(subject.ml_name)
    if found is None:
        yield f"I15: {subject.ml_name} has no node"
        return
    listed = {info.ledger_id: info for info in found[0].ledgers}
    if len(listed) != len(found[0].ledgers) or not set(subject.ledger_ids) <= set(listed):
        yield f"I15: {subject.ml_name} lists {[i.ledger_id for i in found[0].ledgers]}"
        return
    for ledger_id in subject.ledger_ids:
        yield from _ledger_at_once(stack, subject, listed[ledger_id], broken)
    if held is not None and stack.objects.head(stack.book.prefix + held) is None:
        lifts = stack.book.iter_records(HoldLift, "hold-lifts/")
        resumes = stack.book.iter_records(PauseLift, "pause-lifts/")
        if held not in {s.record.hold_key for s in lifts} | {s.record.pause_key for s in resumes}:
            yield f"I16: {held} is gone without a record"
    if scene.leftover is not None:
        yield from _leftover_problem(stack, subject.topic.ledger_id, scene.leftover)


def _ledger_at_once(
    stack: Stack, subject: Subject, info: LedgerInfo, broken: UUID | None
) -> Anomalies:
    ledger_id, entries = info.ledger_id, subject.entries[info.ledger_id]
    if info.entries != len(entries):
        yield f"I15: ledger {ledger_id} is listed with {info.entries} of {len(entries)} entries"
    uid = info.offload.uid if info.offload is not None and info.offload.complete else None
    node = stack.ledgers.read(ledger_id)
    if node is not None and tuple(bookie_entries(stack, ledger_id)) != entries:
        yield f"I1: bookies do not serve ledger {ledger_id} as it was written"
    if uid is not None and uid != broken:
        yield from _object_problem(stack, ledger_id, uid, entries)
        outcome = stack.book.read(Outcome, keys.outcome(ledger_id, uid))
        if outcome is None or outcome.record.outcome != "publish":
            yield f"I2: ledger {ledger_id} names attempt {uid}, which won no publication"
        if stack.book.read(Certificate, keys.certificate(ledger_id, uid)) is None:
            yield f"I3: ledger {ledger_id} names attempt {uid}, which has no certificate"
    if node is None:
        if uid is None or uid == broken:
            yield f"I1: ledger {ledger_id} is in neither tier"
        elif stack.book.read(ReleaseIntent, keys.release_intent(ledger_id, uid)) is None:
            yield f"I16: ledger {ledger_id} is deleted without an intent"
    for attempt in _attempts(stack, ledger_id):
        if attempt.uid == broken or stack.objects.head(attempt.data_key) is not None:
            continue
        proven = stack.book.read(Certificate, keys.certificate(ledger_id, attempt.uid))
        outcome = stack.book.read(Outcome, keys.outcome(ledger_id, attempt.uid))
        if proven is not None and (outcome is None or outcome.record.outcome != "abandon"):
            yield f"I9: {attempt.data_key} is deleted, and nobody abandoned it"


def _leftover_problem(stack: Stack, ledger_id: int, uid: UUID) -> Anomalies:
    """A broker's unfinished attempt: an intent before anything of it goes."""
    begun = stack.book.read(SweepIntent, keys.sweep_intent(ledger_id, uid)) is not None
    key = data_key(uid, ledger_id)
    there = stack.objects.head(key) is not None
    if not there and not begun:
        yield f"I16: {key} is deleted without an intent"
    if stack.book.read(Swept, keys.swept(ledger_id, uid)) is not None:
        uploads = [u for u in stack.objects.list_uploads(key) if u.key == key]
        if there or uploads:
            yield f"I13: {key} is recorded as swept, and there"


def _object_problem(
    stack: Stack, ledger_id: int, uid: UUID, entries: tuple[bytes, ...]
) -> Anomalies:
    data = stack.objects.get(data_key(uid, ledger_id))
    index = stack.objects.get(index_key(uid, ledger_id))
    if data is None or index is None:
        yield f"I4: ledger {ledger_id} names attempt {uid}, whose objects are not both there"
        return
    try:
        copied = [*object_entries(BrokerObjects(data.body, index.body), len(entries) - 1)]
    except (TierkeeperError, AssertionError) as error:
        yield f"I3: the copy {uid} of ledger {ledger_id} cannot be decoded: {error}"
        return
    if [i for i, _ in copied] != list(range(len(entries))):
        yield f"I15: the copy {uid} of ledger {ledger_id} has a gap or an overlap"
    elif tuple(sha256(payload).digest() for _, payload in copied) != entries:
        yield f"I14: the copy {uid} of ledger {ledger_id} has other bytes than bookies served"


def at_end(stack: Stack, scene: Scene, store: StoreSettings) -> Anomalies:
    """What is wrong although everything was run to its end and swept. All should be released.

    The second checker reads `store` itself. A broken attempt must not be the one in use; that its
    objects are damaged is no news.
    """
    subject = scene.subject
    yield from at_once(stack, scene)
    found = stack.topics.read(subject.ml_name)
    contexts = (
        {} if found is None else {i.ledger_id: i.offload for i in found[0].ledgers if i.offload}
    )
    for ledger_id in subject.ledger_ids:
        context = contexts.get(ledger_id)
        if stack.ledgers.read(ledger_id) is not None or context is None:
            yield f"I12: ledger {ledger_id} is not released in the end"
            continue
        if context.uid == scene.broken:
            yield f"I4: ledger {ledger_id} is read from attempt {scene.broken}, which is broken"
        yield from _leavings(stack, ledger_id, context.uid)
        yield from _collected(stack, scene, ledger_id)
        yield from _release_order(stack, subject, ledger_id, context.uid)
        records = release_records(stack, ledger_id)
        if records is None or records.release.record.uid != context.uid:
            yield f"I16: ledger {ledger_id} has no record of the release of {context.uid}"
        elif records.faults:
            yield f"I2: release of ledger {ledger_id}: {'; '.join(records.faults)}"
    yield from _second_opinion(stack, scene, store)


def _leavings(stack: Stack, ledger_id: int, published: UUID) -> Anomalies:
    for attempt in _attempts(stack, ledger_id):
        uploads = stack.objects.list_uploads(attempt.data_key)
        if any(upload.key == attempt.data_key for upload in uploads):
            yield f"I13: an upload of {attempt.data_key} is left"
        outcome = stack.book.read(Outcome, keys.outcome(ledger_id, attempt.uid))
        won = outcome is not None and outcome.record.outcome == "publish"
        withdrawn = stack.book.read(Quarantine, keys.quarantine(ledger_id, attempt.uid))
        if attempt.uid == published:
            continue
        if won and withdrawn is None:
            yield f"I12: attempts {attempt.uid} and {published} of ledger {ledger_id} both won"
        objects = (attempt.data_key, attempt.index_key)
        if not won and any(stack.objects.head(key) is not None for key in objects):
            yield f"I13: objects of attempt {attempt.uid} of ledger {ledger_id} are left"


def _collected(stack: Stack, scene: Scene, ledger_id: int) -> Anomalies:
    """Everything that was begun to be deleted is recorded as done."""
    for attempt in _attempts(stack, ledger_id):
        outcome = stack.book.read(Outcome, keys.outcome(ledger_id, attempt.uid))
        swept = stack.book.read(Swept, keys.swept(ledger_id, attempt.uid))
        if outcome is not None and outcome.record.outcome == "abandon" and swept is None:
            yield f"I16: attempt {attempt.uid} of ledger {ledger_id} is not recorded as swept"
    uid = scene.leftover
    if uid is not None and stack.book.read(Swept, keys.swept(ledger_id, uid)) is None:
        yield f"I13: the broker's attempt {uid} of ledger {ledger_id} is left"


def _release_order(stack: Stack, subject: Subject, ledger_id: int, uid: UUID) -> Anomalies:
    """By the store's clock: proof, right to publish, publication, intent."""
    certificate = stack.book.read(Certificate, keys.certificate(ledger_id, uid))
    outcome = stack.book.read(Outcome, keys.outcome(ledger_id, uid))
    intent = stack.book.read(ReleaseIntent, keys.release_intent(ledger_id, uid))
    publications = [
        stored
        for stored in stack.book.iter_records(Publication, keys.publications_of(subject.ml_name))
        if any(one.uid == uid for one in stored.record.ledgers)
    ]
    if certificate is None or outcome is None or intent is None or not publications:
        yield f"I2: ledger {ledger_id} is released without all records before it"
        return
    first = min(publications, key=lambda stored: stored.stored_at)
    stamps = [stored.stored_at for stored in (certificate, outcome, first, intent)]
    if stamps != sorted(stamps):
        yield f"I2: records of ledger {ledger_id} were written out of order"


@functools.cache
def _client(store: StoreSettings) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        region_name=store.region,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=store.secret_key,
    )


def _second_opinion(stack: Stack, scene: Scene, store: StoreSettings) -> Anomalies:
    """Every byte and every record again, by the checker that shares nothing with our code."""
    check = tool.Check(
        tool.Bucket(_client(store), store.bucket),
        stack.instance,
        deep=True,
        skew=timedelta(seconds=60),
        in_flight=timedelta(0),
        public_keys=[],
        tell=lambda _line: None,
    )
    check.run([*scene.subject.ledger_ids])
    for finding in check.findings:
        if scene.broken is None or finding["uid"] != str(scene.broken):
            yield f"I3: second checker: {finding}"


def _attempts(stack: Stack, ledger_id: int) -> list[Attempt]:
    return [a.record for a in stack.book.iter_records(Attempt, keys.attempts_of(ledger_id))]


def state_of(stack: Stack, subject: Subject) -> dict[str, str]:
    """Everything of this topic that running a finished command again must not change.

    Claims, failures, disturbances, begun releases and looks of a scrub tell of runs, not of the
    ledger.
    """
    found = stack.topics.read(subject.ml_name)
    state = {"node": "" if found is None else str(found[1].stat.version)}
    topic = keys.topic_hash(subject.ml_name)
    ids = [str(i) for i in subject.ledger_ids]
    for summary in stack.objects.list_objects():
        parts = summary.key.removeprefix(stack.book.prefix).split("/")
        if parts[0] in ("claims", "failures", "disturbances", "begun-releases", "scrubs"):
            continue
        if topic in parts or any(i in parts or parts[-1].find(f"-ledger-{i}") > 0 for i in ids):
            state[summary.key] = summary.etag
    return state
