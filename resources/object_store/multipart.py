"""Which uploaded parts may be completed, and which must be sent again. Pure.

A part counts only by what the store lists now, never by what a worker said it sent: size and
checksum must equal the accepted row's. A store that lists no SHA-256 (SeaweedFS 4.48) is believed
by the ETag it answered to the part's upload, whose body it had checked against the SHA-256. An
accepted part carries the row's SHA-256 on to the completing request, where a store that was
promised SHA-256 parts compares it once more.

A part that was sent twice may be listed twice (SeaweedFS 4.48 does): the listing that equals the
row counts, and its ETag in the completing request tells the store which one is meant.

Refused: parts nobody sent by our rows (another writer is in this upload), and gaps in the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tiering_assets.resources.errors import IntegrityError
from tiering_assets.resources.object_store.store import Part

PART_NUMBER_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedPart:
    """The accepted row of one part; `etag` is what the store answered to its upload."""

    part_number: int
    size: int
    sha256: bytes
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class PartsMatch:
    """`accepted` in number order, with the store's ETags; `send_again` are part numbers."""

    accepted: tuple[Part, ...]
    send_again: tuple[int, ...]

    @property
    def may_complete(self) -> bool:
        return bool(self.accepted) and not self.send_again


def accept_parts(
    expected: Sequence[ExpectedPart], listed: Sequence[Part], *, key: str = ""
) -> PartsMatch:
    """Compare the rows with what the store lists.

    Raises:
        ValueError: the rows are not parts 1…n of an upload, each once.
        IntegrityError: the store lists a part that no row names.
    """
    rows = {row.part_number: row for row in expected}
    if sorted(row.part_number for row in expected) != list(range(1, len(expected) + 1)):
        raise ValueError(f"{key}: parts are not 1…{len(expected)}, each once")
    if len(expected) > PART_NUMBER_MAX:
        raise ValueError(f"{key}: {len(expected)} parts, S3 takes {PART_NUMBER_MAX} at most")
    found: dict[int, list[Part]] = {number: [] for number in rows}
    for part in listed:
        if part.part_number not in rows:
            raise IntegrityError(
                f"{key}: the upload holds part {part.part_number}, expected 1…{len(rows)}: "
                "another writer is in it; abandon this attempt"
            )
        found[part.part_number].append(part)
    accepted, send_again = [], []
    for number in sorted(rows):
        sound = next((part for part in found[number] if _is_same(rows[number], part)), None)
        if sound is None:
            send_again.append(number)
        else:
            accepted.append(replace(sound, sha256=rows[number].sha256))
    return PartsMatch(tuple(accepted), tuple(send_again))


def _is_same(row: ExpectedPart, part: Part) -> bool:
    if part.size != row.size:
        return False
    if part.sha256 is not None:
        return part.sha256 == row.sha256
    return row.etag is not None and _plain(part.etag) == _plain(row.etag)


def _plain(etag: str) -> str:
    return etag.strip('"').lower()
