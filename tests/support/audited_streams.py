"""Streams of a simulated topic in all their states, to be audited, and ways to damage them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tests.support.sim_scene import TOPIC
from tests.support.stream_scene import StreamScene
from tests.support.two_checkers import second_findings
from tiering_assets.audit.audit import audit_store
from tiering_assets.audit.audit_findings import AuditFinding, AuditReport
from tiering_assets.records import keys
from tiering_assets.records.signature import record_digest
from tiering_assets.records.stream_models import SegmentGivenUp
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.object_store.records import encode_record
from tiering_assets.stream.switch import close_stream, open_stream


class StreamsBucket(StreamScene):
    """A stream of five segments that is closed, and one of a segment behind it.

    1 goes over a rollover, 2 was tried twice, 3 was given up, 4 and 5 end inside a ledger.
    """

    def __init__(self) -> None:
        super().__init__()
        self.first = self.write(b"a" * 300, b"b" * 300)
        self.roll_over()
        self.second = self.write(b"c", b"d")
        self.cut()
        self.old = self.chain().stream
        self.write(b"e" * 40)
        with suppress(ObjectStoreError):
            self.next(replace(self.process(), objects=_Full(self.process().objects)))
        self.cut()
        self.write(b"f")
        self._give_up()
        self.write(b"g", b"h")
        self.cut()
        self.roll_over()
        self.third = self.write(b"i" * 90)
        self.cut()
        close_stream(self.process(), self.chain(), reason="a test", author="ops")
        open_stream(self.process(), TOPIC, author="ops")
        self.write(b"j")
        self.cut()
        self.new = self.chain().stream

    def _give_up(self) -> None:
        assigned = self.assign()
        self.stack.book.create(
            keys.segment_given_up(TOPIC, self.old, 3),
            SegmentGivenUp(
                ml_name=TOPIC,
                stream=self.old,
                number=3,
                ledger_ids=(self.second,),
                reason="a test",
                author="ops",
                given_up_at=self.stack.now(),
                writer=self.stack.writer,
                previous=assigned.sha256,
            ),
        )

    # ----- keys below the instance

    def link(self, number: int) -> str:
        return keys.stream_link(TOPIC, self.old, number)

    def offloaded(self, number: int) -> str:
        return keys.segment_offloaded(TOPIC, self.old, number)

    @property
    def opened(self) -> str:
        return keys.stream_opened(TOPIC, self.old)

    @property
    def given_up(self) -> str:
        return keys.segment_given_up(TOPIC, self.old, 3)

    def beside(self, number: int, folder: str) -> list[str]:
        """Keys of attempts, or of failed ones."""
        prefix = f"{keys.of_segment(TOPIC, self.old, number)}.{folder}/"
        return sorted(self.stack.book.keys(prefix))

    def attempt(self, number: int) -> str:
        """That of the certificate."""
        uid = self.body(self.offloaded(number))["uid"]
        return f"{keys.of_segment(TOPIC, self.old, number)}.attempts/{uid}.json"

    # ----- what lies there

    def full(self, key: str) -> str:
        return self.stack.book.prefix + key

    def body(self, key: str) -> Any:
        return json.loads(self.raw(key))

    def put(self, key: str, body: Any) -> None:
        """A record with a digest that fits: only what it says can give it away."""
        whole = {name: value for name, value in body.items() if name != "digest"}
        whole["digest"] = record_digest(whole)
        self.world.objects.rot(self.full(key), encode_record(whole))

    def change(self, key: str, edit: Callable[[Any], object]) -> None:
        body = self.body(key)
        edit(body)
        self.put(key, body)

    def lose(self, key: str) -> None:
        self.world.objects.delete(self.full(key))

    def lose_segment(self, number: int) -> None:
        for key in [*self.stack.book.keys(keys.of_segment(TOPIC, self.old, number))]:
            self.lose(key)

    def data(self, number: int) -> str:
        return str(self.body(self.offloaded(number))["data"]["key"])

    def index(self, number: int) -> str:
        return str(self.body(self.offloaded(number))["index"]["key"])

    def rot(self, key: str, edit: Callable[[bytearray], object]) -> None:
        """Other bytes of an object, its size and ETag as they were."""
        body = bytearray(self.bytes_of(key))
        edit(body)
        self.world.objects.rot(key, bytes(body))

    def bytes_of(self, key: str) -> bytes:
        found = self.world.objects.peek(key)
        assert found is not None, key
        return bytes(found[0])

    def raw(self, key: str) -> bytes:
        return self.bytes_of(self.full(key))

    # ----- what is said of it

    def audit(self, *, deep: bool = True, settings: Any = None) -> AuditReport:
        settings = settings or self.stack.settings
        return audit_store(self.world.objects, settings, deep=deep, in_flight_s=0.0)

    def both(self, *, deep: bool = True) -> tuple[list[AuditFinding], list[dict[str, Any]]]:
        """Findings of either, but for pages of the day book, which name what was changed."""
        instance = self.stack.instance
        second = second_findings(self.world.objects, instance, deep=deep)
        ours = [one for one in self.audit(deep=deep).findings if one.kind != "chain_missing"]
        return ours, [one for one in second if one["kind"] != "chain_missing"]


class _Full:
    """A store that takes records and no object."""

    def __init__(self, objects: Any) -> None:
        self._objects = objects

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    def put(self, key: str, *args: Any, **kwargs: Any) -> Any:
        if "/" not in key:
            raise ObjectStoreError(f"{key}: no room")
        return self._objects.put(key, *args, **kwargs)
