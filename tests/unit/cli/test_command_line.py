"""The shape of the command line: help with examples, usage errors, exit codes, quick start."""

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import threading

import pytest
from typer.testing import CliRunner

import tiering_assets.resources.errors as errors
from tests.support.reading_commands import TOUR, all_commands, reading_commands
from tiering_assets.cli import main as cli
from tiering_assets.cli.shared.exit_codes import exit_codes, worst
from tiering_assets.resources import ending
from tiering_assets.resources.errors import (
    BookieError,
    IntegrityError,
    MetadataConflictError,
    TierkeeperError,
)

SETTINGS = ("pydantic_settings", "tiering_assets.resources.settings")
HEAVY = ("pyspark", "dagster", "great_expectations", "boto3", "pandas", "kazoo")
CLASSES = [
    kind
    for _name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, TierkeeperError) and kind is not TierkeeperError
]


COMMANDS = all_commands()


def test_the_nouns_and_verbs_are_those_promised():
    promised = ["list", "show", "plan", "offload", "verify", "release"]
    assert {("ledger", verb) for verb in promised} <= COMMANDS.keys()
    assert {("object", "show"), ("object", "verify"), ("config", "show")} <= COMMANDS.keys()
    assert {("stack", verb) for verb in ("up", "down", "status")} <= COMMANDS.keys()
    assert {("orphan", "list"), ("orphan", "sweep"), ("doctor",), ("demo",)} <= COMMANDS.keys()


VERBS = {
    "archive", "backlog", "check", "coverage", "cut", "delete", "down", "expiry", "give-up", "gone", "lift", "list",
    "load-overdue", "make", "message", "object", "off", "offload", "offload-status", "on", "pause", "plan", "post", "print", "prove",
    "prune", "read",
    "rebuild", "release", "resume", "run", "scan", "serve", "set", "settle", "show", "sql", "status", "sweep", "topic", "up",
    "verify", "why",
}  # fmt: skip
# What is no verb, and why it stays.
NO_VERBS = {
    "backlog": "a question: what is left",
    "coverage": "a question: what is missing",
    "expiry": "a question: what expires when",
    "gone": "a person's word about a broker",
    "message": "what is followed",
    "object": "what is followed",
    "topic": "what is followed",
    "offload-status": "Pulsar's own name",
    "sql": "the language of a question",
    "status": "a question: how it is",
    "up": "as of other tools that start servers",
    "down": "as of other tools that start servers",
    "on": "a switch",
    "off": "a switch",
    "why": "a question",
}
ALONE = {"completion", "demo", "doctor"}


def test_a_command_is_a_noun_and_a_verb_or_stands_in_a_list():
    assert {words[-1] for words in COMMANDS if len(words) == 2} == VERBS
    assert {words[0] for words in COMMANDS if len(words) == 1} == ALONE
    assert NO_VERBS.keys() <= VERBS


def test_every_command_that_reads_only_is_on_the_tour_and_says_so():
    """tests/stack/test_tour_loads_nothing.py tries each where no broker has anything loaded."""
    assert reading_commands().keys() == TOUR.keys()
    for words, when in reading_commands().items():
        told = " ".join(CliRunner().invoke(cli.app, [*words, "--help"]).stdout.split())
        assert f"Reads only{when and ' ' + when}: it changes nothing" in told


@pytest.mark.parametrize("words", COMMANDS)
def test_help_has_examples_that_the_command_line_takes(words):
    answer = CliRunner().invoke(cli.app, [*words, "--help"])
    assert answer.exit_code == 0
    examples = re.findall(r"^ +(?:\. \S+ && )?tierkeeper (.+)$", answer.stdout, re.MULTILINE)
    assert examples
    for example in examples:
        said = shlex.split(example)
        called = tuple(said[: len(words)])
        assert called in COMMANDS or said[:1] == ["doctor"]
        if called == words:
            # Parses to the end, without running anything.
            COMMANDS[words].make_context("x", said[len(words) :])
    for shared in ("--json", "--config", "--set", "--log-format", "--verbose"):
        assert shared in answer.stdout


def test_the_exit_codes_of_help_are_those_of_the_error_classes():
    shown = CliRunner().invoke(cli.app, ["--help"]).stdout
    for kind in CLASSES:
        assert re.search(rf"^ +{kind.exit_code}  {kind.__name__}: \S", shown, re.MULTILINE), kind
    told = {int(code) for code in re.findall(r"^ +(\d+)  ", shown, re.MULTILINE)}
    assert told == {0, 1, 2, 10, 130} | {kind.exit_code for kind in CLASSES}


def test_every_error_class_has_a_sentence_in_the_table():
    rows = {row.name: row for row in exit_codes() if row.name}
    assert rows.keys() == {kind.__name__ for kind in CLASSES}
    assert all(row.meaning for row in rows.values())
    assert {name: row.code for name, row in rows.items()} == {
        kind.__name__: kind.exit_code for kind in CLASSES
    }


def test_an_error_that_no_repetition_cures_decides_before_a_retryable_one():
    lost, wrong, down = MetadataConflictError("m"), IntegrityError("i"), BookieError("b")
    assert worst([]) == 0
    assert worst([down, lost]) == lost.exit_code
    assert worst([down, wrong, lost]) == wrong.exit_code


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "No such command"),
        (["ledger", "show", "abc"], "valid integer"),
        (["ledger", "show", "-1"], "-1"),
        (["ledger", "show", "1", "--nonsense"], "--nonsense"),
        (["ledger", "list", "--state", "sleepy"], "sleepy"),
        (
            ["ledger", "offload"],
            "exactly one of ID, --ids, --topic, --namespace, --all; found none",
        ),
        (["ledger", "offload", "5", "--all"], "found ID and --all"),
        (["ledger", "release", "5", "--topic", "a/b/c", "--plan"], "found ID and --topic"),
        (["ledger", "release", "5", "--due", "--plan"], "--due chooses of topics"),
        (["ledger", "release", "--plan"], "choose ledgers by one of"),
        (["ledger", "release", "--approved", "p", "--due", "--execute"], "drop the others"),
        (["config", "show", "--set", "store"], "expected SECTION.FIELD=VALUE"),
    ],
)
def test_a_usage_error_is_two_and_on_standard_error(arguments, said, capsys):
    assert cli.run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err


def test_a_usage_error_is_json_when_json_was_asked_for(capsys):
    assert cli.run(["ledger", "offload", "--json"]) == 2
    said = json.loads(capsys.readouterr().err)
    assert (said["schema"], said["exit_code"]) == ("tierkeeper/error/1", 2)
    assert "exactly one of" in said["message"]


def test_an_expected_error_is_one_line_and_its_exit_code(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIERKEEPER_STORE_BUKET", "x")
    assert cli.run(["config", "show"]) == errors.SettingsError.exit_code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "did you mean TIERKEEPER_STORE_BUCKET?" in printed.err
    assert cli.run(["--json", "config", "show"]) == errors.SettingsError.exit_code
    said = json.loads(capsys.readouterr().err)
    assert said["error"] == "SettingsError"
    assert said["exit_code"] == errors.SettingsError.exit_code
    assert said["retryable"] is False


def test_a_missing_bucket_setting_is_told_before_any_connection(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert cli.run(["ledger", "list"]) == errors.SettingsError.exit_code
    assert "TIERKEEPER_STORE_BUCKET" in capsys.readouterr().err


def test_an_unexpected_error_keeps_its_traceback(capsys, monkeypatch):
    def broken(*_values, **_more):
        raise ZeroDivisionError("by surprise")

    monkeypatch.setattr("tiering_assets.resources.settings_sources.load_settings", broken)
    assert cli.run(["config", "show"]) == TierkeeperError.exit_code == 10
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "ZeroDivisionError: by surprise" in said


def test_a_library_that_ends_the_process_is_no_success(capsys, monkeypatch):
    def ended(*_values, **_more):
        raise SystemExit(0)  # PySpark does so when it takes the process for a doctest

    monkeypatch.setattr("tiering_assets.resources.settings_sources.load_settings", ended)
    assert cli.run(["config", "show"]) == TierkeeperError.exit_code
    assert "SystemExit" in capsys.readouterr().err


def test_ctrl_c_has_its_own_code(capsys, monkeypatch):
    def interrupted(*_values, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr("tiering_assets.resources.settings_sources.load_settings", interrupted)
    assert cli.run(["config", "show"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_an_error_that_follows_ctrl_c_has_its_code(capsys, monkeypatch, tmp_path):
    """What was interrupted inside a library comes back as a failure of that library."""
    monkeypatch.chdir(tmp_path)
    asked = threading.Event()
    monkeypatch.setattr(ending, "_asked", asked)
    assert cli.run(["ledger", "list"]) == errors.SettingsError.exit_code
    asked.set()
    assert cli.run(["ledger", "list"]) == 130
    assert "TIERKEEPER_STORE_BUCKET" in capsys.readouterr().err


def test_the_version_is_printed(capsys):
    assert cli.run(["--version"]) == 0
    assert re.fullmatch(r"tierkeeper \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_help_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from tiering_assets.cli.main import run\n"
        "code = run(sys.argv[2:])\n"
        "print([m for m in sys.argv.pop(1).split() if m in sys.modules], file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    for arguments, heavy in (
        (["--help"], HEAVY + SETTINGS),
        (["ledger", "offload", "--help"], HEAVY + SETTINGS),
        (["config", "check", "--help"], HEAVY + SETTINGS),
        (["config", "show"], HEAVY),
    ):
        command = [sys.executable, "-c", script, " ".join(heavy), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == "[]\n"


def test_a_closed_pipe_is_no_error():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", "from tiering_assets.cli.main import main; main()", "--help"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
