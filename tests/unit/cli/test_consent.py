"""The one grammar of what acts: --plan, --execute, --approved, or a yes at a terminal."""

from __future__ import annotations

import io
import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.support.reading_commands import all_commands
from tests.support.trimmed_cluster import TOPIC, TrimmedCluster
from tiering_assets.cli import main as cli
from tiering_assets.cli.grammar.consent import ConsentMode, decide
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError

NAME = "t/ns/orders"
# What a command needs besides, so that nothing but the consent is missing.
NEEDS = {
    "auto on": "",
    "broker gone": "broker-1:8080 --reason dead",
    "dagster prune": "--older-than 30d",
    "expired-copy delete": "",
    "gone-record delete": "",
    "hold lift": "1 --reason done",
    "ledger give-up": "1 --reason wrong",
    "ledger offload": "1",
    "ledger release": "1",
    "stream give-up": "t/ns/orders --reason stuck",
    "orphan sweep": "",
    "scrub run": "",
    "tiering resume": "--all --reason done",
    "topic load-overdue": "",
    "topic offload": f"{NAME} --keep-bytes 0",
}
# They copy and look without it, and publish and heal with it.
HALF = {"ledger offload", "topic offload", "scrub run"}
# Each changes no broker and deletes nothing, and is told apart by --plan alone.
PLAN_ONLY = {"dagster rebuild"}


COMMANDS = {" ".join(words): found for words, found in all_commands().items()}


def options_of(command):
    return {name: one for one in command.params for name in one.opts}


def test_every_command_that_acts_by_consent_is_in_the_table():
    found = {name for name, one in COMMANDS.items() if "--execute" in options_of(one)}
    assert found == NEEDS.keys()
    plans = {name for name, one in COMMANDS.items() if "--plan" in options_of(one)}
    assert plans == NEEDS.keys() | PLAN_ONLY


@pytest.mark.parametrize("name", COMMANDS)
def test_there_is_one_spelling_of_it(name):
    options = options_of(COMMANDS[name])
    for flag in {"--execute", "--plan"} & options.keys():
        assert options[flag].is_flag
        assert not options[flag].secondary_opts
    spelt_otherwise = {"--dry-run", "--yes", "--no-publish", "--no-heal", "--confirm", "--apply"}
    assert not spelt_otherwise & options.keys()


@pytest.fixture
def unopened(monkeypatch, tmp_path):
    """A folder without settings, where opening anything is an error of the test."""
    monkeypatch.chdir(tmp_path)

    def opened(*_given):
        raise AssertionError("something was opened")

    monkeypatch.setattr(Session, "stack", opened)
    monkeypatch.setattr("tiering_assets.defs.shared.instance.find_home", opened)


@pytest.mark.parametrize("name", sorted(NEEDS.keys() - HALF))
@pytest.mark.parametrize("as_json", [False, True])
def test_without_consent_and_terminal_nothing_is_opened_and_the_exit_is_two(
    unopened, capsys, name, as_json
):
    words = [*name.split(), *NEEDS[name].split(), *(["--json"] if as_json else [])]
    assert cli.run(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing was done" in (json.loads(said.err)["message"] if as_json else said.err)


@pytest.mark.parametrize("name", NEEDS)
def test_plan_and_execute_contradict_each_other(unopened, capsys, name):
    assert cli.run([*name.split(), *NEEDS[name].split(), "--plan", "--execute"]) == 2
    assert "take one" in capsys.readouterr().err


def test_what_the_options_ask_for_in_every_combination():
    for execute, plan, file, terminal, half in product((False, True), repeat=5):
        given: dict[str, Any] = {
            "execute": execute,
            "plan": plan,
            "plan_file": Path("p") if file else None,
            "terminal": terminal,
            "safe_half": half,
        }
        if execute and (plan or file):
            with pytest.raises(UsageError, match="take one"):
                decide(**given)
        elif plan or file:
            assert decide(**given) is ConsentMode.PLAN
        elif execute:
            assert decide(**given) is ConsentMode.ACT
        elif half:
            assert decide(**given) is ConsentMode.SAFE
        elif terminal:
            assert decide(**given) is ConsentMode.ASK
        else:
            with pytest.raises(UsageError, match="nothing was done"):
                decide(**given)
    with pytest.raises(UsageError, match="drop --plan-file"):
        decide(execute=False, plan=False, plan_file=Path("p"), approved="x", terminal=True)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    cluster = TrimmedCluster()
    cluster.serve_commands(monkeypatch, tmp_path)
    return cluster


@pytest.fixture
def answer(monkeypatch):
    """Run a command line at a terminal where somebody types this."""

    def run(typed, *words):
        out, err = Terminal(), Terminal()
        for name, stream in (("stdin", Terminal(typed)), ("stdout", out), ("stderr", err)):
            monkeypatch.setattr(sys, name, stream)
        return cli.run([*words]), out.getvalue(), err.getvalue()

    return run


def has(cluster, ledger_id):
    return ledger_id in cluster.stack.ledgers.list_ledger_ids()


@pytest.mark.parametrize("typed", ["n\n", "\n", "", "yesterday\n", "Y E S\n"])
def test_what_is_no_yes_is_a_no(cluster, answer, typed):
    code, out, err = answer(typed, "ledger", "release", "1")
    assert (code, out.splitlines()[-1]) == (2, "nothing was done")
    assert "Delete the bookie copies of 1 ledgers" in err
    assert err.endswith("[y/N] ")
    assert has(cluster, 1)


@pytest.mark.parametrize("typed", ["y\n", "YES\n", " yes \n"])
def test_a_yes_does_exactly_what_was_shown(cluster, answer, typed):
    code, out, _err = answer(typed, "ledger", "release", "1")
    assert code == 0
    assert "1 of 1 ledgers would be released" in out
    assert not has(cluster, 1)
    assert has(cluster, 2)


def test_ctrl_c_at_the_question_does_nothing(cluster, answer, monkeypatch):
    class Interrupted(Terminal):
        def readline(self, *_given):
            raise KeyboardInterrupt

    def run(*words):
        for name, stream in (("stdin", Interrupted()), ("stdout", Terminal())):
            monkeypatch.setattr(sys, name, stream)
        monkeypatch.setattr(sys, "stderr", Terminal())
        return cli.run([*words])

    assert run("ledger", "release", "1") == 130
    assert has(cluster, 1)


def test_nobody_is_asked_where_there_is_nothing_to_do(cluster, answer):
    code, out, err = answer("y\n", "orphan", "sweep")
    assert (code, "0 attempts" in out, "[y/N]" in err) == (0, True, False)


def test_a_plan_is_written_read_and_carried_out(cluster, capsys, tmp_path):
    plan = str(tmp_path / "plan.json")
    assert cli.run(["ledger", "release", "1", "--plan-file", plan]) == 0
    assert f"`--approved {plan} --execute` does it" in capsys.readouterr().out
    assert cli.run(["ledger", "release", "--approved", plan]) == 2
    assert cli.run(["ledger", "release", "--approved", plan, "--plan"]) == 0
    assert has(cluster, 1)
    assert cli.run(["ledger", "release", "--approved", plan, "--execute"]) == 0
    assert not has(cluster, 1)


def test_a_copy_without_execute_is_verified_and_not_published(cluster, capsys):
    cluster.broker.produce(TOPIC, [b"more"])
    cluster.broker.roll_over(TOPIC)
    capsys.readouterr()
    assert cli.run(["ledger", "offload", "--topic", NAME]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "1 of 1 ledgers are copied, verified and not published; "
        "nothing was published, --execute does it"
    )
    found = cluster.stack.topics.read(TOPIC)
    assert [one.ledger_id for one in found[0].ledgers if one.offload] == [0, 1, 2]
    assert cli.run(["ledger", "offload", "--topic", NAME, "--execute"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 of 1 ledgers are published"


def test_a_scrub_without_execute_heals_nothing_and_says_so(cluster, capsys):
    [uid] = [uid for ledger_id, uid in cluster.stack.book.pairs("certificates/") if ledger_id == 2]
    cluster.stack.objects.delete(f"{uid}-ledger-2-index")
    before = cluster.stack.book.pairs("attempts/")
    assert cli.run(["scrub", "run", "--topic", NAME]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == (
        "nothing was healed; 1 broken copies can be: --execute does it"
    )
    assert cluster.stack.book.pairs("attempts/") == before
    assert cli.run(["scrub", "run", "--topic", NAME, "--execute"]) == 0
    assert len(cluster.stack.book.pairs("attempts/")) == len(before) + 1


def expire(cluster, monkeypatch):
    """A trim whose broker could not delete the objects."""
    monkeypatch.setattr(
        cluster.broker,
        "_delete_all",
        lambda info: cluster.site.cluster.delete_ledger(info.ledgerId),
    )
    cluster.trim()
    cluster.later(86_400)


def test_a_yes_never_replaces_the_age_of_an_approved_plan(cluster, capsys, monkeypatch, answer):
    expire(cluster, monkeypatch)
    assert cli.run(["expired-copy", "delete", "--plan", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    code, _out, err = answer("y\n", "expired-copy", "delete", "--approved", plan)
    assert (code, "[y/N]" in err) == (0, False)  # too young: nothing may go, so nobody is asked
    assert any("-ledger-0" in key for key in cluster.world.objects.peek_keys())
    cluster.later(3_700)
    code, out, _err = answer("y\n", "expired-copy", "delete", "--approved", plan)
    assert code == 0
    assert "deleted" in out
    assert not any(key.endswith("-ledger-0") for key in cluster.world.objects.peek_keys())


def test_a_yes_covers_no_copy_that_was_not_shown_as_going(cluster, capsys, monkeypatch):
    from tiering_assets.retention.expired import execute_expired, preview_expired

    expire(cluster, monkeypatch)
    assert cli.run(["expired-copy", "delete", "--plan", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    cluster.later(3_700)
    [shown] = preview_expired(cluster.stack, plan)
    assert not shown.why_kept
    [kept] = execute_expired(cluster.stack, plan, only=[])
    assert kept.why_kept == "it was not shown as going"
    [gone] = execute_expired(cluster.stack, plan, only=[shown.pair])
    assert gone.done is not None
