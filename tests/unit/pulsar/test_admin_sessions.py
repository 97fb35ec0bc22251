"""Connections to a broker are as many as requests at one time, however many threads ask."""

from threading import Barrier, Thread

from tiering_assets.resources.pulsar.http import AdminHttp
from tiering_assets.resources.settings import BrokerSettings


def in_threads(act, count):
    threads = [Thread(target=act) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_that_come_and_go_use_the_same_session():
    http, seen = AdminHttp(BrokerSettings()), []

    def ask():
        with http._session() as session:
            seen.append(session)

    for _ in range(20):
        in_threads(ask, 1)
    assert len({id(session) for session in seen}) == len(http._free) == 1


def test_requests_at_one_time_have_a_session_each():
    http, together, seen = AdminHttp(BrokerSettings()), Barrier(4), []

    def ask():
        with http._session() as session:
            together.wait()
            seen.append(session)

    in_threads(ask, 4)
    assert len({id(session) for session in seen}) == len(http._free) == 4
