"""What a namespace tells brokers about the stack's bucket."""

from __future__ import annotations

from tiering_assets.resources.devstack.endpoints import Endpoints

MIB = 1024 * 1024


def offload_policies(ends: Endpoints) -> dict[str, object]:
    """A namespace's policy object that says what the broker's own configuration says."""
    return {
        "managedLedgerOffloadDriver": "aws-s3",
        "s3ManagedLedgerOffloadBucket": ends.s3_bucket,
        "s3ManagedLedgerOffloadRegion": ends.s3_region,
        "s3ManagedLedgerOffloadServiceEndpoint": ends.s3_endpoint,
        "s3ManagedLedgerOffloadMaxBlockSizeInBytes": 5 * MIB,
        "s3ManagedLedgerOffloadReadBufferSizeInBytes": MIB,
    }
