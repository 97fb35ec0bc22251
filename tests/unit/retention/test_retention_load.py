"""When an idle topic is loaded for its retention, and what speaks against it."""

from dataclasses import replace

import pytest

from tiering_assets.resources.errors import BrokerError
from tiering_assets.resources.pulsar.retention import Inactivity, parse_inactivity
from tiering_assets.retention.retention_load import (
    LoadGuards,
    over_load_budget,
    why_guarded,
    why_not_idle,
)

KEEPS_ALL = Inactivity(deletes_topic=False, without_subscriptions=True, subscription_minutes=0)
DELETES = replace(KEEPS_ALL, deletes_topic=True)
FREE = LoadGuards(held={}, claimed={}, subscriptions=1, inactivity=KEEPS_ALL)


@pytest.mark.parametrize(
    ("overdue", "idle", "certain", "said"),
    [
        ([3], True, True, None),
        ([], True, True, "nothing of it is overdue"),
        ([3], False, True, "its broker has it loaded"),
        ([3], None, True, "not known"),
        ([3], True, False, "not certain"),
    ],
)
def test_only_what_is_overdue_idle_and_certain_is_loaded(overdue, idle, certain, said):
    why = why_not_idle(overdue, idle=idle, certain=certain)
    assert (why is None) if said is None else (why is not None and said in why)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"held": {9: "audit", 4: "court"}}, "ledger 4 is held: court"),
        ({"claimed": {4: "run x"}}, "ledger 4 is being copied: run x"),
        ({"inactivity": None}, "could not be asked"),
        ({"inactivity": DELETES}, None),  # it has a subscription
        ({"inactivity": DELETES, "subscriptions": 0}, "delete the whole topic"),
        ({"inactivity": KEEPS_ALL, "subscriptions": 0}, None),
        ({"inactivity": replace(DELETES, without_subscriptions=False)}, "delete the whole topic"),
        ({"inactivity": replace(KEEPS_ALL, subscription_minutes=5)}, "idle for 5 minutes"),
        (
            {"inactivity": replace(KEEPS_ALL, subscription_minutes=5), "subscriptions": 0},
            None,
        ),
    ],
)
def test_a_load_that_would_do_more_than_retention_is_not_asked_for(changes, said):
    why = why_guarded(replace(FREE, **changes))
    assert (why is None) if said is None else (why is not None and said in why)


def test_the_hours_budget_is_a_bound():
    assert over_load_budget(1, 2) is None
    assert over_load_budget(2, 2) == "2 loads in the last hour reach disturb.loads_hour_max = 2"
    assert over_load_budget(0, 0) is not None


CONFIG = {
    "brokerDeleteInactiveTopicsEnabled": "true",
    "brokerDeleteInactiveTopicsMode": "delete_when_no_subscriptions",
    "subscriptionExpirationTimeMinutes": "7",
}


def test_what_a_broker_deletes_is_its_policies_else_its_settings():
    found = parse_inactivity(None, None, CONFIG, topic="t")
    assert found == Inactivity(
        deletes_topic=True, without_subscriptions=True, subscription_minutes=7
    )
    policy = {
        "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
        "maxInactiveDurationSeconds": 60,
        "deleteWhileInactive": False,
    }
    found = parse_inactivity(policy, 0, CONFIG, topic="t")
    assert found == Inactivity(
        deletes_topic=False, without_subscriptions=False, subscription_minutes=0
    )


@pytest.mark.parametrize(
    ("policy", "config", "said"),
    [
        ({"deleteWhileInactive": None}, CONFIG, "t: deleteWhileInactive is None"),
        (None, {}, "t: the broker's brokerDeleteInactiveTopicsEnabled is ''"),
        ({"deleteWhileInactive": True}, {}, "expected a number"),
    ],
)
def test_what_is_not_told_is_an_error_and_no_permission(policy, config, said):
    with pytest.raises(BrokerError, match=said):
        parse_inactivity(policy, None, config, topic="t")
