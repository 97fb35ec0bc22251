"""Lifecycle rules as S3 returns them: which would take our objects away."""

import pytest

from tiering_assets.doctor.lifecycle import lifecycle_dangers


def rule(**changes):
    return {"ID": "r", "Status": "Enabled", "Filter": {}, "Expiration": {"Days": 30}} | changes


@pytest.mark.parametrize(
    "reaching",
    [
        rule(),
        rule(Filter={"Prefix": ""}),
        rule(Filter={"Prefix": "tierkeeper/"}),
        rule(Filter={"Prefix": "tier"}),
        rule(Filter={"Prefix": "0a"}),
        rule(Filter={"And": {"Prefix": "f", "ObjectSizeGreaterThan": 1}}),
        rule(Filter=None, Prefix=""),
        rule(Expiration={"Date": "2030-01-01"}),
    ],
)
def test_a_rule_that_reaches_our_keys_expires_them(reaching):
    assert lifecycle_dangers(reaching) == ["rule r: expires our objects"]


@pytest.mark.parametrize(
    "harmless",
    [
        rule(Status="Disabled"),
        rule(Filter={"Prefix": "logs/"}),
        rule(Filter={"Prefix": "backup"}),
        rule(Filter={"Tag": {"Key": "a", "Value": "b"}}),
        rule(Filter={"And": {"Prefix": "", "Tags": [{"Key": "a", "Value": "b"}]}}),
        rule(Expiration={"ExpiredObjectDeleteMarker": True}),
        {
            "ID": "u",
            "Status": "Enabled",
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
        },
        rule(Expiration={}, Transitions=[{"Days": 1, "StorageClass": "STANDARD_IA"}]),
    ],
)
def test_a_rule_for_others_or_without_harm_is_none(harmless):
    assert lifecycle_dangers(harmless) == []


def test_a_class_that_we_do_not_know_is_a_danger_until_somebody_tried_it():
    [found] = lifecycle_dangers(
        rule(Expiration={}, Transitions=[{"Days": 1, "StorageClass": "WARM-TIER"}])
    )
    assert found.startswith("rule r: moves our objects to WARM-TIER, a class that we do not know")


def test_an_archive_class_is_a_danger_that_names_the_class():
    found = lifecycle_dangers(
        rule(Expiration={}, Transitions=[{"Days": 90, "StorageClass": "DEEP_ARCHIVE"}])
    )
    assert found == ["rule r: moves our objects to DEEP_ARCHIVE, which no broker can read"]
