"""Messages that lie in pieces: which piece completes one, and what it holds then. Pure.

Owns: the rules by which consumers join pieces. One that came before is left out, the first one
begins anew, and a message of which one is missing ends there. Producers interleave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from tiering_assets.cold.plain_rows import Row
from tiering_assets.offload_format.message_codecs import CODES, inflate
from tiering_assets.resources.errors import FormatError

OF_PIECES: Final = ("ledger_id", "entry_id", "chunk", "chunks", "chunk_uuid")
"""Columns of a piece; the content needs OF_CONTENT as well."""
OF_CONTENT: Final = ("payload", "codec", "uncompressed_bytes", "encrypted")


class PieceOrder(Enum):
    """What a piece is to those that came."""

    NEXT = auto()
    AGAIN = auto()
    BEHIND_A_GAP = auto()


@dataclass(slots=True)
class Begun:
    """A message whose first pieces are here: `ledger_id` and `entry_id` are of the first one."""

    ledger_id: int
    entry_id: int
    last: int
    pieces: list[bytes] = field(repr=False)
    is_whole: bool = False

    @classmethod
    def by(cls, first: Row) -> Begun:
        return cls(first["ledger_id"], first["entry_id"], first["chunk"], [*_content(first)])

    @property
    def bytes(self) -> int:
        return sum(map(len, self.pieces))

    def take(self, piece: Row) -> PieceOrder:
        """It is kept if it is the next one."""
        if piece["chunk"] <= self.last:
            return PieceOrder.AGAIN
        if piece["chunk"] > self.last + 1 or self.is_whole:
            return PieceOrder.BEHIND_A_GAP
        self.last += 1
        self.is_whole = is_last(piece)
        self.pieces.extend(_content(piece))
        return PieceOrder.NEXT


def is_last(piece: Row) -> bool:
    return bool(piece["chunk"] == piece["chunks"] - 1)


def begun_by(pieces: Iterable[Row]) -> Begun | None:
    """What the pieces of one message, as they came, are by now; None if it must begin anew."""
    found: Begun | None = None
    for piece in pieces:
        if piece["chunk"] == 0:
            found = Begun.by(piece)
        elif found is not None and found.take(piece) is PieceOrder.BEHIND_A_GAP:
            found = None
    return found


def whole_payload(begun: Begun, last: Row) -> bytes:
    """The payload of a message whose pieces are all here. FormatError where it does not inflate.

    What is encrypted stays closed: piece behind piece as they are stored.
    """
    stored = b"".join(begun.pieces)
    if last["encrypted"]:
        return stored
    code = CODES.get(last["codec"])
    if code is None:
        raise FormatError(f"payload: its codec is {last['codec']}")
    return inflate(stored, code=code, size=last["uncompressed_bytes"] or 0)


def _content(piece: Row) -> Iterable[bytes]:
    """None where only its place was asked for."""
    return () if piece.get("payload") is None else (piece["payload"],)
