"""A run that dies or gets no answer, at each call to the store: the next one has the same chain.

Every call of a whole run is counted first, and each is tried: before it was done, after it, and
done with an error for an answer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from tests.support.sim_scene import TOPIC
from tests.support.stream_scene import StreamScene
from tiering_assets.resources.errors import ObjectStoreError, TierkeeperError
from tiering_assets.stream.cut import cut_stream

HOW = ("before", "after", "no answer")


class Died(BaseException):
    """What no step catches, as it catches no SIGKILL."""


class Deadly:
    """A store whose call of one number is the last thing that its process does."""

    def __init__(self, objects, at=0, how="before"):
        self._objects, self._at, self._how, self.calls = objects, at, how, []

    def __getattr__(self, name):
        found = getattr(self._objects, name)
        if not callable(found) or name == "list_objects":  # a listing changes nothing
            return found

        def call(*args, **kwargs):
            self.calls.append(name)
            if len(self.calls) != self._at:
                return found(*args, **kwargs)
            if self._how == "before":
                raise Died(name)
            found(*args, **kwargs)
            raise Died(name) if self._how == "after" else ObjectStoreError(f"{name}: no answer")

        return call


def filled():
    """Two ledgers, of several blocks and parts; the second is still written to."""
    scene = StreamScene()
    first = scene.write(*(bytes([n]) * 150 for n in range(7)))
    scene.roll_over()
    second = scene.write(*(bytes([n]) * 90 for n in range(5)))
    return scene, scene.written(first, second)


def run(scene, at=0, how="before"):
    stack = scene.process("victim")
    store = Deadly(stack.objects, at, how)
    make = stack.runner._make_worker

    def worker():
        made = make()
        made.store = store
        return made

    stack.runner._make_worker = worker
    cut_stream(replace(stack, objects=store, book=stack.book.over(store)), TOPIC)
    return store.calls


@cache
def calls():
    scene, _written = filled()
    return tuple(run(scene))


def test_there_is_something_to_die_at():
    assert {"put", "create_upload", "upload_part", "complete_upload", "get"} <= {*calls()}


@pytest.mark.parametrize("how", HOW)
def test_whoever_comes_next_makes_the_same_chain_whole(how):
    for at in range(1, len(calls()) + 1):
        scene, written = filled()
        try:
            run(scene, at, how)
        except (Died, TierkeeperError):
            pass
        else:
            assert how == "no answer", (at, calls()[at - 1])  # judged by what is there
        cut_stream(scene.process("next"), TOPIC)
        held: dict[tuple[int, int], bytes] = {}
        number = 0
        chain = scene.chain()
        while number < chain.next_number - 1:
            number += 1
            certificate = scene.certificate(number)
            entries = scene.held(certificate)
            assert held.keys().isdisjoint(entries), (at, how)
            held |= entries
            assert certificate.record.assigned_sha256 == scene.assigned(number).sha256
        assert held == written, (at, how, calls()[at - 1])
        assert chain.newest.offloaded
