"""No credential is in anything that is written: a whole run, and a search through all it left.

Every credential there is has a planted value of its own, and comes from a mounted file. The search
knows the ways in which a value is written down by accident, and finds a marker that is no secret in
every place it looks through: a search that finds nothing must be able to find something.
"""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.secrets_written import PASSWORD, PASSWORD_KEYS, Written, hmac_tasks
from tests.support.tiered_cluster import tiered_cluster
from tiering_assets.resources.devstack.traffic import TopicSpec
from tiering_assets.tasks.descriptors import encode_task

pytestmark = [pytest.mark.stack, pytest.mark.spark]

ROOT = Path(__file__).parents[2]
MARKER = "no-secret-marker-7f3a"
TOKEN = "planted-admin-token-0b77"
WEBHOOK_TOKEN = "planted-webhook-token-93ee"
LINEAGE_KEY = "planted-lineage-key-51c4"
SPEC = TopicSpec(topic=f"public/default/{MARKER}", messages=1500, payload_bytes=256)


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        yield connected


@pytest.fixture
def tasks(cluster):
    with hmac_tasks(cluster) as found:
        yield found


@pytest.mark.timeout(1800)
def test_planted_secrets_are_in_nothing_that_a_run_writes(cluster, stack, tasks, tmp_path):
    sent = cluster.fill(SPEC)
    assert sent
    settings = stack.settings()
    planted = {
        "TIERKEEPER_STORE_ACCESS_KEY": settings.store.access_key,
        "TIERKEEPER_STORE_SECRET_KEY": settings.store.secret_key,
        "TIERKEEPER_BOOKIES_PASSWORD": PASSWORD,
        "TIERKEEPER_BROKER_TOKEN": TOKEN,
        "TIERKEEPER_AUTO_WEBHOOK_URL": f"http://127.0.0.1:9/hook?token={WEBHOOK_TOKEN}",
        "TIERKEEPER_OPENLINEAGE_API_KEY": LINEAGE_KEY,
    }
    # What Dagster's log store or a worker's default chain uses; Spark's JVM copies it from there.
    inherited = {
        "AWS_ACCESS_KEY_ID": "PLANTEDAWSKEYID62D1",
        "AWS_SECRET_ACCESS_KEY": "planted-aws-secret-key-f08c",
        "AWS_SESSION_TOKEN": "planted-aws-session-token-7be2",
    }
    mounted = tmp_path / "mounted"  # the one place that is not searched
    folders = {name: tmp_path / name for name in ("dagster", "events", "scratch", "cwd")}
    for folder in (mounted, *folders.values(), tmp_path / "conf"):
        folder.mkdir()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "TIERKEEPER_"))}
    environment |= {k: v for k, v in stack.environment().items() if k not in planted}
    for name, value in planted.items():
        (mounted / name).write_text(f"{value}\n")
        environment[f"{name}_FILE"] = str(mounted / name)
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.dir {folders['events'].as_uri()}\n"
        "spark.eventLog.compress false\n"
    )
    environment |= inherited | {
        "TIERKEEPER_SPARK_APP_NAME": MARKER,
        "TIERKEEPER_DAGSTER_RUNNER": "spark",
        "TIERKEEPER_OPENLINEAGE_URL": "http://127.0.0.1:9",
        "DAGSTER_HOME": str(folders["dagster"]),
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
        "SPARK_LOCAL_DIRS": str(folders["scratch"]),
        "PYTHONPATH": str(ROOT),
    }
    logs = {"stdout": tmp_path / "stdout", "stderr": tmp_path / "stderr"}
    request = {
        "tasks": [encode_task(task) for task in tasks],
        "topic": f"persistent://{SPEC.topic}",
        "marker": MARKER,
    }
    with logs["stdout"].open("wb") as out, logs["stderr"].open("wb") as err:
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.secret_run"],
            input=json.dumps(request).encode(),
            cwd=folders["cwd"],
            env=environment,
            stdout=out,
            stderr=err,
            timeout=1800,
            check=False,
        )
    told = logs["stdout"].read_text()
    assert done.returncode == 0, logs["stderr"].read_text()[-3000:]
    assert "lineage: Answer(" in told
    assert "run: (True," in told
    assert "run: (False," in told
    assert "credentials from tierkeeper's settings" in told  # the workers found the mounted files

    written = Written.below(folders | logs, cluster.steps.objects)
    found_in = {place for place, _name in written.having(MARKER)}
    assert found_in >= {"dagster", "events", "stdout", "stderr", "bucket"}
    secrets = {
        **planted,
        **inherited,
        **PASSWORD_KEYS,
        "webhook token": WEBHOOK_TOKEN,
    }
    assert {name: places for name, v in secrets.items() if (places := written.having(v))} == {}


@pytest.mark.parametrize(
    "spoiled",
    [
        f"password={PASSWORD}",
        json.dumps({"token": PASSWORD}),
        base64.b64encode(f"user:{PASSWORD}".encode()).decode(),
        base64.b64encode(f"u:{PASSWORD}:more".encode()).decode(),
        base64.b64encode(f"us:{PASSWORD}.".encode()).decode(),
        PASSWORD.encode().hex(),
    ],
)
def test_the_search_finds_a_secret_however_it_is_written(spoiled, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "log").write_text(f"... {spoiled} ...")
    written = Written.below({"there": tmp_path / "there"})
    assert written.having(PASSWORD) == [("there", str(tmp_path / "there" / "log"))]
    assert written.having(MARKER) == []
