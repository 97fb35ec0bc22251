"""What a person sees first, and what a shell is answered for a Tab."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from typing import Any

import pytest
import typer

from tests.support.cli_shell import COMMAND
from tests.support.trimmed_cluster import TrimmedCluster
from tiering_assets.cli import main as cli
from tiering_assets.cli.grammar import known_names
from tiering_assets.cli.grammar.known_names import KnownNames, read_names, remember_names
from tiering_assets.cli.grammar.start_page import SECTIONS, start_page

NAMES_FILE = known_names.names_file
ROOT_GROUP: Any = typer.main.get_command(cli.app)


def groups(group, words=()):
    yield words, group
    for name, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from groups(found, (*words, name))


def test_a_bare_command_fits_a_screen_and_is_no_error(capsys):
    assert cli.run([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == start_page(ROOT_GROUP)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_every_noun_stands_in_one_section():
    nouns = [noun for section in SECTIONS.values() for noun in section]
    assert sorted(nouns) == sorted(ROOT_GROUP.commands)


@pytest.mark.parametrize(("words", "group"), [*groups(ROOT_GROUP)], ids=str)
def test_no_line_of_a_list_of_commands_is_cut(words, group):
    limit = 80 - 2 - 6 - max(map(len, group.commands))
    for name, command in group.commands.items():
        assert not command.get_short_help_str(limit).endswith("..."), (*words, name)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(known_names, "names_file", NAMES_FILE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tierkeeper" / "names.json"


def tab(*words, shell="bash"):
    """What a shell is told where somebody presses Tab behind these words; and CPU seconds."""
    line = " ".join(("tierkeeper", *words))
    environment = {
        "_TIERKEEPER_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words)),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        COMMAND,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout.split(), spent


def test_commands_options_topics_and_ids_are_completed(cache):
    remember_names(["persistent://t/ns/orders", "t/ns/other", "u/ns/x"], [7, 71, 8])
    assert tab("led")[0] == ["ledger"]
    assert tab("ledger", "sh")[0] == ["show"]
    assert "--approved" in tab("ledger", "release", "--a")[0]
    assert tab("ledger", "show", "7")[0] == ["71", "7"]
    assert tab("ledger", "list", "--topic", "t/")[0] == ["t/ns/orders", "t/ns/other"]
    assert tab("topic", "backlog", "persistent://u")[0] == ["persistent://u/ns/x"]
    assert tab("topic", "list", "--namespace", "t")[0] == ["t/ns"]
    assert tab("ledger", "show", "9")[0] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script_and_its_answers(cache, capsys, shell):
    remember_names(["t/ns/orders"])
    assert cli.run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_TIERKEEPER_COMPLETE" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
    assert "ledger" in " ".join(tab("led", shell=shell)[0])


def test_a_tab_asks_nobody(cache, monkeypatch, tmp_path):
    """Settings that name no server, and are no settings at all, are not even read."""
    monkeypatch.setenv("TIERKEEPER_NO_SUCH_THING", "1")
    monkeypatch.setenv("TIERKEEPER_CONFIG", str(tmp_path / "absent"))
    assert tab("hold", "li")[0] == ["lift", "list"]


def test_what_is_listed_is_known_and_a_file_that_is_damaged_is_no_error(
    cache, monkeypatch, tmp_path, capsys
):
    TrimmedCluster().serve_commands(monkeypatch, tmp_path)
    assert read_names() == KnownNames()
    assert cli.run(["ledger", "list"]) == 0
    assert read_names().topics == ("t/ns/orders",)
    assert read_names().ledger_ids[-3:] == (2, 1, 0)
    assert cache.stat().st_mode & 0o777 == 0o600
    for damage in ("", "[]", '{"topics": 1}', '{"topics": [], "ledger_ids": ["x"]}'):
        cache.write_text(damage)
        assert read_names() == KnownNames()
        assert cli.run(["topic", "list"]) == 0
        assert read_names() == KnownNames(("t/ns/orders",))


def test_a_folder_that_cannot_be_written_is_no_error(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(known_names, "names_file", NAMES_FILE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    remember_names(["t/ns/orders"])
    assert read_names() == KnownNames()


def test_it_stays_small(cache, monkeypatch):
    monkeypatch.setattr(known_names, "TOPICS_MAX", 2)
    monkeypatch.setattr(known_names, "LEDGERS_MAX", 2)
    remember_names(["b", "c", "a"], [1, 3, 2])
    assert read_names() == KnownNames(("a", "b"), (3, 2))


def test_the_largest_file_costs_less_than_the_command_itself(cache):
    """In CPU, beside a file of one name: a busy machine makes both dearer."""
    cache.parent.mkdir(parents=True)
    ask = ("ledger", "list", "--topic", "tenant-7/")
    cache.write_text(json.dumps({"topics": ["tenant-7/ns/topic"], "ledger_ids": []}))
    one, least = tab(*ask)
    assert len(one) == 1
    names = [f"tenant-{i % 50}/ns/topic-{i:06d}" for i in range(known_names.TOPICS_MAX)]
    ids = list(range(10**7, 10**7 - known_names.LEDGERS_MAX, -1))
    cache.write_text(json.dumps({"topics": names, "ledger_ids": ids}))
    found, spent = tab(*ask)
    assert len(found) == 200
    assert spent < 2 * least


@pytest.mark.parametrize("words", [[], ["--help"], ["completion", "bash"], ["config", "show"]])
def test_a_reader_that_leaves_is_no_error(words, tmp_path):
    """As behind `| head -1`: the pipe is closed before all is written."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
