"""What standard output is decides once how results look: a pipe, a terminal, one without colour."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.rooms import ROOT
from tiering_assets.cli.shared.output import print_facts, print_line, print_table
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.cli.terminal.screen import Screen, printing_on, screen
from tiering_assets.cli.terminal.tint import tint_of
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.look.ledger.states import LedgerState

NOW = datetime(2026, 11, 25, 15, tzinfo=UTC)
COLUMNS = (
    Column("LEDGER", ValueKind.ID),
    Column("STATE", ValueKind.STATE),
    Column("READ", ValueKind.TIME),
    Column("SIZE", ValueKind.SIZE),
    Column("TOPIC", ValueKind.TOPIC),
    Column("DETAIL", ValueKind.FINDINGS),
)
MARKUP = "persistent://t/ns/[red]x<script>\x1b[31m"
ROWS = [
    (1, "broken", NOW - timedelta(hours=2), 2048, MARKUP, ["entry 7 is missing", "[bold]b\n"]),
    (2, "ok", None, None, "persistent://t/ns/b", []),
]
ESCAPE = "\x1b["


def said(capsys, on):
    with printing_on(on):
        print_table(COLUMNS, ROWS)
        print_line("finding: [red]entry[/red]", lead="finding")
    return capsys.readouterr().out


def test_a_pipe_has_every_value_whole_and_each_finding_by_itself(capsys):
    assert said(capsys, Screen(now=NOW)).splitlines() == [
        "LEDGER  STATE   READ                  SIZE     TOPIC                                     DETAIL",
        r"1       broken  2026-11-25 13:00:00Z  2.0 KiB  persistent://t/ns/[red]x<script>\x1b[31m  "
        "entry 7 is missing",
        r"1       broken  -                     -        persistent://t/ns/[red]x<script>\x1b[31m  "
        r"[bold]b\n",
        "2       ok      -                     -        persistent://t/ns/b                       -",
        "finding: [red]entry[/red]",
    ]


def test_names_are_no_markup_and_no_command_of_a_terminal(capsys):
    for on in (Screen(width=120, now=NOW), Screen(width=120, colour=True, now=NOW)):
        shown = said(capsys, on)
        assert r"t/ns/[red]x<script>\x1b[31m" in shown
        assert "[red]entry[/red]" in shown
        assert r"[bold]b\n" in shown
        assert "persistent://" not in shown


def test_colour_is_for_states_and_findings_and_changes_no_character(capsys):
    plain = said(capsys, Screen(width=120, now=NOW))
    colour = said(capsys, Screen(width=120, colour=True, now=NOW))
    assert ESCAPE not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", colour) == plain
    coloured = re.findall(r"\x1b\[3\dm(.+?)\x1b\[0m", colour)
    assert [text.strip() for text in coloured] == ["broken", "ok", "finding"]


def test_a_time_in_a_line_has_its_age_at_a_terminal_alone(capsys):
    line = "read 2026-11-25 13:00:00Z, due 2026-11-25 16:00:00Z; no time is 2026-13-99 99:00:00Z"
    print_line(line)
    with printing_on(Screen(width=80, now=NOW)):
        print_line(line)
        print_facts({"hold": line[:25]})
    piped, aged, fact = capsys.readouterr().out.splitlines()
    assert piped == line
    assert aged == (
        "read 2026-11-25 13:00:00Z (2.0 h ago), due 2026-11-25 16:00:00Z (in 1.0 h); "
        "no time is 2026-13-99 99:00:00Z"
    )
    assert fact == "hold  read 2026-11-25 13:00:00Z (2.0 h ago)"


def test_a_terminal_that_knows_few_characters_breaks_nothing(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    with printing_on(Screen(width=60, now=NOW)):
        print_table(COLUMNS[:1] + COLUMNS[4:5], [(1, "persistent://t/ns/\u6f22" + "x" * 90)])
    sys.stdout.flush()
    assert b"t/ns/?xxx" in written.getvalue()
    assert b"x?x" in written.getvalue()


@pytest.mark.parametrize("word", [*LedgerState, *BacklogReason])
def test_what_is_wrong_is_red_and_what_is_well_is_green(word):
    wrong = ["unsafe", "quarantined", "damaged", "failed"]
    well = ["published", "released", "verified", "done"]
    if word.value in wrong:
        assert tint_of(word.value) == "red"
    if word.value in well:
        assert tint_of(word.value) == "green"


def test_standard_output_of_a_test_is_a_pipe_and_one_module_asks():
    assert screen() == Screen()
    product = ROOT / "tiering_assets"
    asking = [path.name for path in product.rglob("*.py") if ".isatty()" in path.read_text()]
    assert asking == ["screen.py"]


def test_people_read_times_in_one_form():
    """Keys, records, and what is compared to the microsecond, are in forms of their own."""
    forms = {
        path.relative_to(ROOT).as_posix(): re.findall(r":(%[^}]+)}", path.read_text())
        for path in (ROOT / "tiering_assets").rglob("*.py")
    }
    assert {path: found for path, found in forms.items() if found} == {
        "tiering_assets/batch/release_plan.py": ["%Y-%m-%dT%H:%M:%SZ"],  # words of a record
        "tiering_assets/cli/terminal/progress.py": ["%H:%M:%SZ"],  # of what happens now
        "tiering_assets/ground/moments.py": ["%Y-%m-%d %H:%M:%S"],
        "tiering_assets/records/keys.py": ["%Y-%m-%dT%H"],
    }


def in_a_terminal(*command, columns=100, **environment):
    """What a command shows in a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
    child = subprocess.Popen(
        [sys.executable, "-c", "from tiering_assets.cli.main import main; main()", *command],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=kept | environment,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 1 << 16):
            shown += piece
    except OSError:  # Linux says so at the other end's last close
        pass
    os.close(ours)
    assert child.wait() == 0
    return shown.decode().replace("\r\n", "\n")


def test_a_real_terminal_is_asked_for_its_width_and_its_kind():
    wide = in_a_terminal("config", "show", TERM="xterm", columns=100)
    assert ESCAPE in wide  # the heads
    plain = re.sub(r"\x1b\[[0-9;]*m", "", wide)
    assert max(map(len, plain.splitlines())) <= 100
    assert in_a_terminal("config", "show", TERM="xterm", NO_COLOR="1") == plain
    assert in_a_terminal("config", "show", TERM="dumb") == plain
    narrow = in_a_terminal("config", "show", TERM="dumb", columns=60)
    assert max(map(len, narrow.splitlines())) <= 60
    assert "publish.broker_may_release" in narrow
