import zlib
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.pulsar.topic import FullTopicName, bundle_holds, parse_topic


def test_a_name_is_encoded_as_one_path_segment():
    topic = parse_topic("persistent://public/default/a b+c%2F?#ü")
    assert topic.path == "/persistent/public/default/a%20b%2Bc%252F%3F%23%C3%BC"
    assert str(topic) == "persistent://public/default/a b+c%2F?#ü"


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "x",
        "public/default/x",
        "non-persistent://a/b/c",
        "persistent://a/b",
        "persistent://a/b/",
        "persistent://a/cluster/ns/legacy",
    ],
)
def test_other_names_are_refused(topic):
    with pytest.raises(FormatError, match="is not persistent://"):
        parse_topic(topic)


def test_a_partition_knows_its_whole_topic():
    assert parse_topic("persistent://a/b/c-partition-12").whole == FullTopicName("a", "b", "c")
    assert parse_topic("persistent://a/b/c-partition-012").whole.name == "c-partition-012"


@given(name=st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1))
def test_every_topic_is_in_exactly_one_bundle_of_its_namespace(name):
    topic = FullTopicName("public", "default", name)
    edges = ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
    spans = [f"{low}_{high}" for low, high in pairwise(edges)]
    holding = [s for s in spans if bundle_holds(f"public/default/{s}", topic)]
    assert holding == [spans[min(zlib.crc32(str(topic).encode()) >> 30, 3)]]
    assert not any(bundle_holds(f"public/other/{span}", topic) for span in spans)


@pytest.mark.parametrize("bundle", ["", "a/b", "a/b/0x0_0x1", "0x00000000_0xffffffff", "a/b/x_y"])
def test_what_is_no_bundle_is_a_format_error(bundle):
    with pytest.raises(FormatError, match="bundle"):
        bundle_holds(bundle, FullTopicName("a", "b", "c"))


def test_a_legacy_name_is_its_own_ledgers_error():
    """No admin call takes one; as an error of another kind it ended the batch of all others."""
    with pytest.raises(FormatError, match="is not persistent://tenant/namespace/name"):
        parse_topic("persistent://tenant/cluster/namespace/name")


@pytest.mark.parametrize(
    ("number", "bundle", "holds"),
    [
        (0xFFFFFFFF, "0x80000000_0xffffffff", True),  # the end belongs to the last bundle
        (0x80000000, "0x00000000_0x80000000", False),
        (0x80000000, "0x80000000_0xffffffff", True),
    ],
)
def test_a_bundle_ends_before_the_next_begins_and_the_last_one_at_the_end(number, bundle, holds):
    topic: Any = SimpleNamespace(tenant="a", namespace="b", hash=number)
    assert bundle_holds(f"a/b/{bundle}", topic) is holds
