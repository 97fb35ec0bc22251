import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.ground.own_policy import (
    OwnPolicies,
    OwnPolicy,
    TieringMode,
    parse_own_policies,
    switched_off,
)
from tiering_assets.resources.errors import SettingsError

FILE = """
[default]
offloadTimeInMinutes = 60
offloadSizeInMB = 10

[namespaces."public/default"]
managedLedgerOffloadThresholdInBytes = 5
managedLedgerOffloadThresholdInSeconds = -1

[namespaces."legacy/cluster"]
tiering = "disabled"

[topics."persistent://public/default/orders"]
tiering = "paused"

[topics."public/default/short"]
managedLedgerOffloadAutoTriggerSizeThresholdBytes = 0
"""


def parsed(text):
    return parse_own_policies(text, "tiering.toml")


def test_pulsars_names_and_those_of_pip_17():
    found = parsed(FILE)
    assert found.default == OwnPolicy(threshold_bytes=10 * 1024 * 1024, threshold_seconds=3600)
    assert found.namespaces["public/default"] == OwnPolicy(threshold_bytes=5, threshold_seconds=-1)
    assert found.topics["persistent://public/default/orders"] == OwnPolicy(mode=TieringMode.PAUSED)
    assert found.topics["persistent://public/default/short"] == OwnPolicy(threshold_bytes=0)


def test_the_tables_of_a_topic_come_strongest_first_and_a_partition_has_those_of_its_topic():
    found = parsed(FILE)
    orders = found.of_topic("persistent://public/default/orders-partition-2")
    assert [scope for scope, _policy in orders] == ["topic", "namespace", "default"]
    assert orders[0][1].mode is TieringMode.PAUSED
    assert [scope for scope, _ in found.of_topic("persistent://a/b/c")] == ["default"]
    own = '[topics."a/b/c-partition-1"]\ntiering = "enabled"\n[topics."a/b/c"]\ntiering = "paused"'
    both = parsed(own).of_topic("persistent://a/b/c-partition-1")
    assert [policy.mode for _scope, policy in both] == ["enabled", "paused", None]


def test_nothing_is_a_policy_that_sets_nothing():
    assert parsed("") == OwnPolicies()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[defaults]", "unknown table [defaults]; did you mean default?"),
        ("[default]\noffloadTimeInMinute = 1", "did you mean offloadTimeInMinutes?"),
        ("[default]\nmode = 'paused'", "unknown name mode; known: tiering"),
        (
            "[default]\noffloadTimeInMinutes = 1\nmanagedLedgerOffloadThresholdInSeconds = 60",
            "offloadTimeInMinutes and managedLedgerOffloadThresholdInSeconds are two names",
        ),
        ("[default]\noffloadTimeInMinutes = -2", "is -2, expected 0 or more, or -1 for off"),
        ("[default]\noffloadTimeInMinutes = 1.5", "is 1.5, expected a whole number"),
        ("[default]\noffloadSizeInMB = '10'", "is '10', expected a whole number"),
        ("[default]\noffloadSizeInMB = true", "is True, expected a whole number"),
        ("[default]\noffloadSizeInMB = 9223372036854775807", "more than Pulsar's 64 bits"),
        ("[default]\ntiering = 'off'", "tiering is 'off', expected enabled, disabled, paused"),
        ("[default]\ntiering = [1]", "tiering is [1], expected enabled"),
        ("[default]\nmanagedLedgerOffloadDeletionLagMs = 1", "release.deletion_lag_s"),
        ("[default]\nretentionSizeInMB = 1", "set it in Pulsar"),
        ("default = 1", "[default]: expected a table, found 1"),
        ("topics = 1", "[topics]: expected a table, found 1"),
        ("[namespaces]\n'a/b' = 1", 'namespaces."a/b"]: expected a table'),
        ("[namespaces.public]", "expected tenant/namespace"),
        ("[topics.x]", "not a topic name"),
        ("[topics.'non-persistent://a/b/c']", "not a persistent topic"),
        ("[topics.'a/b/c']\n[topics.'persistent://a/b/c']", "is there twice"),
        ("[default", "not TOML"),
        ("a = " + "9" * 5000, "not TOML"),
        ("a = " + "[" * 5000, "not TOML"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(text, said):
    with pytest.raises(SettingsError) as told:
        parsed(text)
    assert said in str(told.value)
    assert str(told.value).startswith("tiering.toml: ")


@given(st.text(max_size=80))
def test_any_text_is_a_policy_or_a_settings_error(text):
    try:
        found = parsed(text)
    except SettingsError:
        return
    assert isinstance(found, OwnPolicies)


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ("", None),
        ('[default]\ntiering = "paused"', "paused: by the default level of tiering.toml"),
        ('[namespaces."public/default"]\ntiering = "disabled"', "disabled: by the namespace level"),
        (
            '[default]\ntiering = "disabled"\n[topics."persistent://public/default/orders"]\n'
            'tiering = "enabled"',
            None,
        ),
    ],
)
def test_the_nearest_word_says_whether_a_topic_is_tiered(text, waits):
    own = parse_own_policies(text, "tiering.toml")
    for topic in ("orders", "orders-partition-3"):
        wait = switched_off(own, f"persistent://public/default/{topic}", ())
        assert (wait is None) is (waits is None)
        assert waits is None or str(wait).startswith(waits)
