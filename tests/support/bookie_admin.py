"""What tests ask of a bookie beside its state: start garbage collection, watch it, look at disks.

Owns: a garbage collection is asked for with both compaction flags said out loud, because a missing
one means different things in different releases (BookKeeper `TriggerGCService`). A PUT during a
run is ignored although the answer says otherwise, so what counts is `gc_running` afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from tiering_assets.resources.bookkeeper.admin import BookieAdmin


@dataclass(frozen=True, slots=True)
class DiskInfo:
    """Bytes of the file systems that hold the ledger directories."""

    free_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GcDetails:
    """One ledger directory. Times are epoch ms, 0 if it never ran since the bookie started.

    The counters of the same answer are left out: without a stats provider they stay zero.
    """

    force_compacting: bool
    major_compacting: bool
    minor_compacting: bool
    last_major_compaction_ms: int
    last_minor_compaction_ms: int


class CollectingBookie(BookieAdmin):
    """A bookie whose garbage collection is started and watched."""

    def trigger_gc(self, *, force_major: bool = False, force_minor: bool = False) -> None:
        """Start one run on this bookie and return at once. Both False: no compaction."""
        body = {"forceMajor": force_major, "forceMinor": force_minor}
        self._call("PUT", "/gc", body)

    def gc_running(self) -> bool:
        """Whether a forced run is under way."""
        answer = self._object("/gc")
        said = str(answer.get("is_in_force_gc")).lower()  # a string in the answers seen
        if said not in ("true", "false"):
            raise self._unexpected("/gc", answer)
        return said == "true"

    def gc_details(self) -> list[GcDetails]:
        """One element per ledger directory."""
        answer = self._call("GET", "/gc_details")
        if not isinstance(answer, list):
            raise self._unexpected("/gc_details", answer)
        try:
            return [
                GcDetails(
                    force_compacting=bool(one["forceCompacting"]),
                    major_compacting=bool(one["majorCompacting"]),
                    minor_compacting=bool(one["minorCompacting"]),
                    last_major_compaction_ms=int(one["lastMajorCompactionTime"]),
                    last_minor_compaction_ms=int(one["lastMinorCompactionTime"]),
                )
                for one in answer
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise self._unexpected("/gc_details", answer) from error

    def disk_info(self) -> DiskInfo:
        answer = self._object("/info")
        try:
            return DiskInfo(int(answer["freeSpace"]), int(answer["totalSpace"]))
        except (KeyError, TypeError, ValueError) as error:
            raise self._unexpected("/info", answer) from error

    def entry_log_files(self) -> list[str]:
        """Names of the entry logs on disk, such as 1a.log."""
        answer = self._object("/list_disk_file?file_type=entrylog")
        names: list[str] = []
        for key, value in answer.items():
            if "entrylog" in key.replace(" ", "").lower():
                names.extend(str(value).split())
        return names
