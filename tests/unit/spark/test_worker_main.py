"""What a worker does with a partition, without Spark: settings of its own, errors as rows."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa
import pytest

from tests.support.sim_ledger import SimBookies, SimLedger
from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import (
    BookieSettings,
    BrokerSettings,
    OffloadSettings,
    Settings,
)
from tiering_assets.resources.settings import StoreSettings as Store
from tiering_assets.resources.settings_of_workers import (
    credentials,
    plain_settings,
    worker_settings,
)
from tiering_assets.spark.schemas import block_row
from tiering_assets.spark.worker_main import run_batches
from tiering_assets.tasks.descriptors import TaskKind, encode_task

SECRETS = {
    "TIERKEEPER_STORE_ACCESS_KEY": "the-access-key",
    "TIERKEEPER_STORE_SECRET_KEY": "the-secret-key",
    "TIERKEEPER_BOOKIES_PASSWORD": "the-ledger-password",
}
SETTINGS = Settings(
    store=Store(
        endpoint="http://127.0.0.1:9",
        bucket="b",
        access_key="the-access-key",
        secret_key="the-secret-key",
        read_timeout_s=7.5,
    ),
    bookies=BookieSettings(password="the-ledger-password", window=17),
    offload=OffloadSettings(read_range_bytes=12345),
    broker=BrokerSettings(token="the-token"),
)


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """An environment without settings, in a directory without a settings file."""
    monkeypatch.chdir(tmp_path)
    for name in SECRETS:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_no_credential_travels():
    text = repr(plain_settings(SETTINGS))
    assert "12345" in text
    for secret in (*SECRETS.values(), "the-token"):
        assert secret not in text


def test_the_environment_of_workers_has_their_credentials_and_no_others():
    assert credentials(SETTINGS) == SECRETS


def test_a_worker_has_the_drivers_settings_and_its_own_credentials(environment):
    for name, value in SECRETS.items():
        environment.setenv(name, value)
    environment.setenv("TIERKEEPER_STORE_BUCKET", "not-this-one")
    assert worker_settings(plain_settings(SETTINGS)) == replace(SETTINGS, broker=BrokerSettings())


def test_credentials_may_lie_in_files_of_the_worker(environment, tmp_path):
    (tmp_path / "mounted").write_text("the-ledger-password\n")
    (tmp_path / "tierkeeper.toml").write_text(
        '[store]\naccess_key = "of-file"\nsecret_key = "the-secret-key"\nattempts_max = 99\n'
    )
    environment.setenv("TIERKEEPER_BOOKIES_PASSWORD_FILE", "mounted")
    environment.setenv("TIERKEEPER_STORE_ACCESS_KEY", "the-access-key")
    assert worker_settings(plain_settings(SETTINGS)) == replace(SETTINGS, broker=BrokerSettings())


@pytest.mark.parametrize(
    ("text", "said"),
    [("[store]\nsecret_key = the-secret-key", "not TOML"), ("[store]\nsecret_key = 7", "***")],
)
def test_what_is_wrong_with_them_is_told_without_them(environment, tmp_path, text, said):
    (tmp_path / "tierkeeper.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        worker_settings(plain_settings(SETTINGS))
    assert said in str(caught.value)
    assert "the-secret-key" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_worker_needs_no_library_for_settings():
    program = (
        "import sys; sys.modules['pydantic_settings'] = None\n"
        "from tiering_assets.resources.settings import Settings\n"
        "from tiering_assets.resources.settings_of_workers import plain_settings, worker_settings\n"
        "print(worker_settings(plain_settings(Settings())) == Settings())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")


def partition(*tasks):
    return iter([pa.RecordBatch.from_pydict({"descriptor": [encode_task(t) for t in tasks]})])


def test_rows_come_task_by_task_with_failures_among_them(environment):
    with ExitStack() as stack:
        bookies = SimBookies(stack)
        ledgers = [
            SimLedger.store(bookies, number, [b"x" * 50] * 20, block_bytes=1 << 20)
            for number in (5, 6)
        ]
        for sim in bookies.sims.values():
            sim.faults.flipped = {(5, 3)}
        tasks = [ledger.task(TaskKind.READ_SOURCE) for ledger in ledgers]
        for name, value in SECRETS.items():
            environment.setenv(name, value)
        batches = list(run_batches(partition(*tasks), plain_settings(SETTINGS)))
    bad, good = [[block_row(columns) for columns in batch.to_pylist()] for batch in batches]
    assert [row.error_class for row in bad] == ["EntryUnavailableError"]
    assert [(row.ledger_id, row.entries, row.error) for row in good] == [(6, 20, "")]


def test_settings_that_a_worker_cannot_use_are_a_row_of_every_task(environment):
    environment.setenv("TIERKEEPER_BOOKIES_PASSWORD_FILE", "not-mounted")
    with ExitStack() as stack:
        bookies = SimBookies(stack)
        ledgers = [SimLedger.store(bookies, n, [b"x"], block_bytes=4096) for n in (5, 6)]
    tasks = [ledger.task() for ledger in ledgers]
    batches = run_batches(partition(*tasks), plain_settings(SETTINGS))
    rows = [block_row(columns) for batch in batches for columns in batch.to_pylist()]
    assert [(row.ledger_id, row.error_class) for row in rows] == [
        (5, "SettingsError"),
        (6, "SettingsError"),
    ]


def test_a_mistake_of_ours_is_a_row_too(environment):
    for name, value in SECRETS.items():
        environment.setenv(name, value)
    with ExitStack() as stack:
        bookies = SimBookies(stack)
        ledger = SimLedger.store(bookies, 5, [b"x"] * 3, block_bytes=4096)
        task = ledger.task(TaskKind.READ_SOURCE)
        beyond = replace(task, source=replace(task.source, last_entry_id=1))
        [batch] = run_batches(partition(beyond), plain_settings(SETTINGS))
    [row] = [block_row(columns) for columns in batch.to_pylist()]
    assert row.error_class == "ValueError"
    assert not row.retryable
