"""Every remote effect by name, once it is done: told to the log, and where a test may kill the
process.

Owns: the list. A point that no step reaches, or that is not in the list, fails a test. The log has
one line for each effect, which `-v` shows; where nobody listens, and with the environment variable
unset, reaching a point costs two comparisons. The kill is SIGKILL to ourselves, so nothing is
flushed, closed or cleaned up, exactly as when the machine loses power.

There is one point per gap: right after each effect, and none right before it, as nothing happens
between one effect's "after" and the next one's "before" but reads. Before the first effect of a
step there is nothing to leave behind. Where effects repeat (parts, outcomes, deletes) the point
repeats with them, and `name:2` is its second time. Effects that a step shares with others have one
name: claims (taken, renewed), parts and read-backs of an offload are also those of a heal. A record
alone, as a hold or a pause is set, leaves nothing half done. docs/crash-points.md says what each
leaves.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name

POINTS: Final = (
    "day_book.opened",
    "offload.claimed",
    "offload.attempt_recorded",
    "offload.upload_created",
    "copy.part_sent",  # or the whole object of one block
    "offload.parts_sent",
    "offload.completed",
    "offload.strays_aborted",  # only where a create was sent twice
    "offload.index_put",
    "offload.abandoned",  # only where a copy failed
    "offload.upload_aborted",
    "verify.read_back",
    "verify.quarantined",  # only where the copy differs
    "verify.certified",
    "publish.quarantined",  # only where the copy is not the certified one any more
    "publish.outcome_won",
    "publish.context_set",
    "reload.recorded",
    "publish.unloaded",
    "publish.confirmed",
    "publish.recorded",
    "publish.canary_recorded",
    "undo.recorded",  # only where a publication or the marks of a release are taken back
    "publish.context_removed",  # only where the broker could not read what was published
    "publish.withdrawn",
    "offload.claim_dropped",
    "release.planned",
    "release.begun",
    "release.intended",
    "release.quarantined",  # only where the copy, read again, differs
    "release.marked",
    "release.unloaded",
    "release.rehearsed",
    "release.deleted",
    "release.recorded",
    "release.marks_removed",  # only where the rehearsal failed
    "release.unmarked",
    "hold.lift_recorded",
    "hold.lifted",
    "pause.lift_recorded",  # a change of its mode, too
    "pause.lifted",
    "sweep.abandoned",
    "sweep.aborted",
    "sweep.stray_aborted",
    "sweep.deleted",
    "sweep.recorded",
    "sweep.noted",  # only where a broker left something
    "sweep.intended",
    "sweep.taken_out",
    "sweep.reloaded",
    "scrub.quarantined",
    "scrub.copy_recorded",  # only of a copy that a broker made
    "scrub.recorded",
    "day_book.gone_noted",  # only where records are taken away that people or plans had made
    "day_book.closed",
)

VARIABLE: Final = "TIERKEEPER_CRASH_AT"
_LOG = logging.getLogger(__name__)
_REMEMBERED = 10_000
_last: dict[object, float] = {}  # when the newest effect on a ledger or topic was told


class Line(str):
    """A line of progress for people. `event` has what it is about, for `--log-format json`."""

    event: Mapping[str, object]


class _Countdown:
    """The point that the environment names, and how often it is still passed alive."""

    def __init__(self, wanted: str) -> None:
        self.point, _, times = wanted.partition(":")
        self.left = int(times or 1)


_wanted = _Countdown(os.environ.get(VARIABLE, ""))


def reach(
    point: str, *ledger_ids: int, topic: str | None = None, attempt: UUID | None = None
) -> None:
    """Tell the log what was done, and die here if this is the point, and the time, that a test
    named.

    `topic` is a managed-ledger name. Without ledgers the effect is one on a whole topic, or on
    none.
    """
    if _LOG.isEnabledFor(logging.INFO):
        _log_effect(point, ledger_ids, topic, attempt)
    if not _wanted.point:
        return
    if point not in POINTS:
        raise ValueError(f"unknown crash point {point!r}")
    if point == _wanted.point:
        _wanted.left -= 1
        if _wanted.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def about(
    text: str, *ledger_ids: int, topic: str | None = None, attempt: UUID | str | None = None
) -> Line:
    """A line of progress with its ledgers, topic and attempt; seconds since an effect on them."""
    line = Line(text)
    line.event = _event(ledger_ids, topic, attempt)
    return line


def _log_effect(
    point: str, ledger_ids: Sequence[int], ml_name: str | None, attempt: UUID | None
) -> None:
    """One line; with --log-format json its fields, too."""
    event = _event(ledger_ids, ml_name, attempt)
    if len(_last) >= _REMEMBERED:
        _last.clear()
    _last[tuple(ledger_ids) or ml_name] = time.monotonic()
    words = "; ".join(form(event[name]) for name, form in _FORMS.items() if name in event)
    _LOG.info("%s", f"{point} {words}".strip(), extra={"event": {"step": point, **event}})


def _event(
    ledger_ids: Sequence[int], ml_name: str | None, attempt: UUID | str | None
) -> dict[str, Any]:
    """What a line is about. Seconds are since the last effect that was told of the same."""
    event: dict[str, Any] = {}
    if ledger_ids:
        event["ledgers"] = [*ledger_ids]
    if ml_name is not None:
        event["topic"] = _topic_of(ml_name)
    if attempt is not None:
        event["attempt"] = str(attempt)
    before = _last.get(tuple(ledger_ids) or ml_name)
    if before is not None:
        event["seconds"] = round(time.monotonic() - before, 3)
    return event


def _ledgers_text(ledger_ids: Sequence[int]) -> str:
    return f"ledger{'s' * (len(ledger_ids) > 1)} {', '.join(map(str, ledger_ids))}"


_FORMS: Final[dict[str, Callable[[Any], str]]] = {
    "ledgers": _ledgers_text,
    "topic": str,
    "attempt": "attempt {}".format,
    "seconds": "{:.3f} s".format,
}


def _topic_of(ml_name: str) -> str:
    try:
        return str(parse_managed_ledger_name(ml_name))
    except FormatError:
        return ml_name
