"""Sends OpenLineage events to the operator's address, one request each, by the project's client.

Owns: nobody waits longer for an answer than is said, whatever the name server, the connection or
the other side does. Nothing is tried again here, no redirect is followed, and the key goes to that
address alone and into no message.

The client may be missing. It is imported when the first event is sent: that takes a third of a
second.
"""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import requests

from tiering_assets.resources.errors import PrerequisiteError
from tiering_assets.resources.http_access import Bearer, host_in

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent
    from openlineage.client.transport.http import HttpTransport

    from tiering_assets.resources.settings_lineage import OpenLineageSettings

PACKAGE: Final = "openlineage-python"
_REFUSALS: Final = frozenset({400, 413, 422})
_ONCE: Final = {"total": 0, "connect": 0, "read": 0, "redirect": 0, "status": 0}


class Reception(StrEnum):
    """What became of an event. REFUSED is the event's own fault, UNTAKEN may be otherwise later."""

    TAKEN = "taken"
    REFUSED = "refused"
    UNTAKEN = "untaken"


class Answer(NamedTuple):
    """`why` is for people, empty where it was taken. `is_silence`: the time was over."""

    taken: Reception
    why: str = ""
    is_silence: bool = False


def missing_package() -> str | None:
    """The package that sends events, if it is not installed. Imports nothing of weight."""
    found = find_spec("openlineage") and find_spec("openlineage.client")  # others share the first
    return None if found else PACKAGE


def require_package() -> None:
    """PrerequisiteError where events are switched on and cannot be sent."""
    if missing_package() is not None:
        raise PrerequisiteError(
            f"openlineage.url is set, and package {PACKAGE} is not installed: "
            f"pip install 'tierkeeper[openlineage]', or leave openlineage.url empty"
        )


class OpenLineageEndpoint:
    """One address. Not for several threads."""

    def __init__(self, settings: OpenLineageSettings) -> None:
        from openlineage.client.transport.http import HttpConfig, HttpTransport

        self._host = host_in(settings.url)
        session = requests.Session()
        session.auth = Bearer(settings.api_key)
        session.max_redirects = 0  # a POST that is sent elsewhere arrives there as a GET
        self._transport: HttpTransport = HttpTransport(
            HttpConfig(url=settings.url.rstrip("/") + "/", retry=dict(_ONCE), session=session)
        )

    def send(self, event: RunEvent, *, seconds: float) -> Answer:
        """Send once, and wait so long at most.

        The client's own timeout begins anew with each address of a host and each piece of an
        answer, and does not reach the name server. So a thread waits, and may be left behind.
        """
        self._transport.timeout = seconds
        ended = SimpleQueue[Any]()

        def emit() -> None:
            try:
                ended.put(self._transport.emit(event))
            except Exception as error:  # noqa: BLE001 - a client's errors become one of our answers
                ended.put(error)

        Thread(target=emit, name="openlineage", daemon=True).start()
        try:
            found = ended.get(timeout=seconds)
        except Empty:
            return self._silence(seconds)
        if isinstance(found, requests.Timeout):
            return self._silence(seconds)
        return self._answer(found)

    def _silence(self, seconds: float) -> Answer:
        why = f"{self._host} did not answer within {seconds:.1f} s"
        return Answer(Reception.UNTAKEN, why, is_silence=True)

    def close(self) -> None:
        self._transport.close()

    def _answer(self, found: object) -> Answer:
        if isinstance(found, requests.Response):
            status = found.status_code
            fine = 200 <= status < 300
            return (
                Answer(Reception.TAKEN)
                if fine
                else Answer(Reception.UNTAKEN, f"{self._host} answered {status}")
            )
        if isinstance(found, requests.TooManyRedirects):
            return Answer(
                Reception.UNTAKEN, f"{self._host} sends elsewhere: set openlineage.url to there"
            )
        if not isinstance(found, requests.HTTPError) or found.response is None:
            return Answer(Reception.UNTAKEN, f"no answer from {self._host}: {type(found).__name__}")
        status = found.response.status_code
        taken = Reception.REFUSED if status in _REFUSALS else Reception.UNTAKEN
        return Answer(taken, f"{self._host} answered {status}")
