"""IndexFacts of golden ledgers, with block headers made from what the broker wrote."""

import json
from struct import pack

from tests.support.golden_objects import GoldenLedger
from tiering_assets.quality.facts import IndexFacts


def golden_index_facts(ledger: GoldenLedger) -> IndexFacts:
    """What a verification would gather; where the data object is left out, from its block table."""
    facts = ledger.facts
    blocks = facts["blocks"]
    if ledger.has_data:
        data = ledger.data()
        headers = {b["part"]: data[b["offset"] : b["offset"] + 128] for b in blocks}
    else:
        headers = {
            b["part"]: pack(">Iqqq100x", 0xFBDBABCB, 128, b["length"], b["first"]) for b in blocks
        }
    manifest = json.loads((ledger.folder / "manifest.json").read_text())
    infos = manifest["files"]["ml_after"]["decoded"]["ledgerInfo"]
    info = next(info for info in infos if info["ledgerId"] == ledger.ledger_id)
    return IndexFacts(
        ledger_id=ledger.ledger_id,
        index=ledger.index(),
        index_size=facts["index_size"],
        data_size=facts["data_size"],
        headers=headers,
        last_entry_id=facts["last_entry_id"],
        ledger_length=facts["bk_metadata"]["length"],
        payload_bytes=facts["bk_metadata"]["length"],
        topic_entries=info["entries"],
        topic_bytes=info["size"],
    )
