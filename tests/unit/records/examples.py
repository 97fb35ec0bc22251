"""One record of each kind, as the files in fixtures/ spell it."""

from datetime import UTC, datetime
from uuid import UUID

from tiering_assets.records import budget_model, failure_model, models, pause_models, sweep_models
from tiering_assets.records.writer import Writer

UID = UUID("1ecdf250-a9b4-4953-947e-0ace4164fb4a")
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
ML_NAME = "public/default/persistent/orders"
DATA_KEY = f"{UID}-ledger-42"
WRITER = Writer(tool_version="0.1.0", host="worker-1", run_id="run-7")
LEDGER = models.LedgerFacts(
    ledger_id=42,
    last_entry_id=9,
    length=1000,
    digest_type="CRC32C",
    ctime_ms=1767225600000,
    czxid=4294967301,
)

EXAMPLES: tuple[models.Record, ...] = (
    models.Claim(ledger_id=42, run_id="run-7", attempt=None, expires_at=AT),
    failure_model.LedgerFailure(
        ledger_id=42,
        ml_name=ML_NAME,
        error="ledger 42: entry 9: no replica gave it",
        error_class="EntryUnavailableError",
        tries=2,
        first_at=AT,
        last_at=AT,
        writer=WRITER,
    ),
    models.Attempt(
        ledger=LEDGER,
        uid=UID,
        ml_name=ML_NAME,
        ml_czxid=4294967298,
        bucket="tiered",
        data_key=DATA_KEY,
        index_key=f"{DATA_KEY}-index",
        block_bytes=67108864,
        blocks=1,
        object_bytes=1248,
        started_at=AT,
        writer=WRITER,
    ),
    models.Certificate(
        ledger=LEDGER,
        uid=UID,
        ml_name=ML_NAME,
        bucket="tiered",
        entries=10,
        payload_bytes=1000,
        data=models.ObjectFacts(
            key=DATA_KEY,
            size=1248,
            etag='"d41d8cd98f00b204e9800998ecf8427e-1"',
            sha256="a" * 64,
        ),
        index=models.ObjectFacts(
            key=f"{DATA_KEY}-index",
            size=217,
            etag='"0cc175b9c0f1b6a831c399e269772661"',
            sha256="b" * 64,
            version_id="v1",
        ),
        blocks=(
            models.BlockFacts(
                part_number=1,
                first_entry_id=0,
                last_entry_id=9,
                offset=0,
                block_length=1248,
                payload_bytes=1000,
                sha256="c" * 64,
                entries_sha256="d" * 64,
            ),
        ),
        suites=(
            models.SuiteResult(
                name="offload_index", digest="e" * 64, success=True, evaluated=14, successful=14
            ),
        ),
        verified_at=AT,
        seconds=1.25,
        writer=WRITER,
        previous="1" * 64,
    ),
    models.Quarantine(
        ledger_id=42,
        uid=UID,
        ml_name=ML_NAME,
        reason="block 1: entries: expected 10, found 9",
        found_at=AT,
        writer=WRITER,
        previous="1" * 64,
    ),
    models.Outcome(
        ledger_id=42,
        uid=UID,
        outcome="publish",
        reason="certified",
        decided_at=AT,
        writer=WRITER,
        previous="2" * 64,
    ),
    sweep_models.Leftover(
        ledger_id=42, uid=UID, ml_name=ML_NAME, node_version=7, seen_at=AT, writer=WRITER
    ),
    sweep_models.SweepIntent(
        ledger_id=42,
        uid=UID,
        ml_name=ML_NAME,
        objects=(DATA_KEY,),
        uploads=1,
        intended_at=AT,
        writer=WRITER,
        previous="4" * 64,
    ),
    sweep_models.Swept(
        ledger_id=42,
        uid=UID,
        ml_name=ML_NAME,
        objects=(DATA_KEY,),
        uploads=1,
        bytes_freed=1248,
        bytes_stay=0,
        why_stay="",
        swept_at=AT,
        writer=WRITER,
        previous="3" * 64,
    ),
    sweep_models.ExpiredPlan(
        instance="e1c7a1c2-0000-4000-8000-000000000001",
        bucket="tiered",
        planned_at=AT,
        copies=(
            sweep_models.PlannedExpiry(
                ledger_id=42,
                uid=UID,
                ml_name=ML_NAME,
                fate="trimmed",
                bytes=1248,
                objects=(DATA_KEY,),
                only_copy=True,
            ),
        ),
        fleet=1000,
        writer=WRITER,
    ),
    sweep_models.ForgetPlan(
        instance="e1c7a1c2-0000-4000-8000-000000000001",
        bucket="tiered",
        planned_at=AT,
        ledgers=(sweep_models.PlannedForget(ledger_id=42, ml_name=ML_NAME, uids=(UID,)),),
        fleet=1000,
        writer=WRITER,
    ),
    models.Publication(
        ml_name=ML_NAME,
        ledgers=(
            models.PublishedLedger(
                ledger_id=42, uid=UID, certificate_sha256="2" * 64, previous="3" * 64
            ),
        ),
        node_version=7,
        node_czxid=4294967298,
        confirmed_by="unload acknowledged",
        confirmed_at=AT,
        writer=WRITER,
    ),
    models.Canary(
        namespace="public/default",
        policy_digest="f" * 64,
        ledger_id=42,
        uid=UID,
        proven_at=AT,
        writer=WRITER,
    ),
    models.Disturbance(
        ml_name=ML_NAME,
        broker="broker-1:8080",
        why="3 ledgers published",
        disturbed_at=AT,
        writer=WRITER,
    ),
    models.ReleaseIntent(
        ledger=LEDGER,
        uid=UID,
        ml_name=ML_NAME,
        certificate_sha256="2" * 64,
        deletion_lag_s=14400.0,
        published_at=datetime(2026, 1, 1, tzinfo=UTC),
        ml_version=9,
        ledger_metadata_hex="0a0b",
        intended_at=AT,
        writer=WRITER,
        previous="3" * 64,
    ),
    models.Release(
        ledger_id=42,
        uid=UID,
        ml_name=ML_NAME,
        ml_version=9,
        bytes_released=1000,
        released_at=AT,
        writer=WRITER,
        previous="4" * 64,
        notes=("found deleted by an earlier run",),
    ),
    models.Scrub(
        ledger_id=42,
        uid=UID,
        ml_name=ML_NAME,
        depth="deep",
        data_bytes=1248,
        data_etag='"d41d8cd98f00b204e9800998ecf8427e-1"',
        data_version_id=None,
        blocks=1,
        blocks_read=1,
        entries=10,
        payload_bytes=1000,
        scrubbed_at=AT,
        seconds=0.5,
        writer=WRITER,
        findings=("block 1: SHA-256: expected aa, found bb",),
        lost=(models.EntryRange(3, 9),),
        previous="2" * 64,
    ),
    models.Hold(
        ledger_id=42,
        reason="audit 17",
        author="ops@example.com",
        held_at=AT,
        extra={"ticket": "OPS-17"},
    ),
    models.ScopeHold(
        scope="topic", name=ML_NAME, reason="audit 17", author="ops@example.com", held_at=AT
    ),
    budget_model.Budget(
        author="ops@example.com",
        set_at=AT,
        writer=WRITER,
        upload_bytes_per_s=52428800,
        store_requests_per_s=0,
        topic_bookie_read_bytes_per_s=26214400,
    ),
    models.HoldLift(
        hold_key="holds/42.json",
        hold_sha256="5" * 64,
        reason="audit done",
        author="ops@example.com",
        lifted_at=AT,
        writer=WRITER,
    ),
    pause_models.Pause(
        scope="namespace",
        name="public/default",
        mode="disabled",
        reason="short-lived",
        author="ops@example.com",
        paused_at=AT,
        writer=WRITER,
    ),
    pause_models.PauseLift(
        pause_key="pauses/all.json",
        pause_sha256="5" * 64,
        was="paused since 2026-01-02T03:04:05.678901+00:00 by ops@example.com: disk incident",
        reason="disk replaced",
        author="ops@example.com",
        lifted_at=AT,
        writer=WRITER,
    ),
    models.ReleasePlan(
        instance="0f6a2f4e-6b8a-4d25-9c3c-0d3f0b1f7b11",
        bucket="tiered",
        planned_at=AT,
        release=(
            models.PlannedRelease(
                ledger_id=42,
                ml_name=ML_NAME,
                topic="persistent://public/default/orders",
                bytes=1000,
                age_s=14400.5,
                uid=UID,
                certificate=f"tierkeeper/i/certificates/42/{UID}.json",
                certificate_sha256="2" * 64,
                allowed_by="release.deletion_lag_s = 14400",
            ),
        ),
        not_released=(
            models.NotReleased(
                ledger_id=43, ml_name=ML_NAME, bytes=7, reasons=("under a release hold: x",)
            ),
        ),
        fleet=2,
        tripwire=None,
        acknowledged=None,
        writer=WRITER,
    ),
)
