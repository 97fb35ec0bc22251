"""One ledger's events: a record in, the materialization or evaluation that Dagster shows out.

Owns: the jobs and a rebuild tell of a ledger by the same functions, so that a rebuilt event equals
the one a run logs that finds its work done. Reads nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.shared.checks import read_back_evaluation
from tiering_assets.defs.shared.metadata import (
    Metadata,
    bucket_path,
    certificate_metadata,
    context_metadata,
    index_metadata,
    materialization,
    object_metadata,
    suite_summary,
    topic_text,
)
from tiering_assets.defs.shared.names import ClusterNames

if TYPE_CHECKING:
    from tiering_assets.batch.release_batch import ReleaseRecords
    from tiering_assets.defs.shared.preview_api import Evaluation
    from tiering_assets.look.ledger.survey import LedgerView
    from tiering_assets.records.models import Certificate, Publication
    from tiering_assets.records.stored import Stored


def sealed_event(cluster: ClusterNames, view: LedgerView, *, noop: bool) -> dg.AssetMaterialization:
    """`state` is the ledger's state at the time of the telling."""
    metadata: dict[str, dg.MetadataValue] = {
        "topic": dg.MetadataValue.text(view.topic),
        "state": dg.MetadataValue.text(view.state.value),
        "dagster/partition_row_count": dg.MetadataValue.int(view.entries or 0),
        "payload_bytes": dg.MetadataValue.int(view.bytes or 0),
    }
    if view.closed_at is not None:
        metadata["closed_at"] = dg.MetadataValue.timestamp(view.closed_at)
    return materialization(cluster.sealed_ledgers, view.ledger_id, metadata, noop=noop)


def object_event(
    cluster: ClusterNames, stored: Stored[Certificate], *, noop: bool
) -> dg.AssetMaterialization:
    certificate = stored.record
    copy_s = certificate.copy_seconds
    seconds = certificate.seconds if copy_s is None else copy_s
    metadata = object_metadata(certificate, console_url=cluster.console_url, seconds=seconds)
    return _of_certificate(cluster.offloaded_objects, certificate, metadata, noop=noop)


def certified_evaluation(cluster: ClusterNames, certificate: Certificate) -> Evaluation:
    """The pass of read_back_equal that a certificate stands for.

    The suites had passed before there was a certificate, so they need no evaluations of their own.
    """
    return read_back_evaluation(
        cluster,
        certificate.ledger.ledger_id,
        findings=(),
        metadata={f"suite {one.name}": suite_summary(one) for one in certificate.suites},
        said=f"{certificate.entries} entries, {certificate.data.size} bytes read back equal",
    )


def index_event(
    cluster: ClusterNames, stored: Stored[Certificate], *, noop: bool
) -> dg.AssetMaterialization:
    return _of_certificate(
        cluster.index_objects, stored.record, index_metadata(stored.record), noop=noop
    )


def certificate_event(
    cluster: ClusterNames, stored: Stored[Certificate], *, prefix: str, noop: bool
) -> dg.AssetMaterialization:
    metadata = certificate_metadata(stored.record, key=prefix + stored.key, sha256=stored.sha256)
    return _of_certificate(cluster.certificates, stored.record, metadata, noop=noop)


def context_event(
    cluster: ClusterNames,
    stored: Stored[Certificate],
    publication: Stored[Publication],
    *,
    prefix: str,
    noop: bool,
) -> dg.AssetMaterialization:
    metadata = context_metadata(stored.record, publication.record, key=prefix + publication.key)
    return _of_certificate(cluster.offload_contexts, stored.record, metadata, noop=noop)


def release_metadata(
    records: ReleaseRecords, *, bytes_released: int, bucket: str, prefix: str
) -> Metadata:
    """Metadata of a release and of the check that judges it."""
    release = records.release.record
    metadata: dict[str, dg.MetadataValue] = {
        "topic": dg.MetadataValue.text(topic_text(release.ml_name)),
        "bytes_released": dg.MetadataValue.int(bytes_released),
        "released_at": dg.MetadataValue.timestamp(release.released_at),
        "release": bucket_path(bucket, prefix + records.release.key),
    }
    if records.intent is not None:
        intent = records.intent.record
        metadata |= {
            "published_at": dg.MetadataValue.timestamp(intent.published_at),
            "deletion_lag_seconds": dg.MetadataValue.float(intent.deletion_lag_s),
            "certificate_sha256": dg.MetadataValue.text(intent.certificate_sha256),
        }
    return metadata


def release_event(
    cluster: ClusterNames, records: ReleaseRecords, metadata: Metadata, *, noop: bool
) -> dg.AssetMaterialization:
    release = records.release.record
    return materialization(cluster.deleted_bookie_ledgers, release.ledger_id, metadata, noop=noop)


def _of_certificate(
    asset: dg.AssetKey, certificate: Certificate, metadata: Metadata, *, noop: bool
) -> dg.AssetMaterialization:
    return materialization(asset, certificate.ledger.ledger_id, metadata, noop=noop)
