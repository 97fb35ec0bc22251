"""An object is the certified one by its size, ETag and version, which are compared in one place."""

from dataclasses import replace

import pytest

from tests.support.ledger_facts import CERTIFICATE, head
from tiering_assets.audit.object_audit import judge_head

DATA, INDEX = head("data", 12_000, '"d"', "v1"), head("index", 300, '"i"')


def differing(facts, found):
    return [one.what for one in judge_head(CERTIFICATE, facts, found, missed="it is missed")]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({}, []),
        ({"size": 1}, ["size"]),
        ({"etag": '"x"'}, ["ETag"]),
        ({"version_id": "v2"}, ["version"]),
        ({"version_id": None}, ["version"]),
    ],
)
def test_what_differs_of_an_object_is_named(changes, what):
    assert differing(CERTIFICATE.data, replace(DATA, **changes)) == what


@pytest.mark.parametrize("version", [None, "null"])
def test_what_lay_there_before_the_bucket_kept_versions_is_the_same_version(version):
    assert differing(CERTIFICATE.index, replace(INDEX, version_id=version)) == []
