"""Rows of messages instead of rows of their pieces, batch by batch in the order of a topic.

Owns: the row of a message is that of its last piece, with the place of its first one. One of which
a piece is missing is no row, as no consumer sees it. Where it is not known whether its first ones
are somewhere, that is an error, or a row that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from tiering_assets.cold.chunks import Begun, PieceOrder, is_last, whole_payload
from tiering_assets.cold.gather import in_order
from tiering_assets.cold.plain_rows import Row, as_columns, as_rows
from tiering_assets.resources.arrow_columns import numpy_of, pc, places
from tiering_assets.resources.errors import FormatError

PENDING_MAX: Final = 256 * 1024 * 1024
"""Bytes of pieces that wait for others."""


@dataclass(frozen=True, slots=True)
class Unfound:
    """It is not known whether pieces are before one, and why not."""

    why: str


Earlier = Callable[[Row], Begun | Unfound | None]
"""What the pieces before this one, which were not met, have come to. None: one is missing."""
_GONE: Final = "its message cannot be joined: pieces before it are not there, or lie too far back"


class JoinChunks:
    """The messages of one partition of a topic of which some pieces were met."""

    def __init__(self, *, on_error: str) -> None:
        self._on_error = on_error
        self._begun: dict[str, Begun] = {}  # by uuid, the one that went on last behind the others
        self._lost: dict[str, str] = {}  # by uuid, why; empty where a piece is missing

    def joined(self, found: pa.RecordBatch, earlier: Earlier) -> pa.RecordBatch:
        """The same rows, with messages in the place of their last pieces.

        FormatError that names the last piece of one that does not inflate, or of which others were
        not found, unless `on_error` is "row".
        """
        is_piece = numpy_of(pc.is_valid(found.column("chunks")))
        if not is_piece.any():
            return found
        at, plain = np.flatnonzero(is_piece), np.flatnonzero(~is_piece)
        met = [self._met(row, earlier) for row in as_rows(found.take(places(at)))]
        whole = [n for n, row in enumerate(met) if row is not None]
        own = as_columns([row for row in met if row is not None], found.schema)
        return in_order([found.take(places(plain)), own], np.concatenate([plain, at[whole]]))

    def _met(self, piece: Row, earlier: Earlier) -> Row | None:
        """The row of the message that this piece completes, if it does."""
        uuid = piece["chunk_uuid"]
        if piece["chunk"] == 0:
            self._lost.pop(uuid, None)
            self._begun[uuid] = Begun.by(piece)
            self._drop_oldest()
            return None
        match self._taken(uuid, piece, earlier):
            case PieceOrder.NEXT if self._begun[uuid].is_whole:
                return self._whole(self._begun.pop(uuid), piece)
            case PieceOrder.NEXT:
                self._drop_oldest()
            case PieceOrder.BEHIND_A_GAP if is_last(piece):
                return self._not_whole(piece, self._lost[uuid])
            case PieceOrder.BEHIND_A_GAP:
                pass
            case PieceOrder.AGAIN:
                pass
        return None

    def _taken(self, uuid: str, piece: Row, earlier: Earlier) -> PieceOrder:
        """By what was met, else by what lies before."""
        begun = self._begun.pop(uuid, None)
        taken = PieceOrder.BEHIND_A_GAP if begun is None else begun.take(piece)
        if taken is PieceOrder.BEHIND_A_GAP and uuid not in self._lost:
            found = earlier(piece)
            self._lost[uuid] = found.why if isinstance(found, Unfound) else ""
            begun = found if isinstance(found, Begun) else None
            taken = PieceOrder.BEHIND_A_GAP if begun is None else begun.take(piece)
        if begun is not None and taken is not PieceOrder.BEHIND_A_GAP:
            self._begun[uuid] = begun
            self._lost.pop(uuid, None)
        return taken

    def _drop_oldest(self) -> None:
        """Where more waits than memory should hold. Its pieces are looked for again."""
        while sum(one.bytes for one in self._begun.values()) > PENDING_MAX:
            del self._begun[next(iter(self._begun))]

    def _not_whole(self, last: Row, why: str) -> Row | None:
        """A message of which a piece is missing is none. Where others may be, nobody may take what
        is left for all that was sent.
        """
        said = f"{_GONE} ({why})" if why else _GONE
        if self._on_error == "row":
            return _error(last, said)
        if why:
            raise FormatError(f"ledger {last['ledger_id']}, entry {last['entry_id']}: {said}")
        return None

    def _whole(self, begun: Begun, last: Row) -> Row | None:
        first = {
            "first_chunk_ledger_id": begun.ledger_id,
            "first_chunk_entry_id": begun.entry_id,
        }
        if "payload" not in last:
            return {**last, **first}
        try:
            return {**last, **first, "payload": whole_payload(begun, last)}
        except FormatError as error:
            if self._on_error == "row":
                return _error(last, str(error))
            place = f"ledger {last['ledger_id']}, entry {last['entry_id']}"
            raise FormatError(f"{place}: {error}") from error


def _error(piece: Row, why: str) -> Row:
    return {"ledger_id": piece["ledger_id"], "entry_id": piece["entry_id"], "error": why}
