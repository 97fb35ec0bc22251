"""Doctor names the ledgers whose publication record keeps no timestamp of its context."""

from dataclasses import replace

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.doctor.publications import check_stamps


def test_records_of_an_earlier_version_are_named_with_their_ledgers():
    scene = Scene(1)
    assert "0 records" in check_stamps(scene.process()).text
    scene.publish()
    ledger_id = scene.fill(TOPIC)
    scene.publish(ledger_id)
    found = check_stamps(scene.process())
    assert (found.level, found.text) == (
        "ok",
        "2 records, each with the timestamps of its contexts",
    )
    publications = scene.publications()
    [old] = [one for one in publications if one.record.ledgers[0].ledger_id == ledger_id]
    ledgers = tuple(replace(one, context_ms=None) for one in old.record.ledgers)
    scene.stack.book.replace(old, replace(old.record, ledgers=ledgers))
    text = check_stamps(scene.process()).text
    assert (
        f"ledgers of 1 topics, whose lag counts from the confirmation: persistent://t/ns/orders: {ledger_id}"
        in text
    )
