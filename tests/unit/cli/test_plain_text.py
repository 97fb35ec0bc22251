"""A name of a topic may hold a line's end or a terminal's command; what we print holds neither."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from tiering_assets.cli.shared.output import print_error, print_facts, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.resources.plain_text import plain

NAME = "persistent://t/ns/a\nb\x1b[2Jc\u202ed"
SHOWN = r"persistent://t/ns/a\nb\x1b[2Jc\u202ed"


@pytest.mark.parametrize("text", ["", "plain", "Grüße 漢字 🙂", r"a\nb", "[red]x[/red]"])
def test_text_of_all_languages_stays_as_it_is(text):
    assert plain(text) == text


def test_what_is_no_text_is_escaped_once():
    assert plain(NAME) == SHOWN
    assert plain(SHOWN) == SHOWN


def test_everything_that_is_printed_is_one_line_each(capsys):
    print_line(NAME)
    print_error(NAME)
    print_facts({"topic": NAME})
    print_table((Column("TOPIC", ValueKind.TOPIC),), [(NAME,)])
    session = Session()
    session.progress(NAME)
    session.start_logging()
    logging.getLogger("tiering_assets.resources").warning("%s", NAME)
    said = capsys.readouterr()
    lines = [*said.out.splitlines(), *said.err.splitlines()]
    assert len([line for line in lines if SHOWN in line]) == 6
    assert "\x1b" not in said.out + said.err


def test_the_folder_of_what_is_shipped_ends_with_its_process():
    code = "from tiering_assets.spark.build import shipped_zip; print(shipped_zip())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    path = done.stdout.strip()
    assert "tierkeeper-code-" in path
    assert not Path(path).parent.exists()
