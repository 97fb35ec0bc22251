"""Who writes a record, and when: what needs no cluster."""

from __future__ import annotations

import functools
import os
import socket
from datetime import UTC, datetime
from importlib.metadata import version

from tiering_assets.records.writer import Writer


def writer_of(run_id: str) -> Writer:
    """How this process signs the records of a run."""
    return Writer(
        tool_version=_tool_version(), host=f"{socket.gethostname()}:{os.getpid()}", run_id=run_id
    )


def utc_now() -> datetime:
    return datetime.now(UTC)


@functools.cache
def _tool_version() -> str:
    return version("tierkeeper")
