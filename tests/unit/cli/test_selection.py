"""Which ledgers and topics a command is about: one way, known, and never empty."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.support.reading_commands import all_commands
from tests.support.trimmed_cluster import TrimmedCluster
from tiering_assets.cli import main as cli
from tiering_assets.cli.grammar.id_file import read_ids
from tiering_assets.cli.shared.usage import UsageError
from tiering_assets.resources.errors import LedgerNotFoundError

NAME, OTHER = "t/ns/orders", "t/else/payments"
LEDGERS = {"--ids", "--topic", "--namespace"}
# Commands about one thing, about the whole bucket, or about no ledger and no topic at all.
ONE_THING = {
    "broker gone", "ledger give-up", "ledger show", "ledger why", "lineage coverage", "lineage message",
    "lineage object", "lineage topic", "object scan", "object show", "object verify", "schema archive", "schema list", "schema show", "stream cut", "stream give-up", "stream off", "stream on", "stream status", "topic offload", "topic offload-status", "topic read",
}  # fmt: skip
WHOLE = {
    "auto off", "auto on", "auto status", "broker list", "budget set", "budget show", "catalogue post",
    "catalogue prove", "catalogue rebuild", "catalogue settle", "catalogue sql", "catalogue status", "completion",
    "config check", "config show", "dagster prune", "dagster rebuild", "demo", "doctor", "expired-copy delete",
    "expired-copy list", "gone-record delete", "gone-record list", "hold list", "key make",
    "metrics print", "metrics serve", "orphan list", "orphan sweep", "stack down", "stack status", "stack up",
    "tiering list",
}  # fmt: skip


COMMANDS = {" ".join(words): found for words, found in all_commands().items()}
SELECTING = {
    "audit verify", "hold lift", "hold set", "ledger list", "ledger offload", "ledger plan",
    "ledger release", "ledger verify", "policy check", "policy show", "scrub run", "scrub status",
    "tiering pause", "tiering resume", "topic backlog", "topic expiry", "topic list",
    "topic load-overdue",
}  # fmt: skip


def test_every_command_selects_alike_or_stands_in_a_list():
    assert COMMANDS.keys() == SELECTING | ONE_THING | WHOLE
    for name in SELECTING:
        options = {option for one in COMMANDS[name].params for option in one.opts}
        a_pause = name.startswith("tiering ")  # is of topics, of namespaces, or of all
        assert (LEDGERS - {"--ids"} if a_pause else LEDGERS) <= options, name


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    cluster = TrimmedCluster()
    cluster.broker.create_topic("t/else/persistent/payments-partition-0")
    cluster.broker.create_topic("t/else/persistent/payments-partition-1")
    cluster.serve_commands(monkeypatch, tmp_path)
    return cluster


def listed(capsys, *words):
    capsys.readouterr()
    assert cli.run(["ledger", "list", *words]) == 0
    return {int(line.split()[0]) for line in capsys.readouterr().out.splitlines()[1:]}


def test_each_way_selects_the_same(cluster, capsys, tmp_path, monkeypatch):
    file = tmp_path / "ids"
    file.write_text("2\n1\n")
    every = listed(capsys)
    ours = listed(capsys, "--topic", NAME)
    assert listed(capsys, "1", "2") == listed(capsys, "--ids", str(file)) == {1, 2}
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\n2"))
    assert listed(capsys, "--ids", "-") == {1, 2}
    assert listed(capsys, "--namespace", "t/ns") == ours >= {0, 1, 2}
    assert listed(capsys, "--topic", NAME, "--topic", NAME) == ours
    assert listed(capsys, "--topic", OTHER) == every - ours  # both partitions
    assert listed(capsys, "--namespace", "t/else", "--namespace", "t/ns") == every


def test_a_ledger_means_its_topic_where_topics_are_chosen(cluster, capsys, tmp_path):
    (tmp_path / "ids").write_text("1\n2\n")
    told = []
    for words in (("1",), ("1", "2"), ("--ids", "ids"), (NAME,), ("--topic", NAME)):
        capsys.readouterr()
        assert cli.run(["topic", "list", *words]) == 0
        told.append(capsys.readouterr().out)
    assert len({*told}) == 1
    assert cli.run(["topic", "list", "999"]) == LedgerNotFoundError.exit_code
    assert cli.run(["topic", "list", "1", NAME]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--topic", "t/ns/typo"), "no such topic"),
        (("--topic", "orders"), "not a topic name"),
        (("--topic", ""), "--topic: "),
        (("--namespace", "t/none"), "no topic in it"),
        (("--namespace", "t"), "no topic in it"),
        (("--topic", NAME, "1"), "found ID and --topic"),
        (("--ids", "absent", "1"), "found ID and --ids"),
        (("--ids", "absent"), "No such file"),
        (("--ids", "empty"), "names no ledger"),
    ],
)
@pytest.mark.parametrize("command", ["ledger list", "ledger offload", "scrub run"])
def test_what_names_nothing_is_no_success_and_never_all(
    cluster, capsys, tmp_path, command, words, said
):
    (tmp_path / "empty").write_text("")
    before = sorted(cluster.world.objects.peek_keys())
    assert cli.run([*command.split(), *words]) == 2
    assert said in capsys.readouterr().err
    assert sorted(cluster.world.objects.peek_keys()) == before


@pytest.mark.parametrize(
    "words",
    ["ledger offload 1 999 --execute", "ledger release 1 999 --execute", "ledger plan 999"],
)
def test_an_id_of_another_cluster_stops_all_of_it(cluster, capsys, words):
    before = sorted(cluster.world.objects.peek_keys())
    assert cli.run(words.split()) == LedgerNotFoundError.exit_code
    said = capsys.readouterr().err
    assert "ledger 999: no topic and no record of this cluster names it" in said
    assert sorted(cluster.world.objects.peek_keys()) == before
    assert 1 in cluster.stack.ledgers.list_ledger_ids()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\n\n2\n", "line 2 is blank"),
        ("1\n2\n1\n", "line 3 repeats ledger 1 of line 1"),
        ("1\nledger\n", "line 2: 'ledger' is no ledger id"),
        ("1 2\n", "line 1: '1 2' is no ledger id"),
        ("-1\n", "'-1' is no ledger id"),
        ("٣\n", "is no ledger id"),
        ("9" * 30, "is no ledger id"),
        ("", "names no ledger"),
    ],
)
def test_a_file_of_ids_is_taken_whole_or_not_at_all(tmp_path, text, said):
    path = tmp_path / "ids"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_ids(path, io.StringIO())
    with pytest.raises(UsageError, match=said):
        read_ids(Path("-"), io.StringIO(text))


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "ids"
    path.write_bytes(b"\xff\xfe1\n")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_ids(path, io.StringIO())


def test_an_audit_of_a_topic_takes_its_ledgers_from_the_records_alone(cluster):
    from tiering_assets.audit.topics import ledgers_of

    objects = cluster.stack.objects
    assert ledgers_of(objects, [NAME], []) == [0, 1, 2]
    assert ledgers_of(objects, [], ["t/ns"]) == [0, 1, 2]
    assert ledgers_of(objects, [OTHER], ["t/else"]) == []
    [key] = [key for key in cluster.stack.book.keys("attempts/") if "/1/" in key]
    cluster.world.objects.put(cluster.stack.book.prefix + key, b"{")
    assert ledgers_of(objects, [OTHER], []) == [1]  # it may be of any topic
