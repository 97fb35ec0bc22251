"""One ledger's events: a record in, the materialization or evaluation that Dagster shows out.

Owns: the jobs and a rebuild tell of a ledger by the same functions, so that a rebuilt event equals
the one a run logs that finds its work done. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.shared.checks import read_back_evaluation
from tiering_assets.defs.shared.metadata import (
    Metadata,
    bucket_path,
    card,
    certificate_metadata,
    context_metadata,
    index_metadata,
    materialization,
    object_metadata,
    suite_summary,
    topic_text,
)
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.ground.moments import moment

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
        metadata={"suites": suite_summary(certificate.suites)},
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
    certificate = stored.record
    metadata = certificate_metadata(
        certificate,
        card=_card(
            cluster,
            certificate.ledger.ledger_id,
            {"proven": moment(certificate.verified_at)},
            here=cluster.certificates,
        ),
        key=prefix + stored.key,
    )
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


def _card(
    cluster: ClusterNames, ledger_id: int, known: Mapping[str, str], *, here: dg.AssetKey
) -> dg.MetadataValue:
    steps = {
        "sealed": cluster.sealed_ledgers,
        "copied": cluster.offloaded_objects,
        "proven": cluster.certificates,
        "published": cluster.offload_contexts,
        "released": cluster.deleted_bookie_ledgers,
    }
    return card(steps, ledger_id, known, here=here)


def release_metadata(
    cluster: ClusterNames,
    records: ReleaseRecords,
    *,
    bytes_released: int,
    bucket: str,
    prefix: str,
) -> Metadata:
    """What a release shows: the whole way, who went its last step, and on what proof."""
    release, known = records.release.record, dict[str, str]()
    if records.certificate is not None:
        proof = records.certificate
        known["proven"] = f"{moment(proof.record.verified_at)}, certificate {proof.sha256}"
    if records.intent is not None:
        known["published"] = moment(records.intent.record.published_at)
    known["released"] = moment(release.released_at)
    metadata: dict[str, dg.MetadataValue] = {
        "card": _card(cluster, release.ledger_id, known, here=cluster.deleted_bookie_ledgers),
        "topic": dg.MetadataValue.text(topic_text(release.ml_name)),
        "bytes_released": dg.MetadataValue.int(bytes_released),
        "released_at": dg.MetadataValue.timestamp(release.released_at),
        "released_by": dg.MetadataValue.text(f"run {release.writer.run_id}, {release.writer.host}"),
        "release": bucket_path(bucket, prefix + records.release.key),
    }
    if records.intent is not None:
        lag_s = records.intent.record.deletion_lag_s
        metadata["deletion_lag_seconds"] = dg.MetadataValue.float(lag_s)
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
