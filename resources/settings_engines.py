"""Settings of what our steps run in: Spark and Dagster. Pure values."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from tiering_assets.resources import settings_kinds as kinds
from tiering_assets.resources.settings_kinds import CONFIG, setting


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class SparkSettings:
    master: str = setting(
        "local[2,4]",
        "Spark master: local[cores,failures], spark://host:port or sc://host:port (docs/spark.md)",
    )
    code: str = setting(
        "installed", "where workers have our code from: installed (their image) or ship (a zip)"
    )
    archive: str = setting(
        "",
        "tar.gz or zip of Python packages that is sent to workers whose image lacks them; empty "
        "is none",
    )
    cores: int = setting(
        2,
        "tasks at once on a remote master: what we take of spark://, what sc:// has",
        kinds.COUNT.upto(4096),
    )
    python: str = setting(
        "",
        "Python of the workers of spark://; empty is python3 on their PATH. A server of sc:// has "
        "a setting of its own",
    )
    executor_memory: str = setting("1g", "heap of an executor of spark://; payload is outside it")
    start_timeout_s: float = setting(
        120.0,
        "wait this long for the first executor of spark://, which may stand in a queue",
        kinds.TIMEOUT,
    )
    driver_host: str = setting(
        "", "address where workers of spark:// reach this process; empty is Spark's choice"
    )
    driver_memory: str = setting("1g", "heap of the driver JVM; payload never passes through it")
    app_name: str = setting("tierkeeper", "application name")


@dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class DagsterSettings:
    cluster: str = setting(
        "pulsar", "name in asset keys and in the partition set: letters, digits and underscores"
    )
    first_of_instance: bool = setting(
        True,
        "false where the Dagster instance already has another cluster: sensors and pools carry the "
        "cluster's name then",
    )
    runner: str = setting("spark", "where blocks are copied and read back: spark or local")
    partition_by: str = setting(
        "ledger",
        "what a partition is: ledger, or day for all ledgers closed on that day in UTC "
        "(docs/dagster-partitions.md)",
    )
    partitions_max: int = setting(
        5000,
        "live ledger partitions; no ledger waits for one, and the catalogue has all",
        kinds.COUNT.upto(5000, "more slow every page down"),
    )
    owner: str = setting(
        "", "owner of every asset in the UI: team:NAME or an e-mail address; empty means none"
    )
    docs_url: str = setting(
        "", "where docs/ is served, for the links in the UI; empty means its place in the checkout"
    )
    code_url: str = setting(
        "",
        "where the checkout is served, for the links in the UI; empty means its place in the "
        "checkout",
    )
    notebook_dir: str = setting(
        "",
        "folder where the job `audit` keeps the notebooks that it ran; empty means `notebooks` in "
        "the storage of the Dagster instance (docs/notebooks.md)",
    )
