"""The stack's empty bucket.

Owns: the one call of boto3 outside object_store/s3.py. A product never creates a bucket, so the
store it talks through has no such method, and a stack without a bucket is not ready.
"""

from __future__ import annotations

from resources.devstack.endpoints import Endpoints


def create_bucket(ends: Endpoints) -> None:
    """Create the stack's bucket on its ready S3 server."""
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "s3",
        endpoint_url=ends.s3_endpoint,
        region_name=ends.s3_region,
        aws_access_key_id=ends.s3_access_key,
        aws_secret_access_key=ends.s3_secret_key,
        config=Config(s3={"addressing_style": "path"}, proxies={}),
    )
    try:
        client.create_bucket(Bucket=ends.s3_bucket)
    finally:
        client.close()
