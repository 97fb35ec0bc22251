"""Do the records of one attempt follow from each other? Every link is judged here.

Owns: attempt -> certificate -> outcome -> publication -> release intent -> release, each naming the
digest of the one before it and repeating its facts. The release gate asks whether the first four
hold, who releases or audits is told which does not. A record that is not there is for them to
judge. `tools/check_bucket.py` and the expectation suites judge the same by code of their own, on
purpose (docs/decisions/0017). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from tiering_assets.records.models import (
    Attempt,
    Certificate,
    Outcome,
    PublishedLedger,
    Release,
    ReleaseIntent,
)
from tiering_assets.records.stored import Stored


class Lying(Protocol):
    """A record as it lies in the bucket."""

    @property
    def record(self) -> Any: ...

    @property
    def sha256(self) -> str: ...


class Link(StrEnum):
    DIGEST = "names another record"
    FACT = "says something else"
    OUTCOME = "was decided otherwise"


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """What is wrong with a link: `what` a record says, what the one before it has, and what it
    has.
    """

    kind: Link
    what: str
    expected: object
    found: object


def certificate_links(attempt: Lying, certificate: Lying) -> Iterator[BrokenLink]:
    """Attempt -> certificate: its digest, and the copy that was planned."""
    planned, proven = attempt.record, certificate.record
    yield from _digest("previous (attempt)", attempt.sha256, proven.previous)
    yield from _facts(
        ("ledger", planned.ledger, proven.ledger),
        ("ml_name", planned.ml_name, proven.ml_name),
        ("bucket", planned.bucket, proven.bucket),
        ("data key", planned.data_key, proven.data.key),
        ("index key", planned.index_key, proven.index.key),
        ("data object size", planned.object_bytes, proven.data.size),
        ("blocks", planned.blocks, len(proven.blocks)),
    )


def outcome_links(certificate: Lying, outcome: Lying) -> Iterator[BrokenLink]:
    """Certificate -> outcome `publish`."""
    yield from _digest("previous (certificate)", certificate.sha256, outcome.record.previous)


def decided_links(outcome: Lying) -> Iterator[BrokenLink]:
    """What is published or released was decided to be published."""
    if outcome.record.outcome != "publish":
        yield BrokenLink(Link.OUTCOME, "outcome", "publish", outcome.record.outcome)


def entry_links(outcome: Lying, entry: PublishedLedger) -> Iterator[BrokenLink]:
    """Outcome -> entry of a publication."""
    yield from _digest("previous (outcome)", outcome.sha256, entry.previous)


def entry_certificate_links(certificate: Lying, entry: PublishedLedger) -> Iterator[BrokenLink]:
    """Certificate -> entry of a publication."""
    yield from _digest("certificate_sha256", certificate.sha256, entry.certificate_sha256)


def intent_links(certificate: Lying, intent: Lying) -> Iterator[BrokenLink]:
    """Certificate -> release intent."""
    yield from _facts(("ledger", certificate.record.ledger, intent.record.ledger))
    named = intent.record.certificate_sha256
    yield from _digest("certificate_sha256", certificate.sha256, named)


def intent_publication_links(
    published: Iterable[tuple[Lying, PublishedLedger]], intent: Lying
) -> Iterator[BrokenLink]:
    """Publications of the attempt -> release intent: it stands on one of them."""
    found, record = list(published), intent.record
    outcomes = {entry.previous for _read, entry in found}
    if record.previous not in outcomes:
        yield BrokenLink(Link.DIGEST, "previous", " or ".join(sorted(outcomes)), record.previous)
    times: set[datetime] = {read.record.confirmed_at for read, _entry in found}
    if record.published_at not in times:
        said = " or ".join(sorted(time.isoformat() for time in times))
        yield BrokenLink(Link.FACT, "published_at", said, record.published_at.isoformat())


def release_links(intent: Lying, release: Lying) -> Iterator[BrokenLink]:
    """Release intent -> release."""
    intended, done = intent.record, release.record
    yield from _digest("previous (intent)", intent.sha256, done.previous)
    yield from _facts(
        ("ml_name", intended.ml_name, done.ml_name),
        ("ml_version", intended.ml_version, done.ml_version),
        ("bytes_released", intended.ledger.length, done.bytes_released),
    )


def is_intact(
    attempt: Stored[Attempt] | None,
    certificate: Stored[Certificate],
    outcome: Stored[Outcome] | None,
    entry: PublishedLedger | None,
) -> bool:
    """Whether attempt -> certificate -> outcome -> publication is whole, each digest the one named.

    Whether attempt and certificate say the same of the copy is judged by the certificate suite.
    """
    if attempt is None or outcome is None or entry is None:
        return False
    links = (
        *certificate_links(attempt, certificate),
        *outcome_links(certificate, outcome),
        *decided_links(outcome),
        *entry_links(outcome, entry),
        *entry_certificate_links(certificate, entry),
    )
    return all(broken.kind is Link.FACT for broken in links)


def release_faults(
    certificate: Lying | None, intent: Lying | None, release: Lying
) -> tuple[str, ...]:
    """How a release broke the rules, by its records; empty when it did not."""
    if intent is None:
        return ("the bookie copy is gone, but no intent was written before",)
    return (
        *_certified_otherwise(certificate, intent),
        *(
            "the release record names another intent"
            for broken in release_links(intent, release)
            if broken.kind is Link.DIGEST
        ),
        *_too_early(intent.record, release.record),
    )


def _certified_otherwise(certificate: Lying | None, intent: Lying) -> Iterator[str]:
    another = "the intent names another certificate"
    if certificate is None:
        yield from ("there is no certificate of this attempt", another)
        return
    for broken in intent_links(certificate, intent):
        is_digest = broken.kind is Link.DIGEST
        yield another if is_digest else f"certified {broken.expected}, released {broken.found}"


def _too_early(intent: ReleaseIntent, release: Release) -> Iterator[str]:
    if release.released_at < intent.intended_at:
        yield f"released at {release.released_at}, before its intent at {intent.intended_at}"
    waited_s = (intent.intended_at - intent.published_at).total_seconds()
    if waited_s <= intent.deletion_lag_s:
        yield (
            f"released {waited_s:.0f} s after publication, "
            f"the deletion lag is {intent.deletion_lag_s:g} s"
        )


def _digest(what: str, expected: str, found: str) -> Iterator[BrokenLink]:
    if expected != found:
        yield BrokenLink(Link.DIGEST, what, expected, found)


def _facts(*facts: tuple[str, object, object]) -> Iterator[BrokenLink]:
    for what, expected, found in facts:
        if expected != found:
            yield BrokenLink(Link.FACT, what, expected, found)
