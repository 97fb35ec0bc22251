"""The records: what was tried, proven, decided, published and released, one JSON object each.

Owns the field names; docs/records.md explains them. Each record names in `previous` the SHA-256 of
the record before it in its attempt's chain: attempt -> certificate -> outcome -> publication entry
-> release intent -> release. Times are aware UTC datetimes, digests lower-case hex, sizes bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal
from uuid import UUID

from pydantic import AwareDatetime

from tiering_assets.offload_format.digests import DigestKind
from tiering_assets.records.broker_models import BrokerRecord
from tiering_assets.records.broker_models import Disturbance as Disturbance
from tiering_assets.records.bucket_models import BucketRecord
from tiering_assets.records.pause_models import Pause, PauseLift
from tiering_assets.records.scrub_model import BlockFacts as BlockFacts
from tiering_assets.records.scrub_model import BrokerCopy as BrokerCopy
from tiering_assets.records.scrub_model import Damage as Damage
from tiering_assets.records.scrub_model import EntryRange as EntryRange
from tiering_assets.records.scrub_model import ObjectFacts as ObjectFacts
from tiering_assets.records.scrub_model import Scrub as Scrub
from tiering_assets.records.scrub_model import Signature as Signature
from tiering_assets.records.scrub_model import SuiteResult as SuiteResult
from tiering_assets.records.stream_models import StreamRecord
from tiering_assets.records.sweep_models import CleanUpRecord
from tiering_assets.records.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFacts:
    """What never changes about a closed ledger, and tells it from another with the same id.

    `ctime_ms` is the creation time Pulsar writes into the index; `czxid` is ZooKeeper's.
    """

    ledger_id: int
    last_entry_id: int
    length: int
    digest_type: str
    ctime_ms: int
    czxid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A run works on the ledger until `expires_at` by the store's clock. Saves double work only."""

    kind: ClassVar[str] = "tierkeeper/claim/1"
    ledger_id: int
    run_id: str
    attempt: UUID | None
    expires_at: AwareDatetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFailure:
    """Runs in a row failed at the ledger and left no attempt that would tell; gone once it moves
    on.

    `error` is cut, `error_class` its class in resources/errors.py; times are by the writer's clock.
    """

    kind: ClassVar[str] = "tierkeeper/failure/1"
    ledger_id: int
    ml_name: str | None
    error: str
    error_class: str
    tries: int
    first_at: AwareDatetime
    last_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Written before the first byte is sent, so that everything an attempt leaves can be found."""

    kind: ClassVar[str] = "tierkeeper/attempt/1"
    ledger: LedgerFacts
    uid: UUID
    ml_name: str
    ml_czxid: int
    bucket: str
    data_key: str
    index_key: str
    block_bytes: int
    blocks: int
    object_bytes: int
    started_at: AwareDatetime
    writer: Writer
    previous: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Written only after every byte was read back and found equal to what the bookies served.

    `data.sha256` is the SHA-256 over the blocks' SHA-256 digests in order (blocks are verified in
    parallel); `index.sha256` is of the index object's bytes. `seconds` is the time tasks spent
    reading this ledger back, `copy_seconds` copying it (None when another run copied it).
    `replicas_agreed` is of a ledger whose entries carry no digest: at least so many replicas gave
    each entry alike. It is 1 where its write quorum is 1: one bookie's word is all there is.
    `block_digest` names how each block's entries are digested (offload_format/digests.py); version
    1 of the record knew `entries` alone and had no such field.
    """

    kind: ClassVar[str] = "tierkeeper/certificate/2"
    ledger: LedgerFacts
    uid: UUID
    ml_name: str
    bucket: str
    entries: int
    payload_bytes: int
    data: ObjectFacts
    index: ObjectFacts
    blocks: tuple[BlockFacts, ...]
    suites: tuple[SuiteResult, ...]
    verified_at: AwareDatetime
    seconds: float
    writer: Writer
    previous: str
    block_digest: DigestKind
    copy_seconds: float | None = None
    signature: Signature | None = None
    replicas_agreed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """A check failed: this attempt is never published, and people should look."""

    kind: ClassVar[str] = "tierkeeper/quarantine/1"
    ledger_id: int
    uid: UUID
    ml_name: str
    reason: str
    found_at: AwareDatetime
    writer: Writer
    previous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Who wins the conditional create decides the attempt's fate; the loser stops for good."""

    kind: ClassVar[str] = "tierkeeper/outcome/1"
    ledger_id: int
    uid: UUID
    outcome: Literal["publish", "abandon"]
    reason: str
    decided_at: AwareDatetime
    writer: Writer
    previous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLedger:
    """One ledger of a publication, with the digests of its certificate and outcome records.

    `context_ms` is the timestamp of the offload context that was confirmed; None in records of a
    time when it was not kept.
    """

    ledger_id: int
    uid: UUID
    certificate_sha256: str
    previous: str
    context_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A confirmed publication of one or more ledgers of a topic; the deletion lag runs from it."""

    kind: ClassVar[str] = "tierkeeper/publication/1"
    ml_name: str
    ledgers: tuple[PublishedLedger, ...]
    node_version: int
    node_czxid: int
    confirmed_by: str
    confirmed_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A namespace's brokers have read a ledger from our objects under this offload policy."""

    kind: ClassVar[str] = "tierkeeper/canary/1"
    namespace: str
    policy_digest: str
    ledger_id: int
    uid: UUID
    proven_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunRelease:
    """Written before a release intent, filed by the hour: what `release.per_hour_max` counts."""

    kind: ClassVar[str] = "tierkeeper/begun-release/1"
    ledger_id: int
    uid: UUID
    ml_name: str
    begun_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseIntent:
    """Written before a bookie copy is marked and deleted: on what grounds, and what was there."""

    kind: ClassVar[str] = "tierkeeper/release-intent/1"
    ledger: LedgerFacts
    uid: UUID
    ml_name: str
    certificate_sha256: str
    deletion_lag_s: float
    published_at: AwareDatetime
    ml_version: int
    ledger_metadata_hex: str
    intended_at: AwareDatetime
    writer: Writer
    previous: str
    plan: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Written after the ledger's node was deleted from BookKeeper's metadata."""

    kind: ClassVar[str] = "tierkeeper/release/1"
    ledger_id: int
    uid: UUID
    ml_name: str
    ml_version: int
    bytes_released: int
    released_at: AwareDatetime
    writer: Writer
    previous: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A person's ban on releasing a ledger. It binds our release, not the broker's own deletes."""

    kind: ClassVar[str] = "tierkeeper/hold/1"
    ledger_id: int
    reason: str
    author: str
    held_at: AwareDatetime
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeHold:
    """A ban on releasing anything of a topic or a namespace, or anything at all (`all`).

    `name` is the managed-ledger name or `tenant/namespace`, empty for `all`.
    """

    kind: ClassVar[str] = "tierkeeper/scope-hold/1"
    scope: Literal["topic", "namespace", "all"]
    name: str
    reason: str
    author: str
    held_at: AwareDatetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldLift:
    """Written before a hold is taken away: which one, by whom and why."""

    kind: ClassVar[str] = "tierkeeper/hold-lift/1"
    hold_key: str
    hold_sha256: str
    reason: str
    author: str
    lifted_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRelease:
    """A ledger that a plan releases, and the proof that it goes by. `age_s` is since
    publication.
    """

    ledger_id: int
    ml_name: str
    topic: str
    bytes: int
    age_s: float
    uid: UUID
    certificate: str
    certificate_sha256: str
    allowed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReleased:
    """A ledger that a plan leaves alone, and all reasons."""

    ledger_id: int
    ml_name: str
    bytes: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """What a release would delete, for people to read before it does; executed to the letter.

    `fleet` counts all closed ledgers of all topics. `tripwire` says why a person must acknowledge
    the plan, and `acknowledged` who did so and why.
    """

    kind: ClassVar[str] = "tierkeeper/release-plan/1"
    instance: str
    bucket: str
    planned_at: AwareDatetime
    release: tuple[PlannedRelease, ...]
    not_released: tuple[NotReleased, ...]
    fleet: int
    tripwire: str | None
    acknowledged: str | None
    writer: Writer


Record = (
    Claim
    | LedgerFailure
    | Attempt
    | Certificate
    | Quarantine
    | Outcome
    | CleanUpRecord
    | Publication
    | Canary
    | Disturbance
    | BegunRelease
    | ReleaseIntent
    | Release
    | Scrub
    | Damage
    | BrokerCopy
    | Hold
    | ScopeHold
    | BucketRecord
    | HoldLift
    | Pause
    | PauseLift
    | ReleasePlan
    | BrokerRecord
    | StreamRecord
)
