from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tiering_assets.records.chain import release_faults
from tiering_assets.records.models import (
    Certificate,
    LedgerFacts,
    ObjectFacts,
    Release,
    ReleaseIntent,
)
from tiering_assets.records.stored import Stored
from tiering_assets.records.writer import Writer

NOW = datetime(2026, 1, 2, tzinfo=UTC)
UID = UUID(int=7)
WRITER = Writer(tool_version="1", host="h:1", run_id="r")
FACTS = LedgerFacts(
    ledger_id=5, last_entry_id=9, length=100, digest_type="CRC32C", ctime_ms=1, czxid=2
)
OBJECT = ObjectFacts(key="k", size=1, etag="e", sha256="s")
CERTIFICATE = Certificate(
    block_digest="frames",
    ledger=FACTS,
    uid=UID,
    ml_name="t/n/persistent/x",
    bucket="b",
    entries=10,
    payload_bytes=100,
    data=OBJECT,
    index=OBJECT,
    blocks=(),
    suites=(),
    verified_at=NOW,
    seconds=1.0,
    writer=WRITER,
    previous="attempt",
)
INTENT = ReleaseIntent(
    ledger=FACTS,
    uid=UID,
    ml_name="t/n/persistent/x",
    certificate_sha256="certificate",
    deletion_lag_s=3600.0,
    published_at=NOW - timedelta(hours=2),
    ml_version=3,
    ledger_metadata_hex="",
    intended_at=NOW,
    writer=WRITER,
    previous="outcome",
)
RELEASE = Release(
    ledger_id=5,
    uid=UID,
    ml_name="t/n/persistent/x",
    ml_version=3,
    bytes_released=100,
    released_at=NOW + timedelta(seconds=1),
    writer=WRITER,
    previous="intent",
)


def stored(record, digest):
    return record and Stored(key="", record=record, sha256=digest, stored_at=NOW, etag="")


def audit(certificate=CERTIFICATE, intent=INTENT, release=RELEASE, digest="certificate"):
    return release_faults(
        stored(certificate, digest), stored(intent, "intent"), stored(release, "release")
    )


def test_a_release_by_the_rules_has_no_fault():
    assert audit() == ()


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"intent": None}, "no intent was written before"),
        ({"certificate": None}, "no certificate of this attempt"),
        ({"digest": "another"}, "names another certificate"),
        ({"release": replace(RELEASE, previous="another")}, "names another intent"),
        ({"release": replace(RELEASE, released_at=NOW - timedelta(seconds=1))}, "before its inten"),
        ({"intent": replace(INTENT, ledger=replace(FACTS, czxid=99))}, "czxid=99"),
        ({"intent": replace(INTENT, published_at=NOW - timedelta(hours=1))}, "deletion lag is"),
    ],
)
def test_each_broken_link_is_told(changed, fault):
    assert fault in "; ".join(audit(**changed))
