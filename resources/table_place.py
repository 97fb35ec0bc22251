"""Where tables lie, and what the clients of their files are told."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiering_assets.resources.object_store.s3_client import credentials_of
from tiering_assets.resources.object_store.s3_environment import is_understood

if TYPE_CHECKING:
    from tiering_assets.resources.settings import StoreSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """Where tables lie: a folder or `s3://bucket/prefix`, and what its client is told."""

    root: str
    options: Mapping[str, str] = field(repr=False)  # credentials among them


def place_at(root: str, settings: StoreSettings) -> TablePlace:
    """A folder, or an address at the store, with the credentials that are valid now."""
    if not root.startswith("s3://"):
        return TablePlace(root=root, options={})
    access_key, secret_key, token = credentials_of(settings)
    options = {
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": secret_key,
        "AWS_REGION": settings.region,
        "AWS_CONDITIONAL_PUT": "etag",  # so that of two commits of one number one fails
        "TIMEOUT": f"{max(1, round(settings.read_timeout_s))}s",
        "CONNECT_TIMEOUT": f"{max(1, round(settings.connect_timeout_s))}s",
    }
    if token is not None:
        options["AWS_SESSION_TOKEN"] = token
    if settings.endpoint:
        options |= {"AWS_ENDPOINT_URL": settings.endpoint, "AWS_ALLOW_HTTP": "true"}
    return TablePlace(root=root.rstrip("/"), options=options)


def files_of(place: TablePlace, name: str) -> Any:
    """What lies in a table's folder. Its options are those of delta-rs, which takes them as one."""
    from obstore.store import LocalStore, S3Store

    uri = f"{place.root}/{name}"
    if "://" not in uri:
        return LocalStore(Path(uri).absolute())
    if not is_understood(os.environ):
        raise ValueError("variables of the environment that its client does not know")
    of_client = {"timeout", "connect_timeout", "aws_allow_http"}
    options = {key.lower(): value for key, value in place.options.items()}
    config: Any = {key: one for key, one in options.items() if key not in of_client}
    client: Any = {key.removeprefix("aws_"): options[key] for key in of_client & options.keys()}
    once: Any = {"max_retries": 0}  # who opens the table tries again
    return S3Store.from_url(uri, config=config, client_options=client, retry_config=once)
