"""Settings of what makes reading cheap: the catalogue's tables, and what a disk remembers.

Owns: without either everything is done as well, by more requests.
"""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from tiering_assets.resources import settings_kinds as kinds
from tiering_assets.resources.settings_kinds import CONFIG, GIB, MIB, setting


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class CatalogueSettings:
    enabled: bool = setting(
        True,
        "whether a sensor keeps the catalogue's tables, and sensors, lists and counts ask them once "
        "they are proven",
    )
    root: str = setting(
        "",
        "where the catalogue's tables lie: a folder, or s3://bucket/prefix at the same store; empty "
        "means below the instance's records",
    )


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class CacheSettings:
    root: str = setting(
        "",
        "folder of the index cache, which says where entries lie in their blocks; empty means "
        "tierkeeper/index-cache in XDG_CACHE_HOME, or in ~/.cache. It may be deleted at any time",
    )
    bytes_max: int = setting(
        256 * MIB,
        "bytes that the index cache takes on disk, 4 KiB for a block of 64 MiB; below 16 MiB there "
        "is none",
        kinds.SIZE.upto(1024 * GIB, zero=True),
    )
