"""What progress looks like: a time and coloured states at a terminal, the plain line elsewhere."""

import io
import sys
from datetime import UTC, datetime

import pytest

from tiering_assets.cli.shared.session import LogFormat, Session
from tiering_assets.cli.terminal.progress import progress_line, tinted
from tiering_assets.cli.terminal.screen import Screen, printing_on

NOW = datetime(2026, 11, 25, 13, 19, 21, tzinfo=UTC)
LINE = "ledger 7 of t/ns/[red]x: published; ledger 8: failed"


def told(monkeypatch, on, **session):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    with printing_on(on):
        Session(**session).progress(LINE)
    return out.getvalue()


def test_a_terminal_shows_when_and_colours_states_alone(monkeypatch):
    said = told(monkeypatch, Screen(width=100, colour=True, now=NOW))
    assert "13:19:21Z" in said
    assert "\x1b[32mpublished\x1b[0m" in said
    assert "\x1b[31mfailed\x1b[0m" in said
    assert "[red]x" in said  # a name is no markup
    assert said.count("\n") == 1


@pytest.mark.parametrize("on", [Screen(), Screen(width=100, now=NOW)])
def test_elsewhere_it_is_the_plain_line(monkeypatch, on):
    assert told(monkeypatch, on) == f"{LINE}\n"


def test_json_is_json_at_a_terminal_too(monkeypatch):
    said = told(monkeypatch, Screen(width=100, colour=True, now=NOW), log_format=LogFormat.JSON)
    assert said.startswith('{"level": "progress"')


def test_no_character_is_lost():
    assert tinted(LINE).plain == LINE
    assert progress_line(LINE, Screen(now=NOW)).plain == f"13:19:21Z  {LINE}"
