"""Rewriting, judged by an independent reading of the properties format."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.devstack.config import (
    bookie_changes,
    broker_changes,
    rewrite_properties,
    s3_identities,
    s3_security,
    zookeeper_conf,
)
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.errors import SettingsError

SHIPPED = """\
# zkServers=commented:2181
zkServers=localhost:2181
bookiePort = 3181
  journalSyncData:true
path=one,\\
  bookiePort=swallowed
last=x
"""

keys = st.from_regex(r"[a-zA-Z][a-zA-Z0-9._-]{0,8}", fullmatch=True)
values = st.text(st.characters(codec="ascii", exclude_characters="\\"), max_size=12).filter(
    lambda text: text.isprintable() and text == text.strip()
)


def read_pairs(text: str) -> list[tuple[str, str]]:
    """Key and value of each line of a file that has neither continuations nor escapes."""
    pairs = []
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            key, _, value = line.partition("=")
            pairs.append((key.strip(), value.strip()))
    return pairs


def test_a_changed_key_is_there_once():
    text = rewrite_properties(
        SHIPPED, {"zkServers": "127.0.0.1:1", "bookiePort": "2", "journalSyncData": "false"}
    )
    assert text.splitlines() == [
        "# zkServers=commented:2181",
        "path=one,\\",
        "  bookiePort=swallowed",
        "last=x",
        "zkServers=127.0.0.1:1",
        "bookiePort=2",
        "journalSyncData=false",
    ]


def test_none_removes_a_key_with_its_continuation():
    text = rewrite_properties(SHIPPED, {"path": None, "last": None})
    assert "path" not in text
    assert "swallowed" not in text
    assert "last" not in text


@given(st.lists(st.tuples(keys, values), max_size=12), st.dictionaries(keys, values, max_size=6))
def test_every_change_wins_and_nothing_else_moves(shipped, changes):
    before = "".join(f"{key}={value}\n" for key, value in shipped)
    after = read_pairs(rewrite_properties(before, changes))
    assert after == [pair for pair in shipped if pair[0] not in changes] + list(changes.items())


@pytest.mark.parametrize("value", ["a\nb=c", "a\\", "tab\there", "nul\0"])
def test_a_value_that_would_break_the_file_is_refused(value):
    with pytest.raises(SettingsError, match="value of key"):
        rewrite_properties("", {"key": value})


@pytest.mark.parametrize("key", ["", "a b", "a=b", "#a"])
def test_a_key_that_is_none_is_refused(key):
    with pytest.raises(SettingsError, match="not a configuration key"):
        rewrite_properties("", {key: "x"})


BOOKIE: dict[str, Any] = {
    "zookeeper": "127.0.0.1:1",
    "port": 2,
    "http_port": 3,
    "data_dir": "d",
}


def broker(options: StackOptions, name: str = "broker") -> dict[str, str | None]:
    return broker_changes(
        options,
        name,
        zookeeper="127.0.0.1:1",
        port=2,
        web_port=3,
        s3_url="http://127.0.0.1:4",
        nar_dir="n",
    )


def test_an_unset_lag_removes_the_shipped_one():
    shipped = "managedLedgerOffloadDeletionLagMs=14400000\n"
    assert "DeletionLag" not in rewrite_properties(
        shipped, broker(StackOptions(broker_deletion_lag_ms=None))
    )
    set_to = rewrite_properties(shipped, broker(StackOptions(broker_deletion_lag_ms=864_000_000)))
    assert "managedLedgerOffloadDeletionLagMs=864000000\n" in set_to


def test_the_callers_broker_conf_has_the_last_word():
    changes = broker(
        StackOptions(broker_conf={"managedLedgerCacheSizeMB": "8", "bindAddress": None})
    )
    assert (changes["managedLedgerCacheSizeMB"], changes["bindAddress"]) == ("8", None)


def test_one_broker_may_differ_from_the_others():
    options = StackOptions(
        brokers=2,
        broker_conf={"loadBalancerEnabled": "true", "managedLedgerOffloadDriver": "x"},
        one_broker_conf={"broker2": {"managedLedgerOffloadDriver": None}},
    )
    first, second = broker(options), broker(options, "broker2")
    assert first["managedLedgerOffloadDriver"] == "x"
    assert second["managedLedgerOffloadDriver"] is None
    assert first["loadBalancerEnabled"] == second["loadBalancerEnabled"] == "true"


def test_the_callers_bookie_conf_has_the_last_word():
    options = StackOptions(bookie_conf={"autoRecoveryDaemonEnabled": "true"})
    assert bookie_changes(StackOptions(), **BOOKIE)["autoRecoveryDaemonEnabled"] == "false"
    assert bookie_changes(options, **BOOKIE)["autoRecoveryDaemonEnabled"] == "true"


@pytest.mark.parametrize(("bookies", "copies"), [(1, "1"), (2, "2"), (3, "2")])
def test_quorums_fit_the_bookies(bookies, copies):
    changes = broker(StackOptions(bookies=bookies))
    assert [changes[f"managedLedgerDefault{what}"] for what in ("EnsembleSize", "AckQuorum")] == [
        copies,
        copies,
    ]


def test_every_server_listens_on_the_loopback_address_only():
    bookie = bookie_changes(StackOptions(), **BOOKIE)
    assert (bookie["listeningInterface"], bookie["httpServerHost"]) == ("lo", "127.0.0.1")
    assert broker(StackOptions())["bindAddress"] == "127.0.0.1"
    assert "clientPortAddress=127.0.0.1\n" in zookeeper_conf(port=1, data_dir="d")


def test_the_s3_server_knows_one_identity_and_signs_its_own_calls():
    (identity,) = json.loads(s3_identities(access_key="A", secret_key="S"))["identities"]
    assert identity["credentials"] == [{"accessKey": "A", "secretKey": "S"}]
    jwt = tomllib.loads(s3_security("K"))["jwt"]
    assert [jwt["signing"]["key"], jwt["filer_signing"]["key"]] == ["K", "K"]
    assert jwt["filer_signing"]["read"]["key"] == "K"
