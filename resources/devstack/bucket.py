"""The stack's empty bucket, and a client that knows nothing of ours.

Owns: the one call of boto3 outside object_store/s3.py. A stack without a bucket is not ready.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiering_assets.resources.devstack.endpoints import Endpoints

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def s3_client(ends: Endpoints) -> S3Client:
    """Return a bare client of the stack's S3 server; the caller closes it."""
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=ends.s3_endpoint,
        region_name=ends.s3_region,
        aws_access_key_id=ends.s3_access_key,
        aws_secret_access_key=ends.s3_secret_key,
        config=Config(s3={"addressing_style": "path"}, proxies={}),
    )


def create_bucket(ends: Endpoints) -> None:
    """Create the stack's bucket on its ready S3 server."""
    client = s3_client(ends)
    try:
        client.create_bucket(Bucket=ends.s3_bucket)
    finally:
        client.close()
