"""A session with our code in it: what the runner and the doctor's probes start from.

Owns: credentials reach local workers through the environment of the JVM; remote ones find their
own. With `spark.code = ship` the code is sent once a session, and `spark.archive` with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_of_workers import credentials
from tiering_assets.resources.spark_master import Way, parse_master, ships_code
from tiering_assets.resources.spark_session import spark_session
from tiering_assets.spark.build import shipped_zip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_spark(settings: Settings) -> None:
    """Refuse settings that no session can be made of, before anything starts. SettingsError."""
    parse_master(settings.spark)
    ships_code(settings.spark)
    archive = settings.spark.archive
    if archive and not Path(archive).is_file():
        raise SettingsError(f"spark.archive is {archive!r}: there is no such file")


def packages_name(settings: Settings) -> str:
    """Return the folder that the archive of packages becomes at workers; empty without one."""
    return Path(settings.spark.archive).name.partition(".")[0] if settings.spark.archive else ""


@contextmanager
def open_session(
    settings: Settings, *, run_id: str = "", given_up: Callable[[], bool] = lambda: False
) -> Iterator[SparkSession]:
    """Yield a session whose workers can be asked for `bootstrap.checked` functions.

    Errors, and `given_up`, as in `spark_session` and `check_spark`.
    """
    check_spark(settings)
    local = parse_master(settings.spark).way is Way.LOCAL
    with spark_session(
        settings.spark,
        worker_environment=credentials(settings) if local else None,
        run_id=run_id,
        given_up=given_up,
    ) as session:
        _send_code(session, settings)
        yield session


def _send_code(session: SparkSession, settings: Settings) -> None:
    connect = parse_master(settings.spark).way is Way.CONNECT
    if ships_code(settings.spark):
        path = str(shipped_zip())
        if connect:
            session.addArtifacts(path, pyfile=True)
        else:
            session.sparkContext.addPyFile(path)
    if settings.spark.archive:
        archive = f"{settings.spark.archive}#{packages_name(settings)}"
        if connect:
            session.addArtifacts(archive, archive=True)
        else:
            session.sparkContext.addArchive(archive)
