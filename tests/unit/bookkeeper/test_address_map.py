"""Advertised addresses and the ones that are dialled in their place."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.bookkeeper.address_map import AddressMap
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.errors import BookieUnreachableError, SettingsError
from tiering_assets.resources.settings import BookieSettings
from tiering_assets.resources.settings_sources import load_settings

MAP = "10.0.0.1:3181=127.0.0.1:13181, bookie-1.internal=127.0.0.1,[fd00::7]:3181=[::1]:4000,"


@pytest.mark.parametrize(
    ("advertised", "dialled"),
    [
        (("10.0.0.1", 3181), ("127.0.0.1", 13181)),
        (("10.0.0.1", 8000), ("10.0.0.1", 8000)),
        (("bookie-1.internal", 3181), ("127.0.0.1", 3181)),
        (("Bookie-1.Internal", 8000), ("127.0.0.1", 8000)),
        (("bookie-2.internal", 3181), ("bookie-2.internal", 3181)),
        (("fd00::7", 3181), ("::1", 4000)),
    ],
)
def test_what_is_listed_is_dialled_elsewhere_and_all_else_as_advertised(advertised, dialled):
    assert AddressMap.parse(MAP).dialled(advertised) == dialled


def test_an_address_beats_its_host_and_nothing_is_rewritten_twice():
    ways = AddressMap.parse("a=b, a:3181=c, b=d, c:3181=e:1")
    assert ways.dialled(("a", 3181)) == ("c", 3181)
    assert ways.dialled(("a", 8000)) == ("b", 8000)


@pytest.mark.parametrize(
    ("text", "piece", "why"),
    [
        ("10.0.0.1:3181", "10.0.0.1:3181", "expected HOST:PORT=HOST:PORT"),
        ("a=b, =127.0.0.1", "=127.0.0.1", "expected"),
        ("a=b, c=", "c=", "expected"),
        ("a=b=c", "a=b=c", "expected"),
        ("http://a:1=b:1", "http://a:1=b:1", "expected"),
        ("fd00::7=::1", "fd00::7=::1", "expected"),
        ("a b=c", "a b=c", "expected"),
        ("a:0=b:1", "a:0=b:1", "0 is not a port"),
        ("a:1=b:65536", "a:1=b:65536", "65536 is not a port"),
        ("a:x=b:1", "a:x=b:1", "expected"),
        ("a=b:1", "a=b:1", "stands for all of its ports"),
        ("a:1=b:1, A:1=c:1", "A:1=c:1", "listed twice"),
        ("a=b, a=c", "a=c", "listed twice"),
    ],
)
def test_a_piece_that_is_not_understood_is_refused_by_name(text, piece, why):
    with pytest.raises(SettingsError) as caught:
        load_settings({"bookies.address_map": text}, {})
    assert str(caught.value).startswith(f"bookies.address_map (flag): {piece!r}: ")
    assert why in str(caught.value)


@given(st.text(alphabet="ab.:=,[]0 1\n\u0660", max_size=30), st.tuples(st.text(), st.integers()))
def test_any_text_is_read_or_refused(text, address):
    try:
        ways = AddressMap.parse(text)
    except SettingsError:
        return
    host, port = ways.dialled(address)
    assert isinstance(host, str)
    assert isinstance(port, int)


def test_the_pool_dials_the_other_address_and_a_failure_names_both():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = BookieSettings(address_map=f"bookie-1.invalid:3181=127.0.0.1:{port}")
        with BookiePool(settings, {"bk": ("bookie-1.invalid", 3181)}) as pool:
            assert not pool.connection("bk").closed
    with (
        BookiePool(settings, {"bk": ("bookie-1.invalid", 3181)}) as pool,
        pytest.raises(BookieUnreachableError) as caught,
    ):
        pool.connection("bk")
    assert "bookie-1.invalid:3181 (by bookies.address_map 127.0.0.1:" in str(caught.value)
