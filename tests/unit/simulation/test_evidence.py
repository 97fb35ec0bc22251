"""I21: what counts as evidence, and when it is too old for an effect."""

import pytest

from tests.support.sim_evidence import (
    BROKERS,
    HOLDS,
    Bounds,
    bytes_of,
    node_of,
    object_at,
    policy_of,
    question_of,
    shadows_beside,
    too_old,
)

TOPIC = "t/ns0/persistent/orders"
BOUNDS = Bounds(age_s=60.0, surroundings_s=600.0)


@pytest.mark.parametrize(
    ("call", "question"),
    [
        (("objects", "head", ("key",)), object_at("key")),
        (("objects", "get", ("key",)), object_at("key")),
        (("objects", "list_objects", ("tierkeeper/alpha/holds/",)), HOLDS),
        (("metadata", "get", (f"/managed-ledgers/{TOPIC}",)), node_of(TOPIC)),
        (("metadata", "children", ("/managed-ledgers/t/ns0/persistent",)), shadows_beside(TOPIC)),
        (("broker", "runtime_configs", ()), BROKERS),
        (
            ("broker", "effective_offload_policies", ("persistent://t/ns0/orders",)),
            policy_of(TOPIC),
        ),
        (("objects", "get_range", ("key",)), bytes_of("key")),
        (("objects", "list_objects", ("tierkeeper/alpha/attempts/",)), None),
    ],
)
def test_a_call_asks_one_question_or_none(call, question):
    assert question_of(*call) == question


@pytest.mark.parametrize(
    ("need", "age_s", "stale"),
    [
        (HOLDS, 74.0, False),
        (HOLDS, 76.0, True),
        (object_at("key"), 76.0, True),
        (node_of(TOPIC), 76.0, True),
        (BROKERS, 614.0, False),
        (BROKERS, 616.0, True),
        (policy_of(TOPIC), 614.0, False),
        (shadows_beside(TOPIC), 616.0, True),
    ],
)
def test_evidence_lasts_for_its_bound_and_the_effects_own_call(need, age_s, stale):
    assert bool(too_old(BOUNDS, {need: 1000.0}, [need], began=1000.0 + age_s)) is stale


def test_what_was_never_asked_is_no_evidence():
    [fault] = too_old(BOUNDS, {HOLDS: 0.0}, [HOLDS, BROKERS], began=1.0)
    assert "brokers" in fault
    assert "never asked" in fault
