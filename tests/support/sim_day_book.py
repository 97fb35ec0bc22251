"""K2 and K3 of the day book, judged by what lies in the simulated bucket.

Owns: a record of a ledger is put while an open page of its run names the ledger, and a run that
ended without trouble has named all its records; pages have no gap and name the page before. Of a
run that was killed, or that was told of an error by the store, nobody can ask the second.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from tests.support.sim_truth import Truth
from tiering_assets.ground.named_records import is_lasting, is_named, ledgers_of
from tiering_assets.records import keys
from tiering_assets.records.codec import RECORD_TYPES, decode_record, schemas_of
from tiering_assets.resources.errors import FormatError

if TYPE_CHECKING:
    from tests.support.sim_clients import Process
    from tests.support.sim_world import World

_TYPE_OF = {schema: kind for kind in RECORD_TYPES for schema in schemas_of(kind)}


def ledgers_in(key: str, body: Mapping[str, Any]) -> tuple[int, ...]:
    """The ledgers that a record is about."""
    return ledgers_of(decode_record(_TYPE_OF[body["schema"]], body, key=key))


class DayBookJudge(Truth):
    """Told of every record that is put, and of the end of every process."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._taken_up: dict[Process, set[int]] = defaultdict(set)  # two may share a run's id
        self._unnamed: dict[Process, dict[str, str]] = defaultdict(dict)
        self._pages: dict[str, tuple[int, str]] = {}

    def judge_record_put(self, process: Process, key: str, bytes_put: bytes) -> None:
        """`key` is relative to the instance's prefix."""
        digest = sha256(bytes_put).hexdigest()
        try:
            body = json.loads(bytes_put)
            about = {*ledgers_in(key, body)}
        except (ValueError, KeyError, TypeError, FormatError):
            return  # a test that damages what lies there by the client of a process
        if key.startswith(keys.DAY_BOOK):
            self._judge_page(process, key, body, digest)
            return
        strange = about - self._taken_up[process]
        if strange:
            self.report("K3", f"{key} written, no open page of {process.name} names {strange}")
        if is_named(key):
            self._unnamed[process][key] = digest

    def judge_end(self, process: Process) -> None:
        """After what the process does at its end, if it is not killed."""
        left = {
            key: digest
            for key, digest in self._unnamed.pop(process, {}).items()
            if is_lasting(key) or self._lies_there(process, key, digest)
        }
        if left and not process.told_errors:
            self.report("K3", f"{process.name} ended, no close page names {sorted(left)}")

    def _lies_there(self, process: Process, key: str, digest: str) -> bool:
        """False where another run has put its own in the place of one that is replaced."""
        found = self.world.objects.peek(f"tierkeeper/{process.site.cluster.instance}/{key}")
        return found is not None and sha256(found[0]).hexdigest() == digest

    def _judge_page(self, process: Process, key: str, page: Mapping[str, Any], digest: str) -> None:
        instance = process.site.cluster.instance
        number, before = self._pages.get(instance, (0, ""))
        found = page["number"], keys.page_number(key)
        lies_there = self.world.objects.peek(f"tierkeeper/{instance}/{keys.page(number)}")
        known = {before, before if lies_there is None else sha256(lies_there[0]).hexdigest()}
        if found != (number + 1, number + 1) or page["previous"] not in known:
            self.report("K2", f"page {found}, {page['previous']} follows {number, known}")
        self._pages[instance] = page["number"], digest
        if page["phase"] == "open":
            self._taken_up[process] |= {*page["ledgers"]}
        elif page["phase"] == "close":
            self._taken_up[process] -= {*page["ledgers"]}
            unnamed = self._unnamed[process]
            for one in page["records"]:
                if unnamed.get(one["key"]) == one["sha256"]:
                    del unnamed[one["key"]]
