"""Free ports on the loopback address.

Owns: every port given out was bindable a moment ago and lies below the range from which the kernel
takes the local ports of outgoing connections, so that no connection of ours can occupy it between
the choice and the start of its server. Nor does another process of ours choose it: each chosen port
is held by a name that only one process can have, and that goes with the process.
"""

from __future__ import annotations

import random
import socket
import sys

from tiering_assets.resources.devstack.config import HOST
from tiering_assets.resources.devstack.options import S3_PORT_NAMES, StackOptions
from tiering_assets.resources.errors import PrerequisiteError

GRPC_OFFSET = 10_000
# Linux hands out 32768-60999 by itself; the highest port here plus the offset stays below.
_LOWEST, _HIGHEST = 11_000, 22_700
_TRIES = 2_000


def choose_ports(options: StackOptions) -> dict[str, int]:
    """Return a port per name: the fixed ones of `options`, free ones for the rest.

    Raises PrerequisiteError when a fixed port is taken or none can be found.
    """
    chosen: dict[str, int] = {}
    taken: set[int] = set()
    for name in sorted(options.port_names(), key=lambda name: name not in options.ports):
        offsets = (0, GRPC_OFFSET) if name in S3_PORT_NAMES else (0,)
        fixed = options.ports.get(name)
        port = _find_free(offsets, taken) if fixed is None else _require_free(fixed, offsets, name)
        chosen[name] = port
        taken.update(port + offset for offset in offsets)
    return chosen


def is_free(port: int) -> bool:
    """Say whether a server could listen on this port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _require_free(port: int, offsets: tuple[int, ...], name: str) -> int:
    for offset in offsets:
        if not is_free(port + offset):
            raise PrerequisiteError(f"port {port + offset}, wanted for {name}, is taken")
    return port


def _find_free(offsets: tuple[int, ...], taken: set[int]) -> int:
    for _ in range(_TRIES):
        port = random.randint(_LOWEST, _HIGHEST)  # noqa: S311  spreads stacks, hides nothing
        wanted = [port + offset for offset in offsets]
        if taken.intersection(wanted) or not all(is_free(number) for number in wanted):
            continue
        if all(map(_hold, wanted)):
            return port
    raise PrerequisiteError(f"no free port between {_LOWEST} and {_HIGHEST} on {HOST}")


def _hold(port: int) -> bool:
    """Keep other processes from choosing it; False where one has. Only Linux has such names."""
    if sys.platform != "linux":
        return True
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0tierkeeper-port-{port}")
    except OSError:
        name.close()
        return False
    name.detach()  # held until this process ends
    return True
