"""Counts the S3 requests of this process by class, where they leave it: below boto3, retries
too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from botocore.httpsession import URLLib3Session


@contextmanager
def counted_requests() -> Iterator[Counter[str]]:
    """By class, as providers price them: PUT (parts, too), POST, GET, HEAD, LIST, DELETE."""
    seen: Counter[str] = Counter()
    send = URLLib3Session.send

    def counting(session: Any, request: Any) -> Any:
        seen[_class_of(request.method, request.url)] += 1
        return send(session, request)

    with patch.object(URLLib3Session, "send", counting):
        yield seen


def _class_of(method: str, url: str) -> str:
    address = urlsplit(url)
    of_bucket = "/" not in address.path.strip("/")
    return "LIST" if method == "GET" and of_bucket else str(method)
