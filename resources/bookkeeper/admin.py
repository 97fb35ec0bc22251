"""A bookie's admin HTTP API: start garbage collection, watch it, look at disks and state.

Owns: a garbage collection is asked for with both compaction flags said out loud, because a missing
one means different things in different releases (BookKeeper `TriggerGCService`). A PUT during a
run is ignored although the answer says otherwise, so what counts is `gc_running` afterwards.
Refuses everything that deletes or reconfigures; the API also discloses ledger passwords, and no
such path is called here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import requests

from resources.errors import BookieError

_PREFIX = "/api/v1/bookie"


@dataclass(frozen=True, slots=True)
class DiskInfo:
    """Bytes of the file systems that hold the ledger directories."""

    free_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BookieState:
    running: bool
    read_only: bool
    shutting_down: bool


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


class BookieAdmin:
    """Talks to one bookie at `base_url`, such as http://bookie:8000. Not shared between threads.

    Every method raises BookieError when the bookie cannot be reached, answers with an HTTP error,
    or with something else than documented.
    """

    def __init__(
        self, base_url: str, *, timeout_s: float = 30.0, session: requests.Session | None = None
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._session = session or requests.Session()

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

    def state(self) -> BookieState:
        answer = self._object("/state")
        try:
            return BookieState(
                running=bool(answer["running"]),
                read_only=bool(answer["readOnly"]),
                shutting_down=bool(answer["shuttingDown"]),
            )
        except KeyError as error:
            raise self._unexpected("/state", answer) from error

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _object(self, path: str) -> dict[str, Any]:
        answer = self._call("GET", path)
        if not isinstance(answer, dict):
            raise self._unexpected(path, answer)
        return answer

    def _call(self, method: str, path: str, body: dict[str, bool] | None = None) -> Any:
        url = f"{self._base_url}{_PREFIX}{path}"
        try:
            answer = self._session.request(method, url, json=body, timeout=self._timeout_s)
        except requests.RequestException as error:
            raise BookieError(f"bookie admin {method} {url}: {error}") from error
        if answer.status_code != requests.codes.ok:
            raise BookieError(
                f"bookie admin {method} {url}: HTTP {answer.status_code} {answer.text[:200]!r}"
            )
        if method == "PUT":
            return None  # a sentence for people
        try:
            return answer.json()
        except ValueError as error:
            raise self._unexpected(path, answer.text) from error

    def _unexpected(self, path: str, answer: object) -> BookieError:
        return BookieError(
            f"bookie admin {self._base_url}{_PREFIX}{path}: unexpected answer {str(answer)[:200]!r}"
        )
