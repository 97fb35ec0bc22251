"""docs/cli.md, docs/settings.md and the diagram of docs/states.md are what the code says now."""

import re

import pytest

import tiering_assets.resources.errors as errors
from tiering_assets.cli import docs
from tiering_assets.cli.state_diagram import transitions
from tiering_assets.look.ledger.states import LedgerState

RENEW = "run `python -m tiering_assets.cli.docs`"


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("cli.md", docs.cli_page),
        ("settings.md", docs.settings_page),
        ("states.md", docs.states_page),
    ],
)
def test_the_page_is_current(name, page):
    assert (docs.DOCS / name).read_text(encoding="utf-8") == page(), RENEW


def test_the_diagram_has_every_state_and_each_can_be_left_but_the_ends():
    arrows = transitions()
    assert {after for _before, _event, after in arrows} | {LedgerState.OPEN} == {*LedgerState}
    ends = {*LedgerState} - {before for before, _event, _after in arrows}
    assert ends == {LedgerState.EXPIRED, LedgerState.UNSAFE}


def test_the_page_lists_the_codes_of_errors_py():
    page = (docs.DOCS / "cli.md").read_text(encoding="utf-8")
    listed = {
        name: int(code) for code, name in re.findall(r"^\| `(\d+)` \| `(\w+)` \|", page, re.M)
    }
    own = {
        name: kind.exit_code
        for name, kind in vars(errors).items()
        if isinstance(kind, type)
        and issubclass(kind, errors.TierkeeperError)
        and kind is not errors.TierkeeperError
    }
    assert listed == own


def test_the_pages_hold_no_secret_and_no_path_of_a_machine():
    for name in ("cli.md", "settings.md"):
        text = (docs.DOCS / name).read_text(encoding="utf-8")
        assert str(docs.DOCS.parent) not in text
