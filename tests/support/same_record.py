"""What a tree does that people, brokers and records can see, written down so that two trees can be
compared.

    python same_record.py OUTPUT --seeds 500          of the tree in the current folder

Owns: nothing in here names a module that a move may rename but through what stays: the command
line, the simulator, the definitions that Dagster loads, and records' codec. One file a tree:
section, then name, then its lines, one below the other.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import hashlib
import importlib
import importlib.util
import io
import json
import os
import random
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

Lines = list[str]
CHUNK = 10
TOPIC = "persistent://t/ns/orders"  # its ledger 0 is released, 1 and 2 are published
# Where a command asks no simulated server, nothing answers.
NOWHERE = """
[metadata]
store = "zk:127.0.0.1:1"
connect_timeout_s = 1
[store]
endpoint = "http://127.0.0.1:1"
bucket = "no-bucket"
access_key = "none"
secret_key = "none"
[broker]
admin_url = "http://127.0.0.1:1"
"""
# Commands that start servers or serve until they are stopped; what they refuse is recorded.
STORIES: Mapping[str, tuple[str, ...]] = {
    "read": (
        "audit verify --all --deep",
        "broker list",
        "budget show",
        "completion bash",
        "config check",
        "config show",
        "hold list",
        "ledger list",
        "ledger list --topic {topic} --state sealed",
        "ledger plan {sealed}",
        *(
            f"ledger {verb} {ledger}"
            for verb in ("show", "why")
            for ledger in ("0", "1", "2", "{sealed}", "{open}", "99")
        ),
        "metrics print",
        "object scan no-bucket",
        "orphan list",
        "orphan sweep --plan",
        "expired-copy list",
        "gone-record list",
        "policy check",
        "policy show {topic}",
        "scrub status",
        "scrub run --plan",
        "tiering list",
        "topic backlog",
        "topic backlog {topic}",
        "topic expiry",
        "topic list",
        "topic load-overdue --plan",
        "topic offload {topic} --plan",
        "topic offload-status {topic}",
    ),
    "copy": (
        "ledger offload {sealed} --execute",
        "ledger show {sealed}",
        "ledger verify {sealed}",
        "ledger offload {open} --execute",
    ),
    "copy without publication": (
        "ledger offload {sealed}",
        "ledger why {sealed}",
        "ledger offload {sealed} --execute",
    ),
    "copy by position": (
        "topic offload {topic} --before {open}:0 --execute",
        "ledger offload --all --execute",
    ),
    "release": (
        "ledger release 1",
        "ledger release 1 --plan",
        "ledger release 1 --execute",
        "ledger release 1 --execute",
        "ledger release {sealed} --plan",
        "ledger release --due --plan",
        "ledger show 1",
        "audit verify --all",
    ),
    "release by a plan": (
        "ledger release --due --plan-file plan.json",
        "ledger release --due --approved plan.json --execute",
        "ledger release --approved plan.json --execute",
        "ledger show 2",
    ),
    "brakes": (
        "hold set 1 --reason audit --author ops",
        "hold set --topic {topic} --reason audit --author ops",
        "hold list",
        "ledger release 1 --execute",
        "ledger why 1",
        "hold lift 1 --reason done --author ops --plan",
        "hold lift 1 --reason done --author ops --execute",
        "hold lift --topic {topic} --reason done --author ops --execute",
        "hold lift --all --reason none --author ops --execute",
        "tiering pause --namespace t/ns --reason move --author ops",
        "ledger offload {sealed} --when-due --execute",
        "topic backlog",
        "tiering list",
        "tiering resume --namespace t/ns --reason done --author ops --execute",
        "hold set 1 --topic a --reason two --author ops",
    ),
    "catalogue": (
        "catalogue status",
        "catalogue prove",
        "ledger offload {sealed} --execute",
        "catalogue post",
        "catalogue status",
        "catalogue post --json",
        "catalogue sql 'select * from ledgers order by ledger_id'",
        "catalogue settle --all",
        "catalogue settle --json",
        "catalogue rebuild",
        "catalogue rebuild --json",
        "catalogue sql 'select * from ledgers order by ledger_id'",
        "lineage message 1:0",
        "lineage message 1:0 --show --prove",
        "lineage message 99:0",
        "lineage topic {topic} --at 2026-01-01",
        "topic read {topic} --from 2026-01-01",
        "schema archive {topic}",
        "schema archive --all",
        "schema list {topic}",
        "schema show {topic}",
        "stream status {topic}",
        "stream cut {topic}",
        "stream on {topic} --author ops",
        "stream on {topic} --author ops",
        "stream cut {topic}",
        "stream status {topic}",
        "stream give-up {topic} --reason stuck --author ops --execute",
        "stream off {topic} --reason done --author ops",
        "stream status {topic}",
        "lineage object {key} --offset 0",
        "lineage object {key} --offset 130 --prove",
        "lineage coverage --all",
        "lineage coverage {topic} --prove",
    ),
    "scrub": ("scrub run --deep --execute", "scrub status", "orphan sweep --execute"),
    "give up": (
        "ledger give-up 1 --reason wrong --author ops --execute",
        "ledger show 1",
        "scrub run --execute",
    ),
    "approved plans": (
        "expired-copy delete --plan",
        "gone-record delete --plan",
        "expired-copy delete --approved 0000 --execute",
        "gone-record delete --approved 0000 --execute",
    ),
    "settings of the cluster": (
        "budget set --upload 1MiB --author ops",
        "budget show",
        "broker gone broker-9:8080 --reason broke --author ops --execute",
        "broker list",
        "topic load-overdue --execute",
    ),
    "objects": ("object show {key}", "object verify {key}", "object show no-such-key"),
    "without servers": (
        "config show --changed",
        "doctor",
        "dagster prune",
        "dagster rebuild --plan",
        "auto status",
        "auto on --execute",
        "auto off",
        "key make --no-such-option",
        "stack up --bookies 0",
        "stack down --dir nothing",
        "stack status --dir nothing",
        "demo --keep --dir nothing --no-such-option",
        "metrics serve --port 0 --every -1",
        "no-such-command",
        "ledger show not-a-number",
        "ledger list --set no.setting=1",
    ),
}


def outside(name: str) -> Any:
    """A module of resources/, which older trees import by its folder's name alone."""
    room = "resources"
    if importlib.util.find_spec(f"tiering_assets.{room}") is not None:
        room = f"tiering_assets.{room}"
    return importlib.import_module(f"{room}.{name}")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


@contextmanager
def repeatable() -> Iterator[None]:
    """What our code takes from the machine, and not from what it is given, is the same each
    time.
    """
    drawn = random.Random(0)
    with (
        patch.object(os, "getpid", lambda: 1),
        patch.object(os, "urandom", drawn.randbytes),
        patch.object(time, "perf_counter", lambda: 0.0),
    ):
        yield


# ----- remote effects


def plain(value: Any) -> Any:
    """A value without the names of our classes: bytes by digest, dataclasses by field."""
    if isinstance(value, bytes | bytearray | memoryview):
        return digest(bytes(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return str(value)


def effects_of(seeds: range) -> dict[str, Lines]:
    """By seed, every write of ours to a simulated server: system, operation, key, digest of the
    rest.
    """
    from tests.support import sim_run, sim_wire
    from tests.support.sim_faults import WRITES

    really, told = sim_wire.Wire.call, list[str]()

    def call(
        wire: Any, process: Any, room: str, method: str, apply: Any, args: Any, kwargs: Any
    ) -> Any:
        if method in WRITES:
            key = plain(args[0]) if args else ""
            rest = json.dumps([plain(args[1:]), plain(kwargs)], sort_keys=True)
            told.append(f"{process.name} {room}.{method} {key} {digest(rest.encode())}")
        return really(wire, process, room, method, apply, args, kwargs)

    found = {}
    with patch.object(sim_wire.Wire, "call", call):
        for seed in seeds:
            told.clear()
            with repeatable():
                outcome = sim_run.run_seed(seed)
            violations = [f"{one.invariant}: {one.detail}" for one in outcome.found]
            found[f"seed {seed}"] = [*told, *violations, f"{outcome.calls} calls"]
    gc.collect()
    return found


def effects(seeds: int) -> dict[str, Lines]:
    chunks = [range(at, min(at + CHUNK, seeds)) for at in range(0, seeds, CHUNK)]
    found: dict[str, Lines] = {}
    with get_context("spawn").Pool(2) as pool:
        for some in pool.imap(effects_of, chunks):
            found |= some
    return found


# ----- commands


def commands() -> dict[str, Lines]:
    """Every command's help, and every story's outputs."""
    found = {f"{' '.join(words)} --help": said_by([*words, "--help"]) for words in every_command()}
    for story, lines in STORIES.items():
        for form in ((), ("--json",)):
            with repeatable():
                found[f"{story} {' '.join(form)}".strip()] = told_by(lines, form)
    return found


def every_command() -> Iterator[tuple[str, ...]]:
    import typer

    from tiering_assets.cli import main

    def below(group: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        for name, one in getattr(group, "commands", {}).items():
            yield from below(one, (*words, name))

    yield from below(typer.main.get_command(main.app), ())


def told_by(lines: tuple[str, ...], form: tuple[str, ...]) -> Lines:
    """One story on servers of its own, in a folder of its own."""
    from tests.support.trimmed_cluster import TOPIC as ML_NAME
    from tests.support.trimmed_cluster import TrimmedCluster
    from tiering_assets.cli import main

    retention = outside("pulsar.retention").Retention
    cluster = TrimmedCluster()
    cluster.broker.retention = lambda _topic: retention(minutes=None, megabytes=None)  # type: ignore[attr-defined]
    given = {"topic": TOPIC, "sealed": cluster.broker.load(ML_NAME).open_id}
    cluster.broker.produce(ML_NAME, [b"first", b"last"])
    cluster.broker.roll_over(ML_NAME)
    cluster.later(86_400)
    given["open"] = cluster.broker.load(ML_NAME).open_id
    keys = cluster.world.objects.peek_keys()
    given["key"] = min(key for key in keys if key.endswith("-ledger-1"))

    @contextmanager
    def served(_session: Any, _runner: Any = None) -> Iterator[Any]:
        yield cluster.stack

    told: Lines = []
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        patch.object(main.Session, "stack", served),  # type: ignore[attr-defined]
        patch.dict(os.environ, {"PATH": os.environ["PATH"], "HOME": folder}, clear=True),
    ):
        Path("tierkeeper.toml").write_text(NOWHERE)
        for line in lines:
            words = shlex.split(line.format(**given))
            told += [f"$ {line}", *said_by([*words, *form], folder)]
    return told


def said_by(words: list[str], folder: str | None = None) -> Lines:
    """Exit code and both outputs of one command line, without what no two runs share."""
    from tiering_assets.cli.main import run

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    text = f"exit {code}\n{out.getvalue()}\n{err.getvalue()}"
    text = re.sub(r"(survey_(?:duration|age)_seconds\D+)[0-9.e+-]+", r"\1TIME", text)
    for own, name in ((folder, "FOLDER"), (os.getcwd(), "TREE")):
        text = text.replace(own, name) if own else text
    return text.splitlines()


# ----- names


def names() -> dict[str, Lines]:
    """What Dagster is told, as it tells its web page; record schemas; settings; errors."""
    from dagster import serialize_value
    from dagster._core.remote_representation.external_data import RepositorySnap

    from tiering_assets.definitions import defs
    from tiering_assets.records import schemas
    from tiering_assets.records.codec import RECORD_TYPES

    settings = outside("settings")

    repository = RepositorySnap.from_def(defs.get_repository_def())
    told = json.loads(serialize_value(repository))
    found = {"dagster": sorted(flat(told, ""))}
    found |= {kind.kind: schemas.schema_text(kind).splitlines() for kind in RECORD_TYPES}
    found["settings"] = [
        f"{key}: {plain(value)}" for key, value in plain(settings.Settings()).items()
    ]
    return found


def flat(value: Any, path: str) -> Iterator[str]:
    """Leaves of a document by their path; lists that name their members go by name."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from flat(one, f"{path}/{key}")
    elif isinstance(value, list):
        for at, one in enumerate(value):
            name = (
                next((one[key] for key in ("name", "key") if key in one), at)
                if isinstance(one, dict)
                else at
            )
            yield from flat(one, f"{path}/{json.dumps(name)}")
    else:
        yield f"{path}: {re.sub(r'0x[0-9a-f]{6,}', '0x…', str(value))}"


# ----- golden bytes


def golden() -> dict[str, Lines]:
    """Digests of the blocks and indexes that we write of ledgers that a broker has written."""
    from tests.golden.test_format_golden import LEDGERS, planned, walked
    from tiering_assets.offload_format.encoder import BlockEncoder, encode_index

    found: dict[str, Lines] = {}
    for ledger in LEDGERS:
        plans = planned(ledger)
        metadata = outside("bookkeeper.ledger_metadata").index_ledger_metadata(
            ledger.znode(),
            ledger_id=ledger.ledger_id,
            ctime_ms=ledger.facts["bk_znode_stat"]["ctime"],
        )
        index = encode_index(plans, metadata, ledger.facts["data_size"])
        told = found[str(ledger)] = [f"index {digest(index)}"]
        if not ledger.has_data:
            continue
        entries = [bytes(payload) for _, payload in walked(ledger, 1 << 20)]
        encoder = BlockEncoder(1024)
        for plan in plans:
            encoder.begin(plan)
            first = plan.first_entry_id
            encoder.add_many(first, entries[first : plan.last_entry_id + 1])
            told.append(f"part {plan.part_number} {digest(bytes(encoder.finish()))}")
    return found


SECTIONS: Mapping[str, Callable[[int], dict[str, Lines]]] = {
    "effects": effects,
    "commands": lambda _seeds: commands(),
    "names": lambda _seeds: names(),
    "golden": lambda _seeds: golden(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--seeds", type=int, default=500)
    asked = parser.parse_args()
    found = {section: record(asked.seeds) for section, record in SECTIONS.items()}
    asked.output.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
