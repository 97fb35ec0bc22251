"""The Dagster instance of DAGSTER_HOME, for commands that look at it or fill it."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from tiering_assets.resources.errors import SettingsError

_ADVICE = "give the folder that dagster-webserver and dagster-daemon run with"


def find_home() -> str:
    """DAGSTER_HOME, which is an absolute path of a folder, or a SettingsError before anything."""
    home = os.environ.get("DAGSTER_HOME", "")
    if not home:
        raise SettingsError(f"DAGSTER_HOME is not set: {_ADVICE}")
    if not Path(home).is_absolute():
        raise SettingsError(f"DAGSTER_HOME={home} is not an absolute path: {_ADVICE}")
    if not Path(home).is_dir():
        raise SettingsError(
            f"DAGSTER_HOME={home} is no folder: make it again with its dagster.yaml "
            "(deploy/dagster.yaml), which says where events are stored"
        )
    return home


def open_instance(home: str) -> dg.DagsterInstance:
    """The instance in this home. SettingsError when it cannot be opened."""
    try:
        return dg.DagsterInstance.get()
    except dg.DagsterError as error:
        raise SettingsError(
            f"the Dagster instance in DAGSTER_HOME={home} cannot be opened: {error}"
        ) from error
