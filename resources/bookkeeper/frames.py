"""Length-prefixed frames of the bookie protocol: chunks split anywhere in, whole frames out.

Owns: a frame is a big-endian int32 length and that many bytes, the prefix not counted
(BookKeeper `BookieProtoEncoding`, Netty's LengthFieldBasedFrameDecoder). Bytes arrive straight in a
reusable buffer and leave as memoryviews of it, because fresh memory costs more than the copy.
Refuses a length below zero or above the limit, so that garbage cannot make the buffer grow.
"""

from __future__ import annotations

from struct import Struct

from tiering_assets.resources.errors import FormatError

LENGTH = Struct(">i")
# Three times nettyMaxFrameSizeBytes (5 MiB, Pulsar 5 253 120) and so well above maxBatchReadSize.
FRAME_BYTES_MAX = 16 * 1024 * 1024
INITIAL_BYTES = 256 * 1024
_GROWTH_STEP = 1024 * 1024


class FrameBuffer:
    """Two buffers that take turns; the second one is made at the first `hold`.

    A loop around it takes every frame (`next_frame` until None), then receives into `writable()`
    and tells `wrote(count)`. A frame is valid until the next `writable()`; after `hold()` the
    frames handed out before it stay valid until the `hold()` after that.
    """

    __slots__ = ("_end", "_spare", "_start", "_view", "frame_bytes_max")

    def __init__(
        self, *, frame_bytes_max: int = FRAME_BYTES_MAX, initial_bytes: int = INITIAL_BYTES
    ) -> None:
        if not LENGTH.size <= initial_bytes <= LENGTH.size + frame_bytes_max:
            raise ValueError(f"a first buffer of {initial_bytes} bytes for {frame_bytes_max}")
        self.frame_bytes_max = frame_bytes_max
        self._view = memoryview(bytearray(initial_bytes))
        self._spare: memoryview | None = None
        self._start = 0  # first byte not handed out
        self._end = 0  # end of what was received

    @property
    def capacity_bytes(self) -> int:
        """Bytes of both buffers together."""
        return len(self._view) + (0 if self._spare is None else len(self._spare))

    @property
    def pending_bytes(self) -> int:
        """Received bytes that are not part of a frame handed out."""
        return self._end - self._start

    def next_frame(self) -> memoryview | None:
        """Return the next whole frame without its length, or None if more bytes are needed.

        Raises:
            FormatError: the length is negative or above the limit; the stream is lost.
        """
        start = self._start
        pending = self._end - start
        if pending < LENGTH.size:
            return None
        length = self._frame_length()
        end = start + LENGTH.size + length
        if end > self._end:
            return None
        self._start = end
        return self._view[start + LENGTH.size : end]

    def writable(self) -> memoryview:
        """Return the free space to receive into; never empty. Invalidates frames not held."""
        if self._start == self._end:
            self._start = self._end = 0
        known = self._end - self._start >= LENGTH.size
        needed = LENGTH.size + (self._frame_length() if known else 0)
        if self._start + needed > len(self._view):
            self._make_room(needed)
        if self._end == len(self._view):
            raise ValueError("take the whole frames before receiving more")
        return self._view[self._end :]

    def wrote(self, count: int) -> None:
        """Tell that `count` bytes now stand at the beginning of the last `writable()`."""
        if not 0 <= count <= len(self._view) - self._end:
            raise ValueError(f"{count} bytes written into {len(self._view) - self._end}")
        self._end += count

    def hold(self) -> None:
        """Keep the frames handed out so far: what comes next goes into the other buffer."""
        spare = self._spare
        pending = self._end - self._start
        if spare is None or len(spare) < len(self._view):
            # Frames of the hold before may still be looked at through their own reference.
            spare = memoryview(bytearray(len(self._view)))
        spare[:pending] = self._view[self._start : self._end]
        self._view, self._spare = spare, self._view
        self._start, self._end = 0, pending

    def _frame_length(self) -> int:
        length: int = LENGTH.unpack_from(self._view, self._start)[0]
        if not 0 <= length <= self.frame_bytes_max:
            raise FormatError(f"frame of {length} bytes; expected 0 to {self.frame_bytes_max}")
        return length

    def _make_room(self, needed: int) -> None:
        pending = self._end - self._start
        kept = self._view[self._start : self._end]
        if needed <= len(self._view):
            self._view[:pending] = kept  # overlapping copies are safe in a memoryview
        else:
            grown = -(-needed // _GROWTH_STEP) * _GROWTH_STEP
            bounded = min(grown, LENGTH.size + self.frame_bytes_max)
            self._view = memoryview(bytearray(bounded))
            self._view[:pending] = kept
        self._start, self._end = 0, pending
