"""Serving over a real socket: what happens when surveys fail, and when the address is taken."""

import os
import signal
import socket
import threading
import time
import urllib.request
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.metrics.collector import FleetCollector, make_registry
from tiering_assets.metrics.server import serve, survey_once
from tiering_assets.metrics.surveyed import Surveyed
from tiering_assets.resources.errors import MetadataError, SettingsError

HOST = "127.0.0.1"
EMPTY = count_figures([], disturbances_last_hour=0, now=datetime(2026, 3, 1, tzinfo=UTC))


@pytest.fixture
def collector():
    return FleetCollector(topics_max=0, clock=time.time)


def serve_here(collector, survey, *, port=0, every_s=60, narrate=lambda _line: None):
    registry = make_registry(collector)
    serve(collector, registry, survey, host=HOST, port=port, every_s=every_s, narrate=narrate)


@pytest.mark.parametrize("error", [MetadataError("no ZooKeeper"), ValueError("a bug")])
def test_a_failing_survey_is_told_and_ends_nothing(collector, error):
    said: list[str] = []

    def survey():
        raise error

    assert survey_once(collector, survey, narrate=said.append) is False
    [line] = said
    assert type(error).__name__ in line
    assert str(error) in line
    assert survey_once(collector, lambda: Surveyed(figures=EMPTY), narrate=said.append) is True
    assert len(said) == 1


def test_an_address_that_is_taken_is_an_error_with_the_next_step(collector):
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"cannot listen on {HOST}:{port}.*--port"):
            serve_here(collector, lambda: Surveyed(figures=EMPTY), port=port)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_survey_stops_it_at_once(collector, number):
    said: list[str] = []
    scraped: list[str] = []
    before = signal.getsignal(number)

    def survey():
        if not scraped:
            url = said[0].split()[2].rstrip(",")
            with urllib.request.urlopen(url, timeout=60) as answer:
                scraped.append(answer.read().decode())
            threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
            time.sleep(30)
        return Surveyed(figures=EMPTY)

    begun = time.monotonic()
    serve_here(collector, survey, narrate=said.append)
    assert time.monotonic() - begun < 25  # the survey sleeps for 30
    assert said[-1] == "stopped"
    assert "tierkeeper_survey_success 0.0" in scraped[0]
    assert signal.getsignal(number) is before
    port = int(said[0].split("/metrics")[0].rpartition(":")[2])
    with socket.create_server((HOST, port)):
        pass  # it no longer listens


def test_a_signal_that_a_library_swallows_ends_it_after_the_survey(collector):
    """As Python does with what is raised in the callback of an import's lock."""
    surveys: list[None] = []

    def survey():
        surveys.append(None)
        with suppress(BaseException):
            signal.raise_signal(signal.SIGTERM)
        return Surveyed(figures=EMPTY)

    def no_end(_number, _frame):
        pytest.fail("it slept on, or began another survey")

    previous = signal.signal(signal.SIGALRM, no_end)
    signal.alarm(20)
    try:
        serve_here(collector, survey, every_s=0.01)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    assert len(surveys) == 1
