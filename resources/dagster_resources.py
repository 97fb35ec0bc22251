"""tierkeeper's settings as a Dagster resource; the only module of this room that imports Dagster.

Owns: settings reach a run from where every other edge reads them (environment over file over
default), never through run config, so that no credential is ever stored with a run.
"""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from pydantic import Field

from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import load_settings


class TierkeeperSettings(dg.ConfigurableResource[None]):
    """Where the settings come from. Secrets are TIERKEEPER_* variables or lie in the file."""

    settings_file: str = Field(
        default="", description="TOML file; empty means TIERKEEPER_CONFIG, else ./tierkeeper.toml"
    )

    def load(self) -> Settings:
        """Read the settings now. SettingsError names the setting and its origin."""
        file = Path(self.settings_file) if self.settings_file else None
        return load_settings(file=file).settings
