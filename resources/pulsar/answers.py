"""What brokers answer, as the shape that was asked for, or a BrokerError that names the path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiering_assets.resources.errors import BrokerError


def settings_in(found: Mapping[str, Any]) -> Mapping[str, str]:
    return {name: str(value) for name, value in found.items() if value is not None}


def ensemble_in(policy: Mapping[str, Any] | None, path: str) -> int | None:
    found = None if policy is None else policy.get("bookkeeperEnsemble")
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise BrokerError(
            f"GET {path}: bookkeeperEnsemble: expected a number, found {found!r:.100}"
        )
    return found


def as_object(found: object, path: str) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise BrokerError(f"GET {path}: expected a JSON object, found {found!r:.100}")
    return found
