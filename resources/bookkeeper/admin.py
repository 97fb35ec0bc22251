"""A bookie's admin HTTP API: its state.

Refuses everything that deletes or reconfigures; the API also discloses ledger passwords, and no
such path is called here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import requests

from tiering_assets.resources.errors import BookieError

_PREFIX = "/api/v1/bookie"


@dataclass(frozen=True, slots=True, kw_only=True)
class BookieState:
    running: bool
    read_only: bool
    shutting_down: bool


class BookieAdmin:
    """Talks to one bookie at `base_url`, such as http://bookie:8000. Not shared between threads.

    Every method raises BookieError when the bookie cannot be reached, answers with an HTTP error,
    or with something else than documented.
    """

    def __init__(
        self, base_url: str, *, timeout_s: float = 30.0, session: requests.Session | None = None
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._session = session or requests.Session()

    def state(self) -> BookieState:
        answer = self._object("/state")
        try:
            return BookieState(
                running=bool(answer["running"]),
                read_only=bool(answer["readOnly"]),
                shutting_down=bool(answer["shuttingDown"]),
            )
        except KeyError as error:
            raise self._unexpected("/state", answer) from error

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _object(self, path: str) -> dict[str, Any]:
        answer = self._call("GET", path)
        if not isinstance(answer, dict):
            raise self._unexpected(path, answer)
        return answer

    def _call(self, method: str, path: str, body: dict[str, bool] | None = None) -> Any:
        url = f"{self._base_url}{_PREFIX}{path}"
        try:
            answer = self._session.request(method, url, json=body, timeout=self._timeout_s)
        except requests.RequestException as error:
            raise BookieError(f"bookie admin {method} {url}: {error}") from error
        if answer.status_code != requests.codes.ok:
            raise BookieError(
                f"bookie admin {method} {url}: HTTP {answer.status_code} {answer.text[:200]!r}"
            )
        if method == "PUT":
            return None  # a sentence for people
        try:
            return answer.json()
        except ValueError as error:
            raise self._unexpected(path, answer.text) from error

    def _unexpected(self, path: str, answer: object) -> BookieError:
        return BookieError(
            f"bookie admin {self._base_url}{_PREFIX}{path}: unexpected answer {str(answer)[:200]!r}"
        )
