"""Which of the two ways of telling a cluster's runs have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.preview_api import Context
from tiering_assets.defs.telling.by_day import ByDay
from tiering_assets.defs.telling.by_ledger import ByLedger
from tiering_assets.defs.telling.telling import Telling

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack


@contextmanager
def telling(context: Context, cluster: ClusterNames, stack: Stack) -> Iterator[Telling]:
    """How this cluster's runs tell of their ledgers; told is what no error kept from its end."""
    found: Telling = (ByDay if cluster.by_day else ByLedger)(context, cluster, stack)
    yield found
    found.finish()
