"""Which environments the client for many reads can be used in. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_KNOWN: Final = frozenset(
    {
        "AWS_ACCESS_KEY_ID",
        "AWS_CA_BUNDLE",
        "AWS_CONFIG_FILE",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_DEFAULT_REGION",
        "AWS_EC2_METADATA_DISABLED",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_ROLE_ARN",
        "AWS_ROLE_SESSION_NAME",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    }
)
"""Variables that say no more than where credentials are, which boto3 finds. obstore reads many."""


def is_understood(environment: Iterable[str]) -> bool:
    """Whether obstore can be asked where these variables are set: some it fails by."""
    named = {name.upper() for name in environment if name.upper().startswith("AWS_")}
    return named <= _KNOWN
