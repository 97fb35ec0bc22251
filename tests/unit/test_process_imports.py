"""Which heavy packages each kind of process imports: what is not used is not imported.

A process pays for an import at every start, and there are many starts: a command, a run, a Spark
worker. A verb that is in no list here fails the test: put it where it belongs and look at what that
costs (`make bench-start`). Great Expectations, pandas and pyspark's session are in no list, because
they are imported by the first suite that judges and by the first task that Spark gets.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.process_imports import HEAVY, verbs

ROOT = Path(__file__).parents[2]

NOTHING = frozenset[str]()
SETTINGS = frozenset({"pydantic", "pydantic_settings"})
WORKER = frozenset({"pydantic", "cryptography", "boto3", "botocore"})  # records, signatures, bucket
BUCKET = WORKER | SETTINGS
CLUSTER = BUCKET | {"kazoo", "google.protobuf", "requests"}  # both metadata trees, bookies, brokers
DAGSTER = SETTINGS | {"dagster"}
TABLES = frozenset({"pyarrow", "numpy"})
SERVERS = frozenset({"kazoo", "psutil", "pydantic"})  # of a development stack

ALLOWED = {
    "help": NOTHING,
    "definitions": DAGSTER,  # code server, and each process that Dagster starts beside it
    "sensor tick": DAGSTER | CLUSTER | TABLES,  # tables by the sensor `catalogue`
    # Of all that stands in defs, its sensors and the chart of `discover` included.
    "run": DAGSTER | CLUSTER | TABLES | {"matplotlib"},
    "worker": WORKER,  # never a metadata store or a broker, and of settings only its credentials
    "audit verify": BUCKET | {"google.protobuf"},  # from the bucket alone
    "auto off": DAGSTER | {"tomlkit"},
    "auto on": DAGSTER | {"tomlkit"},
    "auto status": DAGSTER,
    "broker gone": CLUSTER,
    "broker list": CLUSTER,
    "budget set": CLUSTER,
    "budget show": CLUSTER,
    "catalogue post": CLUSTER | TABLES,
    "catalogue prove": CLUSTER | TABLES,
    "catalogue rebuild": CLUSTER | TABLES,
    "catalogue settle": CLUSTER | TABLES,
    "catalogue sql": CLUSTER | TABLES,
    "catalogue status": CLUSTER | TABLES,
    "completion": NOTHING,
    "config check": SETTINGS,
    "config show": SETTINGS,
    "dagster prune": DAGSTER,
    "dagster rebuild": DAGSTER | CLUSTER | {"sqlalchemy", "alembic"},  # writes Dagster's tables
    "demo": CLUSTER | SERVERS,
    "doctor": CLUSTER | TABLES | {"dagster"},  # of its daemon, where automation is on
    "expired-copy delete": CLUSTER,
    "expired-copy list": CLUSTER,
    "gone-record delete": CLUSTER,
    "gone-record list": CLUSTER,
    "hold lift": CLUSTER,
    "hold list": CLUSTER,
    "hold set": CLUSTER,
    "key make": frozenset({"pydantic", "cryptography"}),
    "ledger give-up": CLUSTER,
    "ledger list": CLUSTER | TABLES,
    "ledger offload": CLUSTER,
    "ledger plan": CLUSTER,
    "ledger release": CLUSTER,
    "ledger show": CLUSTER,
    "ledger verify": CLUSTER,
    "ledger why": CLUSTER,
    "lineage coverage": CLUSTER | TABLES,
    "lineage message": CLUSTER | TABLES,
    "lineage object": CLUSTER | TABLES,
    "lineage topic": CLUSTER | TABLES,
    "topic read": CLUSTER | TABLES | {"fastavro"},  # of values
    "metrics print": CLUSTER | TABLES | {"prometheus_client"},
    "metrics serve": CLUSTER | TABLES | {"prometheus_client"},
    "object scan": CLUSTER,
    "object show": CLUSTER,
    "object verify": CLUSTER,
    "orphan list": CLUSTER,
    "orphan sweep": CLUSTER,
    "policy check": CLUSTER,
    "policy show": CLUSTER,
    "schema archive": CLUSTER,
    "schema list": CLUSTER,
    "schema show": CLUSTER,
    "scrub run": CLUSTER,
    "scrub status": CLUSTER,
    "stack down": SERVERS,
    "stack status": SERVERS,
    "stack up": SERVERS,
    "stream cut": CLUSTER,
    "stream give-up": CLUSTER,
    "stream off": CLUSTER,
    "stream on": CLUSTER,
    "stream status": CLUSTER,
    "tiering list": CLUSTER,
    "tiering pause": CLUSTER,
    "tiering resume": CLUSTER,
    "topic backlog": CLUSTER | TABLES,
    "topic expiry": CLUSTER,
    "topic list": CLUSTER | TABLES,
    "topic load-overdue": CLUSTER,
    "topic offload": CLUSTER,
    "topic offload-status": CLUSTER,
}
PROCESSES = {"help", "definitions", "sensor tick", "run", "worker"}


@pytest.fixture(scope="module")
def imported():
    """Heavy packages by kind of process, of processes that did import them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.process_imports"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {kind: set(found) for kind, found in json.loads(done.stdout).items()}


def test_every_verb_is_in_the_table():
    assert ALLOWED.keys() == PROCESSES | {name for name, _function in verbs()}


def test_a_process_imports_what_its_kind_may(imported):
    assert imported.keys() == ALLOWED.keys()
    needless = {kind: found - ALLOWED[kind] for kind, found in imported.items()}
    assert {kind: sorted(more) for kind, more in needless.items() if more} == {}


def test_the_table_allows_no_more_than_is_used(imported):
    unused = {kind: ALLOWED[kind] - found for kind, found in imported.items()}
    assert {kind: sorted(more) for kind, more in unused.items() if more} == {}


def test_the_table_names_packages_that_are_looked_for():
    assert frozenset().union(*ALLOWED.values()) <= set(HEAVY)
