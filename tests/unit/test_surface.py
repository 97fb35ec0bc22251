"""What scripts hold on to is enumerated, and each change of it has a word in the list."""

from tests.support.surface import changes, surface


def test_what_is_gone_and_new_is_told_once_and_without_its_parts():
    before = {
        "command": ["a", "a b", "c"],
        "option": ["a b --x", "c --old"],
        "JSON field": ["s/1 rows", "s/1 rows[].x", "s/1 when"],
    }
    now = {
        "command": ["c", "d", "d e"],
        "option": ["c --new", "d e --x"],
        "JSON field": ["s/1 when", "s/1 more", "s/1 more.x"],
    }
    assert changes(before, now) == [
        "- command, gone: `a`",
        "- command, new: `d`",
        "- option, gone: `c --old`",
        "- option, new: `c --new`",
        "- JSON field, gone: `s/1 rows`",
        "- JSON field, new: `s/1 more`",
    ]
    assert changes(now, now) == []


def test_this_tree_has_commands_options_documents_codes_and_settings():
    found = surface()
    assert "ledger release" in found["command"]
    assert "ledger release --approved" in found["option"]
    assert "tierkeeper/ledger-list/1 ledgers[].state" in found["JSON field"]
    assert "26 RefusedError" in found["exit code"]
    assert "store.bucket" in found["setting"]
    assert len(found["name in Dagster"]) > 20
