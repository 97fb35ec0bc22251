"""Every command line that a message, a unit, the demo or an asset names is one that can be run.

Each is run from a pipe, as units run it, up to where it would open its first connection.
"""

from __future__ import annotations

import ast
import re
import shlex

import pytest
import typer

from tests.support.rooms import ROOT
from tiering_assets.cli import main as cli
from tiering_assets.cli.shared.session import Session
from tiering_assets.resources.errors import BrokerError

TREES = ("tiering_assets", "resources", "deploy", "benchmarks", "tools")
UNITS = ("*.service", "*.timer", "*.yaml", "*.yml", "*.sh", "*.md", "*.toml", "Makefile")
# They start servers, serve until they are stopped, or write a key; docs/cli.md has them.
SERVE = {"demo", "key make", "metrics serve", "stack up", "stack down"}
QUOTED = re.compile(r"`tierkeeper ([^`]+)`")
STARTED = re.compile(
    r"(?:^ExecStart=\S*|^\s*-? ?command: \[?\"?|^|\$ )tierkeeper ([a-z][^\n#|&;]*)", re.M
)
# Ways to write "and so on" or "either": a name for a person, not for a shell.
FOR_PEOPLE = re.compile(r"…|\.\.\.|\|")


def texts():
    """Texts of string literals, with 1 for each value put in."""
    for tree in TREES:
        for path in sorted((ROOT / tree).rglob("*.py")):
            yield from _literals(path)


def _literals(path):
    parsed = ast.parse(path.read_text(encoding="utf-8"))
    inside = set()
    for node in ast.walk(parsed):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(one) for one in node.values}
            yield _with_ones(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield "" if id(node) in inside else node.value


def _with_ones(node):
    text = ""
    for one in node.values:
        if isinstance(one, ast.Constant):
            text += str(one.value)
        else:  # behind a letter it is an option that may be left out
            text += "" if text[-1:].isalnum() else "1"
    return text


def lines():
    found = {match[1] for text in texts() for match in QUOTED.finditer(text)}
    for pattern in UNITS:
        for path in [*(ROOT / "deploy").rglob(pattern), *ROOT.glob(pattern)]:
            if path.suffix != ".md":
                text = path.read_text()
                found |= {match[1] for match in STARTED.finditer(text)}
                lists = re.findall(r"command: \[tierkeeper, ([^\]]*)\]", text)
                found |= {one.replace(",", "").replace('"', "") for one in lists}
    return sorted({re.sub(r"\{[a-z_]+\}", "1", " ".join(line.split())) for line in found})


LINES = [one for one in lines() if not FOR_PEOPLE.search(one) and one[0].islower()]


def command_of(words):
    """The command's own words, and the rest; empty where there is no such command."""
    group, taken = typer.main.get_command(cli.app), []
    while words and hasattr(group, "commands") and words[0] in group.commands:
        group = group.commands[words[0]]
        taken.append(words[0])
        words = words[1:]
    return taken, words


def test_many_are_found():
    assert len(LINES) > 50
    assert "scrub run --topic 1 --execute" in LINES
    assert "metrics serve --host 0.0.0.0 --port 9464" in LINES  # of a service


@pytest.mark.parametrize("line", LINES)
def test_it_can_be_run(line, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)

    def opened(*_given, **_how):
        raise BrokerError("here it would begin")

    monkeypatch.setattr(Session, "stack", opened)
    words = shlex.split(re.sub(r"\b(ID|N)\b", "1", line))
    taken, rest = command_of(words)
    assert taken, f"no such command: tierkeeper {line}"
    if not rest or " ".join(taken) in SERVE or taken == ["doctor"] or rest[0] == "bin":
        return  # spoken of as such
    code = cli.run(words)
    assert code != 2, capsys.readouterr().err
