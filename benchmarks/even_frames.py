"""Frames of equal length, many at a time: what a reader of short entries would spend on each.

Owns: frames are taken together only if each has the first one's length and the id that is its turn;
from the first that has not, and in all other places, the independent decoder goes on by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiering_assets.offload_format.block import FRAME_BYTES
from tiering_assets.offload_format.walker import BlockWalker

FRAMES_MIN = 64  # fewer are not worth the look

Rows = NDArray[np.uint8]
TakeEven = Callable[[Rows], bool]  # payloads of one length, a row each; False: one by one, please


class EvenWalker(BlockWalker):
    """Hands even frames over by `take`, before the entries behind them; yields the others."""

    def __init__(self, take: TakeEven, **of_block: Any) -> None:
        super().__init__(**of_block)
        self._take = take

    def _whole_frames(
        self, view: memoryview, at: int
    ) -> Generator[tuple[int, memoryview], None, int]:
        most = None if self._end_id is None else self._end_id - self._next_id
        rows = even_frames(view[at:], self._next_id, most)
        if rows is not None and self._take(rows[:, FRAME_BYTES:]):
            at += rows.size
            self._position += rows.size
            self._next_id += len(rows)
        return (yield from super()._whole_frames(view, at))


def even_frames(view: memoryview, next_id: int, most: int | None) -> Rows | None:
    """The frames that `view` begins with, a row each, as far as they are even; None for few."""
    if len(view) < FRAME_BYTES:
        return None
    length = int.from_bytes(view[:4], "big", signed=True)
    stride = FRAME_BYTES + length
    if length < 0 or len(view) < FRAMES_MIN * stride:
        return None
    count = len(view) // stride if most is None else min(most, len(view) // stride)
    heads = np.frombuffer(
        view,
        dtype=np.dtype(
            {
                "names": ["length", "id"],
                "formats": [">i4", ">i8"],
                "offsets": [0, 4],
                "itemsize": stride,
            }
        ),
        count=count,
    )
    differs = (heads["length"] != length) | (heads["id"] != np.arange(next_id, next_id + count))
    if differs.any():
        count = int(differs.argmax())
    if count < FRAMES_MIN:
        return None
    return np.frombuffer(view, dtype=np.uint8, count=count * stride).reshape(count, stride)
