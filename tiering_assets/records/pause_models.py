"""The records of pauses: what gets no new copies, and who took which pause away.

Owns the field names; docs/records.md explains them. What is paused is said by a record's key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import AwareDatetime

from tiering_assets.records.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """No new copies of a topic, of a namespace, or of anything (`all`). Binds no release.

    `name` is the managed-ledger name or `tenant/namespace`, empty for `all`.
    """

    kind: ClassVar[str] = "tierkeeper/pause/1"
    scope: Literal["topic", "namespace", "all"]
    name: str
    mode: Literal["paused", "disabled"]
    reason: str
    author: str
    paused_at: AwareDatetime
    writer: Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseLift:
    """Written before a pause is taken away or changed: which one, what it said, by whom and why."""

    kind: ClassVar[str] = "tierkeeper/pause-lift/1"
    pause_key: str
    pause_sha256: str
    was: str
    reason: str
    author: str
    lifted_at: AwareDatetime
    writer: Writer
