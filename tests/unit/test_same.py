"""What `make same` compares, and that it sees a difference."""

from collections import Counter

import pytest

from tests.support import same, same_record
from tests.support.same_record import STORIES, effects_of, every_command, told_by
from tiering_assets.records import keys


def test_every_command_is_in_a_story():
    """Groups, which have no work of their own, apart."""
    commands = {words for words in every_command() if words}
    groups = {words[:-1] for words in commands} - {()}
    called = [line.split() for lines in STORIES.values() for line in lines]
    missed = {
        words
        for words in commands - groups
        if not any(line[: len(words)] == [*words] for line in called)
    }
    assert missed == set()


def test_two_trees_that_say_the_same_have_no_difference():
    assert same.differences({"names": {"a": ["b"]}}, {"names": {"a": ["b"]}}) == []


@pytest.mark.parametrize(
    ("before", "now", "line", "lines"),
    [
        (["a", "b", "c"], ["a", "x", "y"], 1, 2),
        (["a"], ["a", "b"], 1, 1),
        (["a"], [], 0, 1),
    ],
)
def test_a_difference_is_told_by_its_first_line(before, now, line, lines):
    [found] = same.differences({"names": {"dagster": before}}, {"names": {"dagster": now}})
    assert (found["section"], found["name"]) == ("names", "dagster")
    assert (found["line"], found["lines"]) == (line, lines)


def test_a_name_that_one_of_both_lacks_is_a_difference():
    assert [one["name"] for one in same.differences({}, {"names": {"new": ["a"]}})] == ["new"]


def test_the_same_seed_has_the_same_effects_and_another_key_is_another_effect(monkeypatch):
    [before] = effects_of(range(1, 2)).values()
    assert Counter(effects_of(range(1, 2))["seed 1"]) == Counter(before)
    assert any("metadata.check_and_delete" in line for line in before)
    really = keys.attempt
    monkeypatch.setattr(keys, "attempt", lambda *given: f"{really(*given)}x")
    assert effects_of(range(1, 2))["seed 1"] != before


def test_the_same_commands_say_the_same():
    lines = ("ledger offload {sealed}", "ledger show {sealed}")
    with same_record.repeatable():
        before = told_by(lines, ("--json",))
    with same_record.repeatable():
        assert told_by(lines, ("--json",)) == before
    assert [line for line in before if line.startswith("exit")] == ["exit 0", "exit 0"]
    assert not any("no-bucket" in line for line in before)
