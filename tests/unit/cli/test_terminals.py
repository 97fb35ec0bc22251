"""Every command's output at two widths, with colour and in a pipe, from one simulated fleet."""

import ast
import re
import sys
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from rich.cells import cell_len

from tests.support import terminals
from tests.support.rooms import ROOT
from tests.support.same_record import every_command
from tests.support.terminals import DOCS, PICTURES, QUESTIONS, STORY, pictures, tell_story
from tiering_assets.cli.shared.exit_codes import UNEXPECTED
from tiering_assets.cli.terminal import show, table
from tiering_assets.cli.terminal.screen import Screen
from tiering_assets.ground.damage_advice import next_step

SCREENS = {
    "pipe": Screen(),
    "100 columns": Screen(width=100),
    "60 columns": Screen(width=60),
    "20 columns": Screen(width=20),
    "colour": Screen(width=100, colour=True),
}
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@cache
def told(name):
    """The renderings on a screen, the lines of their tables, and who printed a table."""
    laid, callers = [], set()
    really, shown = table.lay_out, show.show_table

    def lay_out(columns, rows, *, width, tell):
        for line in really(columns, rows, width=width, tell=tell):
            laid.append("".join(piece.text for piece in line).rstrip())
            yield line

    def show_table(columns, rows, on):
        caller = sys._getframe(2)  # behind print_table
        callers.add((Path(caller.f_code.co_filename).name, caller.f_code.co_name))
        shown(columns, rows, on)

    with patch.object(show, "lay_out", lay_out), patch.object(show, "show_table", show_table):
        return list(tell_story(SCREENS[name])), laid, callers


def commands():
    groups = {words[:-1] for words in every_command() if words}
    return {words for words in every_command() if words} - groups


def test_every_command_has_a_rendering():
    called = [tuple(line.split()) for line in STORY]
    assert [c for c in commands() if not any(line[: len(c)] == c for line in called)] == []


def test_every_table_has_one():
    """Functions that call print_table, by module and name; those inside of one count as it."""
    printing = {
        (path.name, function.name)
        for path in (ROOT / "tiering_assets" / "cli").rglob("*.py")
        for function in ast.parse(path.read_text()).body
        if isinstance(function, ast.FunctionDef)
        and function.name != "print_table"
        and any(
            isinstance(node, ast.Call) and ast.unparse(node.func) == "print_table"
            for node in ast.walk(function)
        )
    }
    assert len(printing) > 15
    _renderings, _laid, callers = told("pipe")
    assert printing - callers == set()


@pytest.mark.parametrize("name", SCREENS)
def test_each_ends_as_in_a_pipe_and_none_with_a_traceback(name):
    renderings, _laid, _callers = told(name)
    assert [one.code for one in renderings] == [one.code for one in told("pipe")[0]]
    assert UNEXPECTED not in {one.code for one in renderings}
    assert all(one.out or one.err for one in renderings)


@pytest.mark.parametrize("width", [100, 60, 20])
def test_no_line_of_a_table_is_wider_but_for_a_key_or_an_unbroken_word(width):
    _renderings, laid, _callers = told(f"{width} columns")
    wide = [line for line in laid if cell_len(line) > width]
    assert len(laid) > 200
    named = re.compile(r" *(KEY|ATTEMPT) \S+")
    assert [x for x in wide if len(x.split()) > 1 and not named.fullmatch(x)] == []
    assert width < 100 or wide == []


@pytest.mark.parametrize("width", [100, 60])
def test_ids_topics_and_states_are_seen_at_each_width(width):
    listed = next(one for one in told(f"{width} columns")[0] if one.line == "ledger list")
    piped = next(one for one in told("pipe")[0] if one.line == "ledger list")
    rows = [line.split() for line in piped.out.splitlines()[1:]]
    assert len(rows) > 10
    for row in rows:
        [line] = [x for x in listed.out.splitlines() if x.split()[:2] == row[:2]]
        topic = row[-1].removeprefix("persistent://")
        assert line.split()[-1][:8] == topic[:8]
        assert line.split()[-1][-8:] == topic[-8:]
        assert "persistent://" not in line


def test_colour_changes_no_character_and_is_nowhere_else():
    for one, plain in zip(told("colour")[0], told("100 columns")[0], strict=True):
        if one.words[:2] != ["ledger", "verify"]:  # it tells seconds
            assert ESCAPES.sub("", one.out) == plain.out
    text = "".join(one.out for one in told("colour")[0])
    coloured = {found.strip() for found in re.findall(r"\x1b\[3\dm(.+?)\x1b\[0m", text)}
    wanted = {"fail", "broken", "held", "failed", "finding", "ok", "paused", "done"}
    assert wanted - coloured == set()
    for name in ("pipe", "100 columns", "60 columns"):
        assert not any("\x1b" in one.out for one in told(name)[0])


def test_findings_stand_one_a_line():
    for name in ("pipe", "100 columns"):
        shown = {one.line: one.out for one in told(name)[0]}
        verify = shown["ledger verify 0 1 2"]
        assert re.search(r"found 281474976710657$", verify, re.MULTILINE)
        assert re.search(r"block 1: not read$", verify, re.MULTILINE)
        assert "; block" not in "".join(shown.values())


def test_digests_are_whole_at_each_width():
    digest = "41caa591b86e30118e763748b25bdad53ca54a971b0a323cadab488d7c35d431"
    for name in SCREENS:
        shown = [ESCAPES.sub("", one.out) for one in told(name)[0]]
        found = [out for out in shown if "SHA-256" in out and "of its facts" not in out]
        assert len(found) > 2
        assert all(digest in out for out in found)


def test_a_step_follows_each_reason():
    for one in told("100 columns")[0]:
        if one.line.startswith("ledger why"):
            assert [line[:8] for line in one.out.splitlines()][1:] == ["  next: "]
        if one.line == "topic offload-status t/ns/orders":
            assert "status              SUCCESS: 3 of 5 ledgers offloaded, 2 " in one.out
            assert "\nnext, " in one.out
        if one.line.startswith("topic backlog"):
            reasons = {"excluded", "paused", "failed", "held", "done", "open"}
            named = set(re.findall(r"^next, ([^:]+): ", one.out, re.MULTILINE))
            assert reasons <= named or "t/ns/orders" in one.line


def test_a_damaged_copys_page_says_what_heals_it():
    before, after = (one.out for one in told("pipe")[0] if one.line == "ledger show 2")
    assert "next: tierkeeper ledger release 2 --execute" in before
    assert f"next: {next_step('t/ns/persistent/orders')}" in after


def test_each_of_the_five_questions_is_answered_by_one_command():
    said = {one.line: one for one in told("100 columns")[0]}
    answers = {question: said[line] for question, line in QUESTIONS.items()}
    assert len(answers) == 5
    assert [one.code for one in answers.values()] == [0] * 5
    *_others, why, deleted = (one.out for one in answers.values())
    assert "  next: " in why
    assert re.search(r"to be released on certificate DIGEST\n  released by run \S+, HOST", deleted)


def test_the_pictures_of_the_docs_are_what_is_printed():
    kept = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.txt")}
    assert kept.keys() == {f"{name}.txt" for name in (*PICTURES, "five-questions")}
    assert kept == pictures(told("100 columns")[0]), "run `make terminals`"
    assert terminals.WIDTH == 100
