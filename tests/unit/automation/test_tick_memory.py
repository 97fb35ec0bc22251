"""What sensors list and remember: everything once in the life of a process, and little a tick."""

from uuid import UUID

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.automation import tick_memory
from tiering_assets.automation.tick_memory import CertifiedAttempts, TickMemory
from tiering_assets.records import keys
from tiering_assets.resources.errors import FormatError


def pair(number):
    return number, UUID(int=number)


@pytest.fixture
def scene():
    """A thousand releases, each with its intent."""
    scene = Scene(1)
    for number in range(1000):
        for key in (keys.release(*pair(number)), keys.release_intent(*pair(number))):
            scene.world.objects.put(scene.stack.book.prefix + key, b"{}")
    return scene


def listings(scene, ask):
    """What was answered, and the prefixes that were listed for it."""
    seen = []
    really = scene.world.call

    def call(process, room, method, act, args, kwargs):
        if (room, method) == ("objects", "list_objects"):
            seen.append(args[0])
        return really(process, room, method, act, args, kwargs)

    stack = scene.process("sensor")
    scene.world.call = call
    try:
        return ask(stack), seen
    finally:
        scene.world.call = really


def test_releases_are_listed_once_so_many_a_tick(scene):
    memory = TickMemory()
    wanted = [pair(number) for number in range(1001)]  # the last one has none
    for tick in range(3):
        _, listed = listings(scene, lambda stack: memory.catch_up(stack, keys_max=800))
        assert len(listed) == 1, tick
        found, listed = listings(scene, lambda stack: memory.unreleased(stack, wanted))
        assert listed == []
        assert found == (set() if tick < 2 else {pair(1000)})
    _, listed = listings(scene, memory.catch_up)
    assert listed == []


def test_a_release_of_after_the_listing_is_asked_for_alone(scene):
    memory = TickMemory()
    memory.catch_up(scene.stack)
    new = [pair(number) for number in range(2000, 2003)]
    scene.world.objects.put(scene.stack.book.prefix + keys.release(*new[0]), b"{}")
    assert memory.unreleased(scene.stack, new) == set(new[1:])


def test_forgetting_begins_again(scene, monkeypatch):
    monkeypatch.setattr(tick_memory, "_REMEMBERED_MAX", 10)
    memory = TickMemory()
    memory.catch_up(scene.stack)
    memory.trim()
    assert memory.unreleased(scene.stack, [pair(5000)]) == set()  # not known yet
    memory.catch_up(scene.stack)
    assert memory.unreleased(scene.stack, [pair(5000)]) == {pair(5000)}


def publish_one(scene, number):
    """A topic with a ledger whose publication is recorded: its name, and the pair."""
    ml_name = f"t/ns/persistent/topic-{number}"
    scene.broker.create_topic(ml_name)
    ledger_id = scene.fill(ml_name)
    scene.publish(ledger_id)
    return ml_name, (ledger_id, scene.context(ledger_id, ml_name).uid)


def test_publications_are_read_once_so_many_a_tick_and_no_topic_lists_its_own():
    scene, memory = Scene(1), TickMemory()
    published = dict(publish_one(scene, number) for number in range(3))
    for listed_then in (1, 1, 0):
        _, listed = listings(scene, lambda s: memory.catch_up_publications(s, most=2))
        assert len(listed) == listed_then
    for ml_name, known in published.items():
        found, listed = listings(scene, lambda s, n=ml_name, k=known: memory.unconfirmed(s, n, [k]))
        assert (found, listed) == (set(), [])
    later, new = publish_one(scene, 3)
    found, listed = listings(scene, lambda s: memory.unconfirmed(s, later, [new]))
    assert (found, len(listed)) == (set(), 1)


def test_a_damaged_publication_fails_its_topic_alone():
    scene, memory = Scene(1), TickMemory()
    (damaged, first), (sound, second) = (publish_one(scene, number) for number in range(2))
    scene.world.objects.put(scene.stack.book.prefix + keys.publication(damaged, 1), b"{")
    memory.catch_up_publications(scene.stack)
    assert memory.unconfirmed(scene.stack, sound, [second]) == set()
    with pytest.raises(FormatError, match=keys.publication(damaged, 1)):
        memory.unconfirmed(scene.stack, damaged, [first])


@pytest.mark.parametrize(("asked", "requests"), [(10, 10), (50, 50), (51, 1), (900, 1)])
def test_certificates_of_many_are_one_listing(scene, asked, requests):
    for number in range(300):
        scene.world.objects.put(scene.stack.book.prefix + keys.certificate(*pair(number)), b"{}")

    def ask(stack):
        certified = CertifiedAttempts(stack)
        certified.ask(range(asked))
        return [certified.attempts(number) for number in range(asked)]

    found, listed = listings(scene, ask)
    assert len(listed) == requests
    assert found == [{pair(n)[1]} if n < 300 else set() for n in range(asked)]
