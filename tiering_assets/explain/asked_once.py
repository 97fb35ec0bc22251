"""A store as one page of a report sees it: each question is asked once, whoever asks it.

Owns: what a report reads for its chain, its state and its gate is one picture. Only for reads that
decide nothing: what publishes or destroys asks anew. A write is not hidden by an older answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

from tiering_assets.ground.stack import Stack
from tiering_assets.resources.object_store.store import (
    ObjectHead,
    ObjectStore,
    ObjectSummary,
    StoredObject,
)

T = TypeVar("T")
_ASKING = frozenset({"get_range", "list_versions", "server_time", "bucket_facts"})


class _AskedOnce:
    """Whole objects answer HEADs, too. An error is no answer and is asked again."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._answers: dict[object, object] = {}

    @property
    def bucket(self) -> str:
        return self._objects.bucket

    def head(self, key: str, *, version_id: str | None = None) -> ObjectHead | None:
        whole = ("get", key, version_id)
        if whole in self._answers:
            found = cast("StoredObject | None", self._answers[whole])
            return None if found is None else found.head
        return self._once(
            ("head", key, version_id), lambda: self._objects.head(key, version_id=version_id)
        )

    def get(
        self, key: str, *, version_id: str | None = None, bytes_max: int | None = None
    ) -> StoredObject | None:
        return self._once(
            ("get", key, version_id),
            lambda: self._objects.get(key, version_id=version_id, bytes_max=bytes_max),
        )

    def list_objects(
        self, prefix: str = "", *, start_after: str = "", at_once: int = 1000
    ) -> Iterator[ObjectSummary]:
        listed = self._once(
            ("list", prefix, start_after),
            lambda: [*self._objects.list_objects(prefix, start_after=start_after, at_once=at_once)],
        )
        return iter(listed)

    def put(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Forgets what it may change: the key, and the listings that hold it."""
        for asked in [*self._answers]:
            what, about = cast("tuple[str, str]", asked)[:2]
            if about == key or (what == "list" and key.startswith(about)):
                del self._answers[asked]
        return self._objects.put(key, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        really = getattr(self._objects, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if name not in _ASKING:
                self._answers.clear()
                return really(*args, **kwargs)
            asked = (name, "", args, tuple(sorted(kwargs.items())))
            return self._once(asked, lambda: really(*args, **kwargs))

        return call

    def _once(self, asked: object, ask: Callable[[], T]) -> T:
        if asked not in self._answers:
            self._answers[asked] = ask()
        return cast(T, self._answers[asked])


def asking_once(stack: Stack) -> Stack:
    """The same stack for one report. Keeps what it reads of the store in memory, so not for
    scans.
    """
    objects = cast(ObjectStore, _AskedOnce(stack.objects))
    return replace(stack, objects=objects, book=stack.book.over(objects))
