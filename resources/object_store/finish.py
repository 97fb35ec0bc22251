"""The end of an upload: parts that equal their accepted rows, complete, and what lies beside it.

Owns: an upload is completed only with what the store lists now and what equals an accepted row;
parts that do not are sent again, a bounded number of times. A complete whose answer was lost is
judged by what is there. The keys hold a fresh uuid: what lies there only its own attempt can have
made, and read-back judges its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from tiering_assets.resources.errors import (
    IntegrityError,
    ObjectExistsError,
    ObjectNotFoundError,
    ObjectStoreError,
)
from tiering_assets.resources.object_store.multipart import ExpectedPart, accept_parts
from tiering_assets.resources.object_store.store import ObjectStore, Part

SEND_ROUNDS_MAX: Final = 3
Rows = Mapping[int, ExpectedPart]
SendAgain = Callable[[Collection[int]], Rows]


def settle_parts(
    objects: ObjectStore,
    key: str,
    upload_id: str,
    rows: Rows,
    send_again: SendAgain,
    *,
    what: str,
) -> Sequence[Part]:
    """What the store lists, once it equals the rows. `what` is copied, for messages.

    `send_again` sends the parts of these numbers once more, and returns their new rows.

    Raises:
        ObjectNotFoundError: there is no such upload any more.
        IntegrityError: another writer is in it, or parts differ however often they are sent.
    """
    for _round in range(SEND_ROUNDS_MAX):
        listed = objects.list_parts(key, upload_id)
        if listed is None:
            raise ObjectNotFoundError(
                f"{what}: upload {upload_id} of {key} is gone; somebody aborted it"
            )
        match = accept_parts([row for _n, row in sorted(rows.items())], listed, key=key)
        if match.may_complete:
            return match.accepted
        rows = {**rows, **send_again(match.send_again)}
    raise IntegrityError(
        f"{what}: parts of {key} in the store differ from what was sent, {SEND_ROUNDS_MAX} times"
    )


def complete(
    objects: ObjectStore, key: str, upload_id: str, parts: Sequence[Part], *, size: int
) -> None:
    """Make the object of `size` bytes from its parts, if there is none yet."""
    try:
        objects.complete_upload(key, upload_id, parts)
    except ObjectStoreError:
        head = objects.head(key)
        if head is None or head.size != size:
            raise


def put_once(
    objects: ObjectStore,
    key: str,
    body: bytes,
    *,
    metadata: Mapping[str, str],
    bytes_max: int,
    what: str,
) -> None:
    """Put a small object, or find the same bytes there. IntegrityError for others."""
    try:
        objects.put(key, body, metadata=metadata, if_absent=True)
    except ObjectExistsError:
        found = objects.get(key, bytes_max=bytes_max)
        if found is None or found.body != body:
            raise IntegrityError(f"{what}: object {key} already exists with other bytes") from None
