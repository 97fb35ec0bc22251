"""Durations and sizes as options: one form everywhere, and a refusal that says what is expected."""

import pytest

from tests.support.reading_commands import all_commands
from tiering_assets.cli import main as cli

# Every option that is so many seconds or bytes, as it is called.
DURATIONS = {
    ("audit", "verify"): "--in-flight", ("dagster", "prune"): "--older-than",
    ("metrics", "serve"): "--every", ("topic", "load-overdue"): "--timeout",
    ("topic", "offload"): "--timeout", ("ledger", "list"): "--fresh",
    ("topic", "list"): "--fresh", ("topic", "backlog"): "--fresh",
    ("catalogue", "sql"): "--fresh",
}  # fmt: skip
SIZES = {("topic", "offload"): "--keep-bytes"}
NEEDS = {
    ("audit", "verify"): ["--all"],
    ("topic", "load-overdue"): ["--plan"],
    ("topic", "offload"): ["t/ns/x", "--plan"],
    ("dagster", "prune"): ["--plan"],
    ("metrics", "serve"): [],
    ("ledger", "list"): [],
    ("catalogue", "sql"): ["select 1"],
    ("topic", "list"): [],
    ("topic", "backlog"): [],
}


def test_every_option_of_seconds_or_bytes_is_one_of_these():
    found = {
        (words, option.opts[0])
        for words, command in all_commands().items()
        for option in command.params
        if option.metavar in ("DURATION", "SIZE", "AGE", "SECONDS", "BYTES", "N")
        and option.opts[0] != "--max"
    }
    assert found == {*DURATIONS.items(), *SIZES.items()}


@pytest.mark.parametrize(("words", "option"), [*DURATIONS.items(), *SIZES.items()], ids=str)
@pytest.mark.parametrize("text", ["soon", "5 parsecs", "-1", "", "1e999", "9" * 80])
def test_what_is_none_is_refused_with_an_example(
    words, option, text, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    code = cli.run([*words, *NEEDS[words], option, text])
    said = capsys.readouterr().err
    assert code in (2, 11), said
    assert option in said
    assert "such as" in said or "must" in said or "expected" in said


@pytest.mark.parametrize(("words", "option"), DURATIONS.items(), ids=str)
def test_a_size_is_no_duration(words, option, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert cli.run([*words, *NEEDS[words], option, "5GiB"]) in (2, 11)
    assert option in capsys.readouterr().err
