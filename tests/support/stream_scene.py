"""A simulated topic that is streamed, and what its segments hold by an independent decoder."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.support.golden_segments import decoded_entries
from tests.support.sim_scene import TOPIC, Scene
from tests.support.unchecked import unchecked
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import DayBookPage
from tiering_assets.records.stored import Stored
from tiering_assets.records.stream_models import SegmentAssigned, SegmentOffloaded
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.resources.settings import Settings
from tiering_assets.stream.assign import Assigned, assign_next
from tiering_assets.stream.assign_rules import WhenToCut
from tiering_assets.stream.chain import Chain, read_stream
from tiering_assets.stream.cut import cut_stream
from tiering_assets.stream.offload_segment import Offloaded, offload_next
from tiering_assets.stream.switch import open_stream

Entries = dict[tuple[int, int], bytes]


class StreamScene(Scene):
    """Its topic's stream is open, and begins with the ledger that the topic writes to."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        open_stream(self.stack, TOPIC, author="ops")

    @property
    def czxid(self) -> int:
        found = self.stack.topics.read(TOPIC)
        assert found is not None
        return found[1].stat.czxid

    def chain(self, stack: Stack | None = None) -> Chain:
        found = read_stream(stack or self.stack, TOPIC, self.czxid)
        assert isinstance(found, Chain)
        return found

    def write(self, *payloads: bytes) -> int:
        """To the topic's open ledger; its id."""
        self.broker.produce(TOPIC, list(payloads))
        return int(self.broker.load(TOPIC).open_id)

    def roll_over(self) -> None:
        self.broker.roll_over(TOPIC)

    def when(self, *, size: int = 2**30, cut: bool = True, seen_s: float = 0.0) -> WhenToCut:
        now = self.stack.now()
        return WhenToCut(
            size_bytes=size,
            rollover=timedelta(minutes=10),
            oldest_at=now - timedelta(seconds=seen_s),
            now=now,
            cut=cut,
        )

    def next(self, stack: Stack | None = None, **when: Any) -> Any:
        """The next segment, or why there is none."""
        stack = stack or self.process()
        return offload_next(stack, self.chain(stack), self.when(**when))

    def assign(self, stack: Stack | None = None) -> Stored[SegmentAssigned]:
        """Assign the next segment, and copy nothing."""
        stack = stack or self.process()
        found = assign_next(stack, self.chain(stack), self.when())
        assert isinstance(found, Assigned), found
        return found.segment

    def cut(self, **when: Any) -> Stored[SegmentOffloaded]:
        found = self.next(**when)
        assert isinstance(found, Offloaded), found
        return found.segment

    def assigned(self, number: int) -> Stored[SegmentAssigned]:
        stream = self.chain().stream
        key = keys.stream_link(TOPIC, stream, number)
        return self.stack.book.require(SegmentAssigned, key)

    def certificate(self, number: int) -> Stored[SegmentOffloaded]:
        key = keys.segment_offloaded(TOPIC, self.chain().stream, number)
        return self.stack.book.require(SegmentOffloaded, key)

    def process_with(self, settings: Settings) -> Stack:
        return replace(self.process(), settings=settings)

    def settings_with(self, **stream: Any) -> Settings:
        now = self.world.settings
        return replace(now, stream=unchecked(now.stream, **stream))

    def failing(self) -> Stack:
        """A process whose attempts end badly, when all bytes are there."""

        def fail(_facts: Any) -> Any:
            raise IntegrityError("a test")

        return replace(self.process(), judge_segment=fail)

    def fail_once(self) -> None:
        """Begin an attempt at the newest segment that ends badly."""
        with suppress(IntegrityError):
            self.next(self.failing())

    def fail_cut(self) -> None:
        with suppress(IntegrityError):
            cut_stream(self.failing(), TOPIC)

    def failed_pages(self) -> list[int]:
        """Pages of the day book by which a run says that it failed."""
        pages = self.stack.book.iter_records(DayBookPage, keys.DAY_BOOK)
        return [page.record.number for page in pages if page.record.failed]

    def open_ledgers(self) -> set[int]:
        """Those that a page of the day book has taken up and none has closed."""
        found: set[int] = set()
        pages = list(self.stack.book.iter_records(DayBookPage, keys.DAY_BOOK))
        for page in sorted(pages, key=lambda one: one.record.number):
            ledgers = set(page.record.ledgers)
            found = found | ledgers if page.record.phase == "open" else found - ledgers
        return found

    def held(self, certificate: Stored[SegmentOffloaded]) -> Entries:
        """What lies in the bucket, found by the offsets of the index alone."""
        data, _metadata = self._object(certificate.record.data.key)
        index, _metadata = self._object(certificate.record.index.key)
        return dict(decoded_entries(index, data))

    def written(self, *ledger_ids: int) -> Entries:
        """What producers got acknowledged in these ledgers."""
        return {
            (ledger_id, entry_id): payload
            for ledger_id in ledger_ids
            for entry_id, payload in enumerate(self.cluster.written[ledger_id])
        }

    def _object(self, key: str) -> Any:
        found = self.world.objects.peek(key)
        assert found is not None
        return found
