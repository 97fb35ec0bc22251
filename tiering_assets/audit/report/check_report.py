"""Check a report against itself, then against the bucket. Reads only.

Owns: nothing is read of a bucket for a file that is no report, was edited, or is of another bucket.
The same ledgers are audited again by the same measure, and what was a fact is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from tiering_assets.audit.audit import ROOT, audit_store
from tiering_assets.audit.report.bucket_now import BucketLook
from tiering_assets.audit.report.contradictions import contradictions
from tiering_assets.audit.report.differences import Compared, compare
from tiering_assets.audit.report.facts import AuditFacts
from tiering_assets.audit.report.report_file import read_report
from tiering_assets.audit.report.seal import who_vouches
from tiering_assets.ground.signing import load_public_keys
from tiering_assets.resources.errors import IntegrityError, RefusedError
from tiering_assets.resources.object_store.store import ObjectStore
from tiering_assets.resources.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCheck:
    """`unsigned` is what is wrong with a report that no accepted key signed; empty if nothing is.

    `deep` says whether bytes were read now, `was_deep` whether they were for the report.
    """

    instance: str
    bucket: str
    made_at: datetime
    tool_version: str
    facts_sha256: str
    vouched: bool
    signature: str
    unsigned: str
    other_keys: bool
    attempts: int
    deep: bool
    was_deep: bool
    compared: Compared

    @property
    def findings(self) -> list[str]:
        found = [str(one) for one in self.compared.differences]
        return [self.unsigned, *found] if self.unsigned else found


def check_report(
    objects: ObjectStore,
    settings: Settings,
    body: bytes,
    *,
    name: str,
    instance: str = "",
    deep: bool = False,
    narrate: Callable[[str], None] = lambda _line: None,
) -> ReportCheck:
    """`name` is that of the file; an empty `instance` is the report's.

    Raises:
        FormatError: the file is no report, or is cut off.
        IntegrityError: it was edited, or is signed by a key that does not count.
        RefusedError: it is of another bucket or instance.
    """
    written = read_report(body, name=name)
    facts, seal = written.facts, written.seal
    accepted = load_public_keys(settings)
    vouched, signature = who_vouches(seal, accepted, name=name)
    for said in contradictions(facts):
        raise IntegrityError(f"{name}: its facts contradict each other: {said}")
    _require_same_place(objects, facts, instance, name)
    now = audit_store(
        objects,
        settings,
        ledger_ids=None if facts.asked.everything else facts.asked.ledger_ids,
        instance=facts.instance,
        deep=deep,
        in_flight_s=facts.in_flight_s,
        narrate=narrate,
    )
    wanted = ", ".join(accepted.key_ids)
    return ReportCheck(
        instance=facts.instance,
        bucket=facts.bucket,
        made_at=facts.made_at,
        tool_version=facts.tool_version,
        facts_sha256=seal.facts_sha256,
        vouched=vouched,
        signature=signature,
        unsigned=(
            f"unsigned: the report: expected a signature by {wanted}, found none"
            if accepted and not vouched
            else ""
        ),
        other_keys=facts.public_keys != accepted.key_ids,
        attempts=len(facts.ledgers),
        deep=deep,
        was_deep=facts.deep,
        compared=compare(facts, now, BucketLook(objects, facts.instance, now.sights, narrate)),
    )


def _require_same_place(objects: ObjectStore, facts: AuditFacts, instance: str, name: str) -> None:
    if facts.bucket != objects.bucket:
        raise RefusedError(
            f"{name} is of bucket {facts.bucket}, and store.bucket is {objects.bucket}"
        )
    if instance and instance != facts.instance:
        raise RefusedError(f"{name} is of instance {facts.instance}, and --instance is {instance}")
    if next(iter(objects.list_objects(f"{ROOT}{facts.instance}/")), None) is None:
        raise RefusedError(
            f"bucket {objects.bucket} has no records of instance {facts.instance}, which {name} is "
            f"of"
        )
