"""A cluster's directory of bookies, where each is reached by way of something in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tiering_assets.resources.metastore.bookie_registration import BookieRegistration
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.store import MetadataStore


class Redirected(LedgerDirectory):
    """`ways`: what has an `address`, by bookie id."""

    def __init__(self, store: MetadataStore, root: str, ways: Mapping[str, Any]) -> None:
        super().__init__(store, root)
        self._ways = ways

    def bookie(self, bookie_id: str) -> BookieRegistration:
        return replace(super().bookie(bookie_id), rpc=self._ways[bookie_id].address)
