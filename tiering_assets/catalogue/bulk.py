"""A stack that reads records by the client for many small reads.

Owns: only who reads for the catalogue has it. What it writes goes by the client that is proven.
"""

from __future__ import annotations

from dataclasses import replace

from tiering_assets.ground.stack import Stack
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.s3_bulk import BulkS3ObjectStore


def in_bulk(stack: Stack) -> Stack:
    """The stack itself, where its store is none of S3, or is that client already."""
    if type(stack.objects) is not S3ObjectStore:
        return stack
    objects = BulkS3ObjectStore(stack.settings.store, meter=stack.rates)
    return replace(stack, objects=objects, book=stack.book.over(objects))
