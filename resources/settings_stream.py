"""Settings of streaming: segments of ledgers that are still written to. Pure values."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from tiering_assets.resources import settings_kinds as kinds
from tiering_assets.resources.settings_kinds import CONFIG, GIB, MIB, MINUTE, setting


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class StreamSettings:
    block_bytes: int = setting(
        16 * MIB,
        "block size of segments; three are in memory for each task",
        kinds.SIZE.upto(
            2 * GIB - 1,
            "S3 refuses smaller parts, and the format has 31 bits for a length",
            least=5 * MIB,
        ),
    )
    segment_bytes: int = setting(
        GIB,
        "size at which a segment is cut, whatever its age",
        kinds.SIZE.upto(1024 * GIB, "10,000 blocks of any size would not hold more", least=MIB),
    )
    rollover_s: float = setting(
        10 * MINUTE,
        "age of the oldest entry without a segment at which one is cut, whatever its size",
        kinds.AGE,
    )
