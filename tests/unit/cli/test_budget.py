"""`budget set` and `budget show` over a simulated store: what is kept, refused and told."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.cli.brakes.budget_cmd import parse_rate
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import Budget
from tiering_assets.tasks.budget_record import budget_from, read_budget
from tiering_assets.tasks.rate_budget import NAMES
from tiering_assets.tasks.rates import parts_of

MIB = 1024 * 1024


@pytest.fixture
def stack(monkeypatch):
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    found = Process(world, "cli", site).stack()
    budget = replace(found.settings.budget, topic_upload_bytes_per_s=7 * MIB)
    found = replace(found, settings=replace(found.settings, budget=budget))

    @contextmanager
    def opened(_session, _runner=None):
        yield found

    monkeypatch.setattr(Session, "stack", opened)
    return found


def document(capsys, *words, code=0):
    capsys.readouterr()
    assert run(["budget", *words, "--json"]) == code
    said = capsys.readouterr()
    return json.loads(said.out if code == 0 else said.err)


def rates(found):
    return {line["name"]: (line["rate"], line["origin"]) for line in found["budget"]["lines"]}


def test_what_is_set_is_what_spenders_read_and_the_rest_stays(stack, capsys):
    found = document(capsys, "set", "--upload", "100MiB/s", "--requests", "200")
    assert found["schema"] == "tierkeeper/budget-set/1"
    assert rates(found)["upload_bytes_per_s"] == (100 * MIB, "record")
    assert rates(found)["topic_upload_bytes_per_s"] == (7 * MIB, "settings")
    read = read_budget(stack.objects, stack.budget_key)
    assert read == dict.fromkeys(NAMES) | {
        "upload_bytes_per_s": 100 * MIB,
        "store_requests_per_s": 200,
    }
    document(capsys, "set", "--upload", "none", "--requests", "settings", "--author", "me")
    shown = document(capsys, "show")
    assert rates(shown)["upload_bytes_per_s"] == (0, "record")
    assert rates(shown)["store_requests_per_s"] == (0, "settings")
    assert shown["budget"]["record"]["author"] == "me"


def test_before_anything_was_set_the_settings_speak(stack, capsys):
    assert read_budget(stack.objects, stack.budget_key) == {}
    assert read_budget(stack.objects, "") == {}
    shown = document(capsys, "show")
    assert shown["budget"]["record"] is None
    assert {origin for _, origin in rates(shown).values()} == {"settings"}
    capsys.readouterr()
    assert run(["budget", "show"]) == 0
    text = capsys.readouterr().out
    assert "no bound" in text
    assert "7.0 MiB/s" in text
    assert f"{parts_of(stack.settings)} parts" in text


def test_one_that_cannot_be_split_is_refused_with_the_smallest_and_not_written(stack, capsys):
    found = document(capsys, "set", "--bookie-read", "1MiB/s", code=11)
    least = next(
        line["least"]
        for line in document(capsys, "show")["budget"]["lines"]
        if line["name"] == "bookie_read_bytes_per_s"
    )
    assert f"at least {least}" in found["message"]
    assert stack.book.read(Budget, keys.BUDGET) is None
    document(capsys, "set", "--bookie-read", str(least))


@pytest.mark.parametrize("damage", [b"{}", b"not JSON", b'{"schema":"tierkeeper/budget/2"}'])
def test_a_damaged_record_is_an_error_for_everyone(stack, capsys, damage):
    stack.objects.put(stack.budget_key, damage)
    assert document(capsys, "show", code=13)["error"] == "FormatError"
    assert "Delete the object" in document(capsys, "set", "--upload", "9MiB", code=13)["message"]
    with pytest.raises(Exception, match=keys.BUDGET) as raised:
        read_budget(stack.objects, stack.budget_key)
    assert type(raised.value).__name__ == "FormatError"


def test_a_rate_that_was_changed_by_hand_is_found_by_its_digest(stack, capsys):
    document(capsys, "set", "--upload", "9MiB/s")
    stored = stack.objects.get(stack.budget_key)
    budget_from(stored.body, key="k")
    changed = stored.body.replace(str(9 * MIB).encode(), str(900 * MIB).encode())
    with pytest.raises(Exception, match="changed after writing"):
        budget_from(changed, key="k")


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("50MiB/s", 50 * MIB),
        ("1.5GiB", 1536 * MIB),
        ("2MB/s", 2_000_000),
        ("512 KiB/s", 512 * 1024),
        ("1000", 1000),
        ("none", 0),
        ("settings", None),
    ],
)
def test_rates_as_people_write_them(text, rate):
    assert parse_rate("--upload", text, in_bytes=True) == rate


@pytest.mark.parametrize("text", ["", "0", "-1", "fast", "1MiB/min", "1e9", "1XB"])
def test_what_is_no_rate_is_a_wrong_use_of_the_command(stack, capsys, text):
    assert run(["budget", "set", f"--upload={text}"]) == 2
    assert "--upload" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--requests", "5MiB/s"], []])
def test_a_size_is_no_number_of_requests_and_nothing_is_no_change(stack, words):
    assert run(["budget", "set", *words]) == 2
    assert stack.book.read(Budget, keys.BUDGET) is None
