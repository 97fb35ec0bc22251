"""HTTP to a broker's admin API: one request, one answer or one clear error.

Owns: the bearer token goes to the configured broker and to brokers of its cluster only, never in
clear where the configured address is https, and into no message; redirects (a broker sends you to
the owner of a bundle) are followed by hand for that reason. A request whose answer was lost is
BrokerUnknownError, a 404 is BrokerNotFoundError. Nothing is retried here: whether repeating is safe
is for the caller to know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests

from tiering_assets.resources.errors import BrokerError, BrokerNotFoundError, BrokerUnknownError
from tiering_assets.resources.http_access import Bearer
from tiering_assets.resources.settings import BrokerSettings

REDIRECTS_MAX = 5
REASON_CHARS = 300


class AdminHttp:
    """Requests below `/admin/v2`. Paths are given encoded. Threads may share it."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._base = settings.admin_url.rstrip("/")
        self._trusted = {urlsplit(self._base).netloc}
        self._free: list[requests.Session] = []  # as many as were ever used at one time

    @contextmanager
    def _session(self) -> Iterator[requests.Session]:
        """A session for one request: threads come and go, and its connection is kept."""
        try:
            session = self._free.pop()
        except IndexError:
            session = requests.Session()
        try:
            yield session
        finally:
            self._free.append(session)

    def trust(self, broker: str) -> None:
        """Let the token go to `host:port`, which the configured broker named as one of its own."""
        self._trusted.add(broker)

    def base_of(self, broker: str) -> str:
        return f"{urlsplit(self._base).scheme}://{broker}"

    def close(self) -> None:
        for session in self._free:
            session.close()

    def json(
        self,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        base: str | None = None,
        none_on: int | None = None,
    ) -> Any:
        """GET a JSON answer; None for an empty one, which brokers give for "not set"."""
        body = self.send("GET", path, params=params, base=base, none_on=none_on)
        if not body.strip():
            return None
        try:
            return json.loads(body)
        except ValueError as error:
            raise BrokerError(f"GET {path}: the broker's answer is not JSON") from error

    def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        base: str | None = None,
        none_on: int | None = None,
    ) -> bytes:
        """The body of a 2xx answer; empty for the status `none_on`.

        Raises:
            BrokerNotFoundError: 404.
            BrokerUnknownError: sent, but no answer; it may have been carried out.
            BrokerError: refused, or the broker cannot be reached.
        """
        url = f"{base or self._base}/admin/v2{path}"
        for _ in range(REDIRECTS_MAX):
            answer = self._once(method, url, path, params)
            if answer.status_code == none_on:
                return b""
            if not answer.is_redirect:
                return self._checked(method, path, answer)
            url, params = urljoin(url, answer.headers["Location"]), None
        raise BrokerError(f"{method} {path}: redirected more than {REDIRECTS_MAX} times")

    def _once(
        self, method: str, url: str, path: str, params: Mapping[str, str] | None
    ) -> requests.Response:
        token = self._settings.token if self._may_know(url) else ""
        timeout = (min(5.0, self._settings.timeout_s), self._settings.timeout_s)
        try:
            with self._session() as session:
                return session.request(
                    method,
                    url,
                    params=params,
                    auth=Bearer(token),
                    timeout=timeout,
                    allow_redirects=False,
                )
        except (requests.exceptions.ConnectTimeout, requests.exceptions.InvalidURL) as error:
            raise self._unreachable(method, url, path, error) from None
        except requests.exceptions.ConnectionError as error:
            if "NewConnectionError" in repr(error) or "NameResolutionError" in repr(error):
                raise self._unreachable(method, url, path, error) from None
            raise self._lost(method, path, error) from None
        except requests.exceptions.RequestException as error:
            raise self._lost(method, path, error) from None

    def _may_know(self, url: str) -> bool:
        """A broker of the cluster, and never in clear where the configured address is not."""
        parts, ours = urlsplit(url), urlsplit(self._base)
        in_clear = parts.scheme != "https" and ours.scheme == "https"
        return parts.netloc in self._trusted and not in_clear

    def _unreachable(self, method: str, url: str, path: str, error: Exception) -> BrokerError:
        where = urlsplit(url).netloc.rpartition("@")[2]
        return BrokerError(
            f"{method} {path}: cannot reach the broker at {where} ({type(error).__name__}): check "
            "broker.admin_url, and that the broker runs"
        )

    def _lost(self, method: str, path: str, error: Exception) -> BrokerUnknownError:
        return BrokerUnknownError(
            f"{method} {path}: sent, but no answer within {self._settings.timeout_s} s or the "
            f"connection was lost ({type(error).__name__}); whether it was done is unknown"
        )

    def _checked(self, method: str, path: str, answer: requests.Response) -> bytes:
        status = answer.status_code
        if 200 <= status < 300:
            return answer.content
        said = f"{method} {path}: status {status}: {self._reason(answer)}"
        if status == 404:
            raise BrokerNotFoundError(said)
        if status in (401, 403):
            raise BrokerError(f"{said}: check broker.token and what its role may do")
        if status == 504:
            raise BrokerUnknownError(f"{said}; whether it was done is unknown")
        raise BrokerError(said)

    def _reason(self, answer: requests.Response) -> str:
        """The broker's own words: the `reason` of its JSON, else the text; never our token."""
        text = answer.text
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        if isinstance(body, dict) and "reason" in body:
            text = str(body["reason"])
        text = " ".join(text.split())
        if self._settings.token:
            text = text.replace(self._settings.token, "***")
        return text[:REASON_CHARS] or "no reason given"
