"""What progress looks like: a time and coloured states at a terminal, the plain line elsewhere."""

import io
import sys
from datetime import UTC, datetime

import pytest

from tiering_assets.cli.shared.session import LogFormat, Session
from tiering_assets.cli.terminal.progress import ProgressBar, bar_text, progress_line, tinted
from tiering_assets.cli.terminal.screen import Screen, printing_on
from tiering_assets.ground.task_progress import TaskFigures, line_of

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


def figures(done, whole=4_000_000):
    return TaskFigures(
        action="copying",
        ledgers_done=1,
        ledgers=2,
        bytes_done=done,
        bytes=whole,
        bytes_per_s=1e6,
        seconds_left=3.0,
    )


def on_screen(text):
    """The lines of a terminal: what is written behind a carriage return stands over the old."""
    found = []
    for line in text.split("\n"):
        cells: list[str] = []
        for piece in line.split("\r"):
            cells[: len(piece)] = piece
        found.append("".join(cells).rstrip())
    return found


@pytest.mark.parametrize(("done", "full"), [(0, 0), (1_000_000, 5), (4_000_000, 20)])
def test_a_bar_says_what_the_line_says(done, full):
    line = line_of(figures(done))
    assert bar_text(line, line.event, 200) == f"[{'#' * full}{'-' * (20 - full)}] {line}"
    assert f"{done / 1e6:.1f} of 4.0 MB, 1.0 MB/s, 3 s left" in line
    assert len(bar_text(line, line.event, 60)) == 59  # nothing is wrapped


def test_of_no_bytes_a_bar_is_empty():
    line = line_of(figures(0, 0))
    assert bar_text(line, line.event, 200).startswith(f"[{'-' * 20}] copying")


def test_a_bar_is_drawn_over_and_lines_stand_above_it(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    at_terminal = Screen(width=100, redraws=True, now=NOW)
    with printing_on(at_terminal):
        session = Session()
        bar = session.bar()
        assert isinstance(bar, ProgressBar)
        assert session.bar() is bar
        bar.show(line_of(figures(1_000_000)))
        bar.show("short")
        session.progress(LINE)
        bar.show(line_of(figures(2_000_000)))
    assert on_screen(out.getvalue()) == [
        LINE,
        f"[{'#' * 10}{'-' * 10}] {figures(2_000_000).text}",
    ]
    bar.clear()
    bar.clear()
    assert on_screen(out.getvalue()) == [LINE, ""]


@pytest.mark.parametrize(
    ("on", "how"),
    [
        (Screen(), {}),
        (Screen(width=100), {}),  # TERM=dumb
        (Screen(width=100, redraws=True), {"log_format": LogFormat.JSON}),
        (Screen(width=100, redraws=True), {"verbosity": 1}),
    ],
)
def test_where_a_line_cannot_be_drawn_over_there_is_no_bar(on, how):
    with printing_on(on):
        assert Session(**how).bar() is None
