"""What sensors list and remember: everything once in the life of a process, and little a tick."""

from uuid import UUID

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.records import keys
from tiering_assets.steps import tick_memory
from tiering_assets.steps.tick_memory import Certified, TickMemory


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


@pytest.mark.parametrize(("asked", "requests"), [(10, 10), (50, 50), (51, 1), (900, 1)])
def test_certificates_of_many_are_one_listing(scene, asked, requests):
    for number in range(300):
        scene.world.objects.put(scene.stack.book.prefix + keys.certificate(*pair(number)), b"{}")

    def ask(stack):
        certified = Certified(stack)
        certified.ask(range(asked))
        return [certified.attempts(number) for number in range(asked)]

    found, listed = listings(scene, ask)
    assert len(listed) == requests
    assert found == [{pair(n)[1]} if n < 300 else set() for n in range(asked)]
