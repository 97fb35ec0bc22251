"""What the pages show of a ledger: records in, Dagster metadata out. Reads nothing.

Numbers are numbers, so that the pages plot them; objects are s3:// paths; everything comes from
the certificate, so that a run that finds its work done shows the same values again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.shared.partitions import partition_key

if TYPE_CHECKING:
    from tiering_assets.records.models import Certificate, ObjectFacts, Publication, SuiteResult
    from tiering_assets.resources.bookkeeper.ledger import EnsembleFragment

Metadata = Mapping[str, dg.MetadataValue]
_MB = 1_000_000
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
INDEX_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("part_number", "int", "number of the block, from 1"),
        dg.TableColumn("first_entry_id", "int", "first entry in the block"),
        dg.TableColumn("offset", "int", "byte of the data object where the block begins"),
    ]
)


def bucket_uri(bucket: str, key: str) -> str:
    return f"s3://{bucket}/{key}"


def bucket_path(bucket: str, key: str) -> dg.MetadataValue:
    return dg.MetadataValue.path(bucket_uri(bucket, key))


def asset_uri(bucket: str, key: str) -> Metadata:
    """Where the asset's own bytes lie, under the key that Dagster's catalogue shows."""
    return {"dagster/uri": dg.MetadataValue.text(bucket_uri(bucket, key))}


def bytes_text(size: int) -> str:
    """`12.3 MB`, in powers of a thousand."""
    value, unit = float(size), _UNITS[0]
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


def duration_text(seconds: float) -> str:
    """`3.5 h`: the largest unit that is not below one."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def megabytes_per_second(size: int, seconds: float) -> dg.MetadataValue:
    return dg.MetadataValue.float(round(size / _MB / seconds, 2) if seconds > 0 else 0.0)


def object_metadata(
    certificate: Certificate, *, seconds: float, ensembles: Iterable[EnsembleFragment] | None
) -> Metadata:
    """Metadata of the data object. `ensembles` None: the ledger's node is gone already."""
    data = certificate.data
    shown: dict[str, dg.MetadataValue] = {
        **_ledger(certificate),
        **_object(certificate.bucket, data),
        "dagster/partition_row_count": dg.MetadataValue.int(certificate.entries),
        "entries": dg.MetadataValue.int(certificate.entries),
        "payload_bytes": dg.MetadataValue.int(certificate.payload_bytes),
        "object_bytes": dg.MetadataValue.int(data.size),
        "blocks": dg.MetadataValue.int(len(certificate.blocks)),
        "digest_type": dg.MetadataValue.text(certificate.ledger.digest_type),
        "seconds": dg.MetadataValue.float(round(seconds, 3)),
        "MB/s": megabytes_per_second(data.size, seconds),
    }
    if ensembles is not None:
        shown["ensembles"] = dg.MetadataValue.json(
            [{"first_entry_id": s.first_entry_id, "bookies": list(s.bookies)} for s in ensembles]
        )
    return shown


def index_metadata(certificate: Certificate) -> Metadata:
    return {
        **_ledger(certificate),
        **_object(certificate.bucket, certificate.index),
        "dagster/partition_row_count": dg.MetadataValue.int(len(certificate.blocks)),
        "index_entries": dg.MetadataValue.int(len(certificate.blocks)),
        "object_bytes": dg.MetadataValue.int(certificate.index.size),
    }


def certificate_metadata(certificate: Certificate, *, key: str, sha256: str) -> Metadata:
    """`key` is the record's full key in the bucket, `sha256` the digest of its bytes."""
    return {
        **_ledger(certificate),
        "certificate": bucket_path(certificate.bucket, key),
        **asset_uri(certificate.bucket, key),
        "certificate_sha256": dg.MetadataValue.text(sha256),
        "data_sha256": dg.MetadataValue.text(certificate.data.sha256),
        "index_sha256": dg.MetadataValue.text(certificate.index.sha256),
        "dagster/partition_row_count": dg.MetadataValue.int(certificate.entries),
        "entries": dg.MetadataValue.int(certificate.entries),
        "payload_bytes": dg.MetadataValue.int(certificate.payload_bytes),
        "verified_at": dg.MetadataValue.timestamp(certificate.verified_at),
        "verify_seconds": dg.MetadataValue.float(certificate.seconds),
        "verify MB/s": megabytes_per_second(certificate.data.size, certificate.seconds),
        "written_by": dg.MetadataValue.text(
            f"tierkeeper {certificate.writer.tool_version}, run {certificate.writer.run_id}"
        ),
        **{f"suite {s.name}": suite_summary(s) for s in certificate.suites},
    }


def context_metadata(certificate: Certificate, publication: Publication, *, key: str) -> Metadata:
    return {
        **_ledger(certificate),
        "publication": bucket_path(certificate.bucket, key),
        **asset_uri(certificate.bucket, key),
        "published_at": dg.MetadataValue.timestamp(publication.confirmed_at),
        "confirmed_by": dg.MetadataValue.text(publication.confirmed_by),
        "published_together": dg.MetadataValue.int(len(publication.ledgers)),
        "node_version": dg.MetadataValue.int(publication.node_version),
    }


def suite_summary(suite: SuiteResult) -> dg.MetadataValue:
    failed = f", failed: {', '.join(suite.failed)}" if suite.failed else ""
    return dg.MetadataValue.text(f"{suite.successful} of {suite.evaluated} expectations{failed}")


def suite_metadata(suites: Iterable[SuiteResult]) -> Metadata:
    """Statistics of the expectation suites over one ledger's index."""
    found = list(suites)
    return {
        "evaluated": dg.MetadataValue.int(sum(s.evaluated for s in found)),
        "successful": dg.MetadataValue.int(sum(s.successful for s in found)),
        "failed": dg.MetadataValue.json([name for s in found for name in s.failed]),
        "suites": dg.MetadataValue.json({s.name: s.digest for s in found}),
    }


def materialization(
    asset: dg.AssetKey, ledger_id: int, metadata: Metadata, *, noop: bool, description: str
) -> dg.AssetMaterialization:
    """One ledger's event. `noop`: the goal was reached before, and is told again."""
    return dg.AssetMaterialization(
        asset_key=asset,
        partition=partition_key(ledger_id),
        description=description,
        metadata={**metadata, "noop": dg.MetadataValue.bool(noop)},
    )


def _ledger(certificate: Certificate) -> Metadata:
    return {
        "ledger_id": dg.MetadataValue.int(certificate.ledger.ledger_id),
        "topic": dg.MetadataValue.text(topic_text(certificate.ml_name)),
        "attempt": dg.MetadataValue.text(str(certificate.uid)),
    }


def topic_text(ml_name: str) -> str:
    """`persistent://…` of a managed-ledger name, as people know it."""
    from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name

    return str(parse_managed_ledger_name(ml_name))


def _object(bucket: str, facts: ObjectFacts) -> Metadata:
    return {
        "object": bucket_path(bucket, facts.key),
        **asset_uri(bucket, facts.key),
        "sha256": dg.MetadataValue.text(facts.sha256),
        "etag": dg.MetadataValue.text(facts.etag),
    }
