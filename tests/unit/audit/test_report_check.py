"""A report against the bucket: what was so and is not any more, and who accounts for it."""

import json
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.audit_reports import ReportScene, changed, facts_block, forge, leaves
from tests.support.audited_bucket import put_chain
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys, models
from tiering_assets.resources.errors import (
    FormatError,
    IntegrityError,
    RefusedError,
    TierkeeperError,
)
from tiering_assets.resources.settings import Settings, SignSettings

# What nobody but a signature vouches for: the bucket does not say it.
UNPROVEN = (
    "made_at", "tool_version", "in_flight_s", "forgotten", "other_records", "other_ledgers",
    "public_keys",
)  # fmt: skip


@pytest.fixture
def scene():
    return ReportScene()


def lines(checked):
    return checked.findings


def key_files(folder, name):
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(
        key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    )
    public.write_bytes(
        key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    )
    return str(private), str(public)


def with_keys(private="", public=""):
    return Settings(sign=SignSettings(private_key_file=private, public_key_files=public))


@pytest.mark.parametrize("how", [{}, {"deep": False}, {"ids": (41, 43)}], ids=str)
def test_what_is_as_it_was_is_equal(scene, how):
    checked = scene.check(scene.make(**how), deep=True)
    assert checked.findings == []
    assert checked.compared.gone == []
    assert checked.compared.newer == 0
    assert checked.attempts == (2 if "ids" in how else 3)


def test_what_came_since_is_no_difference(scene):
    text = scene.make()
    scene.store.advance(60.0)
    put_chain(scene.store, scene.book, 44)
    checked = scene.check(text)
    assert (checked.findings, checked.compared.newer) == ([], 1)


def test_damage_of_what_came_since_is_for_an_audit_to_find(scene):
    text = scene.make()
    scene.store.advance(60.0)
    new = put_chain(scene.store, scene.book, 44)
    scene.store.delete(new.certificate.data.key)
    assert scene.check(text).findings == []


@pytest.mark.parametrize(
    "kind",
    [
        models.Attempt,
        models.Certificate,
        models.Outcome,
        models.Publication,
        models.ReleaseIntent,
        models.Release,
    ],
    ids=lambda kind: kind.__name__,
)
@pytest.mark.parametrize("act", ["delete", "damage"])
def test_a_record_that_is_no_more_is_named(scene, kind, act):
    text = scene.make()
    key = scene.chains[0].stored[kind].key
    full = scene.book.prefix + key
    if act == "delete":
        scene.store.delete(full)
    else:
        scene.store.overwrite(full, b"{}")
    found = lines(scene.check(text))
    sha = scene.chains[0].stored[kind].sha256
    ledger = "-" if kind is models.Publication else "41"
    said = f"ledger {ledger}, {key}: SHA-256 of the record: expected {sha}, found "
    assert any(line.startswith(said) for line in found), found


@pytest.mark.parametrize("which", ["data", "index"])
def test_an_object_that_is_no_more_as_it_was_is_named(scene, which):
    text = scene.make()
    facts = getattr(scene.chains[0].certificate, which)
    scene.store.overwrite(facts.key, b"other")
    where = f"ledger 41, {facts.key}: "
    found = lines(scene.check(text))
    assert f"{where}size: expected {facts.size}, found 5" in found
    assert any(line.startswith(f"{where}ETag: expected {facts.etag}, found ") for line in found)
    scene.store.delete(facts.key)
    assert f"{where}object: expected {facts.size} bytes, found nothing" in lines(scene.check(text))


def test_objects_are_compared_though_their_certificate_is_gone(scene):
    text = scene.make()
    one = scene.chains[0]
    scene.store.delete(scene.book.prefix + one.stored[models.Certificate].key)
    scene.store.overwrite(one.certificate.data.key, b"other")
    found = lines(scene.check(text))
    assert any(one.certificate.data.key in line and "found 5" in line for line in found)
    assert not any(one.certificate.index.key in line for line in found)


def test_a_byte_that_rotted_is_found_where_bytes_are_read(scene):
    text = scene.make()
    facts = scene.chains[0].certificate.data
    [body, _metadata] = scene.store.peek(facts.key)
    scene.store.rot(facts.key, body[:150] + bytes([body[150] ^ 1]) + body[151:])
    assert scene.check(text).findings == []
    assert any(f"ledger 41, {facts.key}: " in one for one in lines(scene.check(text, deep=True)))


def test_a_finding_that_is_there_no_more_is_a_difference(scene):
    facts = scene.chains[0].certificate.data
    [body, metadata] = scene.store.peek(facts.key)
    scene.store.delete(facts.key)
    text = scene.make()
    assert scene.check(text).findings == []
    scene.store.put(facts.key, body, metadata=metadata)
    found = lines(scene.check(text))
    assert found == [f"ledger 41, {facts.key}: object: expected nothing, found {facts.size} bytes"]


def test_what_lay_there_before_and_the_report_leaves_out_is_a_difference(scene):
    body = json.loads(facts_block(scene.make()))
    short = {**body, "ledgers": body["ledgers"][1:]}
    key = scene.chains[0].stored[models.Certificate].key
    said = f"ledger 41, {key}: record: expected nothing, as the report has none, found one of "
    assert any(line.startswith(said) for line in lines(scene.check(forge(short))))
    del body["ledgers"][1]["records"]["releases"]
    assert any("releases/42/" in line for line in lines(scene.check(forge(body))))


@pytest.mark.parametrize("damaged", [False, True])
def test_every_fact_that_is_forged_is_found_without_a_signature(scene, damaged):
    """Whoever has our code seals other facts anew; then the bucket says that they are not so."""
    if damaged:
        scene.store.overwrite(scene.chains[0].certificate.data.key, b"other")
        scene.store.delete(scene.chains[1].certificate.index.key)
    body = json.loads(facts_block(scene.make()))
    missed = []
    for path in leaves(body):
        try:
            found = lines(scene.check(forge(changed(body, path)), deep=True))
        except TierkeeperError:
            continue
        if not found:
            missed.append(path)
    unproven = [*((name,) for name in UNPROVEN), ("asked", "topics"), ("asked", "namespaces")]
    assert [path for path in missed if path not in unproven] == []


def test_a_signature_is_checked_by_the_keys_that_are_set(scene, tmp_path):
    private, public = key_files(tmp_path, "one")
    _, strange = key_files(tmp_path, "two")
    scene.settings = with_keys(private)
    text = scene.make()
    checked = scene.check(text)
    assert "nobody vouches for it" in checked.signature
    assert (checked.vouched, checked.findings) == (False, [])
    scene.settings = with_keys("", public)
    checked = scene.check(text)
    assert checked.vouched
    assert checked.other_keys
    assert {line.partition(": signature: ")[2] for line in checked.findings} == {
        "expected of an accepted key, found it is not signed"
    }  # of certificates, which the report did not ask about
    scene.settings = with_keys("", strange)
    with pytest.raises(IntegrityError, match="signed by key"):
        scene.check(text)


def test_a_report_without_a_signature_is_a_finding_where_keys_are_set(scene, tmp_path):
    text = scene.make()
    scene.settings = with_keys("", key_files(tmp_path, "one")[1])
    checked = scene.check(text)
    assert checked.findings[0].startswith("unsigned: the report: expected a signature by ")
    scene.settings = Settings()
    assert scene.check(text).findings == []


def test_signatures_that_counted_are_facts(scene, tmp_path):
    scene.settings = with_keys(*key_files(tmp_path, "one"))
    text = scene.make()
    body = json.loads(facts_block(text))
    assert {one["signed_by"] for one in body["ledgers"]} == {None}
    assert [one["kind"] for one in body["findings"]] == ["unsigned"] * 3
    assert "0 of 3 certificates have a good one" in text
    checked = scene.check(text)
    assert (checked.vouched, checked.findings) == (True, [])
    scene.settings = Settings()
    assert scene.check(text).findings == []  # who has no keys cannot miss a signature


def test_it_is_told_when_it_is_of_another_place(scene):
    text = scene.make()
    with pytest.raises(RefusedError, match="--instance is other"):
        scene.check(text, instance="other")
    elsewhere = ReportScene()
    elsewhere.store._bucket = "other-bucket"
    with pytest.raises(RefusedError, match=r"store\.bucket is other-bucket"):
        elsewhere.check(text)
    empty = ReportScene()
    for key in empty.store.peek_keys():
        empty.store.delete(key)
    RecordBook(empty.store, "other").create(
        keys.hold(1),
        models.Hold(ledger_id=1, reason="r", author="a", held_at=empty.store.server_time()),
    )
    with pytest.raises(RefusedError, match="has no records of instance inst"):
        empty.check(text)


def test_a_file_that_is_no_report_reads_nothing(scene):
    cut = scene.make()[:-9]
    scene.store.fail("list_objects", times=1)
    scene.store.fail("head", times=1)
    for body in (b"", b"{}", cut.encode()):
        with pytest.raises(FormatError):
            scene.check(body)


def test_a_release_may_be_under_way_as_long_as_it_might_for_the_report(scene):
    scene.store.delete(scene.book.prefix + scene.chains[0].stored[models.Release].key)
    text = scene.make()
    assert scene.check(text).findings == []
    scene.store.advance(timedelta(hours=2).total_seconds())
    [found] = scene.check(text).findings
    assert "releases/41/" in found
    assert found.endswith("found none")
