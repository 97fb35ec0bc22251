import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.standard_topics import standard_topics
from tiering_assets.resources.devstack.traffic import Message, TopicSpec, content_of, iter_messages
from tiering_assets.resources.errors import SettingsError

messages = st.builds(
    Message,
    payload=st.binary(max_size=4),
    key=st.text("ab", max_size=2),
    properties=st.dictionaries(st.text("ab", max_size=2), st.text("ab", max_size=2), max_size=2),
)


def as_multiset(items):
    return sorted((one.key, one.payload, sorted(one.properties.items())) for one in items)


@given(st.lists(messages, max_size=4), st.lists(messages, max_size=4))
def test_contents_are_equal_exactly_when_the_messages_are(one, other):
    assert (content_of(one) == content_of(other)) == (as_multiset(one) == as_multiset(other))


@given(st.lists(messages, min_size=1, max_size=5), st.randoms())
def test_order_does_not_matter_and_a_double_does(some, random):
    shuffled = random.sample(some, len(some))
    assert content_of(shuffled) == content_of(some)
    assert content_of([*some, some[0]]) != content_of(some)


@pytest.mark.parametrize("spec", standard_topics(scale=0.01), ids=lambda spec: spec.topic)
def test_traffic_is_the_same_every_time_and_as_long_as_asked(spec):
    first, second = list(iter_messages(spec)), list(iter_messages(spec))
    assert first == second
    assert len(first) == spec.messages
    assert {len(message.payload) for message in first} == {spec.payload_bytes}


def test_seeds_and_topics_differ():
    specs = [
        TopicSpec(topic="a/b/c", messages=2, payload_bytes=9),
        TopicSpec(topic="a/b/c", messages=2, payload_bytes=9, seed=1),
        TopicSpec(topic="a/b/d", messages=2, payload_bytes=9),
    ]
    assert len({content_of(iter_messages(spec)).sha256 for spec in specs}) == 3


def test_partitions_are_the_topics_that_have_ledgers():
    spec = TopicSpec(topic="a/b/c", messages=1, payload_bytes=1, partitions=2)
    assert spec.physical_topics() == (
        "persistent://a/b/c-partition-0",
        "persistent://a/b/c-partition-1",
    )


@pytest.mark.parametrize(
    "wrong",
    [{"topic": "c"}, {"messages": -1}, {"chunked": True, "batched": True}],
)
def test_impossible_traffic_is_refused(wrong):
    with pytest.raises(SettingsError):
        TopicSpec(**{"topic": "a/b/c", "messages": 1, "payload_bytes": 1, **wrong})
