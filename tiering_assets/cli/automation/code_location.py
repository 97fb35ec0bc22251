"""What Dagster's code location was loaded with, as a command finds it.

Owns: a code location has no flags. What it is called in the instance is what environment and
settings file say here, whatever --config and --set of this command say of the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiering_assets.resources.settings import Settings


def loaded_settings() -> Settings:
    """SettingsError names the setting and its origin."""
    from tiering_assets.resources.settings_sources import load_settings

    return load_settings().settings
