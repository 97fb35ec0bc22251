"""Settings that travel to workers on other machines, and those that do not.

Owns: a worker finds its credentials itself, in its environment or settings file, and gets only the
other settings from the driver, so that no secret is in a task.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from tiering_assets.resources.settings import KNOWN, Settings
from tiering_assets.resources.settings_places import own_credentials, variable_of

PlainSettings = Mapping[str, Mapping[str, Any]]
# The master tells with how many others a worker shares its budgets.
SECTIONS_OF_WORKERS = (
    "bookies",
    "store",
    "offload",
    "budget",
    "spark",
)  # a worker opens no ZooKeeper and no broker


def plain_settings(settings: Settings) -> PlainSettings:
    """Return the settings that travel with a task: what workers use, credentials left out."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in _used(settings).items():
        if not KNOWN[name].secret:
            section, _, key = name.partition(".")
            found.setdefault(section, {})[key] = value
    return found


def credentials(settings: Settings) -> dict[str, str]:
    """Return what `plain_settings` leaves out, as the environment variables that workers read."""
    return {
        variable_of(name): value
        for name, value in _used(settings).items()
        if KNOWN[name].secret and value
    }


def worker_settings(plain: PlainSettings) -> Settings:
    """Return the driver's settings with this worker's own credentials. Raises SettingsError."""
    bare = Settings()
    wanted = [name for name in _used(bare) if KNOWN[name].secret]
    own = own_credentials(wanted, os.environ)
    sections: dict[str, Any] = {}
    for section in SECTIONS_OF_WORKERS:
        secrets = {n.partition(".")[2]: v for n, v in own.items() if n.startswith(f"{section}.")}
        sections[section] = type(getattr(bare, section))(**plain[section], **secrets)
    return Settings(**sections)


def _used(settings: Settings) -> dict[str, Any]:
    """By `section.field`, what a worker uses. Half a key pair from each side would be a riddle, so
    the access key is a secret, too.
    """
    return {
        name: attrgetter(name)(settings)
        for name in KNOWN
        if name.partition(".")[0] in SECTIONS_OF_WORKERS
    }
