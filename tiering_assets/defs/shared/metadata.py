"""What the pages show of a ledger: records in, Dagster metadata out. Reads nothing.

Numbers are numbers, so that the pages plot them; objects are s3:// paths; everything comes from
the certificate, so that a run that finds its work done shows the same values again. A ledger has a
budget of events and bytes (docs/dagster-partitions.md): what its records have is not told twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

import dagster as dg

from tiering_assets.defs.shared.partitions import partition_key

if TYPE_CHECKING:
    from tiering_assets.records.models import Certificate, Publication, SuiteResult

Metadata = Mapping[str, dg.MetadataValue]
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
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


def bytes_text(size: int) -> str:
    """`12.3 MiB`, as in a terminal."""
    value, unit = float(size), _UNITS[0]
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


def duration_text(seconds: float) -> str:
    """`3.5 h`: the largest unit that is not below one."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def object_link(console_url: str, bucket: str, key: str) -> dg.MetadataValue:
    """An object's page in the store's console; its path where no console is known."""
    if not console_url:
        return bucket_path(bucket, key)
    return dg.MetadataValue.url(console_url.format(bucket=quote(bucket), key=quote(key)))


def object_metadata(certificate: Certificate, *, console_url: str, seconds: float) -> Metadata:
    data = certificate.data
    return {
        "topic": dg.MetadataValue.text(topic_text(certificate.ml_name)),
        "object": object_link(console_url, certificate.bucket, data.key),
        "sha256": dg.MetadataValue.text(data.sha256),
        "dagster/partition_row_count": dg.MetadataValue.int(certificate.entries),
        "payload_bytes": dg.MetadataValue.int(certificate.payload_bytes),
        "object_bytes": dg.MetadataValue.int(data.size),
        "seconds": dg.MetadataValue.float(round(seconds, 3)),
    }


def index_metadata(certificate: Certificate) -> Metadata:
    return {
        "object": bucket_path(certificate.bucket, certificate.index.key),
        "dagster/partition_row_count": dg.MetadataValue.int(len(certificate.blocks)),
    }


def certificate_metadata(certificate: Certificate, *, card: dg.MetadataValue, key: str) -> Metadata:
    """`key` is the record's full key in the bucket."""
    return {"card": card, "certificate": bucket_path(certificate.bucket, key)}


def ledger_page(asset: dg.AssetKey, ledger_id: int, name: str) -> str:
    """A link to the ledger's partition of an asset."""
    return f"[{name}](/assets/{'/'.join(asset.path)}?view=partitions&partition={ledger_id})"


def card(
    steps: Mapping[str, dg.AssetKey], ledger_id: int, known: Mapping[str, str], *, here: dg.AssetKey
) -> dg.MetadataValue:
    """A ledger's way through its assets, each but `here` a link to the ledger's page there.

    `known` is what is told of steps by the record that is shown; the other pages have theirs.
    """
    told = []
    for step, asset in steps.items():
        name = step if asset == here else ledger_page(asset, ledger_id, step)
        told.append(f"{name} {known.get(step, '')}".rstrip())
    return dg.MetadataValue.md(" → ".join(told))


def context_metadata(certificate: Certificate, publication: Publication, *, key: str) -> Metadata:
    return {
        "publication": bucket_path(certificate.bucket, key),
        "published_at": dg.MetadataValue.timestamp(publication.confirmed_at),
    }


def suite_summary(suites: Iterable[SuiteResult]) -> dg.MetadataValue:
    """`ledger_index/1: 12 of 12 expectations; …`"""
    return dg.MetadataValue.text("; ".join(map(_suite_text, suites)))


def _suite_text(suite: SuiteResult) -> str:
    failed = f", failed: {', '.join(suite.failed)}" if suite.failed else ""
    return f"{suite.name}: {suite.successful} of {suite.evaluated} expectations{failed}"


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
    asset: dg.AssetKey, ledger_id: int, metadata: Metadata, *, noop: bool
) -> dg.AssetMaterialization:
    """One ledger's event. `noop`: the goal was reached before, and is told again.

    Dagster stores what it says three times, and two hundred of these a run: so it is short.
    """
    return dg.AssetMaterialization(
        asset_key=asset,
        partition=partition_key(ledger_id),
        description=f"ledger {ledger_id}",
        metadata={**metadata, **({"noop": dg.MetadataValue.bool(True)} if noop else {})},
    )


def topic_text(ml_name: str) -> str:
    """`persistent://…` of a managed-ledger name, as people know it."""
    from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name

    return str(parse_managed_ledger_name(ml_name))
