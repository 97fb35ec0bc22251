import dataclasses
import json
import traceback
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.records.examples import AT, EXAMPLES, UID
from tiering_assets.offload_format.block import FRAME_BYTES, PARTS_MAX
from tiering_assets.records.codec import RECORD_TYPES, decode_record, encode_record
from tiering_assets.records.models import Certificate, Claim, Hold, Outcome
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store import records as stored

FIXTURES = Path(__file__).parent / "fixtures"
KEY = "outcomes/42/x.json"
CLAIM, CERTIFICATE, OUTCOME = (
    next(e for e in EXAMPLES if isinstance(e, kind)) for kind in (Claim, Certificate, Outcome)
)
each_example = pytest.mark.parametrize("record", EXAMPLES, ids=lambda r: r.kind)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def fixture(record):
    name = record.kind.removeprefix("tierkeeper/").replace("/", "-")
    return (FIXTURES / f"{name}.json").read_bytes()


def test_there_is_one_example_of_each_kind():
    assert sorted(type(e).kind for e in EXAMPLES) == sorted(kind.kind for kind in RECORD_TYPES)
    assert len({kind.kind for kind in RECORD_TYPES}) == len(RECORD_TYPES)


@each_example
def test_a_record_survives_canonical_json(record):
    body = stored.encode_record(encode_record(record))
    again = decode_record(type(record), stored.decode_record(body, key=KEY), key=KEY)
    assert again == record
    assert stored.encode_record(encode_record(again)) == body


@each_example
def test_a_record_of_this_version_stays_readable(record):
    """The files are never changed: what was once written must be read for ever."""
    body = stored.decode_record(fixture(record), key=KEY)
    assert decode_record(type(record), body, key=KEY) == record


@each_example
def test_what_is_written_today_still_has_every_field_of_this_version(record):
    was = json.loads(fixture(record))
    assert known_then(encode_record(record), was) == was


def test_a_certificate_of_version_1_is_read_and_written_as_it_was():
    body = stored.decode_record((FIXTURES / "certificate-1.json").read_bytes(), key=KEY)
    older = decode_record(Certificate, body, key=KEY)
    assert isinstance(CERTIFICATE, Certificate)
    assert older == dataclasses.replace(CERTIFICATE, block_digest="entries")
    again = encode_record(older)
    assert again["schema"] == "tierkeeper/certificate/1"
    assert "block_digest" not in again
    assert known_then(again, body) == body


@pytest.mark.parametrize("version", ["0", "3", "1/", "entries"])
def test_a_certificate_of_any_other_version_is_refused(version):
    body = {**encode_record(CERTIFICATE), "schema": f"tierkeeper/certificate/{version}"}
    with pytest.raises(FormatError, match=f"certificate/{version}', expected"):
        decode_record(Certificate, body, key=KEY)


def test_what_version_1_could_not_say_is_not_read_in_it():
    body = {**encode_record(CERTIFICATE), "schema": "tierkeeper/certificate/1"}
    assert decode_record(Certificate, body, key=KEY).block_digest == "entries"
    with pytest.raises(FormatError, match="block_digest"):
        decode_record(
            Certificate, {**body, "schema": Certificate.kind, "block_digest": "x"}, key=KEY
        )


def known_then(now, then):
    """What is written now, without the fields that were added since, at any depth."""
    if isinstance(then, dict) and isinstance(now, dict):
        return {name: known_then(now[name], then[name]) for name in then if name in now}
    if isinstance(then, list) and isinstance(now, list):
        return [known_then(*both) for both in zip(now, then, strict=True)]
    return now


@each_example
def test_fields_of_a_newer_minor_version_are_ignored(record):
    body = {**encode_record(record), "added_later": {"deep": [1]}}
    assert decode_record(type(record), body, key=KEY) == record


def test_new_fields_inside_a_nested_object_are_ignored():
    body = encode_record(CERTIFICATE)
    body["blocks"][0]["added_later"] = 1
    assert decode_record(Certificate, body, key=KEY) == CERTIFICATE


def test_a_certificate_from_before_messages_were_counted_tells_none():
    assert isinstance(CERTIFICATE, Certificate)
    [block] = CERTIFICATE.blocks
    assert (block.messages, block.publish_min_ms, block.publish_max_ms) == (None, None, None)
    told = dataclasses.replace(block, messages=12, publish_min_ms=0, publish_max_ms=2**63 - 1)
    now = dataclasses.replace(CERTIFICATE, blocks=(told,))
    body = stored.decode_record(stored.encode_record(encode_record(now)), key=KEY)
    assert decode_record(Certificate, body, key=KEY) == now
    for name in ("messages", "publish_min_ms", "publish_max_ms"):
        del body["blocks"][0][name]
    assert decode_record(Certificate, body, key=KEY) == CERTIFICATE


def test_a_certificate_of_as_many_blocks_as_can_be_is_a_record_whatever_producers_wrote():
    """A store takes objects of 5 TiB in 10,000 parts; the smallest frames have 12 bytes."""
    assert isinstance(CERTIFICATE, Certificate)
    size = 5 * 2**40 // PARTS_MAX
    entries = size // FRAME_BYTES
    blocks = tuple(
        dataclasses.replace(
            CERTIFICATE.blocks[0],
            part_number=i + 1,
            first_entry_id=entries * i,
            last_entry_id=entries * (i + 1) - 1,
            offset=size * i,
            block_length=size,
            payload_bytes=size,
            messages=entries * (2**31 - 1),
            publish_min_ms=2**63 - 1,
            publish_max_ms=2**63 - 1,
        )
        for i in range(PARTS_MAX)
    )
    body = stored.encode_record(encode_record(dataclasses.replace(CERTIFICATE, blocks=blocks)))
    assert len(body) < stored.RECORD_BYTES_MAX - 20_000  # for names and a signature


@pytest.mark.parametrize(
    "schema", ["tierkeeper/outcome/2", "tierkeeper/claim/1", "", None, 1, ["tierkeeper/outcome/1"]]
)
def test_another_schema_is_refused_by_name(schema):
    with pytest.raises(FormatError) as caught:
        decode_record(Outcome, {**encode_record(OUTCOME), "schema": schema}, key=KEY)
    assert str(caught.value) == (
        f"record {KEY}: schema {schema!r}, expected 'tierkeeper/outcome/1'"
    )


def test_a_missing_schema_is_refused():
    body = encode_record(OUTCOME)
    del body["schema"]
    with pytest.raises(FormatError, match="schema None, expected 'tierkeeper/outcome/1'"):
        decode_record(Outcome, body, key=KEY)


def test_an_endless_schema_is_not_repeated_in_the_error():
    with pytest.raises(FormatError) as caught:
        decode_record(Outcome, {"schema": "x" * 10_000}, key=KEY)
    assert len(str(caught.value)) < 250


@each_example
def test_every_required_field_is_missed_by_name(record):
    for field in dataclasses.fields(record):
        if (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
        ):
            continue
        body = encode_record(record)
        del body[field.name]
        with pytest.raises(FormatError) as caught:
            decode_record(type(record), body, key=KEY)
        assert str(caught.value) == f"record {KEY}: field {field.name}: Field required"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ledger_id", "42"),
        ("ledger_id", 42.0),
        ("ledger_id", True),
        ("ledger_id", None),
        ("uid", "not-a-uuid"),
        ("uid", 42),
        ("outcome", "perhaps"),
        ("reason", 1),
        ("decided_at", "2026-01-02T03:04:05"),  # no offset: no comparison with a clock is possible
        ("decided_at", "2026-01-02"),
        ("decided_at", 1767225600),
        ("writer", "me"),
        ("previous", None),
    ],
)
def test_a_wrong_value_is_named_by_key_and_field(field, value):
    with pytest.raises(FormatError) as caught:
        decode_record(Outcome, {**encode_record(OUTCOME), field: value}, key=KEY)
    assert str(caught.value).startswith(f"record {KEY}: field {field}")


def test_a_wrong_nested_value_is_named_by_its_path():
    body = encode_record(CERTIFICATE)
    body["blocks"][0]["offset"] = "0"
    with pytest.raises(FormatError, match=r"field blocks\.0\.offset: Input should be a valid int"):
        decode_record(Certificate, body, key=KEY)


@pytest.mark.parametrize("field", ["ledger_id", "uid", "outcome", "decided_at", "writer"])
def test_an_error_never_shows_the_value_it_found(field):
    """Neither in the message nor in the chain that a traceback prints."""
    secret = "hunter2-very-secret"
    with pytest.raises(FormatError) as caught:
        decode_record(Outcome, {**encode_record(OUTCOME), field: secret}, key=KEY)
    assert secret not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", RECORD_TYPES, ids=lambda kind: kind.kind)
@given(body=st.dictionaries(st.text(max_size=12), JSON, max_size=4))
def test_any_object_is_a_record_or_a_format_error(kind, body):
    with pytest.raises(FormatError):
        decode_record(kind, {**body, "schema": kind.kind}, key=KEY)


@given(data=st.data())
def test_any_damage_to_a_record_is_a_record_or_a_format_error(data):
    record = data.draw(st.sampled_from(EXAMPLES))
    body = encode_record(record)
    for name in data.draw(st.sets(st.sampled_from(sorted(body)), min_size=1, max_size=3)):
        body[name] = data.draw(JSON)
    try:
        found = decode_record(type(record), body, key=KEY)
    except FormatError:
        return
    assert decode_record(type(record), encode_record(found), key=KEY) == found


@given(
    at=st.datetimes(
        min_value=datetime(1970, 1, 2),  # noqa: DTZ001  the strategy adds the time zone
        max_value=datetime(9000, 1, 1),  # noqa: DTZ001
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone.min]),
    ),
    ledger_id=st.integers(0, 2**63 - 1),
    attempt=st.none() | st.uuids(),
    run_id=st.text(),
)
def test_any_claim_that_can_be_written_can_be_read(at, ledger_id, attempt, run_id):
    claim = Claim(ledger_id=ledger_id, run_id=run_id, attempt=attempt, expires_at=at)
    try:
        body = stored.encode_record(encode_record(claim))
    except ValueError:
        assert any(0xD800 <= ord(c) < 0xE000 for c in run_id)  # half a surrogate is no text
    else:
        assert decode_record(Claim, stored.decode_record(body, key=KEY), key=KEY) == claim


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"expires_at": AT.replace(tzinfo=None)}, "field expires_at"),
        ({"ledger_id": "42"}, "field ledger_id"),
        ({"attempt": str(UID)}, "hold it unchanged"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(change, named):
    with pytest.raises(ValueError, match=named):
        encode_record(dataclasses.replace(CLAIM, **change))


@pytest.mark.parametrize("extra", [{"x": float("nan")}, {"x": float("inf")}, {"x": (1, 2)}])
def test_notes_that_json_would_change_are_not_written(extra):
    hold = Hold(ledger_id=1, reason="r", author="a", held_at=AT, extra=extra)
    with pytest.raises(ValueError, match="tierkeeper/hold/1"):
        encode_record(hold)
