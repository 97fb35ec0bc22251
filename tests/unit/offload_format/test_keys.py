from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.offload_format import keys
from tiering_assets.resources.errors import FormatError

UID = UUID("da861b42-3d30-4158-babd-f8a73e5850b7")
KEY = "da861b42-3d30-4158-babd-f8a73e5850b7-ledger-7"


def test_keys_of_the_published_vector():
    assert keys.data_key(UID, 7) == KEY
    assert keys.index_key(UID, 7) == KEY + "-index"


@given(st.uuids(), st.integers(0, 2**63 - 1))
def test_keys_parse_back(uid, ledger_id):
    assert keys.parse_key(keys.data_key(uid, ledger_id)) == (uid, ledger_id, False)
    assert keys.parse_key(keys.index_key(uid, ledger_id)) == (uid, ledger_id, True)


@pytest.mark.parametrize(
    "key",
    [
        "",
        str(UID),  # streaming data object
        f"{UID}-index",
        KEY.upper(),
        KEY.replace("-ledger-7", "-ledger-07"),
        KEY.replace("-ledger-7", "-ledger--7"),
        KEY.replace("-ledger-7", "-ledger-\u0667"),  # a digit, but not ours
        KEY + "\n",
        "x" + KEY,
        "{" + KEY,
        KEY + "-index-index",
        f"{UID}-ledger-9223372036854775808",
        "tierkeeper/i/attempts/7/x.json",
    ],
)
def test_other_keys_are_not_ours_to_name(key):
    assert keys.parse_key(key) is None


@given(st.one_of(st.text(), st.from_regex(r"[0-9a-fA-F-]{30,40}-ledger-\d{0,22}(-index)?")))
def test_any_text_parses_to_a_key_that_writes_back_or_to_none(text):
    parsed = keys.parse_key(text)
    if parsed is not None:
        write = keys.index_key if parsed.is_index else keys.data_key
        assert write(parsed.uid, parsed.ledger_id) == text


@pytest.mark.parametrize("ledger_id", [-1, 2**63])
def test_an_impossible_ledger_id_has_no_key(ledger_id):
    with pytest.raises(ValueError, match="ledger id"):
        keys.data_key(UID, ledger_id)


FIELDS = {"ml_name": "t/n/persistent/x", "software_version": "0", "git_sha": "", "instance": "i"}


def test_cluster_is_left_out_when_unknown():
    metadata = keys.user_metadata(role="index", **FIELDS)
    assert "pulsarclustername" not in metadata
    assert metadata["role"] == "index"
    assert metadata["s3managedledgeroffloaderformatversion"] == "1"
    assert all(name == name.lower() for name in metadata)


@pytest.mark.parametrize("value", ["caf\u00e9", "two\nlines", " padded"])
def test_values_a_header_would_change_are_refused(value):
    with pytest.raises(ValueError, match="managedledgername"):
        keys.user_metadata(role="data", **FIELDS | {"ml_name": value})


@pytest.mark.parametrize("name", [keys.FORMAT_VERSION_KEY, "S3ManagedLedgerOffloaderFormatVersion"])
def test_version_1_is_accepted_in_any_case_of_its_key(name):
    keys.check_format_version({name: "1"})


@pytest.mark.parametrize(
    "metadata", [{}, {keys.FORMAT_VERSION_KEY: "2"}, {keys.FORMAT_VERSION_KEY: " 1"}]
)
def test_what_a_broker_would_not_read_is_refused(metadata):
    with pytest.raises(FormatError, match="expected '1'"):
        keys.check_format_version(metadata)


@pytest.mark.parametrize(
    ("versions", "said"),
    [([], "found nothing;"), (["2"], "found '2';"), (["1", "2"], "found '1', '2';")],
)
def test_another_format_version_is_named(versions, said):
    spelt = (keys.FORMAT_VERSION_KEY, keys.FORMAT_VERSION_KEY.upper())
    with pytest.raises(FormatError, match=f"expected '1', {said}"):
        keys.check_format_version(dict(zip(spelt, versions, strict=False)))
