"""Doctor's questions about the bucket itself: existence, versions, locks, lifecycle, clock, and
the proof of its promises that is on record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from tiering_assets.copy.ask_first import recorded_proof
from tiering_assets.copy.bucket_promises import PROMISES
from tiering_assets.doctor.lifecycle import lifecycle_dangers
from tiering_assets.ground.finding import Finding, fail, ok, skip, warn
from tiering_assets.ground.moments import moment
from tiering_assets.ground.stack import open_stack
from tiering_assets.resources.object_store.store import ObjectStore
from tiering_assets.resources.settings import Settings


def check_bucket(settings: Settings, objects: ObjectStore) -> Iterator[Finding]:
    facts = objects.bucket_facts()
    where = f"{objects.bucket} at {settings.store.endpoint or 'the provider'}"
    if not facts.exists:
        yield fail(
            "bucket",
            f"bucket {where} does not exist",
            "create it, or set store.bucket and store.endpoint to those the brokers use",
        )
        return
    yield ok("bucket", where)
    yield _versioning(facts.versioning)
    if facts.object_lock is None:
        yield skip("object lock", "the store does not tell")
    elif facts.object_lock:
        yield warn(
            "object lock",
            "enabled: what abandoned attempts leave cannot be swept before its retention ends",
            "expect `tierkeeper orphan sweep` to be refused until then",
        )
    else:
        yield ok("object lock", "off")
    yield from _lifecycle(facts.lifecycle_rules)
    yield _clock(settings, objects)


def _versioning(status: str | None) -> Finding:
    if status is None:
        return skip("versioning", "the store does not tell")
    if status == "Disabled":
        return ok("versioning", "off")
    return warn(
        "versioning",
        f"{status}: what is replaced or deleted stays as an older version and is paid for",
        "expect it in the bill; `tierkeeper orphan sweep` deletes every version of what failed "
        "attempts left",
    )


def _lifecycle(rules: tuple[str, ...] | None) -> Iterator[Finding]:
    if rules is None:
        yield warn(
            "lifecycle",
            "the store does not tell its lifecycle rules",
            "make sure that none expires or archives objects in this bucket",
        )
        return
    dangers = [danger for rule in rules for danger in lifecycle_dangers(json.loads(rule))]
    for danger in dangers:
        yield fail(
            "lifecycle",
            f"{danger}; after a release that is the only copy",
            "take the rule out of the bucket, or limit it to another prefix",
        )
    if not dangers:
        yield ok("lifecycle", f"{len(rules)} rules, none reaches our objects")


def _clock(settings: Settings, objects: ObjectStore) -> Finding:
    skew_s = (datetime.now(UTC) - objects.server_time()).total_seconds()
    limit_s = settings.publish.clock_skew_max_s
    text = f"this machine is {skew_s:+.0f} s off the store's clock, {limit_s:g} s are allowed"
    return ok("clock", text) if abs(skew_s) <= limit_s else fail("clock", text, "set the clock")


def check_proof(settings: Settings) -> Iterator[Finding]:
    """Whether it is on record that the bucket keeps its promises."""
    with open_stack(settings) as stack:
        found = recorded_proof(stack)
    if found is None:
        yield skip(
            "bucket proofs",
            f"none on record: {', '.join(PROMISES)}; `tierkeeper doctor --prove` tries them with "
            f"throw-away keys, and so does the first offload",
        )
    else:
        at = moment(found.record.proven_at)
        yield ok("bucket proofs", f"proven {at}: {', '.join(found.record.promises)}")
