"""As whom this project asks over HTTP, and what it says of an address.

Owns: a token goes where its own request says, and nothing of a netrc file goes anywhere. A URL may
hold a token, so messages have its host alone.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase


class Bearer(AuthBase):
    """Without a token, too, it keeps `requests` from looking for credentials in a netrc file."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def host_in(url: str) -> str:
    """What messages name of it."""
    return urlsplit(url).hostname or "a URL without host"
