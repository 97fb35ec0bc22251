"""Reads tiering.toml, the policies that are not Pulsar's."""

from __future__ import annotations

from pathlib import Path

from resources.errors import SettingsError
from resources.settings import PolicySettings
from tiering_assets.ground.own_policy import OwnPolicies, parse_own_policies

DEFAULT_FILE = "tiering.toml"


def read_own_policies(settings: PolicySettings) -> OwnPolicies:
    """Read policy.file, else ./tiering.toml where it exists. SettingsError names file and place."""
    path = Path(settings.file or DEFAULT_FILE)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if settings.file:
            raise SettingsError(f"policy.file {path}: there is no such file") from None
        return OwnPolicies()
    except OSError as error:
        raise SettingsError(f"policy file {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SettingsError(f"policy file {path}: not UTF-8") from None
    return parse_own_policies(text, str(path))
