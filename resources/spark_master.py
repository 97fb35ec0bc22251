"""What a Spark master's name says: which of three ways, how many tasks at once, how much memory.

Owns: `local[cores,failures]`, `spark://host:port` and `sc://host:port` are the ways that are tried;
every other master is refused by its name. YARN and Kubernetes are reached with Spark Connect, or by
submitting a driver there (docs/spark.md). Imports no pyspark: workers and commands ask here, too.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import Enum

from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import SparkSettings

MIB = 1024 * 1024
BUFFERS_PER_TASK = 3  # one is encoded, two are being sent
PYTHON_BYTES_PER_TASK = 180 * MIB  # interpreter, boto3, pyarrow and what bookies answer

_LOCAL = re.compile(r"local\[(\d+|\*)(?:,(\d+))?\]")
# An IPv6 address stands in brackets. One master: a list of standbys has no single one to ask.
_REMOTE = re.compile(r"(spark|sc)://([\w.-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")


class Way(Enum):
    """How tasks reach workers."""

    LOCAL = "local"
    STANDALONE = "standalone"
    CONNECT = "connect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Master:
    """A master by its parts. `host` and `port` are empty and 0 where there is nothing to reach."""

    way: Way
    url: str
    cores: int
    host: str = ""
    port: int = 0

    @property
    def on_loopback(self) -> bool:
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


def parse_master(settings: SparkSettings) -> Master:
    """Return what `spark.master` names. `cores` is the number of tasks that run at once.

    Raises:
        SettingsError: no master of the three ways, or a local one that does not survive a lost
            worker.
    """
    url = settings.master
    remote = _REMOTE.fullmatch(url)
    if remote is not None:
        way = Way.CONNECT if remote[1] == "sc" else Way.STANDALONE
        host, port = remote[2].strip("[]"), int(remote[3])
        return Master(way=way, url=url, cores=settings.cores, host=host, port=port)
    local = _LOCAL.fullmatch(url)
    if local is None:
        raise SettingsError(
            f"spark.master is {url!r}, expected local[cores,failures] such as local[2,4],"
            " spark://host:port or sc://host:port"
        )
    if int(local[2] or 1) < 2:
        raise SettingsError(
            f"spark.master is {url!r}: one lost worker would fail the whole batch; allow some"
            " failures of a task, as local[2,4] does"
        )
    cores = os.cpu_count() or 1 if local[1] == "*" else int(local[1])
    if cores < 1:
        raise SettingsError(f"spark.master is {url!r}: at least one core is needed")
    return Master(way=Way.LOCAL, url=url, cores=cores)


def ships_code(settings: SparkSettings) -> bool:
    """Whether our code travels to the workers. SettingsError for anything but the two words."""
    if settings.code not in ("installed", "ship"):
        raise SettingsError(f"spark.code is {settings.code!r}, expected installed or ship")
    return settings.code == "ship"


def memory_overhead_mib(*, block_bytes: int, cores: int) -> int:
    """Return what to ask for as spark.executor.memoryOverhead, in MiB, rounded up.

    Python workers live outside the executor's heap. Each core runs one task, with three buffers of
    a block and 180 MiB for the process itself (docs/spark.md#memory).
    """
    task = BUFFERS_PER_TASK * block_bytes + PYTHON_BYTES_PER_TASK
    return -(-cores * task // MIB)
