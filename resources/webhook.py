"""Posts a JSON document to a URL of the operator's, and never more than once.

Owns: the URL may hold a token, so it is in no message. A post that fails is an error for the caller
to tell; nothing of the pipeline waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

from tiering_assets.resources.errors import PrerequisiteError
from tiering_assets.resources.http_access import host_in

TIMEOUT_S = 10.0


def post_webhook(url: str, document: Mapping[str, Any]) -> None:
    """Post once. PrerequisiteError when there is no answer below 400, naming the host alone."""
    host = host_in(url)
    try:
        status = requests.post(
            url, json=document, timeout=TIMEOUT_S, allow_redirects=False
        ).status_code
    except requests.RequestException as error:
        raise PrerequisiteError(
            f"auto.webhook_url: no answer from {host}: {type(error).__name__}"
        ) from None
    if status >= 300:
        raise PrerequisiteError(f"auto.webhook_url: {host} answered {status}")
