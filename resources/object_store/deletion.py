"""Delete an object and every version of it, and say how many bytes stay all the same.

Owns: in a bucket with versions a plain DELETE frees nothing, so each version goes by its id; one
that is locked stays, is hidden by a marker and is counted. Deleting again is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.object_store.store import ObjectStore, ObjectVersion, kept_version


@dataclass(frozen=True, slots=True)
class Deleted:
    """Bytes of versions that are gone, and of those that the store would not delete, and why.

    `stay` are the ids of the latter.
    """

    bytes_freed: int
    bytes_stay: int
    why_stay: str = ""
    stay: tuple[str, ...] = ()


def _always() -> None:
    """May it go? Nobody asks."""


def delete_object(
    store: ObjectStore, key: str, *, allowed: Callable[[], None] = _always
) -> Deleted:
    """Delete every version of a key. ObjectStoreError when the key itself could not be hidden.

    `allowed` is called right before each delete and raises where it may not be done any more: a
    listing may have taken an hour.
    """
    versions = store.list_versions(key)
    bodies = [version for version in versions if not version.is_marker]
    markers = [version for version in versions if version.is_marker]
    if not markers and all(kept_version(version.version_id) is None for version in bodies):
        allowed()
        store.delete(key)  # whatever was listed: absent counts as done
        return Deleted(sum(version.size for version in bodies), 0)
    deleted = _delete_bodies(store, key, bodies, allowed)
    if not deleted.why_stay:
        for marker in markers:
            allowed()
            store.delete(key, version_id=marker.version_id)
    elif not markers:
        allowed()
        store.delete(key)  # hidden at least, so that no listing offers it again
    return deleted


def delete_versions(
    store: ObjectStore,
    key: str,
    version_ids: Collection[str],
    *,
    allowed: Callable[[], None] = _always,
) -> Deleted:
    """Delete these versions of a key and no other; one that is gone already frees nothing.

    A version that was written since they were named is none of theirs. "null" is the one version of
    a bucket that keeps none.
    """
    versions = store.list_versions(key)
    bodies = [version for version in versions if not version.is_marker]
    named = [version for version in bodies if (version.version_id or "null") in version_ids]
    if len(named) == len(bodies):
        return delete_object(store, key, allowed=allowed)
    return _delete_bodies(store, key, named, allowed)


def _delete_bodies(
    store: ObjectStore,
    key: str,
    bodies: Collection[ObjectVersion],
    allowed: Callable[[], None],
) -> Deleted:
    freed = stay = 0
    why = ""
    left: list[str] = []
    for version in bodies:
        allowed()
        try:
            store.delete(key, version_id=version.version_id)
        except ObjectStoreError as error:
            stay += version.size
            left.append(version.version_id or "null")
            why = why or str(error)
        else:
            freed += version.size
    return Deleted(freed, stay, why, tuple(left))
