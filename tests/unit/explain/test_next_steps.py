"""Every reason and every rule of a policy has a next step, and what it names can be typed."""

import inspect
import re
from typing import Any

import pytest
import typer

from tests.support.same_record import every_command
from tiering_assets.cli import main as cli
from tiering_assets.explain.reasons.backlog_reason import BacklogReason, Because, of_wait
from tiering_assets.explain.reasons.next_steps import OF_RULES, STEPS, next_step, step_of_rule
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.policy import policy_rules
from tiering_assets.policy.selection import NotSelected

TOPIC = "persistent://t/ns/orders"
TEXTS = [*(one.text for one in STEPS), *OF_RULES.values()]
# pulsar-admin's words, as its own pages have them.
OF_PULSAR = {
    "namespaces set-offload-threshold": {"--size", "--time"},
    "namespaces set-offload-deletion-lag": {"--lag"},
    "namespaces set-retention": {"--time", "--size"},
    "namespaces set-message-ttl": {"--messageTTL"},
    "topics stats": set(),
    "brokers update-dynamic-config": {"--config", "--value"},
}


@pytest.mark.parametrize("reason", BacklogReason)
def test_every_reason_has_a_step_whatever_its_detail(reason):
    assert [one.within for one in STEPS if one.reason is reason][-1] == ""
    assert next_step(Because(reason, ""), topic=TOPIC, ledger_id=7)


@pytest.mark.parametrize("reason", Reason)
def test_so_has_whatever_a_run_waits_for(reason):
    assert next_step(of_wait(Wait(reason, "seen")), topic=TOPIC, ledger_id=7)


def test_every_rule_of_a_policy_has_one():
    source = inspect.getsource(policy_rules)
    rules = set(re.findall(r'yield _(?:refuse|note)\(\s*"(\w+)"', source))
    assert len(rules) > 6
    assert {*OF_RULES} == rules | {"unreadable"}
    for rule in OF_RULES:
        assert "{" not in step_of_rule(rule, topic=TOPIC)


def commands():
    groups = {words[:-1] for words in every_command() if words}
    return {words for words in every_command() if words} - groups


@pytest.mark.parametrize("text", TEXTS)
def test_a_command_that_is_named_exists_with_its_options(text):
    root: Any = typer.main.get_command(cli.app)
    for line in re.findall(r"`([^`]+)`", text):
        program, *words = line.split()
        if program == "pulsar-admin":
            options = OF_PULSAR[" ".join(words[:2])]
        else:
            assert program == "tierkeeper", line
            name = next(n for n in (2, 1) if tuple(words[:n]) in commands())
            found = root
            for word in words[:name]:
                found = found.commands[word]
            options = {option for param in found.params for option in param.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_a_step_names_the_topic_its_namespace_and_the_ledger():
    excluded = Because(BacklogReason.EXCLUDED, str(NotSelected.NO_THRESHOLD))
    assert "set-offload-threshold t/ns --size 0`" in next_step(excluded, topic=TOPIC)
    held = Because(BacklogReason.DAMAGED, "broken")
    assert "--topic t/ns/orders --execute`" in next_step(held, topic=TOPIC)
    failed = Because(BacklogReason.FAILED, "boom")
    assert "`tierkeeper ledger offload 7 --execute`" in next_step(failed, topic=TOPIC, ledger_id=7)


def test_a_name_with_braces_is_text():
    said = next_step(Because(BacklogReason.DAMAGED, ""), topic="persistent://t/ns/{ledger}")
    assert "t/ns/{ledger}" in said


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        (str(NotSelected.TERMINATED), "policy.terminated_last_ledger"),
        (str(NotSelected.NOT_LOADED), "policy.unloaded_topics"),
        (str(NotSelected.ZERO_LENGTH), "policy.zero_length_ledgers"),
        ("publish.coexist = false, and its broker offloads", "publish.coexist = true"),
        ("offload_time: offload time 9 s is not below", "set-retention t/ns"),
    ],
)
def test_each_case_of_excluded_has_a_step_of_its_own(detail, said):
    assert said in next_step(Because(BacklogReason.EXCLUDED, detail), topic=TOPIC)
