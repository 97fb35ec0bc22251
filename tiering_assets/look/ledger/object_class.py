"""Can a broker read an object, by the storage class it lies in now?

Owns: a class that no table knows is asked by reading one byte of exactly that version. A refusal
because of its class is a no; any other failure says nothing and is an error.
"""

from __future__ import annotations

from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.resources.errors import (
    ObjectArchivedError,
    ObjectStoreError,
    ObjectTooLargeError,
)
from tiering_assets.resources.object_store.storage_class import class_reads
from tiering_assets.resources.object_store.store import ObjectHead, StoredObject


def can_be_read(stack: Stack, head: ObjectHead) -> bool:
    """Whether a GET answers at once. ObjectStoreError when the store did not tell."""
    known = class_reads(head.storage_class)
    if known is not None:
        return known
    if head.size == 0:
        return True
    try:
        stack.objects.get_range(head.key, start=0, length=1, version_id=head.version_id)
    except ObjectArchivedError:
        return False
    return True


def read_unless_archived(stack: Stack, key: str) -> tuple[ObjectHead | None, StoredObject | None]:
    """HEAD and body of a small object; the body is None of one in a class that no read answers,
    and of one that is larger than any index.
    """
    try:
        found = stack.objects.get(key, bytes_max=INDEX_BYTES_MAX)
    except ObjectTooLargeError:
        return stack.objects.head(key), None  # whatever it is, it is no index
    except ObjectStoreError:
        head = stack.objects.head(key)
        if head is None or can_be_read(stack, head):
            raise  # an outage says nothing about the object
        return head, None
    return None if found is None else found.head, found
