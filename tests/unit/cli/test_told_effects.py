"""With -v each remote effect is a line: which, on which ledger, topic and attempt, and how long it
took.
"""

import ast
import json
import re
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.sim_faults import WRITES
from tests.support.trimmed_cluster import TOPIC, TrimmedCluster
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import LogFormat, Session
from tiering_assets.ground.effects import about

COPIED = [
    "day_book.opened",
    "offload.claimed",
    "offload.attempt_recorded",
    "offload.upload_created",
    "offload.parts_sent",
    "offload.index_put",
    "offload.claimed",  # renewed
    "verify.read_back",
    "verify.certified",
    "publish.outcome_won",
    "publish.context_set",
    "reload.recorded",
    "publish.unloaded",
    "publish.confirmed",
    "publish.recorded",
    "offload.claim_dropped",
    "day_book.closed",
]


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    cluster = TrimmedCluster()
    cluster.serve_commands(monkeypatch, tmp_path)
    return cluster


@pytest.fixture
def ledger_id(cluster):
    sealed = int(cluster.broker.load(TOPIC).open_id)
    cluster.broker.produce(TOPIC, [b"first", b"last"])
    cluster.broker.roll_over(TOPIC)
    return sealed


def told(capsys, ledger_id, *options):
    capsys.readouterr()
    assert run(["ledger", "offload", str(ledger_id), "--execute", *options]) == 0
    return capsys.readouterr().err.splitlines()


def test_a_line_names_ledger_topic_attempt_and_seconds(ledger_id, capsys):
    lines = [x for x in told(capsys, ledger_id, "-v") if "ground.effects" in x]
    [proven] = [line for line in lines if "verify.certified" in line]
    assert re.search(
        rf"INFO .* verify\.certified ledger {ledger_id}; persistent://t/ns/orders; "
        r"attempt [0-9a-f-]{36}; \d+\.\d{3} s$",
        proven,
    )
    assert [line.split("effects ")[1].split()[0] for line in lines] == COPIED


def test_as_json_it_has_the_same_fields(ledger_id, capsys):
    lines = map(json.loads, told(capsys, ledger_id, "-v", "--log-format", "json"))
    events = {one["step"]: one for one in lines if "step" in one}
    proven = events["verify.certified"]
    assert proven["ledgers"] == [ledger_id]
    assert proven["topic"] == "persistent://t/ns/orders"
    assert proven["attempt"] == events["offload.attempt_recorded"]["attempt"]
    assert proven["seconds"] >= 0
    assert events["publish.context_set"]["ledgers"] == [ledger_id]


def test_a_line_of_progress_as_json_has_the_ledger_it_is_about(ledger_id, capsys):
    told(capsys, ledger_id)
    assert run(["ledger", "verify", str(ledger_id), "--log-format", "json"]) == 0
    lines = map(json.loads, capsys.readouterr().err.splitlines())
    [reading] = [one for one in lines if "reading 1 blocks" in one["message"]]
    assert reading["level"] == "progress"
    assert reading["ledgers"] == [ledger_id]


def test_a_topic_and_an_attempt_are_fields_as_in_effects(capsys):
    uid = uuid4()
    line = about("two are released", 5, 6, topic="t/ns/persistent/orders", attempt=uid)
    Session(log_format=LogFormat.JSON).progress(line)
    assert json.loads(capsys.readouterr().err) == {
        "level": "progress",
        "message": "two are released",
        "ledgers": [5, 6],
        "topic": "persistent://t/ns/orders",
        "attempt": str(uid),
    }


def narrated(path):
    """Texts, as the source has them, of lines that say nothing but their text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or len(node.args) != 1:
            continue  # two are a run's log in Dagster, and a line
        if ast.unparse(node.func).endswith("narrate"):
            yield ast.unparse(node.args[0])


def test_whoever_narrates_of_a_ledger_says_which_as_a_field():
    product = Path(__file__).parents[3] / "tiering_assets"
    texts = [text for path in product.rglob("*.py") for text in narrated(path)]
    assert len(texts) > 10
    assert [text for text in texts if re.match("""f['"]ledger {""", text)] == []


def test_without_it_nothing_is_told(ledger_id, capsys):
    assert not [line for line in told(capsys, ledger_id) if "effects" in line or "claimed" in line]


def test_no_write_is_without_its_line(cluster, ledger_id, capsys, monkeypatch):
    """But for the list of brokers that were seen, which says nothing of a ledger."""
    really, written = cluster.world.call, []

    def call(process, room, method, apply, args, kwargs):
        if method in WRITES and not str(args[0]).endswith("brokers/seen.json"):
            written.append(f"{room}.{method} {args[0]}")
        return really(process, room, method, apply, args, kwargs)

    monkeypatch.setattr(cluster.world, "call", call)
    lines = [line for line in told(capsys, ledger_id, "-v") if "ground.effects" in line]
    steps = [line.split("effects ")[1].split()[0] for line in lines]
    # Two are reads, and an object of one block needs no upload.
    reads = {"verify.read_back", "publish.confirmed", "offload.upload_created"}
    assert len([step for step in steps if step not in reads]) == len(written), written
