"""Serve the figures to Prometheus, with a survey every so often, until a signal says stop.

Owns: a survey that fails costs its own figures and never the server; whoever scrapes sees that it
failed. SIGTERM and SIGINT end everything at once, in the middle of a survey, too: it only reads.
Where a library swallows the interruption, the survey under way is the last one.
"""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from prometheus_client import start_http_server
from prometheus_client.registry import CollectorRegistry

from tiering_assets.metrics.collector import FleetCollector
from tiering_assets.metrics.surveyed import Surveyed
from tiering_assets.resources.errors import SettingsError, TierkeeperError

Survey = Callable[[], Surveyed]
Narrate = Callable[[str], None]


class _StopError(BaseException):
    """A signal came. Not an Exception, so that nothing on the way takes it for a failure."""


def survey_once(collector: FleetCollector, survey: Survey, *, narrate: Narrate) -> bool:
    """Survey and tell the collector how it went; True when it went well."""
    begun = time.monotonic()
    try:
        found = survey()
    except TierkeeperError as error:
        collector.failed(took_s=time.monotonic() - begun)
        narrate(f"survey failed, the old figures stay: {type(error).__name__}: {error}")
        return False
    except Exception:  # noqa: BLE001  the edge: one bad survey must not end the server
        collector.failed(took_s=time.monotonic() - begun)
        narrate(f"survey failed, the old figures stay:\n{traceback.format_exc()}")
        return False
    collector.succeeded(found, took_s=time.monotonic() - begun)
    return True


def serve(
    collector: FleetCollector,
    registry: CollectorRegistry,
    survey: Survey,
    *,
    host: str,
    port: int,
    every_s: float,
    narrate: Narrate,
) -> None:
    """Serve on `host:port` (0 is any free one) until SIGTERM or SIGINT, from the main thread.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"cannot listen on {host}:{port}: {error}; name another --host or --port"
        ) from error
    try:
        with suppress(_StopError), _signals_stop() as stopped:
            narrate(f"metrics on http://{host}:{server.server_port}/metrics, every {every_s:g} s")
            while not stopped:
                begun = time.monotonic()
                survey_once(collector, survey, narrate=narrate)
                if not stopped:
                    time.sleep(max(0.0, every_s - (time.monotonic() - begun)))
        narrate("stopped")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def _signals_stop() -> Iterator[list[int]]:
    """Signals interrupt what goes on; those that came are in the list."""
    stopped: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        for one in before:
            signal.signal(one, signal.SIG_IGN)  # once is enough
        stopped.append(number)
        raise _StopError

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, stop)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
