"""The index cache: places in blocks, on the disk of who reads, for processes that read later.

Owns: places are asked for by all that says which bytes are meant. A file that is damaged, or of
another block, is dropped and is as if it had not been there.
"""

from __future__ import annotations

from tiering_assets.cold.decode import Entries
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.lineage.places import (
    Places,
    block_name,
    decode_places,
    encode_places,
    may_have_places,
    places_of_frames,
)
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.kept_files import KeptFiles, kept_files
from tiering_assets.resources.settings import CacheSettings


class KnownPlaces:
    """Without files nothing is known, and nothing is kept."""

    def __init__(self, files: KeptFiles | None) -> None:
        self._files = files

    def of(self, block: PlacedBlock) -> Places | None:
        if self._files is None:
            return None
        found = self._files.read(block_name(block))
        if found is None:
            return None
        try:
            return decode_places(found, block)
        except FormatError:
            self.drop(block)
            return None

    def knows(self, block: PlacedBlock) -> bool:
        """Whether there is a file, whatever it says."""
        return self._files is not None and self._files.has(block_name(block))

    def can_keep(self, block: PlacedBlock) -> bool:
        """Whether it is of use to read on for places."""
        return (
            self._files is not None
            and may_have_places(block)
            and self._files.can_keep(block_name(block))
        )

    def keep(self, block: PlacedBlock, places: Places) -> bool:
        """In the place of those of before; whether they are kept now."""
        if self._files is None or not may_have_places(block):
            return False
        return self._files.keep(block_name(block), encode_places(places, block))

    def drop(self, block: PlacedBlock) -> None:
        if self._files is not None:
            self._files.drop(block_name(block))

    def learn(self, block: PlacedBlock, entries: Entries) -> None:
        """Of a block that was read whole for another reason."""
        if self.can_keep(block) and not self.knows(block):
            self.keep(block, places_of_frames(entries.ends, block.length))


def known_places(settings: CacheSettings) -> KnownPlaces:
    return KnownPlaces(kept_files(settings.root, settings.bytes_max))
